"""engine/evaluate.py, evaluation.py: what scoring writes and prints, several runs, ensembles."""

import json
import re
import shutil
from unittest.mock import Mock, patch

import numpy as np
import pytest
from helpers import ROOT, contents_of, copy_of, evaluate, full_disk, ran, refusal, script_refusal
from reference_recurrent import softmax

from colloquy.base.files import UserError
from colloquy.engine import score_rows
from colloquy.engine.ensembles import ensemble
from colloquy.engine.evaluate import evaluate_all
from colloquy.engine.evaluation import Evaluation, open_evaluations
from colloquy.engine.run import BEST, CONFIG, Run
from colloquy.engine.score_rows import append_scores
from colloquy.engine.score_tables import print_records, print_summary
from colloquy.metrics.dialog import dialog_metrics
from colloquy.metrics.published import scores as read_scores
from colloquy.metrics.ranking import ranking_metrics
from colloquy.tasks import TASKS
from colloquy.tasks.dialog.baselines import baselines_and_upper_bounds
from colloquy.tasks.dialog.scoring import predict

dialog, selection = TASKS["dialog"], TASKS["selection"]


@pytest.fixture(scope="module")
def run(swept):
    return Run.open(swept / "runs" / "tiny-task1-1")


@pytest.fixture(scope="module")
def selection_run(trained_selection, tmp_path_factory):
    return copy_of(trained_selection, tmp_path_factory)


