"""The exported selection model: what it says in a process that has TensorFlow alone."""

import itertools
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from exported import WORDS, answers_to_a_client, make_run
from helpers import ran, refusal, train_small
from reference_recurrent import sigmoid

from colloquy.data.tokenizers import words_of
from colloquy.data.vocabulary import EOS_ID, Vocabulary
from colloquy.engine import export as exporting
from colloquy.engine.devices import set_precision
from colloquy.serving.models import open_model
from colloquy.tasks import TASKS
from colloquy.tasks.selection.export import NO_SCORE
from colloquy.tasks.selection.prepare import Settings, prepare
from colloquy.tasks.selection.scoring import score
from colloquy.tasks.selection.split import SelectionSplit

# Keras 3.15
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

LINES = [  # context, response
    (["a b", "c"], "d e"),
    (["a", "b", "c", "d", "e a"], "b"),  # more turns than are read
    (["a b c d e a c c d e", "c"], "e d c b a e a c b a"),  # more words than are read
    (["nobody a said", "b"], "these words a"),  # unknown words
    (["a", "", "b"], "c"),  # an empty turn inside
    (["", "a", "b"], "c"),  # in front
    (["a", "b", "", "", "c"], "c"),  # among those that are read
    (["a", "b", "c", " "], "d"),  # at the end, where "" would be filling
    (["é naïve 日本", "x\u00a0y x y"], "日本 e\u0301 é"),
    (["a\t b\n c\r\x0b\x0cd\x1ce", "e\u2028e"], "\n a\u3000\n"),
    (["_EOS_ a _UNK_ b", "c"], "_EOS_"),  # as text these are unknown words
    (["a b"], ""),  # a response without words
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
    """Rows of texts as one array of bytes, filled up with "" at the end."""
    width = max(len(row) for row in rows)
    texts = [[text.encode() for text in row] + [b""] * (width - len(row)) for row in rows]
    return np.array(texts, object)


def inputs_of(lines, name):
    contexts, second = zip(*lines, strict=True)
    texts = filled([[s] for s in second])[:, 0] if name == "response" else filled(second)
    return {"turns": filled(contexts), name: texts}


def empty(B, T, N):
    return {"turns": np.full((B, T), b"", object), "candidates": np.full((B, N), b"", object)}


def bytes_inputs(word):
    """A context and a response around one word."""
    turns = np.array([[b"a " + word, word + b"\tb"]], object)
    return {"turns": turns, "response": np.array([b"c " + word], object)}


TAIL = {name: texts * 7 for name, texts in bytes_inputs(b" d ").items()}
CALLS = {
    "score": ("exact", "score", inputs_of(LINES, "response")),
    "default": ("exact", "serving_default", inputs_of(LINES, "response")),
    "rank": ("exact", "rank", inputs_of(RANK, "candidates")),
    "release": ("release", "score", inputs_of(LINES, "response")),
    "release rank": ("release", "rank", inputs_of(RANK, "candidates")),
    "not UTF-8": ("exact", "score", bytes_inputs(b"\xffa\xe2")),
    "unknown": ("exact", "score", bytes_inputs(b"unknown")),
    "long": ("exact", "score", {k: b"e " * 20_000 + v for k, v in TAIL.items()}),
    "its end": ("exact", "score", TAIL),
    "one axis": (
        "exact",
        "rank",
        {**empty(1, 2, 2), "candidates": empty(1, 2, 2)["candidates"][0]},
    ),
    "one axis of turns": (
        "exact",
        "score",
        {**inputs_of(LINES, "response"), "turns": empty(1, 2, 2)["turns"][0]},
    ),
    "two axes": (
        "exact",
        "score",
        {"turns": empty(1, 2, 2)["turns"], "response": empty(1, 2, 2)["turns"]},
    ),
    "mismatch": ("exact", "rank", {**empty(3, 2, 2), "turns": empty(1, 2, 2)["turns"]}),
}
EMPTY = itertools.product(("exact", "release"), [(0, 2, 3), (2, 0, 3), (2, 3, 0), (0, 0, 0)])
CALLS |= {f"{model} {sizes}": (model, "rank", empty(*sizes)) for model, sizes in EMPTY}


def split_of(lines):
    """The lines as prepare.py and `SelectionDataset` make them."""
    vocabulary = Vocabulary(WORDS)
    contexts = [
        [id for turn in turns for id in [*vocabulary.encode(words_of(turn)), EOS_ID]]
        for turns, _ in lines
    ]
    responses = [vocabulary.encode(words_of(response)) for _, response in lines]
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


def test_score_agrees_with_evaluation_in_float32(served):
    """The run was exported under a bfloat16 policy, with which the logits would differ by 1e-2."""
    answer, expected = served.answers["score"], served.expected[: len(LINES)]
    assert np.ptp(expected) > 1 and set(answer) == {"score", "logit"}
    np.testing.assert_allclose(answer["logit"], expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(answer["score"], sigmoid(answer["logit"]), rtol=1e-5)
    assert answer["score"].dtype == answer["logit"].dtype == np.float32
    np.testing.assert_array_equal(served.answers["default"]["score"], answer["score"])


def test_release_masks_read_the_full_size(served):
    split = split_of(LINES + RANK_LINES)
    inputs = split.collate(
        split.context, np.arange(len(split))[:, None], max_turns=3, max_words=7, cut=False
    )
    assert inputs["turns"].shape == (len(split), 3, 7)
    expected = keras.ops.convert_to_numpy(served.release_model(inputs))[:, 0]
    logits, ranked = served.answers["release"]["logit"], served.answers["release rank"]["logits"]
    np.testing.assert_allclose(logits, expected[: len(LINES)], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(
        ranked[REAL], expected[len(LINES) :].reshape(2, 5)[REAL], rtol=1e-5, atol=1e-5
    )


def test_rank_scores_each_candidate_as_evaluation_does_and_tells_missing_ones_apart(served):
    answer, expected = served.answers["rank"], served.expected[len(LINES) :].reshape(2, 5)
    assert set(answer) == {"scores", "logits", "order"} and (~REAL).sum() == 3
    np.testing.assert_allclose(answer["logits"][REAL], expected[REAL], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(answer["scores"][REAL], sigmoid(expected)[REAL], rtol=1e-4)
    assert (answer["scores"][~REAL] == NO_SCORE).all() and NO_SCORE == -1
    assert (answer["logits"][~REAL] == np.finfo(np.float32).min).all()
    assert answer["order"].dtype == np.int32
    assert answer["logits"][0, 0] == answer["logits"][0, 3]  # the same text twice
    np.testing.assert_array_equal(
        answer["order"], np.argsort(-answer["logits"], axis=1, kind="stable")
    )
    assert answer["order"][0, -1] == 1 and answer["order"][1, -2:].tolist() == [0, 3]


def test_the_predictor_and_the_server_answer_as_the_export_does(served):
    predictor = TASKS["selection"].predictor(served.run)
    instances = [{"turns": context, "candidates": candidates} for context, candidates in RANK]
    instances.insert(1, {"turns": ["c"], "candidates": []})
    found = predictor.predict(instances)
    assert found[1] == {"scores": [], "logits": [], "order": []}
    for answer, logits in zip(found[::2], served.expected[len(LINES) :].reshape(2, 5), strict=True):
        np.testing.assert_allclose(answer["logits"], logits, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(answer["scores"], sigmoid(logits), rtol=1e-4)
        assert answer["order"] == np.argsort(-np.array(answer["logits"]), kind="stable").tolist()
    model = open_model("dam", served.run.path.parent / "out" / "exact")
    instances = [
        {"turns": ["a b", "c"], "candidates": ["d e", "b"]},
        {"turns": ["c"], "candidates": ["a", "b", "e d"]},
    ]
    # empty texts are no padding
    instances.append({"turns": ["a", "b", "c", ""], "candidates": ["", "d"]})
    answers = model.predictor.answers(
        [model.predictor.valid(instance, "instance") for instance in instances]
    )
    # The other instances of a batch pad neither.
    for answer, expected in zip(answers, predictor.predict(instances), strict=True):
        assert answer["order"] == expected["order"] and answer.keys() == expected.keys()
        np.testing.assert_allclose(answer["logits"], expected["logits"], atol=1e-5)
    nothing = {"turns": [], "candidates": ["a"]}
    assert "instance: turns: a turn with text is needed" in refusal(
        model.predictor.valid, nothing, "instance"
    )
    asked = {"turns": RANK[0][0], "candidates": ["e d"]}
    explained = predictor.explain(asked)
    assert [(shown["rows"], shown["columns"]) for shown in explained.pop("attention")] == [
        (["c"], ["e", "d"]),
        (["d", "e"], ["e", "d"]),  # of the three turns that are read the first is empty
    ]
    assert [explained] == predictor.predict([asked]) and predictor.predict([]) == []


def test_texts_of_any_bytes_and_length_or_none_are_read_and_other_shapes_refused(served):
    answers = served.answers
    assert answers["not UTF-8"]["logit"] == answers["unknown"]["logit"]
    assert answers["long"]["logit"] == answers["its end"]["logit"]
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
    for call, name in (shapes | {"two axes": "response_must_have_shape_B"}).items():
        assert name in answers[call] and "expected shape [?" in answers[call]


@pytest.mark.slow
def test_an_exported_model_matches_unknown_words_as_the_run_does(prepared, tmp_path):
    source, data = prepared.parent / "raw", tmp_path / "data"
    prepare(
        "smn",
        source,
        data,
        Settings(dimension=7, word2vec_epochs=1, hashed_words=101, tokenizer="terms"),
    )
    settings = {
        "max_turns": "2",
        "lexical.gain": "3",
        "lexical.turns": "4",
        "lexical.stems": "true",
    }
    run = train_small("selection", data, tmp_path / "run", settings, epochs=1e-6)
    # four are read, two by the network
    turns = ["try /etc/Xyz.conf", "a", "b", "where is qqqq?", "c", "d"]
    candidates = ["/etc/xyz.conf", "qqqq", "wwww qqqq", "wwww", ""]
    [answer] = (
        TASKS["selection"].predictor(run).predict([{"turns": turns, "candidates": candidates[:4]}])
    )
    served = tf.saved_model.load(exporting.export(TASKS["selection"], run, tmp_path / "export"))
    found = served.rank(turns=tf.constant([turns]), candidates=tf.constant([candidates]))[
        "logits"
    ].numpy()[0]
    np.testing.assert_allclose(found[:4], answer["logits"], atol=1e-5)
    one, other, half, none = answer["logits"]
    assert abs(one - none) < 0.5 < half - none < other - none
