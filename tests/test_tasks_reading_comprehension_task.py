"""Reading comprehension from a prepared dataset to scores, on a small SQuAD."""

import json

import numpy as np
import pytest
from helpers import copy_of

from base.files import UserError
from engine.evaluate import evaluate
from tasks import TASKS
from tasks.reading_comprehension.data import load_dataset

reading = TASKS["reading_comprehension"]


@pytest.fixture(scope="module")
def dataset(prepared_reading):
    return load_dataset(prepared_reading)


@pytest.fixture(scope="module")
def run(trained_reading_comprehension, tmp_path_factory):
    """A copy, into which evaluate.py may write."""
    return copy_of(trained_reading_comprehension, tmp_path_factory)


def test_training_leaves_out_questions_whose_answer_is_not_read(dataset):
    training = reading.Training(max_context=5, batch_size=8)
    batches = reading.training_batches(dataset.splits["train"], None, training, np.random.default_rng(0))
    rows = np.concatenate([rows for rows, _, _ in batches])
    assert sorted(rows) == list(range(0, 24, 2))  # the first of each context's two


def test_evaluate_measures_all_questions_and_writes_predictions(run, tmp_path, capsys):
    record = evaluate(reading, run.path, "dev", scores_out=tmp_path / "predictions.json")
    predictions = json.loads((tmp_path / "predictions.json").read_text())
    dev = reading.dataset_of(run).splits["dev"]
    assert list(predictions) == dev.ids
    right = np.mean([predictions[id] in answers for id, answers in zip(dev.ids, dev.answers, strict=True)])
    assert record["metrics"]["EM"] == pytest.approx(right)
    assert record["baselines"]["first words"] == {"EM": 0.0, "F1": 0.0}
    assert "first words" in capsys.readouterr().out


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
    for split, message in (("dev", r"p\.json: expected"), ("test", "no examples in the split test")):
        with pytest.raises(UserError, match=message):
            reading.evaluate_predictions(tmp_path / "p.json", prepared_reading, split)
