"""Shared by test files: small datasets and runs, scripts, checks of layers."""

import contextlib
import importlib
import io
import itertools
import json
import os
import pathlib
import random
import resource
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from unittest.mock import Mock, patch

import h5py
import keras
import numpy as np
import pytest
from absl import flags

from colloquy.base.files import UserError
from colloquy.data import pickles
from colloquy.data.samples import DIALOG_BABI
from colloquy.engine import terminal
from colloquy.engine.data_parallel import Devices
from colloquy.engine.devices import choose_xla
from colloquy.engine.evaluate import evaluate_all
from colloquy.engine.run import Run
from colloquy.engine.scoring import Scoring
from colloquy.engine.task import Recipe
from colloquy.engine.train import start
from colloquy.models.seq2seq import Seq2Seq, Seq2SeqConfig
from colloquy.tasks import TASKS
from colloquy.tasks.dialog.training import Training as DialogTraining

ROOT = pathlib.Path(__file__).resolve().parent.parent

TASKS_ONE_FAST = [
    pytest.param(task, marks=[] if task == "dialog" else pytest.mark.slow) for task in TASKS
]
"""Parameters: all tasks, the others than dialog slow."""

# === Files ===


def written(path, content):
    """Writes a text or bytes into a file; returns its path."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refusal(function, *arguments, **options):
    """The message of the `UserError` that a function raises."""
    with pytest.raises(UserError) as caught:
        function(*arguments, **options)
    return str(caught.value)


def until(true, seconds=20):
    """Waits until `true()`."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def flip_bit(path, place=0.5):
    """Changes a bit of a file, at a place between its beginning, 0, and its end, 1; a second time
    it mends it.
    """
    content = bytearray(path.read_bytes())
    content[int(place * (len(content) - 1))] ^= 1
    path.write_bytes(content)


def contents_of(directory):
    """`{path: bytes}` of the files in it and below."""
    return {
        str(file.relative_to(directory)): file.read_bytes()
        for file in directory.rglob("*")
        if file.is_file()
    }


def unpickled(content):
    """What `data.pickles` reads of some bytes."""
    with tempfile.TemporaryDirectory() as directory:
        return pickles.load(written(pathlib.Path(directory) / "data.pkl", content))


# === Prepared datasets ===

SMALL_PATH = dict.fromkeys(TASKS, "prepared") | {"dialog": "prepared/task1"}
"""The dataset in the directory of `prepare_small`, of each task."""


def prepare_small(task, root):
    """Writes small raw files of a task into `root / "raw"` and prepares them.

    Selection: some hundred training lines, vectors of 7 numbers. Dialog: tasks 1 to 5 of the
    excerpt of dialog bAbI as one, with 26 training dialogs, 7 dialogs each in dev and test.
    Generation: 69 training and 21 dev pairs on who likes what, 14 of them also in train. Reading
    comprehension: 24 training and 6 dev questions on who lives where, vectors of 3 numbers.
    """
    raw = root / "raw"
    corpus, write, settings = {
        "selection": (
            "smn",
            write_smn,
            {"dimension": 7, "word2vec_epochs": 1},
        ),
        "dialog": ("babi-dialog", _write_babi, {}),
        "generation": (
            "conversations",
            _write_generation,
            {"tokenizer": "words", "turns": 2, "min_count": 1},
        ),
        "reading_comprehension": ("squad", _write_reading_comprehension, {}),
    }[task]
    name = "sample" if task in ("selection", "dialog") else "small"
    write(raw)
    module = importlib.import_module(f"colloquy.tasks.{task}.prepare")
    module.prepare(corpus, raw, root / "prepared", module.Settings(name=name, **settings))


def _write_babi(directory):
    """Writes the excerpt of tasks 1 to 5 of dialog bAbI as task 1, a dialog of each in turn."""
    directory.mkdir(parents=True)
    train = _dialogs_in_turn("trn")[:26]
    held_out = _dialogs_in_turn("dev")
    for ending, dialogs in (("trn", train), ("dev", held_out[:7]), ("tst", held_out[7:14])):
        text = "".join(f"{dialog}\n\n" for dialog in dialogs)
        (directory / f"dialog-babi-task1-sample-{ending}.txt").write_text(text, encoding="utf-8")
    for name in ("dialog-babi-candidates.txt", "dialog-babi-kb-all.txt"):
        shutil.copyfile(DIALOG_BABI / name, directory / name)


