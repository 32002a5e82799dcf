"""The exported selection model: what it says in a process that has TensorFlow alone."""

import itertools
import types

import numpy as np
import pytest
import tensorflow as tf
from exported import WORDS, answers_to_a_client, make_run
from helpers import ran, to_numpy, train_small
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


def empty(B, T, N):
    return {"turns": np.full((B, T), b"", object), "candidates": np.full((B, N), b"", object)}


def bytes_inputs(word):
    """A context and a candidate around one word."""
    turns = np.array([[b"a " + word, word + b"\tb"]], object)
    return {"turns": turns, "candidates": np.array([[b"c " + word]], object)}


SCORED = inputs_of([(context, [response]) for context, response in LINES])
RANKED = inputs_of(RANK)
SMALL = empty(1, 2, 2)
TAIL = {name: texts * 7 for name, texts in bytes_inputs(b" d ").items()}
LONG = {name: b"e " * 20_000 + texts for name, texts in TAIL.items()}
CALLS = {  # model, endpoint, inputs
    "scored": ("exact", "rank", SCORED),
    "default": ("exact", "serving_default", SCORED),
    "rank": ("exact", "rank", RANKED),
    "release": ("release", "rank", SCORED),
    "not UTF-8": ("exact", "rank", bytes_inputs(b"\xffa\xe2")),
    "unknown": ("exact", "rank", bytes_inputs(b"unknown")),
    "long": ("exact", "rank", LONG),
    "its end": ("exact", "rank", TAIL),
    "one axis": ("exact", "rank", {**SMALL, "candidates": SMALL["candidates"][0]}),
    "one axis of turns": ("exact", "rank", {**SMALL, "turns": SMALL["turns"][0]}),
    "mismatch": ("exact", "rank", {**empty(3, 2, 2), "turns": SMALL["turns"]}),
}
for model_name, sizes in itertools.product(
    ("exact", "release"), [(0, 2, 3), (2, 0, 3), (2, 3, 0), (0, 0, 0)]
):
    CALLS[f"{model_name} {sizes}"] = (model_name, "rank", empty(*sizes))


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


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Two exports, one by export.py and one under a low precision, and their answers to `CALLS`.

    `expected`: logits that evaluate.py finds for `LINES`, then for `RANK`, one line a candidate.
    """
    path = tmp_path_factory.mktemp("exporting")
    set_precision("float32")
    _, release_model = make_run(path / "release run", masking="release")
    script = ran("export.py", f"--run={path}/release run", f"--out={path}/out/release")
    run, model = make_run(path / "run")
    set_precision("bfloat16")
    exact = exporting.export(TASKS["selection"], run, path / "out" / "exact")
    set_precision("float32")
    expected = score(model, split_of(LINES + RANK_LINES), model.config)
    models = {"exact": str(exact), "release": f"{path}/out/release/1"}
    answers = answers_to_a_client(path, models, CALLS, script.stdout)
    facts = {"run": run, "release_model": release_model, "printed": script.stdout}
    return types.SimpleNamespace(**facts, expected=expected, answers=answers)


def test_the_printed_example_runs_in_a_client_that_has_nothing_of_this_project(served):
    assert "/out/release/1: to call it:" in served.printed
    answer = served.answers["example"]
    assert answer["order"].shape == (1, 2) and (answer["scores"] > 0).all()


def test_logits_agree_with_evaluation_in_float32(served):
    """The run was exported under a bfloat16 policy, with which the logits would differ by 1e-2."""
    answer, expected = served.answers["scored"], served.expected[: len(LINES), None]
    assert np.ptp(expected) > 1
    np.testing.assert_allclose(answer["logits"], expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(answer["scores"], sigmoid(answer["logits"]), rtol=1e-5)
    assert answer["scores"].dtype == answer["logits"].dtype == np.float32
    np.testing.assert_array_equal(served.answers["default"]["scores"], answer["scores"])


def test_release_masks_read_the_full_size(served):
    split = split_of(LINES)
    responses = np.arange(len(split))[:, None]
    inputs = split.collate(split.context, responses, max_turns=3, max_words=7, cut=False)
    assert inputs["turns"].shape == (len(split), 3, 7)
    expected = to_numpy(served.release_model(inputs))
    logits = served.answers["release"]["logits"]
    np.testing.assert_allclose(logits, expected, rtol=1e-5, atol=1e-5)


def test_rank_scores_each_candidate_as_evaluation_does_and_tells_missing_ones_apart(served):
    answer = served.answers["rank"]
    logits, scores, order = answer["logits"], answer["scores"], answer["order"]
    expected = served.expected[len(LINES) :].reshape(2, 5)
    np.testing.assert_allclose(logits[REAL], expected[REAL], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(scores[REAL], sigmoid(expected)[REAL], rtol=1e-4)

    assert (~REAL).sum() == 3
    assert (scores[~REAL] == NO_SCORE).all() and NO_SCORE == -1
    assert (logits[~REAL] == np.finfo(np.float32).min).all()
    assert logits[0, 0] == logits[0, 3]  # the same text twice
    assert order.dtype == np.int32
    np.testing.assert_array_equal(order, np.argsort(-logits, axis=1, kind="stable"))
    assert order[0, -1] == 1 and order[1, -2:].tolist() == [0, 3]


def test_texts_of_any_bytes_and_length_or_none_are_read_and_other_shapes_refused(served):
    answers = served.answers
    assert answers["not UTF-8"]["logits"] == answers["unknown"]["logits"]
    assert answers["long"]["logits"] == answers["its end"]["logits"]
    for model in ("exact", "release"):
        for sizes in [(0, 2, 3), (2, 3, 0), (0, 0, 0)]:
            assert {value.shape for value in answers[f"{model} {sizes}"].values()} == {
                (sizes[0], sizes[2])
            }
        answer = answers[f"{model} (2, 0, 3)"]
        np.testing.assert_array_equal(answer["scores"], -np.ones((2, 3)))
        np.testing.assert_array_equal(answer["order"], [[0, 1, 2]] * 2)
    assert "must have equally many rows" in answers["mismatch"]
    shapes = {
        "one axis": "candidates_must_have_shape_B_N",
        "one axis of turns": "turns_must_have_shape_B_T",
    }
    for call, name in shapes.items():
        assert name in answers[call] and "expected shape [?" in answers[call]


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
