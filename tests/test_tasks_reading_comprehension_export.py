"""The exported reading comprehension model: its tokens are data.corpora.squad's, its answers the
predictor's.
"""

import numpy as np
import pytest
import tensorflow as tf
from helpers import copy_of

from colloquy.data.corpora.squad import tokenize
from colloquy.data.vocabulary import Vocabulary
from colloquy.engine import export as exporting
from colloquy.tasks import TASKS
from colloquy.tasks.reading_comprehension.export import ReadingText
from colloquy.tasks.reading_comprehension.scoring import predict

reading = TASKS["reading_comprehension"]
TEXTS = [
    "Ann lives in Rome.",
    "  It's 3,000.5 m\u00b2; 19th 1a2 a1b 1.2.3, 4. x_y __ \u0661\u0662\u0663",
    "\uff21lpha met \u0130brahim \U0001f44d\U0001f3fd in Cafe\u0301\u00a01,000.5!",
    "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd\u3000\u4f60\u597d\uff0c\u4e16\u754c\n\n\ttab\u2028line\x1cend",
    "signs \x02 and \x03 inside",
    "",
    " \n ",
]


@pytest.fixture(scope="module")
def run(trained_reading_comprehension, tmp_path_factory):
    """With a penalty that makes some answers shorter."""
    run = copy_of(trained_reading_comprehension, tmp_path_factory)
    run.update({"config": {**run.record["config"], "length_penalty": 0.5}})
    return run


@pytest.fixture(scope="module")
def model(run, tmp_path_factory):
    path = exporting.export(reading, run, tmp_path_factory.mktemp("exported") / "model")
    return tf.saved_model.load(str(path))


def ask(model, passages, questions):
    found = model.answer(passage=tf.constant(passages), question=tf.constant(questions))
    return {name: value.numpy() for name, value in found.items()}


def test_tokens_are_where_the_corpus_says():
    reader = ReadingText(Vocabulary.of("a"), Vocabulary.of("a"))
    for text in TEXTS:
        tokens, starts, ends = reader.tokens(tf.constant(["x, y", text]))
        spans = list(zip(starts[1].numpy().tolist(), ends[1].numpy().tolist(), strict=True))
        assert spans == tokenize(text)
        if "\x02" not in text:
            assert [token.decode() for token in tokens[1].numpy()] == [text[i:j] for i, j in spans]


def test_predictor_export_and_scoring_answer_the_same(run, model):
    """Also where the question is longer than its passage; without words in either there is no
    answer.
    """
    split = reading.dataset_of(run).splits["dev"]
    passages = [split.texts[number] for number in split.context] + [
        "Rome",
        TEXTS[2],
        "",
        " \n",
        "Ann lives.",
    ]
    asked = [
        *split.question_texts,
        "Where in all the world does Ann live?",
        "Who met \u0130?",
        "Who?",
        "Who?",
        " ",
    ]
    exported = ask(model, passages, asked)
    instances = [
        {"passage": p, "question": q} for p, q in zip(passages[:-3], asked[:-3], strict=True)
    ]
    answers = reading.predictor(run).predict(instances)
    names = ("answer", "start", "end", "score", "probability")
    for name in names:
        np.testing.assert_array_equal(exported[name], exported[f"n_best_{name}"][:, 0])
    for row, answer in enumerate(answers):
        n_best = answer["n_best"]
        found = {name: exported[f"n_best_{name}"][row, : len(n_best)].tolist() for name in names}
        assert found["answer"] == [each["answer"].encode() for each in n_best]
        for name in names[1:]:
            assert found[name] == pytest.approx([each[name] for each in n_best], rel=1e-3, abs=1e-3)
        assert answer["answer"] == passages[row][answer["start"] : answer["end"]]
        assert not exported["n_best_probability"][row, len(n_best) :].any()
    for row in (-3, -2, -1):
        assert (
            set(exported["n_best_answer"][row]) == {b""}
            and not exported["n_best_probability"][row].any()
        )
        assert set(exported["n_best_start"][row]) == set(exported["n_best_end"][row]) == {-1}
    assert exported["n_best_answer"][6].tolist() == [b"Rome"] + [b""] * 4
    assert exported["probability"][6] == pytest.approx(1.0) and answers[6]["probability"] == 1.0
    spans, scores = predict(run.load_model(), split)
    for row in range(len(split)):
        assert answers[row]["answer"] == split.answer(row, *spans[row])
        assert answers[row]["score"] == pytest.approx(scores[row], abs=1e-4)


def test_what_is_no_text_or_of_another_shape_is_refused(model):
    for passage in (b"\xff\xfe abc", b"ab\xe2\x82", b"\xed\xa0\x80 a"):
        with pytest.raises(tf.errors.InvalidArgumentError, match="passage must be UTF-8"):
            ask(model, [b"Ann lives in Rome.", passage], ["Who?", "Who?"])
    text = "\ufffd Ann lives in Rome. \x00"
    found = ask(model, [text], [b"Who \xff?"])
    assert text[found["start"][0] : found["end"][0]] == found["answer"][0].decode() != ""
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"passage_must_have_shape_B"):
        model.signatures["answer"](passage=tf.constant([["a"]]), question=tf.constant(["b"]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="equally many"):
        ask(model, ["a", "b"], ["c"])
