"""The exported reading comprehension model: its tokens are the corpus's, its answers ours."""

import json

import numpy as np
import pytest
import tensorflow as tf
from helpers import copy_of, train_small

from colloquy.data.offsets import tokenize
from colloquy.engine import export as exporting
from colloquy.tasks import TASKS
from colloquy.tasks.reading_comprehension.graph_tokens import find_tokens
from colloquy.tasks.reading_comprehension.scoring import predict

reading = TASKS["reading_comprehension"]
NUMBERS = ("start", "end", "score", "confidence")
SCALE = {"score_weight": 0.7, "offset": -0.5, "threshold": 0.4}
TEXTS = [
    "Ann lives in Rome.",
    "  It's 3,000.5 m\u00b2; 19th 1a2 a1b 1.2.3, 4. x_y __ \u0661\u0662\u0663",
    "\uff21lpha met \u0130brahim \U0001f44d\U0001f3fd in Cafe\u0301\u00a01,000.5!",
    "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd\u3000\u4f60\u597d\uff0c\u4e16\u754c"
    "\n\n\ttab\u2028line\x1cend",
    "signs \x02 and \x03 and \x04 inside",
    "\u6771\u4eacis2024\u5e74 \u306f\u0301a\u0301\u304c\u30fb\u0e44\u0e17\u0e35\u0e48abc_\u3042",
    "\u6771\u200ca \u0e44\u200d\u0e17",  # joiners beside scripts without spaces
    "1\u200d2 3\u200d.5 a\u200d\u00adb !\u200d\u0301",  # and inside of tokens
    "\u3042\u3099\u3042\uff9e",  # voiced marks that do not compose
    "",
    " \n ",
]


@pytest.fixture(scope="module", params=["paper", "no_answer"])
def run(request, trained_reading_comprehension, prepared_reading, tmp_path_factory):
    """A run with a scale of confidence, and with a penalty that makes some answers shorter."""
    if request.param == "paper":
        run = copy_of(trained_reading_comprehension, tmp_path_factory)
        run.update({"config": {**run.record["config"], "length_penalty": 0.5}})
    else:
        settings = {"no_answer": "true", "shared_norm": "true", "length_penalty": 0.5}
        workdir = tmp_path_factory.mktemp("runs") / "no_answer"
        task = "reading_comprehension"
        run = train_small(task, prepared_reading, workdir, settings, epochs=5.0)
    record = {"dev": {"metrics": {}, "confidence": SCALE}}
    (run.path / "metrics.json").write_text(json.dumps(record))
    return run


@pytest.fixture(scope="module")
def model(run, tmp_path_factory):
    path = exporting.export(reading, run, tmp_path_factory.mktemp("exported") / "model")
    return tf.saved_model.load(str(path))


def ask(model, passages, questions):
    outputs = model.answer(passage=tf.constant(passages), question=tf.constant(questions))
    return {name: value.numpy() for name, value in outputs.items()}


@pytest.mark.parametrize("text", TEXTS)
def test_tokens_are_where_the_corpus_says(text):
    tokens, starts, ends = find_tokens(tf.constant(["x, y", text]))
    spans = list(zip(starts[1].numpy().tolist(), ends[1].numpy().tolist(), strict=True))
    assert spans == tokenize(text)
    if "\x02" not in text:
        expected = [text[start:end] for start, end in spans]
        assert [token.decode() for token in tokens[1].numpy()] == expected


@pytest.mark.slow
def test_predictor_export_and_scoring_answer_the_same(run, model):
    split = reading.dataset_of(run).splits["dev"]
    passages = [split.texts[number] for number in split.context_of_question]
    questions = list(split.question_texts)
    # One question is longer than its passage.
    passages += ["Rome", TEXTS[2], "Xyzzy lives in Rome."]
    questions += ["Where in all the world does Ann live?", "Who met \u0130?"]
    # Unknown words, one of them twice.
    questions += ["Does Xyzzy, Plugh or Xyzzy live in Rome?"]
    exported = ask(model, passages, questions)

    instances = []
    for passage, question in zip(passages, questions, strict=True):
        instances.append({"passage": passage, "question": question})
    answers = reading.predictor(run).predict(instances)
    assert exported["good"].tolist() == [answer["good"] for answer in answers]
    assert len({answer["confidence"] for answer in answers}) > 3
    for row, answer in enumerate(answers):
        assert exported["answer"][row] == answer["answer"].encode()
        for name in NUMBERS:
            assert exported[name][row] == pytest.approx(answer[name], rel=1e-3, abs=1e-3)
        assert answer["answer"] == passages[row][answer["start"] : answer["end"]]
    if run.config.no_answer:
        # The only span of a passage of one word, and the option that there is no answer.
        odds = np.exp(answers[6]["score"])
        assert answers[6]["probability"] == pytest.approx(odds / (1 + odds), rel=1e-3)
    else:
        assert answers[6]["probability"] == 1.0

    spans, scores = predict(run.load_model(), split)
    for row in range(len(split)):
        assert answers[row]["answer"] == split.answer(row, *spans[row])
        assert answers[row]["score"] == pytest.approx(scores[row], abs=1e-4)


@pytest.mark.slow
def test_without_words_there_is_no_answer(model):
    exported = ask(model, ["", " \n", "Ann lives."], ["Who?", "Who?", " "])
    assert set(exported["answer"]) == {b""}
    assert set(exported["start"]) == set(exported["end"]) == {-1}
    assert not exported["confidence"].any()
    assert not exported["good"].any()


@pytest.mark.slow
@pytest.mark.parametrize("passage", [b"\xff\xfe abc", b"ab\xe2\x82", b"\xed\xa0\x80 a"])
def test_a_passage_must_be_utf8(model, passage):
    with pytest.raises(tf.errors.InvalidArgumentError, match="passage must be UTF-8"):
        ask(model, [b"Ann lives in Rome.", passage], ["Who?", "Who?"])


@pytest.mark.slow
def test_a_question_may_hold_other_bytes(model):
    text = "\ufffd Ann lives in Rome. \x00"
    exported = ask(model, [text], [b"Who \xff?"])
    answer = exported["answer"][0].decode()
    assert answer
    assert text[exported["start"][0] : exported["end"][0]] == answer


@pytest.mark.slow
def test_inputs_of_other_shapes_are_refused(model):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"passage_must_have_shape_B"):
        model.signatures["answer"](passage=tf.constant([["a"]]), question=tf.constant(["b"]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="equally many"):
        ask(model, ["a", "b"], ["c"])
