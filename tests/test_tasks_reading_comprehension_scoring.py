"""`tasks.reading_comprehension.scoring`, `confidence` and `task`: loss, spans, confidence, from a
dataset to scores.
"""

import dataclasses
import json
import types

import numpy as np
import pytest
from helpers import copy_of, evaluate, refusal
from keras import ops

from colloquy.data.sequences import Sequences
from colloquy.engine.limits import describe_exceeded
from colloquy.models.best_spans import best_spans
from colloquy.models.bidaf import BiDAFConfig
from colloquy.tasks import TASKS
from colloquy.tasks.reading_comprehension.calibration import fit_scale, measure_confidence
from colloquy.tasks.reading_comprehension.confidence import Scale, load_scale
from colloquy.tasks.reading_comprehension.data import ReadingSplit, load_dataset
from colloquy.tasks.reading_comprehension.losses import span_loss
from colloquy.tasks.reading_comprehension.second_contexts import content_words, shared_words
from colloquy.tasks.reading_comprehension.tokens import Tokens

reading = TASKS["reading_comprehension"]


@pytest.fixture(scope="module")
def dataset(prepared_reading):
    return load_dataset(prepared_reading)


@pytest.fixture
def run(trained_reading_comprehension, tmp_path_factory):
    """A copy, into which evaluate.py may write."""
    return copy_of(trained_reading_comprehension, tmp_path_factory)


def test_span_loss_sums_over_all_places_of_an_answer():
    logits = np.random.default_rng(0).normal(size=(2, 2, 5)).astype("float32")
    spans = np.array([[[0, 1], [2, 4], [-1, -1]], [[3, 3], [-1, -1], [-1, -1]]])
    p = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    expected = [
        -np.log(p[0, 0, 0] * p[0, 1, 1] + p[0, 0, 2] * p[0, 1, 4]),
        -np.log(p[1, 0, 3] * p[1, 1, 3]),
    ]
    np.testing.assert_allclose(ops.convert_to_numpy(span_loss(spans, logits)), expected, rtol=1e-5)


@pytest.mark.parametrize(("length", "penalty"), [(1, 0.0), (3, 0.7), (9, 0.0)])
def test_best_spans_finds_what_a_loop_over_all_spans_finds(length, penalty):
    B, T, K = 3, 7, 5
    logits = np.random.default_rng(length).normal(size=(B, 2, T)).astype("float32")
    logits[1, :, 4:] = -1e30  # padding
    first, last, score = (
        ops.convert_to_numpy(found) for found in best_spans(logits, length, K, penalty)
    )
    for b in range(B):
        places = [(i, j) for i in range(T) for j in range(i, min(T, i + length))]
        spans = [(logits[b, 0, i] + logits[b, 1, j] - penalty * (j - i), i, j) for i, j in places]
        real = [span for span in sorted(spans, reverse=True)[:K] if span[0] > -1e29]
        np.testing.assert_allclose(score[b, : len(real)], [span[0] for span in real], rtol=1e-5)
        assert list(zip(first[b], last[b], strict=True))[: len(real)] == [
            (i, j) for _, i, j in real
        ]


def test_a_scale_says_how_often_an_answer_is_right():
    rng = np.random.default_rng(5)
    scores = rng.normal(3.0, 7.0, 20_000)
    right = rng.random(20_000) < 1 / (1 + np.exp(-(0.5 * scores - 2.5)))
    scale = fit_scale(scores, right)
    assert scale.score_weight == pytest.approx(0.5, abs=0.02)
    assert scale.offset == pytest.approx(-2.5, abs=0.1)
    assert scale.confidence(5.0) == pytest.approx(0.5, abs=0.01)
    above = [scale.confidence(score) >= scale.threshold for score in scores[right]]
    assert np.mean(above) == pytest.approx(0.92, abs=0.002)
    # Without evidence there is none: higher is worse, all are wrong, there are none.
    for some_scores, some_right in (
        ([1.0, 2.0, 3.0, 4.0], [1, 1, 0, 0]),
        ([1.0, 2.0], [0, 0]),
        ([], []),
    ):
        assert fit_scale(some_scores, some_right) is None
    scale = Scale(score_weight=1.0, offset=0.0, threshold=0.2)
    verdicts = [scale.verdict(confidence) for confidence in (0.95, 0.6, 0.3, 0.1)]
    assert verdicts == ["sure", "likely", "may be wrong", "probably not in this text"]


