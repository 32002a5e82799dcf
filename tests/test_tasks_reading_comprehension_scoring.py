"""`tasks.reading_comprehension.scoring` and `confidence`: loss, spans, and the scale of an answer's confidence."""

import dataclasses
import json

import numpy as np
import pytest
from helpers import copy_of
from keras import ops

from engine.evaluate import evaluate
from models.bidaf import best_spans
from tasks import TASKS
from tasks.reading_comprehension.confidence import fit_scale, measure_confidence, scale_of
from tasks.reading_comprehension.scoring import span_loss

reading = TASKS["reading_comprehension"]


def test_span_loss_sums_over_all_places_of_an_answer():
    logits = np.random.default_rng(0).normal(size=(2, 2, 5)).astype("float32")
    spans = np.array([[[0, 1], [2, 4], [-1, -1]], [[3, 3], [-1, -1], [-1, -1]]])
    p = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    expected = [-np.log(p[0, 0, 0] * p[0, 1, 1] + p[0, 0, 2] * p[0, 1, 4]), -np.log(p[1, 0, 3] * p[1, 1, 3])]
    np.testing.assert_allclose(ops.convert_to_numpy(span_loss(spans, logits)), expected, rtol=1e-5)


@pytest.mark.parametrize("penalty", [0.0, 0.7])
@pytest.mark.parametrize("length", [1, 3, 7, 9])
def test_best_spans_finds_what_a_loop_over_all_spans_finds(length, penalty):
    B, T, K = 3, 7, 5
    logits = np.random.default_rng(length).normal(size=(B, 2, T)).astype("float32")
    logits[1, :, 4:] = -1e30  # padding
    first, last, score = (ops.convert_to_numpy(found) for found in best_spans(logits, length, K, penalty))
    for b in range(B):
        places = [(i, j) for i in range(T) for j in range(i, min(T, i + length))]
        spans = [(logits[b, 0, i] + logits[b, 1, j] - penalty * (j - i), i, j) for i, j in places]
        real = [span for span in sorted(spans, reverse=True)[:K] if span[0] > -1e29]
        np.testing.assert_allclose(score[b, : len(real)], [span[0] for span in real], rtol=1e-5)
        assert list(zip(first[b], last[b], strict=True))[: len(real)] == [(i, j) for _, i, j in real]


# === Confidence ===


def test_a_scale_says_how_often_an_answer_of_a_score_is_right():
    rng = np.random.default_rng(5)
    scores = rng.normal(3.0, 7.0, 20_000)
    right = rng.random(20_000) < 1 / (1 + np.exp(-(0.5 * scores - 2.0)))
    scale = fit_scale(scores, right)
    assert (scale.slope, scale.offset) == (pytest.approx(0.5, abs=0.02), pytest.approx(-2.0, abs=0.05))
    assert scale.confidence(4.0) == pytest.approx(0.5, abs=0.01)
    kept = [np.mean(scores[right] >= t) + np.mean(scores[~right] < t) for t in (scale.threshold, 0.0, 9.0)]
    assert kept[0] > max(kept[1:])


@pytest.mark.parametrize(
    ("scores", "right"),
    [([1.0, 2.0, 3.0, 4.0], [1, 1, 0, 0]), ([1.0, 2.0], [1, 1]), ([1.0, 2.0], [0, 0]), ([], [])],
    ids=["higher is worse", "all right", "all wrong", "none"],
)
def test_without_evidence_there_is_no_scale(scores, right):
    assert fit_scale(scores, right) is None


def test_evaluating_dev_gives_the_predictor_a_scale(trained_reading_comprehension, tmp_path_factory):
    run = copy_of(trained_reading_comprehension, tmp_path_factory)
    instance = {"passage": "Ann lives in Rome. Bob lives in Paris.", "question": "Where does Bob live?"}
    assert scale_of(run) is None
    [found] = reading.predictor(run).predict([instance])
    assert (found["confidence"], found["good"]) == (None, None)
    record = evaluate(reading, run.path, split="dev")
    metrics = json.loads((run.path / "metrics.json").read_text())
    assert metrics["dev"]["confidence"] == record["confidence"]
    assert record["confidence"] is None or record["confidence"]["questions"] == 6
    for threshold, good in ((found["score"] - 0.1, True), (found["score"] + 0.1, False)):
        metrics["dev"]["confidence"] = {"slope": 2.0, "offset": -3.0, "threshold": threshold, "questions": 6}
        (run.path / "metrics.json").write_text(json.dumps(metrics))
        [again] = reading.predictor(run).predict([instance])
        assert again["confidence"] == pytest.approx(1 / (1 + np.exp(3.0 - 2.0 * found["score"])))
        assert again["good"] is good


def test_each_question_is_also_asked_of_a_passage_without_its_answer(trained_reading_comprehension, monkeypatch):
    split = reading.dataset_of(trained_reading_comprehension).splits["dev"]
    asked = []

    def predict(model, examples, length_multiple):
        asked.append(examples)
        spans = np.array([examples.spans[row][0] if row < len(split) else (0, 0) for row in range(len(examples))])
        return spans, np.where(np.arange(len(examples)) < len(split), 5.0, 1.0) + 0.1 * np.arange(len(examples))

    monkeypatch.setattr("tasks.reading_comprehension.confidence.predict", predict)
    found = measure_confidence(None, split)
    [examples] = asked
    assert len(examples) == 2 * len(split)
    for row in range(len(split), len(examples)):
        passage = examples.texts[examples.context[row]].lower()
        assert not any(answer.lower() in passage for answer in examples.answers[row])
        assert examples.ids[row] == split.ids[row - len(split)]
        assert examples.questions.lists([row]) == split.questions.lists([row - len(split)])
    assert (found["right_kept"], found["wrong_refused"], found["questions"]) == (1.0, 1.0, len(split))
    assert measure_confidence(None, dataclasses.replace(split, answers=[["lives"]] * 6)) is None  # in each passage