def _dialogs_in_turn(ending):
    dialogs_of_tasks = []
    for task in range(1, 6):
        [file] = DIALOG_BABI.glob(f"*task{task}-*-{ending}.txt")
        dialogs_of_tasks.append(file.read_text(encoding="utf-8").strip().split("\n\n"))
    return [dialog for dialogs in zip(*dialogs_of_tasks, strict=True) for dialog in dialogs]


TOPICS = {
    "food": "soup soups bread salt lunch kitchen spoon plate".split(),
    "music": "song guitar band drum concert stage melody tune".split(),
    "travel": "town market station luggage map hotel border beach".split(),
    "garden": "rose tree spade seed lawn hedge apple soil".split(),
    "weather": "rain cloud storm sun wind snow fog umbrella".split(),
    "office": "desk printer meeting boss coffee email report deadline".split(),
}
TURNS = (
    "what is the {} like , and the {} ?",
    "tell me about the {} and the {} .",
    "the {} is far from the {} .",
    "do you like the {} or the {} ?",
)


def write_smn(directory, conversations=84, seed=3, held_out=11):
    """Writes `train.txt`, `dev.txt` and `test.txt` in the format of `data.corpora.smn`.

    A conversation keeps to one topic. Each turn after its first is a response: with three negative
    ones of other topics in train, and with nine in dev and test, which have `held_out` contexts.
    """
    rng = random.Random(f"smn {seed}")
    sizes = {"train": conversations, "dev": held_out, "test": held_out}
    directory.mkdir(parents=True)
    for split, size in sizes.items():
        lines = []
        for _ in range(size):
            topic = rng.choice(sorted(TOPICS))
            turns = [_draw_turn(rng, topic) for _ in range(rng.randint(3, 6))]
            lengths = range(1, len(turns)) if split == "train" else [len(turns) - 1]
            for length in lengths:
                lines += _smn_lines(rng, topic, turns[: length + 1], 3 if split == "train" else 9)
        (directory / f"{split}.txt").write_text("".join(lines), encoding="utf-8")


def _draw_turn(rng, topic):
    return rng.choice(TURNS).format(*rng.sample(TOPICS[topic], 2))


def _smn_lines(rng, topic, turns, negatives):
    """The lines of one context: the last of `turns` is its positive response."""
    context = "\t".join(turns[:-1])
    other_topics = sorted(TOPICS.keys() - {topic})
    lines = [f"1\t{context}\t{turns[-1]}\n"]
    for _ in range(negatives):
        lines.append(f"0\t{context}\t{_draw_turn(rng, rng.choice(other_topics))}\n")
    return lines


def splits_of_release(rng, words, eos_id, sizes):
    """A `data.pkl` as DAM's release has it; `sizes`: contexts and candidates. Turns of five words,
    responses of 4; the first candidate is the right one.
    """
    splits = []
    for contexts, candidates in sizes:
        texts = [
            [int(id) for _ in range(3) for id in (*rng.choice(words, 5), eos_id)]
            for _ in range(contexts)
        ]
        labels = [1] + [0] * (candidates - 1)
        responses = rng.choice(words, (contexts * candidates, 4)).tolist()
        splits.append(
            {"y": labels * contexts, "c": [text for text in texts for _ in labels], "r": responses}
        )
    return tuple(splits)


def _write_generation(raw):
    people, things, moods = (
        ["ann", "bob", "cyd", "dee", "eve"],
        ["tea", "rain", "noise"],
        ["fine", "too loud"],
    )
    raw.mkdir(parents=True)
    for name, numbers in (("train", range(23)), ("dev", range(23, 30))):
        lines = []
        for number in numbers:
            person, thing, mood = people[number % 5], things[number % 3], moods[number % 2]
            turns = f"I am {person}.", f"Hello {person}, what do you like?", f"I like {thing}."
            lines.append("\t".join([*turns, f"{thing}? {thing} is {mood}"]) + "\n")
        (raw / f"{name}.txt").write_text("".join(lines), encoding="utf-8")


