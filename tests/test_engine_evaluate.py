"""engine/evaluate.py: what scoring writes and prints, several runs side by side, ensembles."""

import collections
import json
import pathlib
import shutil

import numpy as np
import pytest
from helpers import copy_of, train_small

from base.files import UserError
from data.batching import batches_by_size
from engine import evaluate as evaluation
from engine.evaluate import append_scores, ensemble, evaluate, evaluate_all, read_scores
from engine.run import Run
from metrics.dialog import dialog_metrics
from metrics.ranking import ranking_metrics
from metrics.reading_comprehension import squad_metrics
from models.bidaf import best_spans
from tasks import TASKS
from tasks.dialog.scoring import baselines_and_upper_bounds
from tasks.reading_comprehension.scoring import MAX_LENGTH
from tasks.selection.scoring import score

dialog, selection = TASKS["dialog"], TASKS["selection"]


@pytest.fixture(scope="module")
def run(swept):
    return Run.open(swept / "runs" / "tiny-task1-1")


@pytest.fixture(scope="module")
def selection_run(trained_selection, tmp_path_factory):
    return copy_of(trained_selection, tmp_path_factory)


# === One run ===


def test_a_dialog_model_is_scored_beside_baselines(run, tmp_path, capsys):
    record = evaluate(dialog, run.path, "test", scores_out=tmp_path / "said.txt")
    dataset = dialog.dataset_of(run)
    split, candidates = dataset.splits["test"], dataset.world.candidates
    rows = [line.split("\t") for line in (tmp_path / "said.txt").read_text().splitlines()]
    assert [row[2] for row in rows] == [candidates[answer] for answer in split.answers]
    assert [int(row[0]) for row in rows] == [number + 1 for number in split.dialog]
    said = [candidates.index(row[1]) for row in rows]
    assert record["metrics"] == dialog_metrics(said, split.answers, split.dialog)
    assert record["counts"] == {"dialogs": 7, "responses": 48}
    below = baselines_and_upper_bounds(dataset, "test")
    assert {kind: record[kind] for kind in ("baselines", "upper_bounds")} == below
    assert json.loads((run.path / "metrics.json").read_text())["test"]["metrics"] == record["metrics"]
    printed = capsys.readouterr().out
    for kind, label in (("baselines", "baseline"), ("upper_bounds", "upper bound")):
        for name, metrics in record[kind].items():
            [row] = [line for line in printed.splitlines() if f"{label}: {name}" in line]
            assert f"{metrics['per_response']:.4f}" in row and f"{metrics['per_dialog']:.4f}" in row
    assert "sample-task1, test: 7 dialogs, 48 responses" in printed
    assert f"{record['metrics']['per_response']:.4f}" in printed


def test_a_selection_model_is_scored_on_all_lines(selection_run, tmp_path, capsys):
    record = evaluate(selection, selection_run.path, "test", scores_out=tmp_path / "scores.txt")
    split = selection.load_dataset(selection_run.dataset["path"]).splits["test"]
    rows = [line.split("\t") for line in (tmp_path / "scores.txt").read_text().splitlines()]
    assert [int(label) for _, label in rows] == split.label.tolist()
    scores = np.array([float(score) for score, _ in rows])
    assert record["metrics"] == ranking_metrics(scores, split.label, split.context).metrics
    assert record["counts"]["lines"] == len(split.label) == 110
    assert record["baselines"]["constant"]["R10@1"] == 0.0
    assert "TF-IDF" in capsys.readouterr().out


def test_the_release_drops_partial_batches_and_counts_a_constant_score_as_right(selection_run, tmp_path):
    options = {"ties": "release", "partial_batches": "drop", "scores_out": tmp_path / "s"}
    record = evaluate(selection, selection_run.path, "dev", **options)
    assert record["counts"]["lines"] == 90  # three batches of 32 lines are 96: nine whole contexts
    assert record["counts"]["contexts"] == 9
    assert len((tmp_path / "s").read_text().splitlines()) == 90
    assert record["baselines"]["constant"]["R10@1"] == 1.0


def test_without_baselines_none_are_scored(run, capsys):
    record = evaluate(dialog, run.path, "dev", baselines=False)
    assert not {"baselines", "upper_bounds"} & set(record)
    assert "baseline" not in capsys.readouterr().out


