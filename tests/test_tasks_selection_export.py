"""The exported selection model on odd texts, and in a process that has TensorFlow alone."""

import subprocess
import sys
import types

import numpy as np
import pytest
import tensorflow as tf
from exported import WORDS, make_run
from helpers import ran, train_small
from reference_recurrent import sigmoid

from colloquy.data.tokenizers import words_of
from colloquy.data.vocabulary import EOS_ID, Vocabulary
from colloquy.engine import export as exporting
from colloquy.engine.devices import set_precision
from colloquy.tasks import TASKS
from colloquy.tasks.selection.export import NO_SCORE
from colloquy.tasks.selection.prepare import Settings, prepare
from colloquy.tasks.selection.scoring import score
from colloquy.tasks.selection.split import SelectionSplit

pytestmark = [
    pytest.mark.slow,
    # Keras 3.15
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
]

LINES = [  # context, response
    (["a b", "c"], "d e"),
    (["a", "b", "c", "d", "e a"], "b"),  # more turns than are read
    (["a b c d e a c c d e", "c"], "e d c b a e a c b a"),  # more words than are read
    (["nobody a said", "b"], "these words a"),  # unknown words
    (["a", "", "b"], "c"),  # an empty turn inside, which is dropped
    (["", "a", "b"], "c"),  # in front
    (["a", "b", "", "\u2003\x85\x1c", "c"], "c"),  # several, of any white space
    (["a", "b", "c", " "], "d"),  # at the end
    (["é naïve 日本", "x\u00a0y x y"], "日本 e\u0301 é"),
    (["a\t b\n c\r\x0b\x0cd\x1ce", "e\u2028e"], "\n a\u3000\n"),
    (["_EOS_ a _UNK_ b", "c"], "_EOS_"),  # as text these are unknown words
    (["a b"], " "),  # a response without words
    ([" "], "a"),
    ([], "a b"),  # no context at all
]
RANK = [  # context, candidates
    (["a b", "", "c", "d e"], ["b", "", "e d", "b", "a a a"]),
    (["c"], ["", "a", " ", "", "e"]),
]
RANK_LINES = [(context, text) for context, candidates in RANK for text in candidates]
REAL = np.array([[text != "" for text in candidates] for _, candidates in RANK])


def filled(rows):
    """Rows of texts as one array of bytes, padded with "" at the end."""
    width = max(len(row) for row in rows)
    texts = [[text.encode() for text in row] + [b""] * (width - len(row)) for row in rows]
    return np.array(texts, object)


def inputs_of(rows):
    contexts, candidates = zip(*rows, strict=True)
    return {"turns": filled(contexts), "candidates": filled(candidates)}


def bytes_inputs(word):
    """A context and a candidate around one word."""
    turns = np.array([[b"a " + word, word + b"\tb"]], object)
    return {"turns": turns, "candidates": np.array([[b"c " + word]], object)}


def split_of(lines):
    """The lines as prepare.py and `SelectionDataset` make them, of turns with text."""
    vocabulary = Vocabulary(WORDS)
    contexts = []
    responses = []
    for turns, response in lines:
        context = []
        for turn in turns:
            if not turn.strip():
                continue
            context += [*vocabulary.encode(words_of(turn)), EOS_ID]
        contexts.append(context)
        responses.append(vocabulary.encode(words_of(response)))
    return SelectionSplit.of(contexts, responses, [1] * len(lines), EOS_ID)


@pytest.fixture(scope="module", params=["exact", "release"])
def exported(request, tmp_path_factory):
    """A run, the endpoint of its export, which was made under a low precision, and the logits that
    evaluate.py finds for `LINES`, then for `RANK`, one line a candidate.
    """
    path = tmp_path_factory.mktemp("exporting")
    set_precision("float32")
    run, model = make_run(path / "run", masking=request.param)
    set_precision("bfloat16")
    loaded = tf.saved_model.load(str(exporting.export(TASKS["selection"], run, path / "out")))
    set_precision("float32")

    def rank(**inputs):
        tensors = {name: tf.constant(texts, tf.string) for name, texts in inputs.items()}
        answer = loaded.signatures["rank"](**tensors)
        return {name: value.numpy() for name, value in answer.items()}

    expected = score(model, split_of(LINES + RANK_LINES), model.config)
    return types.SimpleNamespace(run=run, rank=rank, expected=expected)