def _write_reading_comprehension(raw):
    people, places = ["Ann", "Bob", "Cyd", "Dee", "Eve"], ["Rome", "Paris", "Kyiv", "Oslo", "Bern"]

    def paragraph(number):
        pairs = [
            (people[number % 5], places[number % 4]),
            (people[(number + 2) % 5], places[(number + 1) % 4]),
        ]
        context, qas = " ".join(f"{person} lives in {place}." for person, place in pairs), []
        for person, place in pairs:
            start = context.index(f"{person} lives in {place}") + len(person) + 10
            question = {"id": f"q{number}-{person}", "question": f"Where does {person} live?"}
            qas.append({**question, "answers": [{"text": place, "answer_start": start}]})
        return {"context": context, "qas": qas}

    raw.mkdir(parents=True)
    for name, numbers in (("train", range(12)), ("dev", range(12, 15))):
        data = {"data": [{"title": "t", "paragraphs": [paragraph(number) for number in numbers]}]}
        (raw / f"{name}-v1.1.json").write_text(json.dumps(data), encoding="utf-8")
    words = ["lives", "in", ".", "where", "does", "live", "?", *map(str.lower, places), "unused"]
    vectors = np.random.default_rng(1).normal(size=(len(words), 3)).astype("float16")
    np.savez(raw / "vectors.npz", words=np.array(words), vectors=vectors)


def turns(*texts):
    """A dialog of user and bot, as pairs of speaker and text."""
    return list(zip(itertools.cycle(("user", "bot")), texts, strict=False))


# === Runs ===


def _small(model, epochs, batch_size, learning_rate, **settings):
    training = {
        "epochs": epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "precision": "float32",
    }
    return model, {**settings, **training}


SMALL_RUNS = {
    "selection": _small(
        **{"model": "dam", "epochs": 1.0, "batch_size": 32, "learning_rate": 0.01},
        **{"levels": "1", "max_turns": "3", "max_words": "5", "embedding_dropout": "0.2"},
        **{"loss": "softmax", "negatives": "fresh", "validations_per_epoch": "2"},
    ),
    "dialog": _small(
        **{"model": "memma", "epochs": 8.0, "batch_size": 4, "learning_rate": 0.02},
        **{"embedding_dim": "8", "heads": "2", "hops": "2", "positions": "halves"},
    ),
    "generation": _small(
        **{
            "model": "seq2seq",
            "epochs": 1.0,
            "batch_size": 8,
            "learning_rate": 0.02,
            "validations_per_epoch": "2",
        },
        **{"embedding_dim": "7", "hidden": "10", "bidirectional": "false", "dropout": "0.1"},
    ),
    "reading_comprehension": _small(
        **{
            "model": "bidaf",
            "epochs": 20.0,
            "batch_size": 8,
            "learning_rate": 0.02,
            "validations_per_epoch": "0.2",
        },
        **{
            "hidden": "5",
            "character_filters": "7",
            "character_dim": "3",
            "dropout": "0",
            "ema": "0.9",
        },
    ),
}
"""The model and the settings of the small run that conftest.py trains for each task."""
SMALL_RECIPE = Recipe(
    title="MEMMA, 2 heads, 2 hops",
    model="memma",
    corpus="the sample",
    config={"embedding_dim": 8, "heads": 2, "hops": 2, "positions": "halves"},
    training=DialogTraining.of(
        {name: SMALL_RUNS["dialog"][1][name] for name in ("epochs", "batch_size", "learning_rate")}
    ),
)
"""The recipe of the small dialog run."""


