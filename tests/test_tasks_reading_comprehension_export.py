"""The exported reading comprehension model: its tokens are data.corpora.squad's, its answers those of the run."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import copy_of

from data.corpora.squad import tokenize
from data.vocabulary import Vocabulary
from engine import export as exporting
from tasks import TASKS
from tasks.reading_comprehension.export import COUNT, ReadingText
from tasks.reading_comprehension.scoring import predict

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


@pytest.mark.parametrize("text", TEXTS)
def test_tokens_stand_where_data_squad_says(text):
    tokens, starts, ends = ReadingText(Vocabulary.of("a"), Vocabulary.of("a")).tokens(tf.constant(["x, y", text]))
    spans = list(zip(starts[1].numpy().tolist(), ends[1].numpy().tolist(), strict=True))
    assert spans == tokenize(text)
    if "\x02" not in text:
        assert [token.decode() for token in tokens[1].numpy()] == [text[i:j] for i, j in spans]


def test_answers_are_those_of_the_run_whatever_stands_beside_them(run, model):
    split = reading.dataset_of(run).splits["dev"]
    spans, scores = predict(run.load_model(), split)
    texts = [split.texts[number] for number in split.context]
    people = [text.split()[0] for text in texts]
    questions = [f"Where does {person} live?" for person in people]
    rows = range(0, len(split), 2)  # the first question of each context asks of its first person
    found = ask(model, [texts[row] for row in rows], [questions[row] for row in rows])
    for i, row in enumerate(rows):
        assert found["answers"][i, 0].decode() == split.answer(row, *spans[row])
        assert found["scores"][i, 0] == pytest.approx(scores[row], abs=1e-4)
    alone = ask(model, [texts[0]], [questions[0]])
    np.testing.assert_array_equal(alone["starts"][0], found["starts"][0])


def test_the_predictor_answers_as_the_export_does(run, model):
    predictor = reading.predictor(run)
    passages = ["Ann lives in Rome. Bob lives in Paris.", "", "Rome", TEXTS[2], "Ann lives."]
    questions = ["Where does Bob live?", "Who?", "Where in all the world does Ann live?", "Who met \u0130?", " "]
    exported = ask(model, passages, questions)
    found = predictor.predict([{"passage": p, "question": q} for p, q in zip(passages, questions, strict=True)])
    for row, answer in enumerate(found):
        assert answer["answer"] == exported["answers"][row, 0].decode()
        assert (answer["start"], answer["end"]) == (exported["starts"][row, 0], exported["ends"][row, 0])
        assert answer["probability"] == pytest.approx(exported["probabilities"][row, 0], rel=1e-3)
        if answer["answer"]:
            assert answer["score"] == pytest.approx(exported["scores"][row, 0], abs=1e-3)
            assert answer["answer"] == passages[row][answer["start"] : answer["end"]]
        else:
            assert answer["score"] is None
    spans, to_query, to_context = predictor.explain({"passage": passages[0], "question": questions[0]})["attention"]
    words, asked = ([text[i:j] for i, j in tokenize(text)] for text in (passages[0], questions[0]))
    assert (spans["rows"], spans["columns"]) == (["start", "end"], words)
    assert (to_query["rows"], to_query["columns"]) == (words, asked)
    assert np.shape(to_query["weights"]) == (10, 5)
    assert (to_context["rows"], to_context["columns"]) == (["question"], words)
    for shown in (spans, to_query, to_context):
        np.testing.assert_allclose(np.sum(shown["weights"], axis=1), 1.0, rtol=1e-5)
    assert predictor.explain({"passage": "", "question": "Who?"})["attention"] == [] and predictor.predict([]) == []


@pytest.mark.parametrize("text", [text for text in TEXTS if text.strip()])
def test_offsets_are_true_to_the_text(model, text):
    found = ask(model, ["Ann lives in Rome. " * 9, text], ["Where?", "Who lives where?"])
    real = found["starts"][1] >= 0
    assert real.any()
    for answer, start, end in zip(found["answers"][1], found["starts"][1], found["ends"][1], strict=True):
        assert answer.decode() == (text[start:end] if start >= 0 else "")
    assert (np.diff(found["scores"][1]) <= 0).all()
    assert 0 < found["probabilities"][1].sum() <= 1 + 1e-5
    assert found["answers"].shape == (2, COUNT)


@pytest.mark.parametrize(("passage", "question"), [("", "Who?"), (" \n", "Who?"), ("Ann lives.", ""), ("", "")])
def test_without_words_there_is_no_answer(model, passage, question):
    found = ask(model, [passage, "Ann lives in Rome."], [question, "Who?"])
    assert set(found["answers"][0]) == {b""}
    assert set(found["starts"][0]) == set(found["ends"][0]) == {-1}
    assert not found["probabilities"][0].any()
    assert found["answers"][1, 0] != b""


def test_a_question_may_be_longer_than_its_passage(model):
    found = ask(model, ["Rome"], ["Where in all the world does Ann live?"])
    assert found["answers"][0].tolist() == [b"Rome"] + [b""] * (COUNT - 1)
    assert found["probabilities"][0, 0] == pytest.approx(1.0)


@pytest.mark.parametrize("passage", [b"\xff\xfe abc", b"ab\xe2\x82", b"\xed\xa0\x80 a"])
def test_a_passage_that_is_no_utf_8_is_refused(model, passage):
    with pytest.raises(tf.errors.InvalidArgumentError, match="passage must be UTF-8"):
        ask(model, [b"Ann lives in Rome.", passage], ["Who?", "Who?"])
    found = ask(model, ["\ufffd Ann lives in Rome. \x00"], [b"Who \xff?"])
    start, end = found["starts"][0, 0], found["ends"][0, 0]
    assert "\ufffd Ann lives in Rome. \x00"[start:end] == found["answers"][0, 0].decode() != ""


def test_texts_of_the_wrong_shape_are_refused_with_the_shape_that_is_expected(model):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"passage_must_have_shape_B"):
        model.signatures["answer"](passage=tf.constant([["a"]]), question=tf.constant(["b"]))


def test_passages_and_questions_must_be_equally_many(model):
    with pytest.raises(tf.errors.InvalidArgumentError, match="equally many"):
        ask(model, ["a", "b"], ["c"])