def test_shared_words_leave_out_the_most_frequent():
    # 3 and 4 are two unknown tokens
    tokens = Tokens(np.array([0, 201, 3, 2, 2, 999]), np.zeros((6, 16)), [""] * 6)
    question = content_words(tokens, [1, 2, 3, 3, 5])
    assert question == {201, -3, 999} and content_words(tokens, [2]) == set()
    assert shared_words(question, content_words(tokens, [1, 4])) == 1 / 3
    assert shared_words(question, question) == shared_words(set(), question) == 1.0


def test_the_scale_of_dev_judges_answers(run, reading_comprehension_predictor, monkeypatch):
    instance = {
        "passage": "Ann lives in Rome. Bob lives in Paris.",
        "question": "Where does Bob live?",
    }
    predictor = reading_comprehension_predictor
    # Another test may have evaluated the run, which gives it a scale.
    monkeypatch.setattr(predictor, "scale", None)
    [found] = predictor.predict([instance])
    assert (found["confidence"], found["good"]) == (None, None)
    weights = {"score_weight": 2.0, "offset": -2.0}
    expected = 1 / (1 + np.exp(2.0 - 2.0 * found["score"]))
    for threshold, good in ((expected - 0.01, True), (expected + 0.01, False)):
        confidence = {**weights, "threshold": threshold, "questions": 6}
        record = {"dev": {"metrics": {}, "confidence": confidence}}
        (run.path / "metrics.json").write_text(json.dumps(record))
        monkeypatch.setattr(predictor, "scale", load_scale(run))
        [again] = predictor.predict([instance])
        assert again["confidence"] == pytest.approx(expected) and again["good"] is good
        assert (again["verdict"] == "probably not in this text") is not good


def test_each_question_is_also_asked_of_a_passage_that_shares_words_but_not_the_answer(monkeypatch):
    """In turn of another article and of its own; those that have its answer are left out."""
    words = [0, *range(201, 301)]
    tokens = Tokens(np.array(words), np.zeros((101, 16)), [""] * 101)
    passages = [[1, 6, 7, 9], [1, 2, 3], [1, 2, 3, 8], [4], [3, 5], [2]]
    split = ReadingSplit(
        tokens=tokens,
        contexts=Sequences.of(passages),
        texts=["a b c rome", "a b c", "a b c Rome", "d", "c e", "b"],
        offsets=Sequences.of([[0] * 2 * len(each) for each in passages]),
        articles=np.array([1, 1, 2, 2, 3, 3]),
        ids=list("qrstuvwx"),
        context_of_question=np.array([0, 0, 4, 4, 1, 2, 3, 5]),
        questions=Sequences.of([[1, 2, 3]] * 8),
        answers=[["rome"]] * 8,
        spans=[[[0, 0]]] * 8,
        question_texts=["a b c?"] * 8,
    )
    asked = []

    def predict(model, examples, length_multiple):
        asked.append(examples)
        scores = [7.0, 9.0, 7.0, 9.0, 7.0, 9.0, 7.0, 9.0, 1.0, 2.0, 3.0, 2.0, 1.0, 2.0, 3.0, 2.0]
        return np.array([[3, 3]] * 8 + [[0, 0]] * 8), np.array(scores)

    monkeypatch.setattr("colloquy.tasks.reading_comprehension.calibration.predict", predict)
    monkeypatch.setattr(
        ReadingSplit, "answer", lambda self, row, first, last: "Rome" if first else "c"
    )
    found, reliability = measure_confidence(None, split)
    [examples] = asked
    assert examples.ids == list("qrstuvwx") * 2
    own = [0, 0, 4, 4, 1, 2, 3, 5]
    # Of another article, then of the own one; of the article of Rome's, none but the other.
    second = [4, 1, 1, 5, 4, 3, 1, 4]
    assert examples.context_of_question.tolist() == own + second
    assert found["right_kept"] == found["wrong_refused"] == 1.0
    assert found["same_article_refused"] == found["other_article_refused"] == 1.0
    assert found["questions"] == 8
    assert [row.metrics["right"] for row in reliability] == [0.0, 0.0, 1.0, 1.0]
    # Questions q, r, u are of the first article, s, t, x of the last: the scale is fitted to them.
    assert sum(row.examples for row in reliability) == 4

    # Each passage is an article of its own.
    alone = dataclasses.replace(split, articles=np.arange(6))
    measure_confidence(None, alone)
    assert asked[1].context_of_question.tolist() == [*own, 1, 1, 1, 1, 4, 1, 1, 1]
    nothing = dataclasses.replace(split, answers=[["c"], ["d"], ["b"], ["a"]] * 2)
    assert measure_confidence(None, nothing) == (None, [])