def train_small(task, data, workdir, settings=None, init_from=None, devices="one", **changes):
    """Trains the small model of a task, named `task`; `settings` and `changes` win over those of
    `SMALL_RUNS`.
    """
    model, usual = SMALL_RUNS[task]
    settings = {**usual, **(settings or {}), **changes}
    return start(TASKS[task], model, data, workdir, settings, init_from=init_from, devices=devices)


def train_quickly(data, workdir, **settings):
    """Trains the model of dialogs that compiles fastest: epochs of 7 steps."""
    settings = {
        "batch_size": 4,
        "embedding_dim": 5,
        "validations_per_epoch": 1,
        "precision": "float32",
        **settings,
    }
    return start(TASKS["dialog"], "supervised-embeddings", data, workdir, settings)


def scoring_of(task, model, dataset, split, run=None, baselines=True, **settings):
    """The input of `engine.task.Task.measure`."""
    options = task.Options(**settings)
    return Scoring(model, dataset, split, run, options, baselines=baselines)


def evaluate(
    task, run_path, split="dev", data=None, precision="auto", baselines=True, out=None, **settings
):
    """Scores one split with one run, as `evaluate.py` does."""
    [record] = evaluate_all(
        {task.name: task},
        [run_path],
        [split],
        data=data,
        precision=precision,
        baselines=baselines,
        out=out,
        settings=settings,
    )
    return record


def instance_of(task, text):
    """The fields of an instance of a task that has a text wherever it may be long."""
    if task == "dialog":
        return {"history": [{"speaker": "bot", "text": text}, {"speaker": "user", "text": text}]}
    if task == "reading_comprehension":
        return {"passage": text, "question": "Where?"}
    if task == "selection":
        return {"turns": [text], "candidates": [text]}
    return {"turns": [text]}


def copy_of(run, tmp_path_factory):
    """A copy of a run, into which evaluate.py may write."""
    return Run.open(shutil.copytree(run.path, tmp_path_factory.mktemp("runs") / "run"))


def random_seq2seq(dataset, **settings):
    """A small model for a dataset, with random weights."""
    config = Seq2SeqConfig(
        vocabulary_size=len(dataset.vocabulary), embedding_dim=7, hidden=10, **settings
    )
    model = randomised(Seq2Seq(config), 1, 0.7)
    choose_xla(model, "auto")
    return model


def weights_of_run(run):
    """The model's and the optimizer's variables after the last validation, `{name: array}`."""
    with np.load(run.path / "last.npz") as state:
        return {name: state[name] for name in state.files if name != "state"}


@contextlib.contextmanager
def at_step(number, action):
    """For the block, calls `action` after a step of a training, counted from 1."""
    original, count = Devices.train_step, itertools.count(1)

    def counting(self, model, batches):
        step = original(self, model, batches)

        def counted(batch):
            loss = step(batch)
            if next(count) == number:
                action()
            return loss

        return counted

    with patch.object(Devices, "train_step", counting):
        yield


def check_same_training(run, whole):
    """A training that was interrupted and resumed ends as one that was not: weights, optimizer,
    validations.
    """
    found, expected = weights_of_run(run), weights_of_run(whole)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)
    for row, of_whole in zip(run.history(), whole.history(), strict=True):
        times = {name: row[name] for name in ("seconds", "steps_per_second")}
        assert row == {**of_whole, **times, "loss": pytest.approx(of_whole["loss"], rel=1e-6)}


def enlarge_weights(path):
    """Sets every weight of a run in a directory to nearly the largest of float32."""
    with h5py.File(path / "best.weights.h5", "a") as file:

        def enlarge(_, item):
            if isinstance(item, h5py.Dataset) and item.dtype.kind == "f":
                item[...] = 3e38

        file.visititems(enlarge)
    (path / "checksums.json").unlink(missing_ok=True)


