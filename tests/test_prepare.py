"""prepare.py itself: which flags each task takes, wrong values, and Ctrl-C."""

import re
import signal
import time

import pytest
from helpers import run_script, start_process


@pytest.mark.parametrize(
    ("corpus", "flag", "message"),
    [
        ("squad", "--dimension=300", "--dimension is not for --corpus=squad.* --vectors, --words_of, "),
        ("babi-dialog", "--min_count=3", "--min_count is not for --corpus=babi-dialog.* --words_of$"),
        ("squad", "--ray", "--ray is not for --corpus=squad"),
        ("smn", "--turns=2", "--turns is not for --corpus=smn.* --min_count, "),
        ("smn", "--min_count=0", "--min_count: .*greater than or equal to 1. Received: 0"),
        ("smn", "--hashed_words=2x", "--hashed_words: .*integer.* Received: 2x"),
    ],
)
def test_a_wrong_flag_is_refused_by_name(tmp_path, corpus, flag, message):
    given = (f"--corpus={corpus}", f"--source={tmp_path / 'absent'}", f"--out={tmp_path / 'out'}", flag)
    done = run_script("prepare.py", *given)
    [line] = done.stderr.splitlines()
    assert done.returncode == 1 and line.startswith("error: ")
    assert re.search(message, line), line


def test_ctrl_c_leaves_one_sentence_and_nothing_else(tmp_path):
    (tmp_path / "raw").mkdir()
    lines = "".join(f"1\ta{i} b\tc{i}\n0\ta{i} b\td{i}\n" for i in range(2_000))
    (tmp_path / "raw" / "train.txt").write_text(lines)
    run = start_process(
        *("prepare.py", "--corpus=smn", f"--source={tmp_path / 'raw'}", f"--out={tmp_path / 'out'}", "--min_count=1"),
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
