"""Training, evaluation, sweeps and runs together, on a small simulated corpus of dialogs."""

import collections
import json
import pathlib
import shutil

import numpy as np
import pytest
from helpers import SMALL_RECIPE

from base.files import UserError
from engine import evaluate as evaluation
from engine.run import Run
from engine.sweep import sweep
from engine.train import start
from metrics.dialog import dialog_metrics
from tasks import TASKS
from tasks.dialog.data import World
from tasks.dialog.scoring import baselines_and_upper_bounds

dialog = TASKS["dialog"]


@pytest.fixture(scope="module")
def run(swept):
    return Run.open(swept / "runs" / "tiny-task1-1")


# === Training ===


def test_a_run_holds_all_that_a_bot_needs(run, prepared_dialog):
    names = {"config.json", "best.weights.h5", "last.npz", "history.jsonl"}
    names |= {"vocabulary.txt", "candidates.txt", "knowledge.txt", "entities.txt"}
    assert names <= {file.name for file in run.path.iterdir()}
    assert World.load(run.path) == World.load(prepared_dialog)
    rows = run.history()
    # 26 dialogs, 4 per step, and a validation every other epoch
    assert [(row["epoch"], row["step"]) for row in rows] == [(2.0, 14), (4.0, 28), (6.0, 42), (8.0, 56)]
    assert {"loss", "per_response", "per_dialog", "steps_per_second", "seconds"} <= rows[0].keys()
    guess = np.log(477)  # what a guess among all candidates costs
    assert rows[3]["loss"] < rows[1]["loss"] < rows[0]["loss"] < guess
    assert rows[3]["loss"] < 0.5 * guess
    assert run.config.embedding_dim == 8
    assert run.training.validations_per_epoch == 0.5
    assert (run.training.epochs, run.training.batch_size, run.training.seed) == (8.0, 4, 1)
    assert run.finished()


def test_seeds_differ(swept, run):
    other = Run.open(swept / "runs" / "tiny-task1-2")
    assert other.training.seed == 2 and other.record["recipe"] == "tiny"
    assert other.history()[0]["loss"] != run.history()[0]["loss"]


def test_the_margin_loss_trains(prepared_dialog, tmp_path):
    settings = {"loss": "margin", "embedding_dim": "7", "validations_per_epoch": "1", "patience": "1"}
    settings |= {"epochs": 2.0, "batch_size": 13, "learning_rate": 0.02}
    rows = start(dialog, "supervised-embeddings", prepared_dialog, tmp_path / "run", settings).history()
    assert rows[-1]["loss"] < rows[0]["loss"]


# === Evaluating ===


def test_evaluate_measures_writes_and_prints(run, tmp_path, capsys):
    said_file, measured_file = tmp_path / "said.txt", tmp_path / "measured.json"
    record = evaluation.evaluate(dialog, run.path, "test", measured_out=measured_file, scores_out=said_file)
    dataset = dialog.dataset_of(run)
    split, candidates = dataset.splits["test"], dataset.world.candidates
    rows = [line.split("\t") for line in said_file.read_text().splitlines()]
    assert [row[2] for row in rows] == [candidates[answer] for answer in split.answers]
    assert [int(row[0]) for row in rows] == [number + 1 for number in split.dialog]
    said = [candidates.index(row[1]) for row in rows]
    assert record["metrics"] == dialog_metrics(said, split.answers, split.dialog)
    assert record["counts"] == {"dialogs": 7, "responses": 48}
    below = baselines_and_upper_bounds(dataset, "test")
    assert {kind: record[kind] for kind in ("baselines", "upper_bounds")} == below
    assert json.loads((run.path / "metrics.json").read_text())["test"]["metrics"] == record["metrics"]
    measured = json.loads(measured_file.read_text())
    assert measured == json.loads(json.dumps(record))
    assert {"model", "settings", "command", "evaluated", "hardware", "seconds", "commit", "dirty", "versions"} <= set(
        measured
    )
    assert [row["step"] for row in measured["history"]] == [14, 28, 42, 56]
    printed = capsys.readouterr().out
    for title, kind, name in (
        ("baseline: TF-IDF match", "baselines", "TF-IDF match"),
        ("baseline: nearest neighbour", "baselines", "nearest neighbour"),
        ("upper bound: seen responses", "upper_bounds", "seen responses"),
        ("upper bound: match types", "upper_bounds", "match types"),
    ):
        [row] = [line for line in printed.splitlines() if title in line]
        assert f"{record[kind][name]['per_response']:.4f}" in row
        assert f"{record[kind][name]['per_dialog']:.4f}" in row
    assert "sample-task1, test: 7 dialogs, 48 responses" in printed
    assert f"{record['metrics']['per_response']:.4f}" in printed


