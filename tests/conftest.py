"""Shared by test files: for each task a small prepared dataset and a run trained on it. Change
neither.
"""

import fcntl
import os
import shutil

import hypothesis
import keras
import pytest
from helpers import SMALL_PATH, SMALL_RECIPE, prepare_small, random_seq2seq, run_script, train_small

from colloquy.engine.run import Run
from colloquy.tasks import RECIPES, TASKS
from colloquy.tasks.generation.data import load_dataset as load_generation
from colloquy.tasks.selection.retrieval.build import build, of_corpus

# `make fuzz` draws other examples each time, and many more.
hypothesis.settings.register_profile("tests", max_examples=25, deadline=None, derandomize=True)
hypothesis.settings.register_profile("fuzz", max_examples=5000, deadline=None)
hypothesis.settings.load_profile("tests")


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    """`once(name, make)`: the directory of that name; the first worker that asks has
    `make(directory)` make it.
    """
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent  # which the workers share

    def made(name, make):
        directory, done = root / name, root / f"{name}.done"
        with open(root / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                shutil.rmtree(directory, ignore_errors=True)  # what a failure has left
                make(directory)
                done.touch()
        return directory

    return made


@pytest.fixture(autouse=True)
def float32_policy():
    """Each test starts in float32, whatever the one before chose."""
    keras.config.set_dtype_policy("float32")


# === Prepared datasets ===


def prepared_for(task, name):
    """A fixture: the prepared directory of a task's `helpers.prepare_small`; its raw files are in
    `raw` beside it.
    """

    @pytest.fixture(scope="session", name=name)
    def fixture(once):
        return once(f"sample-{task}", lambda root: prepare_small(task, root)) / SMALL_PATH[task]

    return fixture


prepared = prepared_for("selection", "prepared")
prepared_dialog = prepared_for("dialog", "prepared_dialog")
prepared_generation = prepared_for("generation", "prepared_generation")
prepared_reading = prepared_for("reading_comprehension", "prepared_reading")


@pytest.fixture(scope="session")
def data(prepared, prepared_dialog, prepared_generation, prepared_reading):
    """`{task: prepared directory}`."""
    others = {"generation": prepared_generation, "reading_comprehension": prepared_reading}
    return {"selection": prepared, "dialog": prepared_dialog, **others}


# === Runs ===


def trained_for(task):
    """A fixture: the run of `helpers.SMALL_RUNS` for a task."""

    @pytest.fixture(scope="session", name=f"trained_{task}")
    def fixture(once, data):
        run = Run.open(once(f"trained-{task}", lambda path: train_small(task, data[task], path)))
        yield run
        assert not run.metrics(), "a test has evaluated a shared run: it evaluates a copy"

    return fixture


trained_selection = trained_for("selection")
trained_dialog = trained_for("dialog")
trained_generation = trained_for("generation")
trained_reading_comprehension = trained_for("reading_comprehension")


def predictor_for(task):
    """A fixture: the predictor of a task's small run. A test that changes it puts it back."""

    @pytest.fixture(scope="session", name=f"{task}_predictor")
    def fixture(request):
        keras.config.set_dtype_policy("float32")
        return TASKS[task].predictor(request.getfixturevalue(f"trained_{task}"))

    return fixture


selection_predictor = predictor_for("selection")
dialog_predictor = predictor_for("dialog")
generation_predictor = predictor_for("generation")
reading_comprehension_predictor = predictor_for("reading_comprehension")


@pytest.fixture
def run_with_pairs(trained_selection, prepared, tmp_path, monkeypatch):
    """A run directory with the conversations that it was trained on; the cache is beside it."""
    path = shutil.copytree(trained_selection.path, tmp_path / "given")
    shutil.copytree(prepared.parent / "raw", path / "pairs")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return path


@pytest.fixture(scope="session")
def selection_index(once, selection_predictor, prepared):
    """An index of the conversations that the small selection run was trained on."""

    def make(root):
        build(selection_predictor, root / "index", of_corpus("smn", prepared.parent / "raw"))

    return once("selection-index", make) / "index"


@pytest.fixture(scope="module")
def generation_dataset(prepared_generation):
    return load_generation(prepared_generation)


@pytest.fixture(scope="module")
def generation_model(generation_dataset):
    """A model with random weights, shared by the tests: do not change it."""
    return random_seq2seq(generation_dataset)


@pytest.fixture(scope="module")
def sweep():
    """`sweep(root, *flags)`: runs tools/sweep.py with the recipe `tiny`, into `runs` and
    `scores.jsonl` of `root`.
    """

    def run(root, *flags):
        return run_script(
            "tools/sweep.py", f"--out={root / 'runs'}", f"--scores={root / 'scores.jsonl'}", *flags
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(RECIPES, "tiny", SMALL_RECIPE)
        yield run


@pytest.fixture(scope="module")
def swept(once, sweep, prepared_dialog, trained_dialog, tmp_path_factory):
    """A copy of a sweep's directory: the runs of two seeds, the first of which was there, and their
    scores.
    """

    def make(root):
        shutil.copytree(trained_dialog.path, root / "runs" / "tiny-task1-1")
        flags = (
            "--recipe=tiny",
            f"--data={prepared_dialog}",
            "--seeds=1,2",
            "--split=dev,dev-oov,test",
        )
        done = sweep(root, *flags)
        assert done.returncode == 0, done.stderr

    return shutil.copytree(once("swept-dialog", make), tmp_path_factory.mktemp("sweep") / "copy")