def test_training_reads_the_window_that_has_the_answer(dataset):
    train = dataset.splits["train"]
    training = reading.Training(max_context=5, batch_size=8)
    batches = reading.training_batches(train, None, training, np.random.default_rng(0))
    rows = np.concatenate([rows for rows, _, _ in batches])
    assert sorted(rows) == list(range(24))
    for batch in batches:
        inputs, spans = reading.collate(train, None, batch, length_multiple=1)
        for number, row in enumerate(batch[0]):
            first = spans[number, 0, 0]
            token = inputs["context"][number, first]
            answer = train.tokens.word_ids[
                train.contexts.lists([train.context_of_question[row]])[0]
            ]
            assert inputs["words"][token] in answer[[span[0] for span in train.spans[row]]]

    # Windows of 5 words share one: a longer answer may be cut, so its question is left out.
    longer = dataclasses.replace(train, spans=[[[2, 3]], *train.spans[1:]])
    batches = reading.training_batches(longer, None, training, np.random.default_rng(0))
    assert 0 not in np.concatenate([rows for rows, _, _ in batches])
    config = BiDAFConfig(vocabulary_size=1, characters=1, max_answer_words=1)
    limits = describe_exceeded(reading.limits(longer, config, training.replace(max_question=3)))
    settings = ("max_context", "max_question", "max_context", "max_answer_words")
    for sentence, setting in zip(limits, settings, strict=True):
        assert " of 24 questions " in sentence and f"(--set {setting}=N " in sentence


def test_evaluate_measures_all_questions_and_writes_predictions(run, tmp_path, capsys):
    record = evaluate(reading, run.path, "dev", out=tmp_path / "predictions.json")
    predictions = json.loads((tmp_path / "predictions.json").read_text())
    dev = reading.dataset_of(run).splits["dev"]
    assert list(predictions) == dev.ids
    right = np.mean(
        [predictions[id] in answers for id, answers in zip(dev.ids, dev.answers, strict=True)]
    )
    assert record["metrics"]["EM"] == pytest.approx(right)
    assert record["baselines"]["first words"] == {"EM": 0.0, "F1": 0.0}
    metrics = json.loads((run.path / "metrics.json").read_text())
    assert metrics["dev"]["confidence"] == record["confidence"]
    assert "first words" in capsys.readouterr().out


def test_answers_of_another_system_are_scored(dataset, tmp_path, capsys):
    dev = dataset.splits["dev"]
    answers = {}
    for id, texts in zip(dev.ids[1:], dev.answers[1:], strict=True):
        answers[id] = f"the {texts[0].lower()}!"
    (tmp_path / "p.json").write_text(json.dumps(answers))
    scoring = types.SimpleNamespace(examples=dev)
    measured = reading.measure_outside(scoring, tmp_path / "p.json")
    assert measured.record["counts"]["questions"] == 6
    terms = measured.by_example()["EM"].terms
    assert terms[:, 0].tolist() == [0, 1, 1, 1, 1, 1]
    assert "1 of 6 questions have no answer and count 0" in capsys.readouterr().err
    for text, word in (("[]", "dictionary"), ('{"q": 1}', "string"), ("{", "JSON")):
        (tmp_path / "p.json").write_text(text)
        assert word in refusal(reading.measure_outside, scoring, tmp_path / "p.json")
