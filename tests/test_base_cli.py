"""cli.py and the scripts' flags: one sentence, exit code 1, nothing half-written."""

import errno
import os
import signal
import subprocess
import sys

import pytest
from helpers import ROOT, run_process, run_script

from base import cli
from base.files import UserError, atomic_directory, atomic_file


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["evaluate.py", "--run=x", "--ties=win"], "<loss|release>"),
        (["train.py", "stray"], "Only flags are taken (--help lists them). Received: stray"),
        (["train.py", "--epochs=0"], "--epochs: input should be greater than 0. Received: 0.0"),
        (["serve.py", "--max_batch=0"], "--max_batch: input should be greater than or equal to 1"),
        (["train.py", "--resume", "--workdir=x", "--set=levels=3"], "--set is not for --resume"),
        (
            ["train.py", "--recipe=dam-sample", "--model=bidaf"],
            "--recipe=dam-sample trains dam. Received: --model=bidaf",
        ),
        (["chat.py", "--run=x", "--reverse_run=y", "--reverse_weight=nan"], "weight expects a number. Received: nan"),
        (["train.py", "--model=dam", "--set=levels"], "--set expects field=value. Received: 'levels'"),
        (["export.py", "--run=x"], "--out is missing"),
        (["evaluate.py", "--predictions=x", "--data=y", "--scores=z"], "--scores is not for --predictions"),
        (["evaluate.py", "--predictions=x", "--references=y"], "--references is not for --predictions"),
        (["evaluate.py", "--run=x", "--reverse_weight=.7"], "--reverse_weight is not for use without --reverse_run"),
        (["chat.py", "--run=x", "--reverse_weight=.7"], "--reverse_weight is not for use without --reverse_run"),
        (["evaluate.py", "--run=pretrained/bidaf-squad", "--references=x.json"], "--references is not for reading"),
        (["prepare.py", "--corpus=squad", "--source=x", "--out=y", "--words_of=al"], "'all' or 'train'"),
        (["prepare.py", "--corpus=smn", "--source=nowhere", "--out=build/never"], "nowhere"),
        (["export.py", "--run=nowhere", "--out=build/never"], "nowhere is not a run directory"),
        (["chat.py", "--run=nowhere"], "nowhere is not a run directory"),
        (["chat.py", f"--run={'x' * 300}"], ": File name too long"),
        (["prepare.py", "--corpus=smn", "--source=x", f"--out={'x' * 300}"], "xxx: File name too long"),
        (["evaluate.py", "--run=pretrained/bidaf-squad"], "--data"),
        (
            ["tools/import_release.py", "--checkpoint=nowhere", "--config=pyproject.toml", "--out=build/never"],
            "expected JSON in UTF-8",
        ),
    ],
)
def test_a_wrong_flag_gets_one_sentence(arguments, expected, monkeypatch):
    monkeypatch.chdir(ROOT)
    result = run_script(*arguments)
    assert result.returncode == 1
    [line] = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert expected in line
    assert "Traceback" not in result.stderr
    assert not (ROOT / "build" / "never").exists()


