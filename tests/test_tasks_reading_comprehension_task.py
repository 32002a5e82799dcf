"""Reading comprehension from prepared files to scores, on a small SQuAD."""

import json
import pickle
import shutil

import numpy as np
import pytest
from helpers import copy_of, train_small
from keras import ops

from base.files import UserError
from engine.evaluate import evaluate
from layers.span_search import best_spans
from tasks import TASKS
from tasks.reading_comprehension import prepare as prepare_reading
from tasks.reading_comprehension.data import load_dataset
from tasks.reading_comprehension.prepare import Settings
from tasks.reading_comprehension.scoring import span_loss

reading = TASKS["reading_comprehension"]


@pytest.fixture(scope="module")
def dataset(prepared_reading):
    return load_dataset(prepared_reading)


@pytest.fixture(scope="module")
def run(trained_reading_comprehension, tmp_path_factory):
    """A copy, into which evaluate.py may write."""
    return copy_of(trained_reading_comprehension, tmp_path_factory)


# === Data ===


def test_prepared_texts_answers_and_spans_agree(dataset):
    train_split, dev = dataset.splits["train"], dataset.splits["dev"]
    assert (len(train_split), len(dev)) == (24, 6)
    for split in (train_split, dev):
        for row in range(len(split)):
            assert [split.answer(row, *span) for span in split.spans[row]] == split.answers[row]
    assert train_split.answers[0] == ["Rome"]
    assert train_split.texts[0] == "Ann lives in Rome. Cyd lives in Paris."
    assert train_split.offsets[0][:4] == [0, 3, 4, 9]


def test_collate_numbers_the_distinct_tokens_of_a_batch(dataset):
    split = dataset.splits["train"]
    inputs, spans = split.collate([0, 1], multiple=4)
    assert inputs["context"].shape == (2, 12) and inputs["query"].shape == (2, 8)
    assert inputs["words"].shape == (64,) and inputs["characters"].shape == (64, 16)
    words = dataset.vocabulary.words
    read = [[words[inputs["words"][n] - 1] for n in row if n] for row in inputs["context"]]
    # People have no vector, so they are unknown words that only their characters distinguish.
    assert read[0] == ["_UNK_", "lives", "in", "rome", ".", "_UNK_", "lives", "in", "paris", "."]
    characters = dataset.characters.words
    ann = inputs["characters"][inputs["context"][0, 0]]
    assert "".join(characters[id - 1] for id in ann if id) == "Ann"
    assert spans.tolist() == [[[3, 3]], [[8, 8]]]
    assert inputs["words"][0] == 0 and not inputs["characters"][0].any()


def test_collate_cuts_what_is_not_read_and_the_answers_behind_it(dataset):
    inputs, spans = dataset.splits["train"].collate([0, 1], max_context=5, max_question=3)
    assert inputs["context"].shape == (2, 5) and inputs["query"].shape == (2, 3)
    assert spans.tolist() == [[[3, 3]], [[-1, -1]]]
    rounded, spans = dataset.splits["train"].collate([0, 1], max_context=5, max_question=3, multiple=16)
    assert rounded["context"].shape == (2, 16) and (rounded["context"] != 0).sum() == 10
    assert spans.tolist() == [[[3, 3]], [[-1, -1]]]  # the second answer, at word 8, is in the padding


def test_training_leaves_out_questions_whose_answer_is_not_read(dataset):
    training = reading.Training(max_context=5, batch_size=8)
    batches = reading.training_batches(dataset.splits["train"], None, training, np.random.default_rng(0))
    rows = np.concatenate([rows for rows, _, _ in batches])
    assert sorted(rows) == list(range(0, 24, 2))  # the first of each context's two


def test_words_of_train_leaves_out_what_no_text_has(prepared_reading, tmp_path):
    raw = prepared_reading.parent / "raw"
    prepare_reading.prepare("squad", raw, tmp_path / "out", Settings(words_of="train"))
    assert "unused" in load_dataset(prepared_reading).vocabulary.words
    assert "unused" not in load_dataset(tmp_path / "out").vocabulary.words


