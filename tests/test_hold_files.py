"""Files of users and of strangers: none is removed or overwritten, and none misleads."""

import contextlib
import json
import os
import pathlib
import pickle
import re
import resource
import shutil
from unittest.mock import Mock

import h5py
import keras
import numpy as np
import pytest
from helpers import check_same_training, contents_of, ran, refusal, run_process, train_quickly

from colloquy.base import machine
from colloquy.base.files import (
    CHECKSUMS,
    UserError,
    atomic_directory,
    atomic_file,
    refuse_existing,
)
from colloquy.engine.explain import explain_examples
from colloquy.engine.interrupts import LOCK, locked
from colloquy.engine.run import BEST, CONFIG, HISTORY, LAST, METRICS, Run
from colloquy.engine.run_files import CARD, EXAMPLES
from colloquy.engine.workdir import create_run, remove_run
from colloquy.tasks import TASKS

# === Files of users ===


@pytest.fixture
def unsaved(trained_dialog, tmp_path):
    """A run that was killed before anything was saved."""
    path = tmp_path / "run"
    create_run(path, trained_dialog.record, trained_dialog.vocabulary)
    return path


@pytest.mark.parametrize(
    "name",
    ["thesis.txt", "notes/first.txt", "index/notes", ".git/HEAD", f"{CONFIG}.d/x"],
)
def test_a_directory_with_a_users_file_is_refused_and_stays_as_it_is(unsaved, trained_dialog, name):
    file = unsaved / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("a year of work")
    before = contents_of(unsaved)
    message = refusal(create_run, unsaved, trained_dialog.record)
    assert re.search("holds .*, which train.py does not write: give another --workdir", message)
    assert contents_of(unsaved) == before


def test_what_a_user_puts_into_a_run_that_fails_is_kept(unsaved, trained_dialog):
    run = Run(unsaved, trained_dialog.record)
    (unsaved / "notes.d").mkdir()
    (unsaved / ".notes.d").mkdir()
    (unsaved / ".notes.d" / "thesis.txt").touch()
    remove_run(run)
    assert sorted(contents_of(unsaved)) == [".notes.d/thesis.txt"]
    assert (unsaved / "notes.d").is_dir()
    shutil.rmtree(unsaved)
    remove_run(create_run(unsaved, trained_dialog.record))
    assert not unsaved.exists()


def test_a_used_directory_is_never_advised_against(prepared_dialog, trained_dialog, tmp_path):
    file = tmp_path / "thesis.txt"
    file.touch()
    for place in (prepared_dialog, file, pathlib.Path("/dev/null")):
        message = refusal(create_run, place, trained_dialog.record)
        assert "give another --workdir" in message and "delete" not in message


def test_files_that_hold_something_are_not_replaced(tmp_path):
    file = tmp_path / "thesis.txt"
    refuse_existing(file)
    file.touch()
    refuse_existing(file)
    file.write_text("a year of work")
    assert "exists: give the name of a new file" in refusal(refuse_existing, file)

    (tmp_path / "null").symlink_to("/dev/null")
    with pytest.raises(UserError, match="not a regular file"), atomic_file(tmp_path / "null"):
        pass


@pytest.mark.parametrize("name", ["example-1.png", "example-2.png"])
def test_pictures_replace_no_file(tmp_path, name):
    (tmp_path / name).write_text("a year of work")
    predictor = Mock(side_effect=AssertionError)
    message = refusal(explain_examples, predictor, [{"title": "x"}] * 2, tmp_path)
    assert f"{name} exists" in message


# === Killed processes ===


def test_a_training_killed_before_its_first_state_starts_anew(
    prepared_dialog, trained_dialog, unsaved, monkeypatch
):
    shutil.copyfile(trained_dialog.path / BEST, unsaved / BEST)
    unfinished = unsaved / f".{LAST}.0123456789abcdef"
    unfinished.touch()
    run = train_quickly(prepared_dialog, unsaved, epochs=0.25)
    assert run.finished() and not unfinished.exists()


def test_the_directory_of_a_killed_process_is_removed_by_the_next_one(tmp_path):
    left = tmp_path / ".out.0123456789abcdef"
    of_others = [tmp_path / ".notes.0123456789abcdef", tmp_path / ".out.d"]
    for directory in (left, *of_others):
        directory.mkdir()
        (directory / "data.pkl").touch()
    with atomic_directory(tmp_path / "out"):
        assert not left.exists()
    assert all(directory.exists() for directory in of_others)


def test_the_directory_of_a_process_at_work_stays(tmp_path):
    with atomic_directory(tmp_path / "out") as temporary:
        with (
            contextlib.suppress(ZeroDivisionError),
            atomic_directory(tmp_path / "out"),
        ):
            assert temporary.exists()
            raise ZeroDivisionError
        assert temporary.exists()


