"""Long passages in the reader, its scale of confidence, and what it does not know."""

import dataclasses
import json
import shutil

import keras
import numpy as np
import pytest

from data.corpora.squad import tokenize
from engine.evaluate import evaluate
from engine.run import Run
from tasks import TASKS
from tasks.reading_comprehension.confidence import Scale, fit_scale, measure_confidence
from tasks.reading_comprehension.predictor import BATCH_WORDS
from tasks.reading_comprehension.scoring import MAX_LENGTH
from tasks.reading_comprehension.windows import Window, batches_of, windows_of

reading = TASKS["reading_comprehension"]
PASSAGE, QUESTION = "Ann lives in Rome. Bob lives in Paris.", "Where does Bob live?"


@pytest.fixture(scope="module")
def run(trained_reading_comprehension, tmp_path_factory):
    """A copy, into which evaluate.py may write."""
    return Run.open(shutil.copytree(trained_reading_comprehension.path, tmp_path_factory.mktemp("runs") / "run"))


@pytest.fixture
def predictor(run):
    return reading.predictor(run)


def ask(predictor, passage, question=QUESTION):
    return predictor.predict([{"passage": passage, "question": question}])[0]


# === Windows ===


@pytest.mark.parametrize("words", [1, 7, 8, 20, 53])
def test_each_short_span_stands_whole_in_a_window(words):
    windows = windows_of(5, words, size=7, overlap=3)
    assert {window.row for window in windows} == {5} and windows[-1].end == words
    for first in range(words - 2):
        assert any(window.first <= first and first + 3 <= window.end for window in windows)
    assert all(window.end - window.first == min(7, words) for window in windows)


def test_a_batch_has_few_words_whatever_comes():
    windows = [Window(row, 0, length) for row, length in enumerate([11, 3, 5, 3, 2, 13])]
    found = batches_of(windows, words=12, most=3)
    assert [[window.row for window in batch] for batch in found] == [[4, 1, 3], [2], [0], [5]]


def test_the_best_window_answers(predictor):
    """A passage of windows: the answer is that of the window whose best span has the highest logits."""
    filler = "in Oslo, in Kyiv? " * 211
    passage = f"{filler}{PASSAGE} {filler}"
    places = tokenize(passage)
    windows = windows_of(0, len(places), predictor.window, predictor.window // 4)
    assert len(windows) > 5 and predictor.window // 4 >= MAX_LENGTH
    alone = []
    for _, first, end in windows:
        start, stop = places[first][0], places[end - 1][1]
        found = ask(predictor, passage[start:stop])
        alone.append((found["score"], found["answer"], found["start"] + start))
    found = ask(predictor, passage)
    best = max(alone)
    assert found["score"] == pytest.approx(best[0], abs=1e-3) and found["answer"] == best[1]
    assert passage[found["start"] : found["end"]] == found["answer"]
    assert 0 < found["probability"] < 1
    shown = predictor.explain({"passage": passage, "question": QUESTION})["attention"][0]
    assert len(shown["columns"]) == predictor.window  # the window of the answer, not the whole passage
    assert found["answer"].split()[0] in shown["columns"]


def test_ten_thousand_words_are_read_a_batch_at_a_time(predictor, monkeypatch):
    calls, predict = [], predictor.model.predict_on_batch

    def counting(inputs):
        calls.append(inputs["context"].shape)
        return predict(inputs)

    monkeypatch.setattr(predictor.model, "predict_on_batch", counting)
    passage = "Cyd lives in Kyiv. " * 2000 + PASSAGE
    assert len(tokenize(passage)) == 10_010
    found = ask(predictor, passage)
    assert found["answer"] and found["answer"] == passage[found["start"] : found["end"]]
    assert max(rows * words for rows, words in calls) <= BATCH_WORDS
    assert sum(rows * words for rows, words in calls) < 1.5 * 10_010


def test_the_best_answers_share_no_word(predictor):
    found = ask(predictor, PASSAGE)
    first = found["n_best"][0]
    assert {name: found[name] for name in first} == first
    assert [each["score"] for each in found["n_best"]] == sorted((e["score"] for e in found["n_best"]), reverse=True)
    taken = [place for each in found["n_best"] for place in range(each["start"], each["end"])]
    assert len(taken) == len(set(taken)) and 1 < len(found["n_best"]) <= 5


def test_what_is_shown_of_the_attention_flow_is_the_papers(predictor):
    _, c2q, q2c = predictor.explain({"passage": PASSAGE, "question": QUESTION})["attention"]
    flow = predictor.model.get_layer("attention_flow")
    places = tokenize(PASSAGE), tokenize(QUESTION)
    inputs, _ = predictor._split([predictor.Instance(passage=PASSAGE, question=QUESTION)], [places]).collate([0])
    H_TD, U_JD = (x[0] for x in keras.Model(predictor.model.input, flow.input[:2]).predict_on_batch(inputs))
    w_h, w_u, w_hu = np.asarray(flow.w_3D)
    S_TJ = np.array([[h @ w_h + u @ w_u + (h * u) @ w_hu for u in U_JD] for h in H_TD])

    def softmax(x):
        return np.exp(x) / np.exp(x).sum()

    np.testing.assert_allclose(c2q["weights"], [softmax(row) for row in S_TJ], atol=1e-5)
    np.testing.assert_allclose(q2c["weights"], [softmax(S_TJ.max(axis=1))], atol=1e-5)


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


def test_evaluating_dev_gives_the_reader_a_scale(run, monkeypatch):
    assert reading.predictor(run).scale is None
    found = ask(reading.predictor(run), PASSAGE)
    assert (found["confidence"], found["good"]) == (None, None)
    record = evaluate(reading, run.path, split="dev")
    written = json.loads((run.path / "metrics.json").read_text())["dev"]["confidence"]
    assert written == record["confidence"]
    assert written is None or written["questions"] == 6
    monkeypatch.setattr("tasks.reading_comprehension.predictor._scale_of", lambda run: Scale(2.0, -3.0, 1.0))
    predictor = reading.predictor(run)
    found = ask(predictor, PASSAGE)
    assert found["confidence"] == pytest.approx(1 / (1 + np.exp(3.0 - 2.0 * found["score"])))
    for threshold, good in ((found["score"] - 0.1, True), (found["score"] + 0.1, False)):
        predictor.scale = dataclasses.replace(predictor.scale, threshold=threshold)
        assert ask(predictor, PASSAGE)["good"] is good


def test_each_question_is_also_asked_of_a_passage_without_its_answer(run, monkeypatch):
    split = reading.dataset_of(run).splits["dev"]
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
    assert (found["right_kept"], found["wrong_refused"], found["questions"]) == (1.0, 1.0, len(split))


def test_words_without_a_vector_are_counted(predictor):
    assert ask(predictor, "Rome, Paris in Bern.", "where?")["unknown_percent"] == 0.0
    assert ask(predictor, "Rome, Xyzzy in Bern.", "where, plugh?")["unknown_percent"] == pytest.approx(
        100 * 2 / 6, abs=0.1
    )
    assert ask(predictor, "", "where?")["unknown_percent"] == 0.0
