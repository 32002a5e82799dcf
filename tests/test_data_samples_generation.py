import pytest

from data.corpora.conversations import find_splits, read
from data.samples.generation import write_conversations
from data.samples.talk import simulate


def test_the_files_are_the_conversations(tmp_path):
    assert write_conversations(tmp_path, 23, seed=3) == {"train.txt": 21, "dev.txt": 2}
    files = find_splits(tmp_path)
    found = [turns for split in ("train", "dev") for turns in read(files[split], split)]
    assert found == [[turn.text for turn in each.turns] for each in simulate(23, 3)]


def test_few_conversations_are_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(ValueError, match="conversations must be at least 10"):
        write_conversations(tmp_path / "raw", 9)
    assert not (tmp_path / "raw").exists()
