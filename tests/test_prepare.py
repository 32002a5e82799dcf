"""prepare.py itself: which flags each task takes, and what is said where one is wrong or the user gives up."""

import pathlib
import signal
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).parents[1]


TABLE = """
import dataclasses, importlib
from absl import flags
import prepare
from data.corpora import CORPORA
assert prepare.OF_TASK.keys() == {corpus.task for corpus in CORPORA.values()}
for task, names in prepare.OF_TASK.items():
    settings = importlib.import_module(f"tasks.{task}.prepare").Settings
    fields = {field.name: field.default for field in dataclasses.fields(settings)}
    assert fields.keys() == {"name", "vocabulary_of", *names}, (task, fields)
    assert {name: flags.FLAGS[name].default for name in fields} == fields, (task, fields)
"""


def test_the_table_of_flags_is_the_settings_of_the_tasks():
    subprocess.run([sys.executable, "-c", TABLE], cwd=ROOT, check=True)  # flags are of a process


def start(*given):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "prepare.py", *map(str, given)], cwd=ROOT, **pipes)


@pytest.mark.parametrize(
    ("corpus", "flag", "taken"),
    [
        ("squad", "--dimension=300", "vectors, --words_of, --min_count, --trained_words, --seed"),
        ("babi-dialog", "--min_count=3", "words_of"),
        ("squad", "--ray", "vectors, --words_of, "),
        ("cornell", "--candidates=0", "tokenizer, --lower, --turns, --max_words, --min_count, --vocabulary_size, "),
        ("smn", "--turns=2", "min_count, --dimension, --window, --negative, --sample, --word2vec_epochs, --vectors, "),
    ],
)
def test_a_flag_of_another_task_is_refused_by_name(tmp_path, corpus, flag, taken):
    run = start(f"--corpus={corpus}", f"--source={tmp_path / 'absent'}", f"--out={tmp_path / 'out'}", flag)
    error = run.communicate()[1]
    name = flag.lstrip("-").partition("=")[0]
    assert error.startswith(f"error: --{name} is not for --corpus={corpus}, whose flags are --{taken}")
    assert run.returncode == 1


def test_ctrl_c_leaves_one_sentence_and_nothing_else(tmp_path):
    (tmp_path / "raw").mkdir()
    lines = "".join(f"1\ta{i} b\tc{i}\n0\ta{i} b\td{i}\n" for i in range(2_000))
    (tmp_path / "raw" / "train.txt").write_text(lines)
    run = start(
        *("--corpus=smn", f"--source={tmp_path / 'raw'}", f"--out={tmp_path / 'out'}", "--min_count=1"),
        *("--word2vec_epochs=100000", "--candidates=0"),
    )
    for _ in range(600):
        if any(path.name.startswith(".out.") for path in tmp_path.iterdir()):
            break
        time.sleep(0.1)
    run.send_signal(signal.SIGINT)
    _, error = run.communicate(timeout=120)
    assert run.returncode == 130
    assert error.splitlines()[-1].startswith("interrupted") and "Traceback" not in error
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]
