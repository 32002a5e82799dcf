"""`data.corpora.smn`: the text format of SMN and DAM, line by malformed line."""

import gzip
import unicodedata

import pytest
import tensorflow as tf

from base.files import UserError
from data.corpora.smn import Line, find_split, read, spans, tokenize
from data.text_files import Span

GOOD = "1\thello there\thi\thow are you\n0\thello there\thi\tgreen\n"


@pytest.fixture
def lines(tmp_path):
    def lines(content, name="train.txt"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return list(read(path))

    return lines


# === Lines ===


@pytest.mark.parametrize("name", ["train", "train.txt", "train.txt.gz"])
def test_read_yields_lines(lines, name):
    content = GOOD.encode()
    assert lines(gzip.compress(content) if name.endswith("gz") else content, name) == [
        Line(1, 1, ["hello there", "hi"], "how are you"),
        Line(2, 0, ["hello there", "hi"], "green"),
    ]


def test_read_parts_lines_at_newline_alone(lines):
    odd = "a\u2028b\x85c\x0bd\x0ce\x1cf\rg"
    assert lines(f"1\t{odd}\t{odd}\r\n0\t\tno end") == [
        Line(1, 1, [odd], odd),
        Line(2, 0, [""], "no end"),
    ]


def test_spans_hold_whole_contexts(tmp_path):
    """Of a conversation that grows, of lines whose responses or labels alone differ, and without an end of line."""
    path, content = tmp_path / "train.txt", "1\ta\tb\n0\ta\tc\n1\ta\tb\td\n0\ta\tb\te\n1\t\u00e9\tb\r\n1\ta\tb"
    path.write_bytes(content.encode())
    lines = [line[1:] for line in read(path)]
    found = {tuple(spans(path, size)) for size in range(1, 50)}
    assert {len(parts) for parts in found} == {1, 2, 3}
    for parts in found:
        starts, stops = zip(*parts, strict=True)
        assert (*starts, 41) == (0, *stops) and {*starts} <= {0, 12, 28, 36}  # where contexts begin
        parts = [read(path, lambda path, _, part=part: Span(path, *part)) for part in parts]
        assert [line[1:] for part in parts for line in part] == lines


def test_a_compressed_file_is_one_span(tmp_path):
    path = tmp_path / "train.txt.gz"
    path.write_bytes(gzip.compress(GOOD.encode()))
    length = path.stat().st_size
    assert list(spans(path, 7)) == [(0, length)]
    assert len(list(read(path, lambda path, _: Span(path, 0, length)))) == 2
    (tmp_path / "dev").write_bytes(b"")
    assert list(spans(tmp_path / "dev", 7)) == [(0, 0)]


def test_read_drops_a_byte_order_mark(lines):
    assert lines("\ufeff" + GOOD) == lines(GOOD)


def test_read_opens_by_what_it_is_given(tmp_path):
    opened = []

    def opener(*args):
        opened.append(args)
        return open(*args)

    (tmp_path / "dev").write_text(GOOD)
    assert len(list(read(tmp_path / "dev", opener))) == 2
    assert opened == [(tmp_path / "dev", "rb")]


@pytest.mark.parametrize(
    "line, expected, received",
    [
        ("1 hello there", "`label TAB .* response`, which has tabs", "'1 hello there'"),
        ("", "which has tabs", "''"),
        ("2\thello\tthere", "a label 0 or 1", "'2'"),
        ("\thello\tthere", "a label 0 or 1", "''"),
        ("\ufeff1\thello\tthere", "a label 0 or 1", r"'\\ufeff1'"),
        ("1\thello there", "`label TAB .* response`, at least three", r"'1\\thello there'"),
        ("1\thello\t", "a response that is not empty", r"'1\\thello\\t'"),
        ("1\thello\t \x0b\r", "a response that is not empty", r"'1\\thello\\t \\x0b'"),
        ("1\thello" + 70 * "o", "at least three fields", r"'1\\thello{54}' \.\.\."),
        (b"1\thello\tth\xe8re", "UTF-8", r"b'1\\thello\\tth\\xe8re'"),
        (b"1\thello\t\xed\xa0\x80", "UTF-8", r"b'1\\thello\\t\\xed\\xa0\\x80'"),
        ("1\thello\t" + 2**20 * "o", "at most 1,048,576 bytes", r"b'1\\thello\\to{52}' \.\.\."),
    ],
)
def test_read_names_a_bad_line(lines, line, expected, received):
    line = line.encode() if isinstance(line, str) else line
    sentence = rf"train\.txt, line 3: expected .*{expected}.*\. Received: {received}$"
    with pytest.raises(UserError, match=sentence):
        lines(GOOD.encode() + line + b"\n" + GOOD.encode())


def test_read_rejects_missing_empty_and_damaged_files(lines, tmp_path):
    with pytest.raises(UserError, match=r"dev\.txt: expected a readable.*No such file"):
        list(read(tmp_path / "dev.txt"))
    for name, content in (("train", b""), ("train.gz", gzip.compress(b""))):
        with pytest.raises(UserError, match=rf"{name}: expected lines of .*an empty file"):
            lines(content, name)
    whole = gzip.compress(GOOD.encode() * 99)
    broken = whole[:30] + bytes(9) + whole[39:]
    for content in (GOOD.encode(), whole[:-9], whole[:20], broken):
        with pytest.raises(UserError, match=r"train\.gz: expected a readable text file. Received: "):
            lines(content, "train.gz")


# === Words ===


def test_tokenize_splits_as_tensorflow_does():
    spaces = [chr(i) for i in range(1, 0x3100) if unicodedata.category(chr(i)) in ("Zs", "Cc")]
    assert {" ", "\t", "\x0b", "\x1c", "\x85", "\xa0", "\u2003", "\u3000"} <= set(spaces)
    text = "  start " + "".join(f"w{i}{space}" for i, space in enumerate(spaces)) + " end\u2028x "
    expected = [token.decode() for token in tf.strings.split([text])[0].numpy()]
    assert tokenize(text) == expected
    assert len(expected) == 9  # six white spaces among all of them, in one of two orders
    assert tokenize("") == tokenize(" \t\r") == []


# === Files of a corpus ===


@pytest.mark.parametrize(
    "split, names",
    [
        ("train", ["train", "train.gz", "train.txt", "train.txt.gz", "train.tsv", "train.tsv.gz"]),
        ("dev", ["dev.txt", "valid", "valid.txt.gz", "validation.tsv"]),
        ("test", ["test", "test.tsv.gz"]),
    ],
)
def test_find_split_takes_the_first_of_its_names(tmp_path, split, names):
    for name in reversed(names):
        (tmp_path / name).touch()
        assert find_split(tmp_path, split) == tmp_path / name


def test_find_split_without_a_file(tmp_path):
    (tmp_path / "train.sample").touch()
    (tmp_path / "dev.txt").mkdir()
    assert find_split(tmp_path, "dev") is None and find_split(tmp_path, "test") is None
    looked_for = "train, train.gz, train.txt, train.txt.gz, train.tsv, train.tsv.gz"
    with pytest.raises(UserError, match=f"expected a training file, one of {looked_for}$"):
        find_split(tmp_path, "train")
    with pytest.raises(UserError, match="absent: expected the directory of a corpus"):
        find_split(tmp_path / "absent", "dev")