def test_the_printed_example_runs_in_a_client_that_has_nothing_of_this_project(exported, tmp_path):
    printed = ran("export.py", f"--run={exported.run.path}", f"--out={tmp_path}/out").stdout
    assert "/out/1: to call it:" in printed
    example = printed.partition("\n\n")[2]
    program = f"import sys\nsys.modules['keras'] = None\n{example}\nprint(*sys.modules)"
    command = [sys.executable, "-I", "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answer, modules = done.stdout.rsplit("\n", 2)[:2]
    assert "." in answer and not {"colloquy", "layers", "engine"} & set(modules.split())


def test_logits_agree_with_evaluation_in_float32(exported):
    """Under the bfloat16 policy of the export the logits would differ by 1e-2."""
    answer = exported.rank(**inputs_of([(context, [response]) for context, response in LINES]))
    expected = exported.expected[: len(LINES), None]
    assert np.ptp(expected) > 1
    np.testing.assert_allclose(answer["logits"], expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(answer["scores"], sigmoid(answer["logits"]), rtol=1e-5)
    assert answer["scores"].dtype == answer["logits"].dtype == np.float32


def test_rank_scores_each_candidate_as_evaluation_does_and_tells_missing_ones_apart(exported):
    answer = exported.rank(**inputs_of(RANK))
    logits, scores, order = answer["logits"], answer["scores"], answer["order"]
    expected = exported.expected[len(LINES) :].reshape(2, 5)
    np.testing.assert_allclose(logits[REAL], expected[REAL], rtol=1e-5, atol=1e-5)

    assert (~REAL).sum() == 3
    assert (scores[~REAL] == NO_SCORE).all() and NO_SCORE == -1
    assert (logits[~REAL] == np.finfo(np.float32).min).all()
    assert logits[0, 0] == logits[0, 3]  # the same text twice
    assert order.dtype == np.int32
    np.testing.assert_array_equal(order, np.argsort(-logits, axis=1, kind="stable"))
    assert order[0, -1] == 1 and order[1, -2:].tolist() == [0, 3]


def test_texts_of_any_bytes_and_length_or_none_are_read_and_other_shapes_refused(exported):
    def logits(**inputs):
        return exported.rank(**inputs)["logits"].tolist()

    assert logits(**bytes_inputs(b"\xffa\xe2")) == logits(**bytes_inputs(b"unknown"))
    tail = {name: texts * 7 for name, texts in bytes_inputs(b" d ").items()}
    assert logits(**{name: b"e " * 20_000 + texts for name, texts in tail.items()}) == logits(
        **tail
    )

    def empty(*shape):
        return np.full(shape, b"", object)

    answer = exported.rank(turns=empty(2, 0), candidates=empty(2, 3))
    assert answer["order"].tolist() == [[0, 1, 2]] * 2
    assert (answer["scores"] == NO_SCORE).all()
    for turns, candidates, message in (
        (empty(1, 2), empty(3, 2), "must have equally many rows"),
        (empty(1, 2), empty(2), "candidates_must_have_shape_B_N"),
        (empty(2), empty(1, 2), "turns_must_have_shape_B_T"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            exported.rank(turns=turns, candidates=candidates)


def test_an_exported_model_matches_unknown_words_as_the_run_does(prepared, tmp_path):
    data = tmp_path / "data"
    settings = Settings(dimension=7, word2vec_epochs=1, hashed_words=101, tokenizer="terms")
    prepare("smn", prepared.parent / "raw", data, settings)
    config = {
        "max_turns": "2",
        "lexical.gain": "3",
        "lexical.turns": "4",
        "lexical.stems": "true",
    }
    run = train_small("selection", data, tmp_path / "run", config, epochs=1e-6)
    # four are read, two by the network
    turns = ["try /etc/Xyz.conf", "a", "b", "where is qqqq?", "c", "d"]
    candidates = ["/etc/xyz.conf", "qqqq", "wwww qqqq", "wwww"]
    predictor = TASKS["selection"].predictor(run)
    [answer] = predictor.predict([{"turns": turns, "candidates": candidates}])

    path = exporting.export(TASKS["selection"], run, tmp_path / "export")
    model = tf.saved_model.load(path)
    served = model.rank(turns=tf.constant([turns]), candidates=tf.constant([[*candidates, ""]]))
    np.testing.assert_allclose(served["logits"][0, :4], answer["logits"], atol=1e-5)
    one, other, half, none = answer["logits"]
    assert abs(one - none) < 0.5 < half - none < other - none
