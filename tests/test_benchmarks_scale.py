"""benchmarks/scale.py: its corpora have their sizes, and a seed repeats them."""

import collections

from helpers import import_script

from data.corpora.smn import read

scale = import_script("benchmarks.scale")


def test_a_corpus_has_the_sizes_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(scale, "BLOCK", 7)
    monkeypatch.setattr(scale, "VOCABULARY", 97)
    scale.write_corpus(tmp_path / "a", 46, seed=3)
    lines = list(read(tmp_path / "a" / "train.txt"))
    assert [line.label for line in lines] == [1, 0] * 23
    assert {len(line.turns) for line in lines} == {6}
    assert {len(text.split()) for line in lines for text in (*line.turns, line.response)} == {11}
    assert [tuple(line.turns) for line in lines[::2]] == [tuple(line.turns) for line in lines[1::2]]
    assert len({tuple(line.turns) for line in lines}) == 23
    counts = collections.Counter(word for line in lines for text in line.turns for word in text.split())
    assert counts.most_common(1)[0][0] == "w0" and len(counts) > 80
    assert len(list(read(tmp_path / "a" / "dev.txt"))) == 1000
    scale.write_corpus(tmp_path / "b", 46, seed=3)
    assert (tmp_path / "b" / "train.txt").read_bytes() == (tmp_path / "a" / "train.txt").read_bytes()
