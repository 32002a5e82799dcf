"""`data.flat_arrays` against the arrays that NumPy writes, `data.sequences` against loops."""

import io

import numpy as np
import pytest
from helpers import refusal, written

from colloquy.data.flat_arrays import GrowingArray, map_array
from colloquy.data.sequences import Sequences


@pytest.mark.parametrize("dtype", ["uint16", "int64"])
def test_a_growing_array_is_what_numpy_reads(tmp_path, dtype):
    values = np.random.default_rng(0).integers(0, 127, 23)
    with GrowingArray(tmp_path / "a.npy", dtype) as file:
        for part in (values[:5], values[5:5], values[5:19], values[19:]):
            file.write(part)
    mapped = map_array(tmp_path / "a.npy")
    assert type(mapped) is np.ndarray
    for found in (np.load(tmp_path / "a.npy"), mapped):
        assert found.dtype == dtype and found.tolist() == values.tolist()
    with pytest.raises(ValueError, match="read-only"):
        mapped[0] = 1
    with GrowingArray(tmp_path / "a.npy", dtype):
        pass
    assert np.load(tmp_path / "a.npy").tolist() == []


def header(shape, dtype="<i4"):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": dtype, "fortran_order": False, "shape": shape}
    )
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"no array",
        header((2,)) + bytes(7),
        header((2**62,)),
        header((2, 2)) + bytes(16),
        header((2,), "|O") + bytes(16),
        header((), "<i4") + bytes(4),
    ],
)
def test_other_files_are_refused(tmp_path, content):
    found = refusal(map_array, written(tmp_path / "a.npy", content))
    assert "a.npy: expected an array of whole numbers" in found and "\n" not in found


@pytest.mark.parametrize(
    "lists", [[[4, 5], [], [6], []], [[]], [], np.array([[4, 5], [6, 7], [4, 5]])]
)
def test_lists_are_those_it_was_made_of(lists):
    sequences = Sequences.of(lists)
    assert sequences.lists() == [list(ids) for ids in lists]
    assert sequences.padded(np.array([-1]), 2).tolist() == [[0, 0]]