def test_texts_of_corpora_are_no_markup(run, capsys):
    record = {
        "metrics": {"per_response": 0.5},
        "baselines": {"[laughs]": {"per_response": 0.25}, "[/x]": {"per_response": 0.75}},
        "counts": {"dialogs": 1, "responses": 2},
    }
    evaluation.print_record("[red] run", dialog, dialog.dataset_of(run), "dev", record)
    printed = capsys.readouterr().out
    assert "baseline: [laughs]" in printed and "baseline: [/x]" in printed and "[red] run" in printed


@pytest.mark.parametrize(("jit", "length_multiple"), [("on", 16), ("off", 4), ("auto", 4)])
def test_lengths_are_rounded_up_as_in_training(run, monkeypatch, jit, length_multiple):
    found = []

    def measure(model, dataset, split, run, baselines, progress, length_multiple):
        found.append((length_multiple, model.jit_compile))
        return {"metrics": {}, "counts": {"dialogs": 1, "responses": 2}}

    monkeypatch.setattr(dialog, "measure", measure)
    monkeypatch.setattr(Run, "save_metrics", lambda *_: None)
    evaluate(dialog, run.path, "dev", jit=jit)
    assert found == [(length_multiple, jit == "on")]


# === Rows ===


def test_a_row_says_what_trained_and_what_evaluated(run, tmp_path, monkeypatch):
    trained = {
        "command": "python train.py",
        "hardware": "3 cores",
        "commit": "abc",
        "dirty": True,
        "versions": {"x": "1"},
    }
    other = Run(run.path, {**run.record, **trained, "recipe": "mine"})
    here = {"command": "python evaluate.py", "commit": "def", "dirty": False, "hardware": "5 cores", "versions": {}}
    monkeypatch.setattr(evaluation, "provenance", lambda: here)
    record = evaluation.Evaluation(dialog, [other]).score("dev")
    append_scores(tmp_path / "scores.jsonl", record)
    row, *baselines = read_scores(tmp_path / "scores.jsonl")
    assert row == {
        **{"recipe": "mine", "task": "dialog", "corpus": "sample-task1", "split": "dev", "seed": 1},
        **{"metrics": record["metrics"], "epochs": 8.0, "minutes": round(run.history()[-1]["seconds"] / 60, 3)},
        **trained,
        "evaluation": {"command": "python evaluate.py", "commit": "def", "dirty": False},
    }
    shared = {"task": "dialog", "corpus": "sample-task1", "split": "dev"}
    expected = {f"baseline: {name}": metrics for name, metrics in record["baselines"].items()}
    expected |= {f"upper bound: {name}": metrics for name, metrics in record["upper_bounds"].items()}
    assert baselines == [{"recipe": name, **shared, "metrics": metrics} for name, metrics in expected.items()]
    append_scores(tmp_path / "scores.jsonl", {**record, "seed": 2})
    assert [each.get("seed") for each in read_scores(tmp_path / "scores.jsonl")] == [1, *[None] * len(baselines), 2]


def test_a_row_names_the_corpus_and_the_trainings_before_if_they_are_others(run):
    before = [{"corpus": "first", "epochs": 3.0, "seconds": 60.0}]
    other = Run(run.path, {**run.record, "before": before, "dataset": {**run.dataset, "name": "elsewhere"}})
    record = evaluation.Evaluation(dialog, [other]).score("dev", baselines=False)
    assert (record["trained_on"], record["epochs_before"], record["recipe"]) == ("elsewhere", [3.0], "memma")
    assert record["minutes"] == round(run.history()[-1]["seconds"] / 60 + 1, 3)


# === Several runs ===


def test_seeds_stand_side_by_side(swept, tmp_path, capsys):
    pattern, file = str(swept / "runs" / "*"), tmp_path / "scores.jsonl"
    splits = ["dev", "dev-oov", "test"]  # one of which the dataset lacks
    evaluate_all(TASKS, pattern, splits, scores=file, baselines=False)
    printed = capsys.readouterr().out
    rows = read_scores(file)
    assert [(row["seed"], row["split"]) for row in rows] == [(1, "dev"), (1, "test"), (2, "dev"), (2, "test")]
    table = printed[printed.index("mean ± deviation over seeds") :]
    header = next(line for line in table.splitlines() if "sample-task1 dev" in line)
    names = ["", "sample-task1 dev", "sample-task1 test", "mean", "seeds"]
    assert [text.strip() for text in header.split("┃")[1:-1]] == names


