"""`data.vector_files`: arrays, and what is refused; text is tested with `data.word_vectors`."""

import io
import zipfile

import numpy as np
import pytest

from base.files import UserError
from data.vector_files import read_vectors


def save(path, **arrays):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in arrays.items():
            if isinstance(content, np.ndarray):
                file = io.BytesIO()
                np.save(file, content)
                content = file.getvalue()
            archive.writestr(f"{name}.npy", content)
    return path


WORDS, VECTORS = np.array(["a", "\u4f60"]), np.array([[1, 2, 3], [4, 5, 6]], np.float16)


def test_read_vectors_reads_arrays(tmp_path):
    found = read_vectors(save(tmp_path / "a.npz", words=WORDS, vectors=VECTORS))
    assert {word: vector.tolist() for word, vector in found.items()} == {"a": [1, 2, 3], "\u4f60": [4, 5, 6]}
    assert found["a"].dtype == np.float32
    assert list(read_vectors(tmp_path / "a.npz", {"a"})) == ["a"]


def header(descr, shape):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
    return file.getvalue()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"words": WORDS}, "vectors.npy"),
        ({"words": WORDS, "vectors": VECTORS[:1]}, r"<U1 \(2,\), \(1, 3\)"),
        ({"words": WORDS, "vectors": VECTORS[0]}, r"<U1 \(2,\), \(3,\)"),
        ({"words": WORDS[None], "vectors": VECTORS}, r"<U1 \(1, 2\), \(2, 3\)"),
        ({"words": np.array([1, 2]), "vectors": VECTORS}, r"int64 \(2,\)"),
        ({"words": WORDS, "vectors": VECTORS * np.nan}, "a value that is not finite"),
        ({"words": np.array(["a", "\ud800"]), "vectors": VECTORS}, "surrogates"),
        ({"words": WORDS, "vectors": np.array([[None]])}, "Object arrays|larger|shape"),
        ({"words": WORDS, "vectors": header("<f4", (2, 10**12))}, r"vectors of shape \(2, 10{12}\) in a file of"),
        ({"words": header("<U100000000", (9,)), "vectors": VECTORS}, r"words of shape \(9,\) in a file of"),
        (
            {"words": WORDS, "vectors": header("<f4", (2**24, 16)) + bytes(2**30)},
            r"vectors of shape \(16777216, 16\) in",
        ),
        ({"words": WORDS, "vectors": b"no array"}, "magic string"),
    ],
)
def test_read_vectors_rejects_arrays(tmp_path, arrays, message):
    path = save(tmp_path / "a.npz", **arrays)
    with pytest.raises(UserError, match=rf"a\.npz: expected the arrays words and vectors, .*Received: .*({message})"):
        read_vectors(path)


def test_read_vectors_rejects_damaged_archives(tmp_path):
    whole = save(tmp_path / "a.npz", words=WORDS, vectors=VECTORS).read_bytes()
    for content in (b"", b"PK\x03\x04", whole[:-9], whole[:60] + bytes(30) + whole[90:], b"\x93NUMPY\x01\x00"):
        (tmp_path / "b.npz").write_bytes(content)
        with pytest.raises(UserError, match=r"b\.npz: expected the arrays words and vectors, .*Received: "):
            read_vectors(tmp_path / "b.npz")
    with pytest.raises(UserError, match=r"c\.npz: expected word vectors\. Received: No such file"):
        read_vectors(tmp_path / "c.npz")


def test_read_vectors_rejects_a_line_of_a_million_numbers(tmp_path):
    (tmp_path / "a.txt").write_text("a" + " 1" * 2**19)
    with pytest.raises(UserError, match="line 1: expected at most 1,048,576 bytes"):
        read_vectors(tmp_path / "a.txt")