def columns_of(path):
    """The columns of a tab-separated file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [list(column) for column in zip(*(line.split("\t") for line in lines), strict=True)]


# === One run ===


def test_a_dialog_model_is_scored_beside_baselines(run, tmp_path, capsys):
    record = evaluate(dialog, run.path, "test", out=tmp_path / "said.txt")
    dataset = dialog.dataset_of(run)
    split = dataset.splits["test"]
    candidates = dataset.domain.candidates
    numbers, said, correct = columns_of(tmp_path / "said.txt")
    assert correct == [candidates[answer] for answer in split.answers]
    assert [int(number) for number in numbers] == [number + 1 for number in split.dialog]
    predicted = [candidates.index(text) for text in said]
    assert record["metrics"] == dialog_metrics(predicted, split.answers, split.dialog)
    assert record["counts"] == {"dialogs": 7, "responses": 57}
    assert baselines_and_upper_bounds(dataset, "test").items() <= record.items()
    assert run.metrics()["test"]["metrics"] == record["metrics"]

    printed = capsys.readouterr().out
    assert "sample-task1, test: 7 dialogs, 57 responses" in printed
    assert f"{record['metrics']['per_response']:.4f}" in printed
    for kind, label in (("baselines", "baseline"), ("upper_bounds", "upper bound")):
        for name, metrics in record[kind].items():
            [row] = [line for line in printed.splitlines() if f"{label}: {name}" in line]
            assert f"{metrics['per_response']:.4f}" in row and f"{metrics['per_dialog']:.4f}" in row


@pytest.mark.slow
def test_a_selection_model_is_scored_on_all_lines(selection_run, tmp_path, capsys):
    record = evaluate(selection, selection_run.path, "test", out=tmp_path / "scores.txt")
    split = selection.load_dataset(selection_run.dataset["path"]).splits["test"]
    scores, labels = columns_of(tmp_path / "scores.txt")
    assert [int(label) for label in labels] == split.label.tolist()
    ranking = ranking_metrics(np.array(scores, float), split.label, split.context_of_line)
    assert record["metrics"] == ranking.metrics
    assert record["counts"]["lines"] == len(split.label) == 110
    assert record["baselines"]["constant"]["R10@1"] == 0.0
    assert "TF-IDF" in capsys.readouterr().out


@pytest.mark.slow
def test_the_release_drops_partial_batches_and_counts_a_constant_score_as_right(
    selection_run, tmp_path
):
    options = {"ties": "release", "partial_batches": "drop", "out": tmp_path / "s"}
    record = evaluate(selection, selection_run.path, "dev", **options)
    assert record["counts"]["lines"] == 90  # three batches of 32 lines are 96: nine whole contexts
    assert record["counts"]["contexts"] == 9
    assert len((tmp_path / "s").read_text().splitlines()) == 90
    assert record["baselines"]["constant"]["R10@1"] == 1.0

    other = copy_with(selection_run, tmp_path / "other", "training", batch_size=256)
    message = refusal(evaluate, selection, other.path, "dev", partial_batches="drop")
    assert message == ("dev: partial_batches=drop leaves none of 110 lines, since a batch has 256")


def test_texts_of_corpora_are_no_markup(run, capsys):
    metrics = {
        "metrics": {"per_response": 0.5},
        "baselines": {"[laughs]": {}, "[/x]": {"per_response": 0.75}},
    }
    record = {**metrics, "counts": {"dialogs": 1, "responses": 2}}
    print_records([("[red] run", record)], dialog, "sample-task1", "dev")
    printed = capsys.readouterr().out
    for text in ("baseline: [laughs]", "baseline: [/x]", "[red] run"):
        assert text in printed


# === Rows ===


def rounded(metrics):
    return {name: round(value, 6) for name, value in metrics.items()}


def test_a_row_says_what_trained_and_what_evaluated(run, tmp_path, monkeypatch):
    trained = {
        "command": "python train.py --recipe=mine --data=/home/ann/task1 --workdir=/home/ann/run",
        "hardware": "3 cores",
        "commit": "abc",
        "dirty": True,
        "versions": {},
    }
    command = "python evaluate.py --run=/home/ann/run --split=dev --scores=scores.jsonl"
    here = {"command": command, "commit": "def", "dirty": False}
    provenance = {**here, "hardware": "5 cores", "versions": {"x": "1"}}
    monkeypatch.setattr(score_rows, "provenance", lambda: provenance)
    other = Run(run.path, {**run.record, **trained, "recipe": "mine"})
    file = tmp_path / "scores.jsonl"
    record = Evaluation(dialog, [other], dialog.dataset_of(run)).score("dev")
    append_scores(file, record)
    scored, *references = read_scores(file)

    shared = {"task": "dialog", "corpus": "sample-task1", "split": "dev"}
    minutes = round(run.history()[-1]["seconds"] / 60, 3)
    measured = {"metrics": rounded(record["metrics"]), "epochs": 8.0, "minutes": minutes}
    trained["command"] = "python train.py --recipe=mine --data=task1"
    here["command"] = "python evaluate.py --run=RUN --split=dev"
    origin = {**shared, **measured, **trained, "evaluation": here}
    assert scored == {"recipe": "mine", "seed": 1, **origin}
    expected = []
    for name, metrics in record["baselines"].items():
        row = {"recipe": f"baseline: {name}", **shared, "metrics": rounded(metrics)}
        expected.append(row)
    for name, metrics in record["upper_bounds"].items():
        row = {"recipe": f"upper bound: {name}", **shared, "metrics": rounded(metrics)}
        expected.append(row)
    assert references == expected

    # An editor may leave out the last newline.
    file.write_text(file.read_text("utf-8").rstrip(), encoding="utf-8")
    append_scores(file, {**record, "seed": 2})
    assert [row.get("seed") for row in read_scores(file)] == [1, *[None] * len(references), 2]
    with full_disk(file.stat().st_size), pytest.raises(UserError, match="jsonl cannot be written"):
        append_scores(file, record)


def test_a_row_names_the_corpus_and_the_trainings_before_if_they_are_others(run, tmp_path, capsys):
    before = [{"corpus": "first", "epochs": 3.0, "seconds": 60.0}]
    dataset = {**run.dataset, "name": "elsewhere"}
    other = Run(shutil.copytree(run.path, tmp_path / "run"), {**run.record, "before": before})
    other.update({"dataset": dataset})
    own = run.metrics()
    record = Evaluation(dialog, [other], dialog.dataset_of(run)).score("dev", baselines=False)
    assert run.metrics() == own
    assert record["trained_on"] == "elsewhere"
    assert record["epochs_before"] == [3.0]
    assert record["recipe"] == "memma"
    assert record["minutes"] == round(run.history()[-1]["seconds"] / 60 + 1, 3)
    assert "baselines" not in record and "upper_bounds" not in record
    assert "baseline" not in capsys.readouterr().out
    other.update({"training": {**run.record["training"], "epochs": run.training.epochs + 4}})
    assert Evaluation(dialog, [other], dialog.dataset_of(run)).label().endswith(", 8 of 12 epochs")


@pytest.mark.slow
def test_seeds_are_shown_side_by_side_and_each_model_and_dataset_is_loaded_once(
    swept, tmp_path, capsys
):
    # the dataset has no dev-oov
    file, splits = tmp_path / "scores.jsonl", ["dev", "dev-oov", "test"]
    with (
        patch.object(Run, "load_model", autospec=True, side_effect=Run.load_model) as load_model,
        patch.object(dialog, "load_dataset", side_effect=dialog.load_dataset) as load_dataset,
    ):
        evaluate_all(TASKS, [str(swept / "runs" / "*")], splits, scores=file, baselines=False)
    loaded = [call.args[0].path.name for call in load_model.call_args_list]
    assert loaded == ["tiny-task1-1", "tiny-task1-2"] and load_dataset.call_count == 1
    rows = [(row["seed"], row["split"]) for row in read_scores(file)]
    assert rows == [(1, "dev"), (1, "test"), (2, "dev"), (2, "test")]
    tables, table = capsys.readouterr().out.split("mean ± deviation over seeds")
    assert tables.count("sample-task1, dev: ") == tables.count("sample-task1, test: ") == 1
    header = next(line for line in table.splitlines() if "sample-task1 dev" in line)
    names = ["", "sample-task1 dev", "sample-task1 test", "mean", "seeds"]
    assert [text.strip() for text in header.split("┃")[1:-1]] == names
    evaluate_all(TASKS, [str(swept / "runs" / "tiny-task1-1")], ["dev"], baselines=False)
    assert "deviation" not in capsys.readouterr().out


def test_published_scores_are_shown_beside_what_they_are_of(run, capsys):
    def printed(task, corpus, split, counts):
        record = {"metrics": {}, "counts": counts, "ties": "loss"}
        print_records([("mine", record)] * 2, TASKS[task], corpus, split)
        return capsys.readouterr().out

    dialogs = {"dialogs": 1000, "responses": 2}
    in_dev = printed("dialog", "babi-task1", "dev", dialogs)
    in_oov = printed("dialog", "babi-task1", "test-oov", dialogs)
    assert "published (test): " in in_dev and "test-oov" not in in_dev
    assert in_dev.count("published (test): MEMMA+match features") == 1
    assert "published: GMemN2N" in in_oov and "(test)" not in in_oov

    contexts = {"contexts": 49_996, "lines": 9, "without_positive": 0, "without_negative": 0}
    assert "not comparable" not in printed("selection", "ubuntu-v1", "test", contexts)
    # No source says the size of this split.
    assert "not comparable" not in printed("selection", "ecommerce", "test", contexts)
    few = printed("selection", "ubuntu-v1", "test", {**contexts, "contexts": 100})
    assert "published test has 50,000 contexts, this one 100" in " ".join(few.split())


def test_a_pattern_leaves_out_a_training_without_weights(run, tmp_path, capsys):
    for name in ("a", "b", "c"):
        shutil.copytree(run.path, tmp_path / name)
    (tmp_path / "b" / BEST).unlink()
    (tmp_path / "c" / CONFIG).unlink()  # no run
    [evaluation] = open_evaluations(TASKS, str(tmp_path / "?"))
    assert evaluation.runs[0].path.name == "a"
    assert "/b is left out: it has no weights yet" in capsys.readouterr().err
    message = refusal(open_evaluations, TASKS, str(tmp_path / "[b]"))
    assert message.endswith("no run of it has weights yet")


# === Refusals ===


FOREIGN_LINES = ROOT / "pretrained" / "bidaf-squad" / "history.jsonl"


@pytest.mark.parametrize(
    ("runs", "splits", "options", "message"),
    [
        ("*", ["dev-oov"], {}, "has examples in the splits dev-oov"),
        ("*", ["valid"], {}, "has examples in the splits valid"),
        ("*", ["dev", "test"], {"out": "x"}, "out: expected one run and one split"),
        ("*", ["dev"], {"scores": ROOT / "README.md"}, "README.md, line 1: expected"),
        ("*", ["dev"], {"scores": FOREIGN_LINES}, "history.jsonl, line 1: expected"),
        ("*-1", ["dev-oov"], {}, "task1 has no examples in the split dev-oov"),
        ("*-1", ["dev"], {"settings": {"ties": "loss"}}, "has no field 'ties'; it has action_mask"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_scored(
    swept, runs, splits, options, message, monkeypatch
):
    monkeypatch.setattr(dialog, "measure", None)
    pattern = str(swept / "runs" / runs)
    assert re.search(message, refusal(evaluate_all, TASKS, [pattern], splits, **options))


def test_a_run_that_one_may_not_write_is_scored(run, monkeypatch, capsys):
    error = UserError("x cannot be written to")
    monkeypatch.setattr(Run, "save_metrics", Mock(side_effect=error))
    assert evaluate(dialog, run.path, "dev")["metrics"]
    assert "note: x cannot be written to" in capsys.readouterr().err


def test_a_dataset_of_another_task_is_refused(run, trained_selection):
    patterns = [str(trained_selection.path), str(run.path)]
    message = refusal(open_evaluations, TASKS, patterns, trained_selection.dataset["path"])
    assert "of dialog" in message


def test_answers_and_differences_replace_no_file(run, tmp_path):
    """The file begins as a line of answers does, and has no line feed at its end."""
    file = tmp_path / "notes.json"
    file.write_text('{"id": 7, "text": "a year of work"}')
    assert "notes.json exists" in refusal(evaluate, dialog, run.path, "dev", out=file)
    flags = [f"--run={run.path}", f"--against={run.path}", f"--out={file}"]
    assert "notes.json exists" in script_refusal("evaluate.py", *flags)
    assert file.read_text() == '{"id": 7, "text": "a year of work"}'


def test_a_dataset_with_other_candidates_or_words_is_refused(run, prepared_dialog, tmp_path):
    other = shutil.copytree(prepared_dialog, tmp_path / "other")
    file = other / "vocabulary.txt"
    *words, one, two = file.read_text("utf-8").split()
    file.write_text("\n".join([*words, two, one]), encoding="utf-8")
    message = refusal(evaluate, dialog, run.path, "dev", data=other)
    assert "other has other words than" in message
    with open(other / "candidates.txt", "a") as file:
        file.write("see you\n")
    message = refusal(evaluate, dialog, run.path, "dev", data=other)
    assert re.search("other: the run has candidates .*, here it is .*: they come from", message)


# === Ensembles ===


def copy_with(run, path, section, **changes):
    """A copy of a run with other fields in a section of its config."""
    shutil.copytree(run.path, path)
    copy = Run.open(path)
    copy.update({section: {**copy.record[section], **changes}})
    return copy


def second(run, path):
    """A copy of a run with other weights and another seed."""
    other = copy_with(run, path, "training", seed=7)
    model, rng = other.load_model(), np.random.default_rng(3)
    for weight in model.trainable_weights:
        weight.assign(weight + rng.normal(0, 0.1, weight.shape))
    other.save_best(model)
    return other


@pytest.mark.slow
def test_an_ensemble_is_scored_as_a_model_of_its_own(swept, tmp_path, capsys):
    runs = [Run.open(swept / "runs" / f"tiny-task1-{seed}") for seed in (2, 1)]
    before = contents_of(swept)
    files = {"out": str(tmp_path / "said.txt"), "scores": tmp_path / "scores.jsonl"}
    pattern = ",".join(str(run.path) for run in runs)
    evaluate_all(TASKS, [pattern], ["dev"], baselines=False, precision="float32", **files)

    dataset = dialog.dataset_of(runs[0])
    split = dataset.splits["dev"]
    predicted = predict(ensemble(dialog, [run.load_model() for run in runs]), split)
    _, said, _ = columns_of(tmp_path / "said.txt")
    assert said == [dataset.domain.candidates[number] for number in predicted]
    [row] = read_scores(tmp_path / "scores.jsonl")
    expected = dialog_metrics(predicted, split.answers, split.dialog)
    assert row["metrics"] == pytest.approx(expected, abs=1e-6)
    assert (row["recipe"], row["ensemble"], row["seed"]) == ("tiny + memma", 2, 2)
    assert "ensemble of 2: " in capsys.readouterr().out
    assert contents_of(swept) == before  # no run is the ensemble, so none gets its metrics


def test_a_summary_has_a_line_for_each_model_of_a_recipe_and_seed(capsys):
    record = {"recipe": "tiny", "corpus": "babi", "seed": 1, "metrics": {"per_response": 0.5}}
    others = [{"ensemble": 2}, {"trained_on": "task6"}, {"epochs_before": [1.0]}, {}]
    records = [{**record, **other, "split": split} for other in others for split in ("dev", "test")]
    print_summary(dialog, records)
    shown = capsys.readouterr().out
    for name in ("tiny, ensemble of 2", "tiny, trained on task6", "tiny, continued", "tiny  "):
        assert f"│ {name}" in shown


@pytest.mark.slow
def test_spans_have_the_geometric_mean_of_probabilities(trained_reading_comprehension, tmp_path):
    run, task = trained_reading_comprehension, TASKS["reading_comprehension"]
    models = [run.load_model(), second(run, tmp_path / "other").load_model()]
    inputs, _ = task.dataset_of(run).splits["dev"].collate(range(3))
    p = np.sqrt(np.prod([softmax(model(inputs)) for model in models], axis=0))
    p_joint = softmax(ensemble(task, models)(inputs))
    np.testing.assert_allclose(p_joint, p / p.sum(-1, keepdims=True), atol=1e-5)


def test_responses_are_chosen_by_the_mean_of_probabilities(trained_dialog, tmp_path):
    run = trained_dialog
    one = run.load_model()
    two = second(run, tmp_path / "other").load_model()
    joint = ensemble(dialog, [one, two])
    dev = dialog.dataset_of(run).splits["dev"]
    inputs, _ = dev.collate([0, 3], one.config.reads, one.config.entities)
    inputs = {name: inputs[name] for name in one.input}
    p_joint = np.exp(np.asarray(joint(inputs), "float64"))
    p_mean = (softmax(one(inputs)) + softmax(two(inputs))) / 2
    np.testing.assert_allclose(p_joint, p_mean, atol=1e-5)


def test_ensembles_refuse_models_that_differ(trained_generation, trained_selection, tmp_path):
    width = trained_selection.config.max_words
    shorter = copy_with(trained_selection, tmp_path / "shorter", "config", max_words=width - 1)
    for runs, message in (
        ([trained_generation] * 2, "models of generation cannot form an ensemble"),
        ([trained_selection, trained_generation], "an ensemble has one task: "),
        ([trained_selection, shorter], f"Received: {trained_selection.path}, {shorter.path}"),
    ):
        pattern = ",".join(str(run.path) for run in runs)
        assert message in refusal(evaluate_all, TASKS, [pattern], ["dev"], baselines=False)


# === Groups and differences: `evaluate.py --by` and `--against` ===


def test_groups_of_examples_are_a_table_and_a_file(trained_selection, tmp_path):
    flags = [f"--run={trained_selection.path}", "--by=turns,words", "--split=test"]
    done = ran("evaluate.py", *flags, f"--out={tmp_path}")
    assert "| turns | n |" in done.stdout and "| words | n |" in done.stdout
    for name in ("turns", "words"):
        kept = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
        assert kept["by"] == name and kept["split"] == "test"
        assert sum(row["n"] for row in kept["rows"]) == 11
    assert "turns.json exists" in script_refusal("evaluate.py", *flags, f"--out={tmp_path}")


@pytest.mark.slow
def test_a_model_is_compared_with_a_baseline_and_with_a_file_of_scores(selection_run, tmp_path):
    run = f"--run={selection_run.path}"
    scores = tmp_path / "scores.txt"
    ran("evaluate.py", run, "--nobaselines", f"--out={scores}")
    result = tmp_path / "same.json"
    ran("evaluate.py", run, f"--against={scores}", f"--out={result}")
    metrics = json.loads(result.read_text(encoding="utf-8"))["metrics"]
    assert all(row["difference"] == row["low"] == row["high"] == 0 for row in metrics.values())

    ran("evaluate.py", run, "--against=bm25", f"--out={tmp_path / 'bm25.json'}")
    kept = json.loads((tmp_path / "bm25.json").read_text(encoding="utf-8"))
    assert kept["against"] == ["bm25"] and kept["examples"] == 11
    scores.write_text("0.5\n")
    assert "lines" in script_refusal("evaluate.py", run, f"--against={scores}")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--by=levels"], "are grouped by turns, last_turn, words, echo. Received: levels"),
        (["--by=turns", "--split=dev,test"], "--split: expected one split"),
    ],
)
def test_what_by_takes(trained_selection, flags, message):
    run = f"--run={trained_selection.path}"
    assert message in script_refusal("evaluate.py", run, *flags)