def test_a_record_says_what_trained_and_what_evaluated(run, tmp_path, monkeypatch):
    config = {**run.record, "command": "python train.py", "hardware": "3 cores", "commit": "abc", "dirty": True}
    other = Run(run.path, config)
    monkeypatch.setattr(evaluation, "provenance", lambda: {"command": "python evaluate.py", "commit": "def"})
    record = evaluation.Evaluation(dialog, other).score("dev", baselines=False)
    assert {name: record[name] for name in ("command", "hardware", "commit", "dirty")} == {
        "command": "python train.py",
        "hardware": "3 cores",
        "commit": "abc",
        "dirty": True,
    }
    assert record["evaluated"] == {"command": "python evaluate.py", "commit": "def"}
    trained = {"command", "hardware", "commit", "dirty", "versions"}
    assert trained <= run.record.keys() and run.record["versions"].keys() >= {"python", "keras", "backend"}


def test_what_a_corpus_says_is_no_markup(run, capsys):
    dataset = dialog.dataset_of(run)
    record = {
        "metrics": {"per_response": 0.5},
        "baselines": {"[laughs]": {"per_response": 0.25}, "[/x]": {"per_response": 0.75}},
        "counts": {"dialogs": 1, "responses": 2},
    }
    evaluation.print_record("[red] run", dialog, dataset, "dev", record)
    printed = capsys.readouterr().out
    assert "baseline: [laughs]" in printed and "baseline: [/x]" in printed and "[red] run" in printed


@pytest.mark.parametrize(("jit", "length_multiple"), [("on", 16), ("off", 4), ("auto", 4)])
def test_evaluation_rounds_lengths_up_as_training_does(run, monkeypatch, jit, length_multiple):
    found = []

    def measure(model, dataset, split, run, baselines, progress, length_multiple):
        found.append((length_multiple, model.jit_compile))
        return {"metrics": {}, "counts": {"dialogs": 1, "responses": 2}}

    monkeypatch.setattr(dialog, "measure", measure)
    monkeypatch.setattr(Run, "save_metrics", lambda *_: None)
    evaluation.evaluate(dialog, run.path, "dev", jit=jit)
    assert found == [(length_multiple, jit == "on")]


def test_evaluate_without_baselines(run, tmp_path, capsys):
    record = evaluation.evaluate(dialog, run.path, "dev", baselines=False)
    assert not {"baselines", "upper_bounds"} & set(record)
    assert "baseline" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "valid"}, r"--split expects one of train, dev, dev-oov, test, test-oov\. Received: valid$"),
        ({"split": "dev-oov"}, "task1 has no examples in the split dev-oov$"),
        ({"ties": "loss"}, "--ties is not for dialog, which has scores_out$"),
        ({"partial_batches": "drop"}, "--partial_batches is not for dialog, which has scores_out$"),
    ],
)
def test_evaluate_refuses_what_is_not_there(run, options, message):
    with pytest.raises(UserError, match=message):
        evaluation.evaluate(dialog, run.path, **options)


