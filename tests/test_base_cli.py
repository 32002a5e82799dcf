"""cli.py and the scripts' flags: one sentence, exit code 1, nothing half-written."""

import errno
import os
import re
import subprocess
import sys
from unittest.mock import Mock

import pytest
from helpers import ROOT, contents_of, ran, run_process, script_refusal

from colloquy.base.files import UserError, atomic_directory, atomic_file

PREPARE = "prepare.py --source=nowhere --out=build/never --corpus"
OF_DIALOG = "--vocabulary_of=pretrained/entity-memma-task5"
TRAIN = "train.py --workdir=build/never"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("evaluate.py --run=pretrained/bidaf-squad", "as data"),
        ("evaluate.py --split=dev", "--run is missing"),
        ("evaluate.py --run=x --data=no.json", "--data=no.json: there is no such file"),
        ("evaluate.py --run=x --split=valid", "split: expected some of train, dev,.* valid"),
        ("evaluate.py --run=x --against=y --scores=z", "--scores is not for --against"),
        ("evaluate.py --run=x --set=precision=float32", "no setting 'precision': it is a flag"),
        ("chat.py --run=x --import=./mine.py", "--import expects the name of a module"),
        ("chat.py --run=x --import=colloquy.no.mine", "no.mine: there is no such module in"),
        ("train.py --resume --workdir=x --show_settings", "--show_settings is not for --resume"),
        ("train.py --show_settings --model=dam --set=level=2", "there is no setting 'level'"),
        (f"{TRAIN} --data=", "flag --data expects a value. Received: nothing"),
        (f"{TRAIN} --init_from=", "--init_from expects a value"),
        ("tools/sweep.py --data=x --recipe=babi-memma --seeds=", "--seeds expects a value"),
        ("evaluate.py --run=", "--run expects a value"),
        ("evaluate.py --run=x --by=", "--by expects a value"),
        (f"{PREPARE}=smn --max_memory_gb=inf", "max_memory_gb"),
        (f"{PREPARE}=smn --max_memory_gb=0.1", r"max_memory_gb=0.1: .* in the range \[0.3, "),
        ("predict.py --run=x", "expected one of --input and --explain"),
        ("predict.py --run=x --input=y --maps=M", "--maps is not for --input"),
        ("predict.py --run=x --explain=2", "--explain needs --out=DIR"),
        ("chat.py --run=nowhere", "nowhere is not a run directory"),
        ("export.py --run=x", "--out is missing"),
        ("serve.py --max_queue=0", "--max_queue: input should be greater than or equal to 1"),
        ("train.py stray", "Only flags are taken .* Received: stray"),
        ("train.py --devices=all", "devices=all needs KERAS_BACKEND=jax"),
        ("train.py --resume --workdir=x --set=levels=3", "--set is not for --resume"),
        (f"{TRAIN} --recipe=dam-doubn", "dam-douban"),
        (f"{TRAIN} --set=patience=-1 --data=nowhere", "patience: .*greater than or equal to 0"),
        (f"{TRAIN} --ray_hosts=2 --devices=one", "--devices is not for --ray_hosts"),
        (f"{TRAIN} --recipe=dam-chitchat --model=bidaf", "trains dam. Received: model=bidaf"),
        (f"{TRAIN} --set=levels", "--set expects field=value. Received: 'levels'"),
        (f"{PREPARE}=smn", "nowhere"),
        (f"{PREPARE}=smn --turns=2", "--turns is not for --corpus=smn.* --min_count, "),
        (f"{PREPARE}=cornell --seed=2", "--seed is not for --corpus=cornell --task=generation, "),
        (f"{PREPARE}=smn --min_count=0", "min_count: .*greater than or equal to 1. Received: 0"),
        (f"{PREPARE}=smn --task=generation", "is for selection. Received: task=generation"),
        (f"{PREPARE}=smn {OF_DIALOG}", "expects a run of selection. Received: .*, of dialog"),
        (f"{PREPARE}=smn {OF_DIALOG} --min_count=3", "--min_count is not for --vocabulary_of"),
        ("prepare.py --corpus=smn --out=build/never", "source: expected the directory"),
    ],
)
def test_a_wrong_flag_gets_one_sentence(command, expected, monkeypatch):
    monkeypatch.chdir(ROOT)
    line = script_refusal(*command.split())
    assert re.search(expected, line), line
    assert not (ROOT / "build" / "never").exists()


@pytest.mark.parametrize(
    ("program", "flag", "message"),
    [
        ("serving", "--run=x --out=x.json", "flag --out=x.json: expected FILE.json/NAME"),
        ("peers", "--data=x --torch_python=no/python", "--torch_python=no/python is no program"),
    ],
)
def test_a_benchmark_checks_its_flags_before_it_measures(program, flag, message):
    """In a process of its own: flags of other benchmarks are defined once in each."""
    done = run_process("-m", f"benchmarks.{program}", *flag.split())
    assert (done.returncode, done.stderr) == (1, f"error: {message}\n")


def test_a_closed_pipe_ends_a_script_without_a_traceback():
    reader, writer = os.pipe()
    os.close(reader)
    program = [sys.executable, "-c", "from colloquy.base import cli; cli.run(lambda: print(1))"]
    for flag in ([], ["--help"]):
        done = subprocess.run(
            [*program, *flag], stdout=writer, stderr=subprocess.PIPE, text=True, cwd=ROOT
        )
        assert (done.returncode, done.stderr) == (1, "")
    os.close(writer)


def test_closed_standard_files_are_replaced_before_another_file_takes_their_numbers():
    program = "from colloquy.base import cli; cli.run(lambda: print(open(cli.__file__).fileno()))"
    for closed, stdout in (("2>&-", "3\n"), ("<&- >&-", "")):
        command = f"{sys.executable} -c '{program}' {closed}"
        done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=ROOT)
        assert (done.returncode, done.stdout, done.stderr) == (0, stdout, "")


