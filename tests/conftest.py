"""What several test files share: for each task a small prepared dataset and a run trained on it. Change neither."""

import fcntl
import json
import os
import shutil

import hypothesis
import keras
import numpy as np
import pytest
from helpers import SMALL_RECIPE, random_seq2seq, run_script, train_small

from data.samples.dialog import write_babi
from data.samples.selection import write_smn
from engine.run import Run
from tasks import RECIPES, TASKS
from tasks.dialog import prepare as prepare_dialog
from tasks.generation import prepare as prepare_generation
from tasks.generation.data import load_dataset as load_generation
from tasks.reading_comprehension import prepare as prepare_reading
from tasks.selection.prepare import Settings, prepare
from tasks.selection.retrieval.build import build_for, of_dataset

# `make fuzz` draws other examples each time, and many more.
hypothesis.settings.register_profile("tests", max_examples=200, deadline=None, derandomize=True)
hypothesis.settings.register_profile("fuzz", max_examples=5000, deadline=None)
hypothesis.settings.load_profile("tests")


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    """`once(name, make)`: the directory of that name; the first worker that asks has `make(directory)` make it."""
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


@pytest.fixture(scope="session")
def prepared(once):
    """A prepared directory: some hundred training lines, vectors of 7 numbers."""

    def make(root):
        write_smn(root / "raw", count=60, seed=3, held_out=11)
        prepare("smn", root / "raw", root / "prepared", Settings(name="sample", dimension=7, word2vec_epochs=1))

    return once("sample", make) / "prepared"


@pytest.fixture(scope="session")
def prepared_dialog(once):
    """A prepared directory of task 1: 26 training dialogs with 194 responses, 7 dialogs each in dev and test."""

    def make(root):
        write_babi(root / "raw", count=40, seed=3, held_out=7)
        prepare_dialog.prepare("babi-dialog", root / "raw", root / "prepared", prepare_dialog.Settings(name="sample"))

    return once("sample-dialog", make) / "prepared" / "task1"


@pytest.fixture(scope="session")
def prepared_reading(once):
    """A prepared SQuAD: 24 training and 6 dev questions on who lives where, word vectors of 3 numbers."""
    people, places = ["Ann", "Bob", "Cyd", "Dee", "Eve"], ["Rome", "Paris", "Kyiv", "Oslo", "Bern"]

    def paragraph(number):
        pairs = [(people[number % 5], places[number % 4]), (people[(number + 2) % 5], places[(number + 1) % 4])]
        context = " ".join(f"{person} lives in {place}." for person, place in pairs)
        qas = [
            {
                "id": f"q{number}-{person}",
                "question": f"Where does {person} live?",
                "answers": [
                    {"text": place, "answer_start": context.index(f"{person} lives in {place}") + len(person) + 10}
                ],
            }
            for person, place in pairs
        ]
        return {"context": context, "qas": qas}

    def make(root):
        (root / "raw").mkdir(parents=True)
        for name, numbers in (("train", range(12)), ("dev", range(12, 15))):
            data = {"data": [{"title": "t", "paragraphs": [paragraph(number) for number in numbers]}]}
            (root / "raw" / f"{name}-v1.1.json").write_text(json.dumps(data), encoding="utf-8")
        words = ["lives", "in", ".", "where", "does", "live", "?", *map(str.lower, places), "unused"]
        vectors = np.random.default_rng(1).normal(size=(len(words), 3)).astype("float16")
        np.savez(root / "raw" / "vectors.npz", words=np.array(words), vectors=vectors)
        prepare_reading.prepare("squad", root / "raw", root / "prepared", prepare_reading.Settings(name="small"))

    return once("sample-reading", make) / "prepared"


@pytest.fixture(scope="session")
def prepared_generation(once):
    """Prepared conversations: 69 training and 21 dev pairs on who likes what, 14 of which stand in train."""
    people, things, moods = ["ann", "bob", "cyd", "dee", "eve"], ["tea", "rain", "noise"], ["fine", "too loud"]

    def conversation(number):
        person, thing, mood = people[number % 5], things[number % 3], moods[number % 2]
        turns = (
            f"I am {person}.",
            f"Hello {person}, what do you like?",
            f"I like {thing}.",
            f"{thing}? {thing} is {mood}",
        )
        return "\t".join(turns) + "\n"

    def make(root):
        (root / "raw").mkdir(parents=True)
        for name, numbers in (("train", range(23)), ("dev", range(23, 30))):
            (root / "raw" / f"{name}.txt").write_text("".join(map(conversation, numbers)), encoding="utf-8")
        settings = prepare_generation.Settings(name="small", tokenizer="words", turns=2, min_count=1)
        prepare_generation.prepare("conversations", root / "raw", root / "prepared", settings)

    return once("sample-generation", make) / "prepared"


# === Runs ===


def trained(task, prepared):
    """A fixture: the run of `helpers.SMALL_RUNS` for a task."""

    @pytest.fixture(scope="session", name=f"trained_{task}")
    def run(once, request):
        data = request.getfixturevalue(prepared)
        return Run.open(once(f"trained-{task}", lambda path: train_small(task, data, path)))

    return run


trained_selection = trained("selection", "prepared")
trained_dialog = trained("dialog", "prepared_dialog")
trained_generation = trained("generation", "prepared_generation")
trained_reading_comprehension = trained("reading_comprehension", "prepared_reading")


@pytest.fixture(scope="session")
def selection_index(once, trained_selection, prepared):
    """An index of the conversations that the small selection run was trained on."""

    def make(root):
        predictor = TASKS["selection"].predictor(trained_selection)
        build_for(predictor, root / "index", of_dataset(prepared, predictor.vocabulary))

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
    """`sweep(root, *flags)`: runs tools/sweep.py with the recipe `tiny`, into `runs` and `scores.jsonl` of `root`."""

    def run(root, *flags):
        return run_script("tools/sweep.py", f"--out={root / 'runs'}", f"--scores={root / 'scores.jsonl'}", *flags)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(RECIPES, "tiny", SMALL_RECIPE)
        yield run


@pytest.fixture(scope="module")
def swept(once, sweep, prepared_dialog, trained_dialog, tmp_path_factory):
    """A copy of a sweep's directory: the runs of two seeds, the first of which was there, and their scores."""

    def make(root):
        shutil.copytree(trained_dialog.path, root / "runs" / "tiny-task1-1")
        flags = "--recipe=tiny", f"--data={prepared_dialog}", "--seeds=1,2", "--split=dev,dev-oov,test"
        done = sweep(root, *flags)
        assert done.returncode == 0, done.stderr

    return shutil.copytree(once("swept-dialog", make), tmp_path_factory.mktemp("sweep") / "copy")
