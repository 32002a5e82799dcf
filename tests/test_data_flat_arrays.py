"""`data.flat_arrays` against the arrays that NumPy writes, `data.sequences` against loops."""

import io

import numpy as np
import pytest
from fuzzing import accepts, mutated
from helpers import refusal, written
from hypothesis import given, settings
from hypothesis import strategies as st

from colloquy.data.flat_arrays import GrowingArray, map_array
from colloquy.data.sequences import Sequences


@pytest.mark.parametrize("dtype", ["uint16", "int64"])
def test_a_growing_array_is_what_numpy_reads(tmp_path, dtype):
    values = np.random.default_rng(0).integers(0, 127, 23)
    with GrowingArray(tmp_path / "a.npy", dtype) as file:
        for part in (values[:5], values[5:5], values[5:19], values[19:]):
            file.write(part)
        assert len(file) == 23
    found = np.load(tmp_path / "a.npy")
    assert found.dtype == dtype and found.tolist() == values.tolist()
    with GrowingArray(tmp_path / "a.npy", dtype):
        pass
    assert np.load(tmp_path / "a.npy").tolist() == []


def test_an_array_is_mapped_to_be_read_alone(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(11, dtype="uint16"))
    mapped = map_array(tmp_path / "a.npy")
    assert mapped.tolist() == list(range(11)) and type(mapped) is np.ndarray
    with pytest.raises(ValueError, match="read-only"):
        mapped[0] = 1


def header(shape, dtype="<i4"):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": dtype, "fortran_order": False, "shape": shape}
    )
    return file.getvalue()


def long_header(version):
    """A header of 20,000 bytes, about which NumPy says several lines."""
    text = (
        str({"descr": "<i4", "fortran_order": False, "shape": (2,)}).ljust(20_000).encode() + b"\n"
    )
    return (
        b"\x93NUMPY%c\x00" % version + len(text).to_bytes(2 * version, "little") + text + bytes(8)
    )


@pytest.mark.parametrize(
    "content",
    [
        b"no array",
        header((2,)) + bytes(7),
        header((2**62,)),
        header((-5,)),
        header((2, 2)) + bytes(16),
        header((2,), "|O") + bytes(16),
        header((), "<i4") + bytes(4),
        long_header(2),
    ],
)
def test_other_files_are_refused(tmp_path, content):
    found = refusal(map_array, written(tmp_path / "a.npy", content))
    assert "a.npy: expected an array of whole numbers" in found and "\n" not in found


@settings(max_examples=settings().max_examples // 5)
@given(st.sampled_from([header((2,)) + bytes(8), long_header(1), long_header(2)]).flatmap(mutated))
def test_any_file_is_read_or_refused(tmp_path_factory, content):
    path = written(tmp_path_factory.getbasetemp() / "any.npy", content)
    accepts(lambda: map_array(path)[:10].sum(), len(content))


@pytest.mark.parametrize(
    "lists", [[[4, 5], [], [6], []], [[]], [], np.array([[4, 5], [6, 7], [4, 5]])]
)
def test_lists_are_those_it_was_made_of(lists):
    sequences = Sequences.of(lists)
    assert sequences.lists() == [list(ids) for ids in lists]
    assert sequences.padded(np.array([-1]), 2).tolist() == [[0, 0]]