def test_evaluate_refuses_another_world(run, prepared_dialog, tmp_path):
    other = shutil.copytree(prepared_dialog, tmp_path / "other")
    with open(other / "candidates.txt", "a") as file:
        file.write("see you\n")
    with pytest.raises(UserError, match=r"other: the run has candidates .*, here it is .*: they come from"):
        evaluation.evaluate(dialog, run.path, "dev", data=other)


def test_evaluate_all_shows_seeds_side_by_side(swept, tmp_path, capsys):
    pattern = str(swept / "runs" / "*")
    splits = ["dev", "dev-oov", "test"]  # one of which the dataset lacks
    evaluation.evaluate_all(TASKS, pattern, splits, measured_out=tmp_path, baselines=False)
    printed = capsys.readouterr().out
    table = printed[printed.index("mean ± deviation over seeds") :]
    records = [json.loads(file.read_text()) for file in sorted(tmp_path.iterdir())]
    names = [f"tiny-task1-{seed}-{split}.json" for seed in (1, 2) for split in ("dev", "test")]
    assert [file.name for file in sorted(tmp_path.iterdir())] == names

    def cell(split):
        both = [record["metrics"] for record in records if record["split"] == split]
        shown = [
            f"{np.mean(values):.1f} ± {np.std(values, ddof=1):.1f}"
            for values in ([100 * metrics[name] for metrics in both] for name in ("per_response", "per_dialog"))
        ]
        return f"{shown[0]} ({shown[1]})"

    header, row = (line for line in table.splitlines() if "sample-task1" in line or "MEMMA" in line)
    names = ["", "sample-task1 dev", "sample-task1 test", "mean", "seeds"]
    assert [text.strip() for text in header.split("┃")[1:-1]] == names
    mean = f"{100 * np.mean([record['metrics']['per_response'] for record in records]):.1f}"
    shown = [text.strip() for text in row.split("│")[1:-1]]
    assert shown == ["MEMMA, 2 heads, 2 hops", cell("dev"), cell("test"), mean, "2"]
    assert cell("dev") != cell("test")


def test_evaluate_all_loads_each_model_and_dataset_once(swept, tmp_path, monkeypatch):
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
    evaluation.evaluate_all(TASKS, str(swept / "runs" / "*"), ["dev", "test"], measured_out=tmp_path, baselines=False)
    assert loaded == {"tiny-task1-1": 1, "tiny-task1-2": 1, "task1": 1}


def test_evaluate_all_with_one_run_and_split_writes_a_file(swept, run, tmp_path, capsys):
    evaluation.evaluate_all(TASKS, str(run.path), ["dev"], measured_out=tmp_path / "dev.json", baselines=False)
    assert json.loads((tmp_path / "dev.json").read_text())["split"] == "dev"
    assert "deviation" not in capsys.readouterr().out


def test_evaluate_all_refuses_what_is_not_there(swept, tmp_path):
    pattern = str(swept / "runs" / "*")
    with pytest.raises(UserError, match=r"no dataset of .*/\* has examples in the splits dev-oov, test-oov$"):
        evaluation.evaluate_all(TASKS, pattern, ["dev-oov", "test-oov"])
    with pytest.raises(UserError, match=r"--split expects one of train, dev, .*Received: valid"):
        evaluation.evaluate_all(TASKS, pattern, ["valid"])
    with pytest.raises(UserError, match=r"is no run directory: it has no config\.json"):
        evaluation.evaluate_all(TASKS, str(tmp_path / "*"), ["dev"])


def test_what_makes_no_sense_for_several_runs_is_refused(prepared_dialog, tmp_path):
    with pytest.raises(UserError, match="--scores_out is for one run and one split"):
        evaluation.evaluate_all(TASKS, "runs/none", ["dev", "test"], scores_out=tmp_path / "out")
    with pytest.raises(UserError, match=r"--split expects some of train, dev.* Received: devv"):
        sweep(TASKS, {"tiny": SMALL_RECIPE}, [prepared_dialog], [1], ["devv"], tmp_path / "runs")
    assert not list(tmp_path.iterdir())