def test_each_model_and_dataset_is_loaded_once(swept, monkeypatch):
    loaded = collections.Counter()
    load_model, load_dataset = Run.load_model, dialog.load_dataset

    def counted_model(run):
        loaded[run.path.name] += 1
        return load_model(run)

    def counted_dataset(path):
        loaded[pathlib.Path(path).name] += 1
        return load_dataset(path)

    monkeypatch.setattr(Run, "load_model", counted_model)
    monkeypatch.setattr(dialog, "load_dataset", counted_dataset)
    evaluate_all(TASKS, str(swept / "runs" / "*"), ["dev", "test"], baselines=False)
    assert loaded == {"tiny-task1-1": 1, "tiny-task1-2": 1, "task1": 1}


def test_one_run_and_split_has_no_second_table(run, capsys):
    evaluate_all(TASKS, str(run.path), ["dev"], baselines=False)
    assert "deviation" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("splits", "options", "message"),
    [
        (["dev-oov", "test-oov"], {}, "no dataset of .* has examples in the splits dev-oov, test-oov"),
        (["valid"], {}, "--split expects one of train, dev, .*Received: valid"),
        (["dev", "test"], {"scores_out": "x"}, "--scores_out is for one run and one split"),
        (["dev"], {"scores": "SWEPT"}, "is a directory, expected a file"),
    ],
)
def test_several_runs_refuse(swept, splits, options, message):
    options = {name: swept if value == "SWEPT" else value for name, value in options.items()}
    with pytest.raises(UserError, match=message):
        evaluate_all(TASKS, str(swept / "runs" / "*"), splits, **options)


# === Refusals ===


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "valid"}, "--split expects one of train, dev, dev-oov, test, test-oov. Received: valid"),
        ({"split": "dev-oov"}, "task1 has no examples in the split dev-oov"),
        ({"ties": "loss"}, "--ties is not for dialog, which has scores_out"),
        ({"scores_out": "."}, "is a directory, expected a file"),
    ],
)
def test_evaluate_refuses_what_is_not_there(run, options, message, monkeypatch):
    monkeypatch.setattr(dialog, "measure", None)  # nothing is scored before
    with pytest.raises(UserError, match=message):
        evaluate(dialog, run.path, **options)


def test_evaluate_refuses_another_world(run, prepared_dialog, tmp_path):
    other = shutil.copytree(prepared_dialog, tmp_path / "other")
    with open(other / "candidates.txt", "a") as file:
        file.write("see you\n")
    with pytest.raises(UserError, match=r"other: the run has candidates .*, here it is .*: they come from"):
        evaluate(dialog, run.path, "dev", data=other)


def no_config(run, path):
    return path


def no_weights(run, path):
    return Run.create(path / "run", run.record).path


def little_in_config(run, path):
    (path / "config.json").write_text('{"model": "dam", "settings": {}, "fit": {}}')
    return path


def other_weights(run, path):
    other = Run.create(path / "run", {**run.record, "config": {**run.record["config"], "levels": 2}})
    shutil.copy(run.path / "best.weights.h5", other.path)
    return other.path


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (no_config, "it has no config.json"),
        (no_weights, "holds no weights: expected best.weights.h5"),
        (little_in_config, "config.json: expected .* Missing: config, training, dataset"),
        (other_weights, "the weights do not fit"),
    ],
)
def test_evaluate_refuses_a_broken_run(selection_run, make, message, tmp_path):
    with pytest.raises(UserError, match=message):
        evaluate(selection, make(selection_run, tmp_path), "dev")


# === Ensembles ===


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


def softmax(logits):
    e = np.exp(np.asarray(logits, "float64"))
    return e / e.sum(axis=-1, keepdims=True)


@pytest.mark.slow
def test_spans_are_found_by_the_geometric_mean_of_probabilities(trained_reading_comprehension, tmp_path, capsys):
    run = trained_reading_comprehension
    other, task = second(run, tmp_path / "other"), TASKS["reading_comprehension"]
    before = (run.path / "metrics.json").read_text(encoding="utf-8") if (run.path / "metrics.json").exists() else None
    out, said = tmp_path / "scores.jsonl", tmp_path / "said.json"
    evaluate_all(TASKS, f"{run.path},{other.path}", ["dev"], scores=out, baselines=False, scores_out=str(said))
    split = task.dataset_of(run).splits["dev"]
    models, expected = [each.load_model() for each in (run, other)], {}
    joint = ensemble(task, models)
    for rows in batches_by_size(split.sizes, 3):
        inputs, _ = split.collate(rows)
        p = np.sqrt(np.prod([softmax(model.predict_on_batch(inputs)) for model in models], axis=0))
        found = np.exp(np.asarray(joint.predict_on_batch(inputs), "float64"))
        np.testing.assert_allclose(found / found.sum(-1, keepdims=True), p / p.sum(-1, keepdims=True), atol=1e-5)
        first, last, _ = best_spans(np.log(np.maximum(p, 1e-30)).astype("float32"), MAX_LENGTH)
        for row, i, j in zip(rows, np.asarray(first)[:, 0], np.asarray(last)[:, 0], strict=True):
            expected[split.ids[row]] = split.answer(row, i, j)
    assert json.loads(said.read_text(encoding="utf-8")) == expected
    [row] = read_scores(out)
    assert row["metrics"] == squad_metrics(expected, dict(zip(split.ids, split.answers, strict=True)))
    assert (row["recipe"], row["ensemble"], row["seed"]) == ("bidaf", 2, 1)
    assert "ensemble of 2: bidaf" in capsys.readouterr().out
    after = (run.path / "metrics.json").read_text(encoding="utf-8") if (run.path / "metrics.json").exists() else None
    assert after == before  # no run is the ensemble


