"""Ensembles: `evaluate.py --run=A,B` has a mean of the probabilities of its runs."""

import json
import shutil

import numpy as np
import pytest
from helpers import train_small

from base.files import UserError
from data.batching import batches_by_size
from engine.ensemble import ensemble
from engine.evaluate import evaluate_all
from engine.run import Run
from metrics.reading_comprehension import squad_metrics
from models.bidaf import best_spans
from tasks import TASKS
from tasks.reading_comprehension.scoring import MAX_LENGTH
from tasks.selection.scoring import score


def second(run, path):
    """A run with other weights and another seed."""
    shutil.copytree(run.path, path)
    config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    config["training"]["seed"] = 7
    (path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    other = Run.open(path)
    model, rng = other.load_model(), np.random.default_rng(3)
    for weight in model.trainable_weights:
        weight.assign(weight + rng.normal(0, 0.1, weight.shape))
    other.save_best(model)
    return other


@pytest.mark.slow
def test_spans_are_found_by_the_geometric_mean_of_probabilities(trained_reading_comprehension, tmp_path, capsys):
    run = trained_reading_comprehension
    other = second(run, tmp_path / "other")
    before = (run.path / "metrics.json").read_text(encoding="utf-8") if (run.path / "metrics.json").exists() else None
    out, said = tmp_path / "record.json", tmp_path / "said.json"
    evaluate_all(
        TASKS, f"{run.path},{other.path}", ["dev"], measured_out=str(out), baselines=False, scores_out=str(said)
    )
    split = TASKS["reading_comprehension"].dataset_of(run).splits["dev"]
    models, expected = [each.load_model() for each in (run, other)], {}
    joint = ensemble(TASKS["reading_comprehension"], models)
    for rows in batches_by_size(split.sizes, 3):
        inputs, _ = split.collate(rows)
        p = 1.0
        for model in models:
            logits = np.asarray(model.predict_on_batch(inputs), "float64")
            e = np.exp(logits - logits.max(axis=-1, keepdims=True))
            p = p * np.sqrt(e / e.sum(axis=-1, keepdims=True))
        found = np.exp(np.asarray(joint.predict_on_batch(inputs), "float64"))
        np.testing.assert_allclose(found / found.sum(-1, keepdims=True), p / p.sum(-1, keepdims=True), atol=1e-5)
        first, last, _ = best_spans(np.log(np.maximum(p, 1e-30)).astype("float32"), MAX_LENGTH)
        for row, i, j in zip(rows, np.asarray(first)[:, 0], np.asarray(last)[:, 0], strict=True):
            expected[split.ids[row]] = split.answer(row, i, j)
    assert json.loads(said.read_text(encoding="utf-8")) == expected
    record = json.loads(out.read_text(encoding="utf-8"))
    assert record["metrics"] == squad_metrics(expected, dict(zip(split.ids, split.answers, strict=True)))
    assert record["name"].startswith("Ensemble of 2: BiDAF") and record["seeds"] == [1, 7]
    assert "Ensemble of 2" in capsys.readouterr().out
    after = (run.path / "metrics.json").read_text(encoding="utf-8") if (run.path / "metrics.json").exists() else None
    assert after == before  # no run is the ensemble


def test_candidates_are_ranked_by_the_geometric_mean_of_odds(trained_selection, tmp_path):
    run = trained_selection
    other, out = second(run, tmp_path / "other"), tmp_path / "scores"
    pattern = f"{run.path},{other.path},{run.path}"
    evaluate_all(TASKS, pattern, ["dev"], baselines=False, scores_out=str(out), precision="float32")
    split = TASKS["selection"].dataset_of(run).splits["dev"]
    one, two = (score(model, split, model.config) for model in (run.load_model(), other.load_model()))
    odds = np.exp(2 * one.astype("float64") + two) ** (1 / 3)
    found = [float(line.split("\t")[0]) for line in out.read_text(encoding="utf-8").splitlines()]
    assert np.abs(one - two).max() > 0.01
    np.testing.assert_allclose(found, np.log(odds), atol=1e-4)


def test_responses_are_chosen_by_the_mean_of_probabilities(trained_dialog, tmp_path):
    run = trained_dialog
    other, out = second(run, tmp_path / "other"), tmp_path / "said"
    evaluate_all(TASKS, f"{run.path},{other.path}", ["dev"], baselines=False, scores_out=str(out), precision="float32")
    dataset = TASKS["dialog"].dataset_of(run)
    split, models, expected = dataset.splits["dev"], [each.load_model() for each in (run, other)], []
    for row in range(len(split)):
        inputs, answers = split.collate([row], models[0].config.reads, models[0].config.entities)
        p = 0.0
        for model in models:
            e = np.exp(np.asarray(model.predict_on_batch(inputs), "float64"))
            p = p + e / e.sum(axis=-1, keepdims=True)
        expected += [dataset.world.candidates[best] for best in p.argmax(axis=-1)[answers >= 0]]
    assert [line.split("\t")[1] for line in out.read_text(encoding="utf-8").splitlines()] == expected


def test_what_makes_no_ensemble(trained_generation, trained_selection, tmp_path):
    pattern = f"{trained_generation.path},{trained_generation.path}"
    with pytest.raises(UserError, match="models of generation make no ensemble here"):
        evaluate_all(TASKS, pattern, ["dev"], baselines=False)
    with pytest.raises(UserError, match="an ensemble has one task: "):
        evaluate_all(TASKS, f"{trained_selection.path},{trained_generation.path}", ["dev"])


def test_models_of_an_ensemble_may_read_fewer_fields_than_others(trained_dialog, tmp_path):
    run = trained_dialog
    typed = train_small("dialog", run.dataset["path"], tmp_path, {"match_types": "true"}, epochs=1.0)
    one, two = run.load_model(), typed.load_model()
    assert one.input.keys() < two.input.keys()
    joint = ensemble(TASKS["dialog"], [one, two])
    inputs, _ = TASKS["dialog"].dataset_of(run).splits["dev"].collate([0, 3], two.config.reads, two.config.entities)
    p = 0.0
    for model in (one, two):
        e = np.exp(np.asarray(model({name: inputs[name] for name in model.input}), "float64"))
        p = p + e / e.sum(axis=-1, keepdims=True) / 2
    np.testing.assert_allclose(np.exp(np.asarray(joint(inputs), "float64")), p, atol=1e-5)


def test_models_of_an_ensemble_take_the_same_batches(trained_selection, tmp_path):
    shutil.copytree(trained_selection.path, tmp_path / "shorter")
    config = json.loads((tmp_path / "shorter" / "config.json").read_text(encoding="utf-8"))
    width = config["config"]["max_words"]
    config["config"]["max_words"] = width - 1
    (tmp_path / "shorter" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(UserError, match=f"have the same max_words. Received: {width} and {width - 1}"):
        evaluate_all(TASKS, f"{trained_selection.path},{tmp_path / 'shorter'}", ["dev"], baselines=False)


def test_models_of_an_ensemble_read_the_same_fields(trained_dialog, trained_selection):
    models = [run.load_model() for run in (trained_dialog, trained_selection)]
    with pytest.raises(UserError, match=r"read the same fields\. Received: .*words.* and responses, turns"):
        ensemble(TASKS["dialog"], models)
