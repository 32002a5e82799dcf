"""`engine.vocabularies`: data prepared with the words of a run, and trainings that start from
one.
"""

import json
import shutil

import numpy as np
import pytest
from helpers import TASKS_ONE_FAST, copy_of, evaluate, ran, refusal, script_refusal, train_small

from colloquy.base.files import UserError
from colloquy.data.prepared import METADATA, VOCABULARY
from colloquy.engine.run import Run
from colloquy.tasks import TASKS

CORPORA = {
    "selection": "smn",
    "dialog": "babi-dialog",
    "generation": "conversations",
    "reading_comprehension": "squad",
}


@pytest.fixture(params=TASKS_ONE_FAST)
def case(request, tmp_path):
    """A task, a copy of its small run, the raw files of the run's dataset, and this."""
    run = request.getfixturevalue(f"trained_{request.param}")
    run = Run.open(shutil.copytree(run.path, tmp_path / "run"))
    data = TASKS[request.param].dataset_of(run).path
    raw = data.parent.parent / "raw" if request.param == "dialog" else data.parent / "raw"
    return TASKS[request.param], run, raw, data


def test_data_prepared_with_the_words_of_a_run_or_of_its_dataset_have_its_scores(case, tmp_path):
    task, run, raw, data = case
    words = run.path if task.name == "selection" else data
    flags = {
        "corpus": CORPORA[task.name],
        "source": raw,
        "vocabulary_of": words,
        "out": tmp_path / "out",
    }
    ran("prepare.py", *(f"--{name}={value}" for name, value in flags.items()))
    out = tmp_path / "out" / "task1" if task.name == "dialog" else tmp_path / "out"
    assert (out / VOCABULARY).read_bytes() == (run.path / VOCABULARY).read_bytes()
    how = {"baselines": False, "precision": "float32"}
    expected, found = (
        evaluate(task, run.path, "dev", data=each, **how)["metrics"] for each in (data, out)
    )
    assert found == expected
    metadata = json.loads((out / "dataset.json").read_text())
    assert metadata["settings"]["vocabulary_of"] == str(words)


def test_words_of_a_forged_dataset_are_refused(prepared, tmp_path):
    dataset = shutil.copytree(prepared, tmp_path / "dataset")
    metadata = json.loads((dataset / METADATA).read_text())
    (dataset / METADATA).write_text(json.dumps({**metadata, "hashed_words": "9"}))
    flags = ["--corpus=smn", f"--source={prepared.parent / 'raw'}", f"--out={tmp_path / 'out'}"]
    message = script_refusal("prepare.py", *flags, f"--vocabulary_of={dataset}")
    assert "expected hashed_words of at least 0. Received: '9'" in message
    assert not (tmp_path / "out").exists()


def test_a_training_starts_from_the_weights_of_a_run(trained_dialog, tmp_path):
    task, run = TASKS["dialog"], trained_dialog
    data = task.dataset_of(run).path
    begun = train_small(
        task.name, data, tmp_path / "begun", init_from=run.path, epochs=1e-6, learning_rate=0.0
    )
    for weight, other in zip(
        begun.load_model().get_weights(), run.load_model().get_weights(), strict=True
    ):
        np.testing.assert_allclose(weight, other, atol=1e-6)
    [first, second] = begun.trainings()
    row = run.history()[-1]
    metadata = {"corpus": run.dataset["name"], "epochs": row["epoch"], "seconds": row["seconds"]}
    assert first == {**metadata, "command": run.record["command"]}
    assert second == {
        **first,
        "epochs": begun.history()[-1]["epoch"],
        "seconds": begun.history()[-1]["seconds"],
    }


def test_candidates_are_those_of_the_dataset(trained_dialog, tmp_path):
    task, run = TASKS["dialog"], trained_dialog
    data = task.dataset_of(run).path
    other = shutil.copytree(data, tmp_path / "other")
    candidates = (data / "candidates.txt").read_text().splitlines()
    (other / "candidates.txt").write_text("\n".join(reversed(candidates)))
    begun = train_small(
        task.name, other, tmp_path / "begun", init_from=run.path, epochs=1e-6, learning_rate=0.0
    )
    words = task.load_dataset(other).domain.encoded_candidates.words.flat()
    np.testing.assert_array_equal(begun.load_model().get_layer("candidate_words").ids, words)
    for runs in (begun.path, f"{run.path},{begun.path}"):
        message = refusal(evaluate, task, runs, data=data)
        assert f"{data} has other candidates or entities than {begun.path}" in message


@pytest.mark.slow
def test_a_new_layer_starts_fresh_and_one_too_few_is_refused(
    trained_reading_comprehension, tmp_path_factory, tmp_path, capsys
):
    run = copy_of(trained_reading_comprehension, tmp_path_factory)
    task = TASKS["reading_comprehension"]
    data = task.dataset_of(run).path
    start = {"epochs": 1e-6, "learning_rate": 0.0}
    grown = train_small(
        task.name, data, tmp_path / "grown", {"self_attention": "true"}, init_from=run.path, **start
    )
    assert f"{run.path} lacks weights of self_attention:" in capsys.readouterr().out
    how = {"data": data, "baselines": False, "precision": "float32"}
    scores = [evaluate(task, each.path, "dev", **how)["metrics"] for each in (run, grown)]
    assert scores[0] == scores[1]  # self-attention starts as the identity
    with pytest.raises(
        UserError, match=r"expected self_attention/.*, as in the run. Received: a model without"
    ):
        train_small(task.name, data, tmp_path / "less", init_from=grown.path, **start)


def test_other_words_and_other_shapes_are_refused(trained_selection, prepared, tmp_path):
    with pytest.raises(UserError, match=r"expected .* of shape"):
        train_small(
            "selection", prepared, tmp_path / "a", {"levels": "0"}, init_from=trained_selection.path
        )
    other = shutil.copytree(trained_selection.path, tmp_path / "other")
    words = (other / VOCABULARY).read_text().split("\n")
    (other / VOCABULARY).write_text("\n".join([*words[:2], "no-word", *words[3:]]))
    message = r"does not have the vocabulary of the run; prepare\.py --vocabulary_of="
    with pytest.raises(UserError, match=message):
        train_small("selection", prepared, tmp_path / "b", init_from=other)
    assert not (tmp_path / "b").exists()