@contextlib.contextmanager
def full_disk(size):
    """For the block, no file may become larger than `size` bytes, as if no more fitted the disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


# === Scripts ===


def run_script(script, *arguments):
    """Does as `python SCRIPT ARGUMENTS` at the project's root, in this process, which has
    TensorFlow already.
    """
    out, err, code, on_interrupt = (
        io.StringIO(),
        io.StringIO(),
        None,
        signal.getsignal(signal.SIGINT),
    )
    argv = [script, *map(str, arguments)]
    try:
        with _flags_put_aside(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            # Tests import some commands, and runpy warns of modules that are there already.
            with patch.object(sys, "argv", argv), warnings.catch_warnings():
                warnings.filterwarnings("ignore", "'colloquy.commands", RuntimeWarning)
                runpy.run_path(str(ROOT / script), run_name="__main__")
    except SystemExit as end:
        code = end.code
        if isinstance(code, str):  # which Python prints
            err.write(f"{code}\n")
            code = 1
    finally:
        # a script that was interrupted ignores another one
        signal.signal(signal.SIGINT, on_interrupt)
    return subprocess.CompletedProcess(argv, code or 0, out.getvalue(), err.getvalue())


def import_script(name):
    """Imports the module of a script, whose flags another one may define too."""
    with _flags_put_aside():
        return importlib.import_module(name)


def run_process(*command, stdin="", **environment):
    """`python COMMAND` in a process of its own, at the project's root; `run_script` is seconds
    faster.
    """
    process = start_process(*command, **environment)
    stdout, stderr = process.communicate(stdin)
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def ran(*command, by=run_script, **options):
    """Runs a script by `run_script`, or by another function, and checks that it succeeds."""
    done = by(*command, **options)
    assert done.returncode == 0, done.stderr
    return done


def script_refusal(script, *flags):
    """The error, one line, with which a script ends."""
    done = run_script(script, *flags)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    [line] = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    return line


def start_process(*command, **environment):
    """`run_process`, but it does not wait: a `subprocess.Popen`."""
    command = [sys.executable, *map(str, command)]
    paths = os.pathsep.join(
        filter(None, (str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH")))
    )
    environment = {**os.environ, "PYTHONPATH": paths, **environment}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )


def talk_plain(chat, *lines, width=100):
    """What is printed while a chat gets some lines, where there is no terminal."""
    console = terminal.Terminal(file=io.StringIO(), width=width)
    console.input = Mock(side_effect=[*lines, EOFError])
    terminal.talk(chat, console)
    return console.file.getvalue()


@contextlib.contextmanager
def _flags_put_aside():
    """For the block, scripts can define flags that others defined here; afterwards there are those
    from before.
    """
    put_aside = _without_project_flags()
    try:
        yield
    finally:
        _without_project_flags()
        flags.FLAGS.append_flag_values(put_aside)


def _without_project_flags():
    """Takes the flags that absl itself does not define away from `flags.FLAGS` and returns them."""
    found = flags.FlagValues()
    found.append_flag_values(flags.FLAGS)
    for name in list(found):
        if flags.FLAGS.find_module_defining_flag(name, "").startswith("absl"):
            delattr(found, name)
    flags.FLAGS.remove_flag_values(found)
    return found


def to_numpy(x):
    """A tensor as NumPy; float16 and bfloat16 as float32, which holds them exactly."""
    half = keras.backend.standardize_dtype(x.dtype) in ("float16", "bfloat16")
    return keras.ops.convert_to_numpy(keras.ops.cast(x, "float32") if half else x)


# === Layers ===

on_tensorflow = pytest.mark.skipif(
    keras.config.backend() != "tensorflow",
    reason="is about TensorFlow's graphs, or needs what Keras has on them alone",
)


def randomised(layer, seed, size=None):
    """Gives every float weight random values of the standard deviation `size`; returns the layer.
    Tables of ids stay.

    Without a size it is 1 / sqrt(fan-in), with scales around 1, so that outputs vary as much as
    inputs.
    """
    rng = np.random.default_rng(seed)
    for weight in layer.weights:
        if weight.dtype == "float32":
            values = rng.normal(size=tuple(weight.shape))
            if size is not None:
                values *= size
            elif weight.name != "embeddings":
                values /= np.sqrt(np.prod(values.shape[:-1]) if values.ndim > 1 else 4.0)
                values += 1.0 if weight.name == "gamma" else 0.0
            weight.assign(values)
    return layer
