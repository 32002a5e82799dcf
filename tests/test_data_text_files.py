"""`data.text_files`: lines and JSON of any origin."""

import gzip
import json
import os

import numpy as np
import pytest
from helpers import refusal, written

from colloquy.base.files import UserError
from colloquy.data import text_files
from colloquy.data.json_files import read_json, write_json
from colloquy.data.text_files import find_files, read_lines


@pytest.fixture
def file(tmp_path):
    def write(content, name="a.txt"):
        path = written(tmp_path / name, content)
        return written(path, gzip.compress(path.read_bytes())) if name.endswith(".gz") else path

    return write


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("one\n\n\r\n two\n", ["one", "", "", " two"]),
        ("\ufeffone\n\ufefftwo\n", ["one", "\ufefftwo"]),
        ("a\r\r\n\n \r\n", ["a\r"]),
    ],
)
def test_read_lines(file, name, content, lines):
    assert list(read_lines(file(content, name))) == list(enumerate(lines, 1))


def test_a_bomb_is_read_no_further_than_its_size_allows(file, monkeypatch):
    monkeypatch.setattr(text_files, "MIN_CONTENT", 2**16)
    lines = file(b"1\ta\tb\n" * 2**18, "a.txt.gz")
    read = 0
    with pytest.raises(
        UserError, match=r"a\.txt\.gz: expected at most \d+,\d+ bytes when decompressed"
    ):
        for _ in read_lines(lines):
            read += 1
    assert 2**16 // 6 < read < 2**17
    long_lines = file((b"a" * 10**5 + b"\n") * 100, "long.txt.gz")
    with pytest.raises(UserError, match="bytes when decompressed"):
        list(read_lines(long_lines))
    assert "bytes when decompressed" in refusal(
        read_json, file(b"[" + b" " * 2**20 + b"]", "a.json.gz")
    )
    assert read_json(file(b"[" + b" " * 2**15 + b"]", "a.json.gz")) == []


def test_a_text_that_repeats_a_long_context_is_no_bomb(file):
    words = [f"word{number:04}" for number in np.random.default_rng(1).integers(0, 9999, 9 * 50)]
    context = "\t".join(" ".join(words[turn : turn + 50]) for turn in range(0, 450, 50))
    lines = [f"0\t{context}\tresponse {number}" for number in range(2000)]
    path = file("\n".join(lines), "a.txt.gz")
    assert 2000 * len(context) > max(text_files.MIN_CONTENT, 40 * path.stat().st_size)
    assert [line for _, line in read_lines(path)] == lines


def test_utf_32_is_refused_and_a_line_of_the_largest_size_is_read(file):
    message = refusal(lambda path: list(read_lines(path)), file("hi".encode("utf-32")))
    assert "expected UTF-16, by its mark. Received: a zero character" in message
    largest = "a" * text_files.MAX_LINE
    assert list(read_lines(file(f"{largest}\n"))) == [(1, largest)]


def test_find_files_prefers_what_is_unpacked(file, tmp_path):
    for name in ("b.txt", "a.txt.gz", "a.txt", "c.txt.gz", "x.tsv", "._a.txt"):
        file("", name)
    (tmp_path / "xdirectory").mkdir()
    found = [path.name for path in find_files(tmp_path, ["x*", "*.txt"])]
    assert found == ["x.tsv", "a.txt", "b.txt", "c.txt.gz"]
    message = refusal(find_files, tmp_path, ["y*", "z.txt"])
    assert "expected a file y* or z.txt, also with .gz" in message


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_read_json(file, name):
    value = {"a": [1, -2.5, None, True, "\u00e9\u2028\U0001f44d"]}
    for text in (
        json.dumps(value),
        json.dumps(value, ensure_ascii=False),
        "\ufeff" + json.dumps(value),
    ):
        assert read_json(file(text, name)) == value


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"data": [', "expected JSON in UTF-8. Expecting value"),
        (b'{"data": "\xff"}', "expected UTF-8; if it is Windows-1252, convert it: iconv"),
        (
            "[" * 100_000 + "]" * 100_000,
            "expected JSON in UTF-8. Received: brackets nested too deep",
        ),
        ('["\\ud800"]', "expected JSON in UTF-8. 'utf-8' codec can't encode character '\\ud800'"),
        ("[" + "9" * 5000 + "]", "expected JSON in UTF-8. Exceeds the limit (4300 digits)"),
    ],
)
def test_read_json_rejects(file, content, message):
    path = file(content, "a.json")
    found = refusal(read_json, path)
    assert found.startswith(f"{path}: {message}") and len(found) < 400


def test_write_json_rejects_a_name_that_is_not_utf8(tmp_path):
    name = os.fsdecode("caf\u00e9".encode("latin-1"))
    file = tmp_path / "a.json"
    message = refusal(write_json, file, {"path": name})
    expected = "expected text in UTF-8, also in paths. Received: '\"caf\\udce9\"'"
    assert message == f"{file}: {expected}"
    assert not any(tmp_path.iterdir())
