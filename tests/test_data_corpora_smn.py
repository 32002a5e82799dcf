"""`data.corpora.smn`: parts of a file, and the files of a corpus."""

import gzip

import pytest

from base.files import UserError
from data.corpora.smn import find_split, read, spans
from data.text_files import Span

GOOD = "1\thello there\thi\thow are you\n0\thello there\thi\tgreen\n"


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


def test_find_split_takes_the_first_of_its_names(tmp_path):
    (tmp_path / "dev.txt").mkdir()
    assert find_split(tmp_path, "dev") is None and find_split(tmp_path, "test") is None
    looked_for = "train, train.gz, train.txt, train.txt.gz, train.tsv, train.tsv.gz"
    with pytest.raises(UserError, match=f"expected a training file, one of {looked_for}$"):
        find_split(tmp_path, "train")
    for name in ("validation.tsv", "valid.txt.gz", "valid", "dev.tsv"):
        (tmp_path / name).touch()
        assert find_split(tmp_path, "dev") == tmp_path / name
    with pytest.raises(UserError, match="absent: expected the directory of a corpus"):
        find_split(tmp_path / "absent", "dev")