@pytest.mark.parametrize(
    "forge",
    [
        os.mkfifo,
        lambda lock: lock.symlink_to("/dev/null"),
        lambda lock: lock.symlink_to(lock.parent / "thesis.txt"),
        lambda lock: lock.symlink_to(lock.parent / "nowhere"),
    ],
)
def test_a_lock_is_a_regular_file(tmp_path, forge):
    (tmp_path / "thesis.txt").touch()
    forge(tmp_path / LOCK)
    with pytest.raises(UserError, match="not a regular file"), locked(tmp_path):
        pass
    assert not (tmp_path / "nowhere").exists()


def test_a_lock_that_cannot_be_taken_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("fcntl.flock", Mock(side_effect=OSError(37, "No locks available")))
    with pytest.raises(UserError, match="cannot be locked: No locks"), locked(tmp_path):
        pass
    monkeypatch.setattr("builtins.open", Mock(side_effect=PermissionError(13, "Permission denied")))
    with pytest.raises(UserError, match="cannot be written"), locked(tmp_path):
        pass


def test_a_directory_that_nothing_can_replace_is_refused_before_the_work(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")
    monkeypatch.chdir(tmp_path / "real")
    for path in (tmp_path / "out", "."):
        with pytest.raises(UserError, match="is a link, a mount"), atomic_directory(path):
            pass


@pytest.mark.parametrize("files", [(BEST, HISTORY), (BEST, METRICS), (LAST,)])
def test_a_trained_run_is_not_begun_anew(unsaved, trained_dialog, files):
    for file in files:
        (unsaved / file).touch()
    message = refusal(create_run, unsaved, trained_dialog.record)
    assert "holds a trained run" in message and "or --resume" in message
    assert all((unsaved / file).exists() for file in files)


# === Runs of strangers ===


@pytest.fixture
def copied(trained_dialog, tmp_path):
    return shutil.copytree(trained_dialog.path, tmp_path / "copied")


@pytest.mark.parametrize(
    ("sizes", "word"),
    [
        ({"vocabulary_size": 1_000_000, "embedding_dim": 5_000}, "weights"),
        ({"vocabulary_size": 10**9}, "a model of size 1,000,000,000"),
        ({"hops": 10**6}, "hops"),
        ({"max_words": 10**5, "embedding_dim": 10**5}, "a model of size 10,000,000,000"),
    ],
)
def test_a_config_that_asks_for_more_weights_than_there_are_is_refused_at_once(copied, sizes, word):
    config = json.loads((copied / CONFIG).read_text())
    config["config"] = {**config["config"], **sizes}
    (copied / CONFIG).write_text(json.dumps(config))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    message = refusal(Run.open(copied).load_model)
    assert CONFIG in message and word in message and "\n" not in message
    # The memory is not asked for later, either: as when another model is loaded.
    with keras.StatelessScope():
        pass
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**17  # KB


def link_to_secret(file):
    secret = file.parent.parent / "secret"
    secret.write_text("{}")
    file.symlink_to(secret)


def name_a_secret(file):
    (file.parent.parent / "secret").write_text("{}")
    file.write_text(json.dumps({"../secret": ["0"]}))


def lengthen(file):
    file.write_bytes(b"x")
    os.truncate(file, 2**28 + 1)  # without blocks on the disk


def name_and_lengthen(file):
    (file.parent / CHECKSUMS).write_text(json.dumps({file.name: ["0"]}))
    lengthen(file)


NAME_IS_A_NUMBER = (
    '{"model": "dam", "config": {}, "training": {}, "dataset": {"name": 5, "path": null}}'
)
SLOPE_IS_A_TEXT = '{"dev": {"confidence": {"slope": "x"}, "metrics": {}}}'
CONTENTS = [
    (CONFIG, "{", "expected JSON"),
    (CONFIG, "[]", "dictionary"),
    (CONFIG, '{"model": "transformer"}', "Received: transformer"),
    (CONFIG, '{"model": "dam", "config": {}}', "training is missing"),
    (CONFIG, NAME_IS_A_NUMBER, "string. Received: 5"),
    (METRICS, "[1]", "dictionary"),
    (METRICS, SLOPE_IS_A_TEXT, "number"),
    (EXAMPLES, '[{"title": "a"}]', "the field 0.instance is missing"),
    (CHECKSUMS, '{"best.weights.h5": 5}', "list"),
    (CHECKSUMS, '{"README.md": ["0"]}', "is missing"),
    (CHECKSUMS, '{"gone.txt": ["0"]}', "is missing"),
    (CHECKSUMS, "[" * 10**5, "JSON"),
]


@pytest.mark.parametrize(
    ("name", "forge", "word"),
    [
        *[(name, link_to_secret, "link") for name in (CONFIG, CARD, BEST, CHECKSUMS, "pairs/x")],
        ("index", link_to_secret, "link"),
        *[(name, os.mkfifo, "regular") for name in (METRICS, "pairs/x")],
        *[(name, lengthen, "bytes") for name in (CONFIG, EXAMPLES, CARD)],
        ("large.bin", name_and_lengthen, "bytes"),
        (CHECKSUMS, name_a_secret, "not in the run"),
        (CONFIG, lambda file: None, "not a run directory"),
        *CONTENTS,
    ],
)
def test_a_forged_file_is_refused_when_the_run_is_opened(copied, name, forge, word):
    file = copied / name
    file.parent.mkdir(exist_ok=True)
    file.unlink(missing_ok=True)
    if isinstance(forge, str):
        file.write_text(forge)
    else:
        forge(file)
    message = refusal(Run.open, copied)
    assert word in message and file.name in message and "\n" not in message


def test_a_link_is_refused_though_a_file_was_there_a_moment_before(copied, monkeypatch):
    """An attack: a file is replaced by a link after it was looked at, before it is opened."""
    (copied / METRICS).unlink(missing_ok=True)
    link_to_secret(copied / METRICS)
    monkeypatch.setattr(pathlib.Path, "is_symlink", lambda path: False)
    assert "expected a regular file" in refusal(Run.open, copied)


def test_a_run_may_be_reached_by_a_link(copied):
    (copied / "notes").symlink_to("/etc")
    link = copied.parent / "link"
    link.symlink_to(copied)
    assert Run.open(link).load_model()


def test_weights_are_stored_in_their_file_and_no_more_than_it_can_fill(copied):
    (copied / CHECKSUMS).unlink()
    for forge, word in (
        (lambda file: file.create_dataset("x", shape=10**10, dtype="f4", chunks=True), "weights"),
        (lambda file: file.__setitem__("x", h5py.ExternalLink("secret.h5", "/")), "link"),
        (lambda file: file.__setitem__("x", h5py.SoftLink("/layers")), "link"),
        # Elements of 64 KB, and one weight in a chunk that is large when it is unpacked.
        (lambda file: file.create_dataset("x", 2**20, "S65536", chunks=(1,)), "expected numbers"),
        (lambda file: file.create_dataset("x", 1, chunks=(2**27,), maxshape=(None,)), "weights"),
    ):
        with h5py.File(copied / BEST, "a") as file:
            forge(file)
        assert word in refusal(Run.open(copied).load_model)
        with h5py.File(copied / BEST, "a") as file:
            del file["x"]
    assert Run.open(copied).load_model()


def test_a_state_is_not_decompressed(copied):
    zeros = np.zeros(10**7, "float32")
    np.savez_compressed(copied / LAST, state="{}", **{"v/0": zeros})
    assert "expected arrays without compression" in refusal(Run.open(copied).saved_state)


@pytest.mark.slow
def test_a_pickle_bomb_ends_preparing_with_a_sentence(tmp_path):
    lists = b"]" * 6_000_000  # a byte each in the file, 64 in memory
    (tmp_path / "data.pkl").write_bytes(b"\x80\x02(" + lists + b"l.")
    vectors = pickle.dumps([[1.0, 1.0]] * 4, protocol=2)
    (tmp_path / "word_embedding.pkl").write_bytes(vectors)
    flags = [f"--source={tmp_path}", f"--out={tmp_path / 'out'}", "--max_memory_gb=0.4"]
    done = run_process("prepare.py", "--corpus=dam-release", "--eos_id=1", *flags)
    assert done.returncode == 1, done.stderr
    assert "more memory than" in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_memory_is_limited_in_a_block_alone():
    limit = resource.getrlimit(resource.RLIMIT_DATA)
    with machine.limited_memory(2**20), pytest.raises(MemoryError):
        bytearray(2**28)
    assert resource.getrlimit(resource.RLIMIT_DATA) == limit
    assert (
        2**28
        < machine.available_memory()
        <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    )


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_trainings_killed_at_random_moments_end_as_one_that_was_not(task, data, tmp_path):
    directories = {"data": str(data[task]), "root": str(tmp_path)}
    plan = {"task": task, **directories, "kills": 2, "seed": 1}
    done = ran("tests/killed_program.py", json.dumps(plan), by=run_process)
    counts = json.loads(done.stdout.splitlines()[-1])
    assert counts["before"] + counts["after"] == 2
    for number in range(counts["runs"]):
        check_same_training(Run.open(tmp_path / f"run-{number}"), Run.open(tmp_path / "whole"))