def test_candidates_are_ranked_by_the_geometric_mean_of_odds(trained_selection, tmp_path):
    run = trained_selection
    other, out = second(run, tmp_path / "other"), tmp_path / "scores"
    pattern = f"{run.path},{other.path},{run.path}"
    evaluate_all(TASKS, pattern, ["dev"], baselines=False, scores_out=str(out), precision="float32")
    split = selection.dataset_of(run).splits["dev"]
    one, two = (score(model, split, model.config) for model in (run.load_model(), other.load_model()))
    odds = np.exp(2 * one.astype("float64") + two) ** (1 / 3)
    found = [float(line.split("\t")[0]) for line in out.read_text(encoding="utf-8").splitlines()]
    assert np.abs(one - two).max() > 0.01
    np.testing.assert_allclose(found, np.log(odds), atol=1e-4)


def test_responses_are_chosen_by_the_mean_of_probabilities(trained_dialog, tmp_path):
    run = trained_dialog
    other, out = second(run, tmp_path / "other"), tmp_path / "said"
    evaluate_all(TASKS, f"{run.path},{other.path}", ["dev"], baselines=False, scores_out=str(out), precision="float32")
    dataset = dialog.dataset_of(run)
    split, models, expected = dataset.splits["dev"], [each.load_model() for each in (run, other)], []
    for row in range(len(split)):
        inputs, answers = split.collate([row], models[0].config.reads, models[0].config.entities)
        p = sum(softmax(model.predict_on_batch(inputs)) for model in models)
        expected += [dataset.world.candidates[best] for best in p.argmax(axis=-1)[answers >= 0]]
    assert [line.split("\t")[1] for line in out.read_text(encoding="utf-8").splitlines()] == expected


def test_models_of_an_ensemble_may_read_fewer_fields_than_others(trained_dialog, tmp_path):
    run = trained_dialog
    typed = train_small("dialog", run.dataset["path"], tmp_path, {"match_types": "true"}, epochs=1.0)
    one, two = run.load_model(), typed.load_model()
    assert one.input.keys() < two.input.keys()
    joint = ensemble(dialog, [one, two])
    inputs, _ = dialog.dataset_of(run).splits["dev"].collate([0, 3], two.config.reads, two.config.entities)
    p = sum(softmax(model({name: inputs[name] for name in model.input})) for model in (one, two)) / 2
    np.testing.assert_allclose(np.exp(np.asarray(joint(inputs), "float64")), p, atol=1e-5)


def test_ensembles_refuse_models_that_do_not_belong_together(
    trained_generation, trained_selection, trained_dialog, tmp_path
):
    shutil.copytree(trained_selection.path, tmp_path / "shorter")
    config = json.loads((tmp_path / "shorter" / "config.json").read_text(encoding="utf-8"))
    width = config["config"]["max_words"]
    config["config"]["max_words"] = width - 1
    (tmp_path / "shorter" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    for runs, message in (
        ([trained_generation.path] * 2, "models of generation make no ensemble"),
        ([trained_selection.path, trained_generation.path], "an ensemble has one task: "),
        ([trained_selection.path, tmp_path / "shorter"], f"the same max_words. Received: {width} and {width - 1}"),
    ):
        with pytest.raises(UserError, match=message):
            evaluate_all(TASKS, ",".join(map(str, runs)), ["dev"], baselines=False)
    models = [run.load_model() for run in (trained_dialog, trained_selection)]
    with pytest.raises(UserError, match=r"read the same fields\. Received: .*words.* and responses, turns"):
        ensemble(dialog, models)