def test_characters_missing_from_a_terminal_and_invalid_bytes_are_replaced():
    main = "print(input(), ascii(input()), '\u4f60')"
    done = subprocess.run(
        [sys.executable, "-c", f"from colloquy.base import cli; cli.run(lambda: {main})"],
        input=b"a\n\xff\n",
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        cwd=ROOT,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"a '\\ufffd' ?\n", b"")


SCRIPTS = [
    path.relative_to(ROOT).as_posix()
    for folder in (".", "tools", "benchmarks")
    for path in sorted((ROOT / folder).glob("*.py"))
    if re.search(r"run\(main\)|run_command\(", path.read_text(encoding="utf-8"))
]
SLOW = (
    "tensorflow",
    "keras",
    "scipy.optimize",
    "matplotlib",
    "pandas",
    "gensim",
    "ray",
    "fastapi",
)
HELP_OF_EACH = """
import os, runpy, sys
from colloquy.base import cli  # which all scripts import
for script in sys.argv[1:]:
    if os.fork() == 0:
        sys.argv = [script, "--help"]
        try:
            runpy.run_path(script, run_name="__main__")
        finally:
            print(len(sys.modules), *sys.modules, flush=True)
            os._exit(0)
    os.wait()
    print("=== end of a script ===", flush=True)
"""


@pytest.mark.slow
def test_help_does_not_wait_for_slow_packages():
    """One process loads what all scripts need; each script runs in a copy of it."""
    *parts, rest = ran("-c", HELP_OF_EACH, *SCRIPTS, by=run_process).stdout.split(
        "=== end of a script ===\n"
    )
    assert rest == ""
    for script, part in zip(SCRIPTS, parts, strict=True):
        assert "flags:" in part and "--import" in part, script
        number, *loaded = part.splitlines()[-1].split()
        assert not {*SLOW} & {*loaded} and int(number) < 800, script


SECOND_CTRL_C = """
import atexit, signal
from colloquy.base import cli
def ctrl_c():
    signal.raise_signal(signal.SIGINT)
atexit.register(ctrl_c)
cli.run(ctrl_c)
"""
CTRL_C_DURING_IMPORTS = """
import os, signal, time
from colloquy.base import cli
os.kill(os.getpid(), signal.SIGINT)
time.sleep(9)
"""


@pytest.mark.parametrize("program", [SECOND_CTRL_C, CTRL_C_DURING_IMPORTS])
def test_ctrl_c_ends_with_one_line(program):
    done = run_process("-c", program)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


@pytest.mark.parametrize("number", [errno.ENAMETOOLONG, errno.EACCES])
def test_a_path_that_cannot_be_followed_gets_one_sentence(number, monkeypatch):
    error = OSError(number, os.strerror(number), "no/x")
    monkeypatch.setattr("colloquy.prepare", Mock(side_effect=error))
    line = script_refusal("prepare.py", "--corpus=smn", "--out=no/x")
    assert line == f"error: no/x: {error.strerror}"


def test_a_file_that_cannot_be_written_gets_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    for path, message in (
        (tmp_path, "is a directory, expected a file"),
        (tmp_path / "file" / "x", "cannot be made"),
    ):
        with pytest.raises(UserError, match=message), atomic_file(path) as file:
            file.write("never")
    with (
        pytest.raises(UserError, match="cannot be made"),
        atomic_directory(tmp_path / "file" / "x"),
    ):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("failure", [None, errno.ENOSPC])
@pytest.mark.parametrize("write", [atomic_file, atomic_directory])
def test_files_appear_whole_or_not_at_all(tmp_path, monkeypatch, write, failure):
    """Where the block fails or a disk does, noticed only at `fsync`, the old files stay and nothing
    is half-written.
    """
    path = tmp_path / "new"
    old = {"other": b"stays"}
    if write is atomic_file:
        old["new"] = b"old"
    for name, content in old.items():
        (tmp_path / name).write_bytes(content)

    def fail(*_):
        raise OSError(failure, os.strerror(failure)) if failure else RuntimeError

    expected = pytest.raises(RuntimeError)
    if failure:
        message = f"^{path} cannot be written: {os.strerror(failure)}$"
        expected = pytest.raises(UserError, match=message)
    with monkeypatch.context() as patch, expected, write(path) as made:
        patch.setattr(os, "fsync", fail if failure else os.fsync)
        made.write("half") if write is atomic_file else (made / "a").write_text("half")
        if not failure:
            fail()
    assert contents_of(tmp_path) == old
    with write(path) as made:
        made.write("new\n") if write is atomic_file else (made / "a").write_text("new\n")
        assert contents_of(tmp_path).items() >= old.items()
    name = "new" if write is atomic_file else "new/a"
    assert contents_of(tmp_path) == {"other": b"stays", name: b"new\n"}


def test_a_directory_that_others_use_is_kept(tmp_path):
    (tmp_path / "theirs").touch()
    with pytest.raises(UserError, match="must not exist yet"), atomic_directory(tmp_path):
        pass
    message = "out cannot be written: Directory not empty"
    with pytest.raises(UserError, match=message), atomic_directory(tmp_path / "out"):
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "theirs").touch()
    assert contents_of(tmp_path) == {"theirs": b"", "out/theirs": b""}


def test_an_interrupt_just_after_a_directory_is_made_leaves_nothing(tmp_path, monkeypatch):
    make = os.mkdir

    def make_and_interrupt(*arguments, **options):
        make(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "mkdir", make_and_interrupt)
    with pytest.raises(KeyboardInterrupt), atomic_directory(tmp_path / "out"):
        pass
    assert list(tmp_path.iterdir()) == []