@pytest.mark.parametrize(
    ("program", "flag", "message"),
    [
        ("attacks", "--run=x --out=x.json", "flag --out=x.json: expected FILE.json/NAME"),
        ("peers", "--chat=x --torch_python=nowhere/python", "--torch_python=nowhere/python is no program"),
    ],
)
def test_a_benchmark_checks_its_flags_before_it_measures(program, flag, message):
    program = [sys.executable, "-m", f"benchmarks.{program}", *flag.split()]
    done = subprocess.run(program, capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (1, f"error: {message}\n")


def test_a_reader_that_has_seen_enough_gets_no_traceback():
    reader, writer = os.pipe()
    os.close(reader)
    program = [sys.executable, "-c", "from base import cli; cli.run(lambda: print(1))"]
    for flag in ([], ["--help"]):
        done = subprocess.run([*program, *flag], stdout=writer, stderr=subprocess.PIPE, text=True, cwd=ROOT)
        assert (done.returncode, done.stderr) == (1, "")
    os.close(writer)


def test_closed_standard_files_are_replaced_before_another_file_takes_their_numbers():
    program = f"{sys.executable} -c 'from base import cli; cli.run(lambda: print(open(cli.__file__).fileno()))'"
    for closed, found in (("2>&-", "3\n"), ("<&- >&-", "")):
        done = subprocess.run(f"{program} {closed}", shell=True, capture_output=True, text=True, cwd=ROOT)
        assert (done.returncode, done.stdout, done.stderr) == (0, found, "")


def test_characters_that_a_terminal_lacks_and_bytes_that_are_none_are_replaced():
    program = [sys.executable, "-c", "from base import cli; cli.run(lambda: print(input(), ascii(input())))"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(program, input=b"a\n\xff\n", capture_output=True, env=environment, cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"a '\\ufffd'\n", b"")
    program[-1] = "from base import cli; cli.run(lambda: print('\u4f60'))"
    assert subprocess.check_output(program, env=environment, cwd=ROOT) == b"?\n"


FOLDERS = (".", "tools", "benchmarks", "data/samples")
SCRIPTS = [
    path.relative_to(ROOT).as_posix()
    for folder in FOLDERS
    for path in sorted((ROOT / folder).glob("*.py"))
    if "run(main)" in path.read_text(encoding="utf-8")
]
SLOW = "tensorflow", "keras", "scipy.optimize", "matplotlib", "pandas", "gensim", "ray", "fastapi", "prompt_toolkit"
RUN = """
import runpy, sys
sys.argv = sys.argv[1:]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    print(len(sys.modules), *sys.modules)
"""


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_does_not_wait_for_slow_packages(script):
    result = run_process("-c", RUN, script, "--help")
    number, *loaded = result.stdout.splitlines()[-1].split()
    assert result.returncode in (0, 1) and "flags:" in result.stdout
    assert not {*SLOW} & {*loaded} and int(number) < 800


@pytest.mark.parametrize("message", ["", "interrupted; nothing was saved"])
def test_ctrl_c_is_one_sentence(capsys, monkeypatch, message):
    def main():
        raise KeyboardInterrupt(message)

    monkeypatch.setattr("sys.argv", ["script"])
    monkeypatch.setattr(cli.flags, "FLAGS", cli.flags.FlagValues())
    monkeypatch.setattr(cli.app, "run", lambda guarded, flags_parser: guarded(None))
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(SystemExit) as end:
        cli.run(main)
    assert signal.signal(signal.SIGINT, before) == signal.SIG_IGN  # a second Ctrl-C would interrupt the exit
    assert end.value.code == 130 and capsys.readouterr().err == f"{message or 'interrupted'}\n"


def test_ctrl_c_during_imports_is_one_line():
    program = "import os, signal, base.cli; os.kill(os.getpid(), signal.SIGINT); import time; time.sleep(9)"
    done = run_process("-c", program)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_a_file_that_cannot_be_written_gets_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    for path, message in ((tmp_path, "is a directory, expected a file"), (tmp_path / "file" / "x", "cannot be made")):
        with pytest.raises(UserError, match=message), atomic_file(path) as file:
            file.write("never")
    with pytest.raises(UserError, match="cannot be made"), atomic_directory(tmp_path / "file" / "x"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def written(path):
    return {file.relative_to(path).as_posix(): file.read_text() for file in path.rglob("*") if file.is_file()}


@pytest.mark.parametrize("failure", [None, errno.ENOSPC, errno.EIO, errno.EROFS])
@pytest.mark.parametrize("write", [atomic_file, atomic_directory])
def test_files_appear_whole_or_not_at_all(tmp_path, monkeypatch, write, failure):
    """Where the block fails or a disk does, noticed only at `fsync`, the old files stay and nothing is half-written."""
    path, old = tmp_path / "new", {"other": "stays", **({"new": "old"} if write is atomic_file else {})}
    for name, text in old.items():
        (tmp_path / name).write_text(text)

    def fail(*_):
        raise OSError(failure, os.strerror(failure)) if failure else RuntimeError

    expected = pytest.raises(RuntimeError)
    if failure:
        expected = pytest.raises(UserError, match=f"^{path} cannot be written: {os.strerror(failure)}$")
    with monkeypatch.context() as patch, expected, write(path) as made:
        patch.setattr(os, "fsync", fail if failure else os.fsync)
        made.write("half") if write is atomic_file else (made / "a").write_text("half")
        if not failure:
            fail()
    assert written(tmp_path) == old
    with write(path) as made:
        made.write("new\n") if write is atomic_file else [(made / name).write_text("new\n") for name in "ab"]
        assert written(tmp_path).items() >= old.items()
    new = ["new"] if write is atomic_file else ["new/a", "new/b"]
    assert written(tmp_path) == {"other": "stays", **dict.fromkeys(new, "new\n")}


def test_a_directory_in_use_is_kept(tmp_path):
    (tmp_path / "mine").touch()
    with pytest.raises(UserError, match="must not exist yet"), atomic_directory(tmp_path):
        pass
    assert written(tmp_path) == {"mine": ""}
