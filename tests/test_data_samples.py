"""The embedded samples: the command."""

import functools

import pytest
from helpers import contents_of, run_process

from colloquy.data.samples.__main__ import SAMPLES
from colloquy.data.samples.world import write_entries

SEED = 3
SIZES = {"count": 53, "held_out": 7}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """`written(task)`: the directory of a sample, and the number of entries in each file."""

    @functools.cache
    def write(task):
        directory = tmp_path_factory.mktemp(task) / "raw"
        return directory, SAMPLES[task](directory, seed=SEED, **SIZES)

    return write


@pytest.mark.parametrize("task", SAMPLES)
def test_command_writes_the_same_in_another_process(task, written, tmp_path):
    directory, counts = written(task)
    code = (
        "from colloquy.data.samples.__main__ import SAMPLES; "
        f"SAMPLES['{task}']('{tmp_path}/a', seed={SEED}, **{SIZES})"
    )
    done = run_process("-c", code, PYTHONHASHSEED="1")
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        contents_of(tmp_path / "a") == contents_of(directory)
        and counts.keys() == contents_of(directory).keys()
    )
    SAMPLES[task](tmp_path / "b", **SIZES, seed=SEED + 1)
    assert all(
        text != contents_of(tmp_path / "b")[name]
        for name, text in contents_of(tmp_path / "a").items()
    )


def test_a_failure_leaves_nothing_half_written(tmp_path):
    with pytest.raises(TypeError):
        write_entries(tmp_path, {"a.txt": ["whole\n"], "b.txt": [5]})
    assert contents_of(tmp_path) == {}
