from data.corpora.conversations import find_splits, read
from data.samples.generation import write_conversations
from data.samples.talk import simulate


def test_the_files_are_the_conversations(tmp_path):
    assert write_conversations(tmp_path, 23, seed=3, held_out=2) == {"train.txt": 21, "dev.txt": 2}
    files = find_splits(tmp_path)
    found = [turns for split in ("train", "dev") for turns in read(files[split], split)]
    assert found == [[turn.text for turn in each.turns] for each in simulate(23, 3)]