def test_prepare_without_word_vectors_leaves_nothing(prepared_reading, tmp_path):
    shutil.copytree(prepared_reading.parent / "raw", tmp_path / "raw")
    (tmp_path / "raw" / "vectors.npz").unlink()
    with pytest.raises(UserError, match=r"expected a file of word vectors, \*\.npz"):
        prepare_reading.prepare("squad", tmp_path / "raw", tmp_path / "out", Settings())
    np.savez(tmp_path / "raw" / "vectors.npz", words=np.array(["a"]), vectors=np.array([["x"]], dtype=object))
    with pytest.raises(UserError, match="expected the arrays words and vectors"):
        prepare_reading.prepare("squad", tmp_path / "raw", tmp_path / "out", Settings())
    (tmp_path / "raw" / "vectors.npz").write_bytes(b"")
    with pytest.raises(UserError, match="expected the arrays words and vectors"):
        prepare_reading.prepare("squad", tmp_path / "raw", tmp_path / "out", Settings())
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


def test_load_refuses_other_datasets(prepared, prepared_reading, tmp_path):
    with pytest.raises(UserError, match="is no directory"):
        load_dataset(tmp_path / "missing")
    with pytest.raises(UserError, match='expected an object with "task": "reading_comprehension"'):
        load_dataset(prepared)
    broken = shutil.copytree(prepared_reading, tmp_path / "broken")
    (broken / "vocabulary.txt").write_text("_EOS_\n_UNK_\n")
    with pytest.raises(UserError, match=r"expected shape \(3, dimension\)"):
        load_dataset(broken)
    for vectors in ([[0.0, float("nan")]] * 3, [["a"]] * 3, [1.0] * 3):
        (broken / "word_embedding.pkl").write_bytes(pickle.dumps(vectors, protocol=2))
        with pytest.raises(UserError, match=r"word_embedding\.pkl: expected"):
            load_dataset(broken)


# === Loss and spans ===


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
        expected = sorted(spans, reverse=True)[:K]
        real = [entry for entry in expected if entry[0] > -1e29]
        np.testing.assert_allclose(score[b, : len(real)], [entry[0] for entry in real], rtol=1e-5)
        assert list(zip(first[b], last[b], strict=True))[: len(real)] == [(i, j) for _, i, j in real]


# === Training and scores ===


def test_bidaf_learns_to_read(run):
    history = run.history()
    assert history[-1]["loss"] < 0.5 * history[0]["loss"]
    assert max(row["F1"] for row in history) >= 0.5  # a place drawn from the context's two would be right half the time


def test_evaluate_measures_all_questions_and_writes_predictions(run, tmp_path, capsys):
    record = evaluate(reading, run.path, "dev", scores_out=tmp_path / "predictions.json")
    predictions = json.loads((tmp_path / "predictions.json").read_text())
    dev = reading.dataset_of(run).splits["dev"]
    assert list(predictions) == dev.ids
    right = np.mean([predictions[id] in answers for id, answers in zip(dev.ids, dev.answers, strict=True)])
    assert record["metrics"]["EM"] == pytest.approx(right)
    assert record["baselines"]["first words"] == {"EM": 0.0, "F1": 0.0}
    assert "first words" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("left_out", ["use_words", "c2q"])
def test_the_ablations_train_and_come_back(prepared_reading, tmp_path, left_out):
    settings = {left_out: "false", "ema": "0.0", "validations_per_epoch": "1.0"}
    train_small("reading_comprehension", prepared_reading, tmp_path / "run", settings, epochs=1.0)
    record = evaluate(reading, tmp_path / "run", "dev", baselines=False)
    assert record["settings"]["model"][left_out] is False
    assert record["metrics"]["F1"] == pytest.approx(record["history"][-1]["F1"], abs=1e-5)


def test_a_file_of_predictions_is_scored(prepared_reading, dataset, tmp_path, capsys):
    dev = dataset.splits["dev"]
    answers = {id: f"the {texts[0].lower()}!" for id, texts in zip(dev.ids, dev.answers, strict=True)}
    del answers[dev.ids[0]]
    (tmp_path / "p.json").write_text(json.dumps(answers))
    record = reading.evaluate_predictions(tmp_path / "p.json", prepared_reading)
    assert record["metrics"] == {"EM": pytest.approx(5 / 6), "F1": pytest.approx(5 / 6)}
    printed = capsys.readouterr()
    assert "0.8333" in printed.out and "p.json" in printed.out
    assert "1 of 6 questions have no answer" in printed.err


@pytest.mark.parametrize("text", ["[]", '{"q": 1}', "{"])
def test_a_file_that_holds_no_predictions_is_refused(prepared_reading, tmp_path, text):
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(UserError, match=r"p\.json: expected"):
        reading.evaluate_predictions(tmp_path / "p.json", prepared_reading)
    with pytest.raises(UserError, match="no examples in the split test"):
        reading.evaluate_predictions(tmp_path / "p.json", prepared_reading, "test")
