"""`tasks.dialog.prepare`: from dialog bAbI to the files of a dataset."""

import json
import re

import pytest
from helpers import refusal

from colloquy.data import pickles
from colloquy.data.vocabulary import Vocabulary
from colloquy.tasks.dialog.domain import Domain
from colloquy.tasks.dialog.prepare import Settings, prepare

# Known in training: thai and rome; greek, basque and oslo are not, so that dev can move to basque
# and oslo. Only the candidates have `bye`, only the knowledge base `greek`, only dev `please`.
FILES = {
    "dialog-babi-task1-x-trn.txt": """\
1 resto_rome_thai R_location rome
2 hi\thello
3 thai\tapi_call thai rome

1 \thello
2 rome\tapi_call thai rome
3 resto_rome_thai R_cuisine thai
4 <SILENCE>\tresto_rome_thai
""",
    "dialog-babi-task1-x-dev.txt": "1 thai please\tresto_rome_thai\n",
    "dialog-babi-task1-x-tst-OOV.txt": """\
1 hi\thello
2 basque\tapi_call basque oslo

1 hi\thello
""",
    "dialog-babi-candidates.txt": """\
1 hello
1 bye
1 api_call thai rome
1 api_call basque oslo
1 resto_rome_thai
1 resto_oslo_basque
""",
    "dialog-babi-kb-all.txt": """\
1 resto_rome_thai R_cuisine\tthai
1 resto_rome_thai R_location\trome
1 resto_oslo_greek R_cuisine\tgreek
1 resto_oslo_basque R_cuisine\tbasque
1 resto_oslo_basque R_location\toslo
""",
}
WRITTEN = {
    "candidates.txt",
    "dataset.json",
    "dialogs.pkl",
    "entities.txt",
    "knowledge.txt",
    "vocabulary.txt",
}
SILENCE = "<SILENCE>"


@pytest.fixture
def source(tmp_path):
    """A corpus of one task."""
    directory = tmp_path / "source"
    directory.mkdir()
    for name, content in FILES.items():
        (directory / name).write_text(content)
    return directory


def edit(file, old, new):
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def run(source, out, **settings):
    """Prepares task 1; returns its sentences, splits, vocabulary and `dataset.json`."""
    prepare("babi-dialog", source, out, Settings(**settings))
    directory = out / "task1"
    assert {file.name for file in directory.iterdir()} == WRITTEN
    data = pickles.load(directory / "dialogs.pkl")
    vocabulary = Vocabulary.load(directory / "vocabulary.txt")
    texts = []
    for ids in data["sentences"]:
        texts.append(" ".join(vocabulary.word(id) for id in ids))
    return texts, data["splits"], vocabulary, json.loads((directory / "dataset.json").read_text())


# === Files ===


def test_prepare_writes_dialogs_as_numbers(source, tmp_path):
    texts, splits, vocabulary, _ = run(source, tmp_path / "new" / "out")
    assert len(set(texts)) == len(texts)  # each once, though train and test say `hi` both
    # The words of train, of the candidates and of the knowledge base; an empty user part is one.
    words = {word for word in FILES["dialog-babi-task1-x-trn.txt"].split() if not word.isdigit()}
    words |= {"bye", "oslo", "greek", "basque", "resto_oslo_greek", "resto_oslo_basque"}
    assert set(vocabulary.words) == {"_EOS_", "_UNK_", SILENCE} | words
    assert vocabulary.words[2] == "resto_rome_thai"  # most frequent first

    def dialog(sentences, speakers, times, turns, answers):
        return {
            "sentences": [texts.index(text) for text in sentences],
            "speakers": speakers,  # 1 user, 2 bot, 3 knowledge
            "times": times,
            "turns": turns,
            "answers": answers,
        }

    call = "api_call thai rome"
    first = ["resto_rome_thai R_location rome", "hi", "hello", "thai", call]
    second = [SILENCE, "hello", "rome", call, "resto_rome_thai R_cuisine thai", SILENCE]
    second.append("resto_rome_thai")
    assert splits["train"] == [
        dialog(first, [3, 1, 2, 1, 2], [0, 0, 0, 1, 1], [1, 3], [0, 2]),
        # what a call returns belongs to its turn
        dialog(second, [1, 2, 1, 2, 3, 1, 2], [0, 0, 1, 1, 1, 2, 2], [0, 2, 5], [0, 2, 4]),
    ]
    moved = ["basque _UNK_", "resto_oslo_basque"]
    assert splits["dev"] == [dialog(["thai _UNK_", "resto_rome_thai"], [1, 2], [0, 0], [0], [4])]
    assert splits["dev-oov"] == [dialog(moved, [1, 2], [0, 0], [0], [5])]
    assert splits["test"] == []
    asked = ["hi", "hello", "basque", "api_call basque oslo"]
    assert splits["test-oov"] == [
        dialog(asked, [1, 2, 1, 2], [0, 0, 1, 1], [0, 2], [0, 3]),
        dialog(["hi", "hello"], [1, 2], [0, 0], [0], [0]),
    ]


def test_prepare_writes_the_domain(source, tmp_path):
    odd_value = "thai\x85\u2028\x0b\x1cfood"  # its characters are read again
    edit(source / "dialog-babi-kb-all.txt", "R_cuisine\tgreek", f"R_cuisine\t{odd_value}")
    run(source, tmp_path / "out")
    domain = Domain.load(tmp_path / "out" / "task1")
    assert domain.candidates == FILES["dialog-babi-candidates.txt"].replace("1 ", "").splitlines()
    assert domain.knowledge[:2] == [
        ("resto_rome_thai", "R_cuisine", "thai"),
        ("resto_rome_thai", "R_location", "rome"),
    ]
    assert domain.knowledge[2] == ("resto_oslo_greek", "R_cuisine", odd_value)
    assert domain.entities == [
        ("basque", "cuisine", "knowledge"),
        ("thai", "cuisine", "knowledge"),
        (odd_value, "cuisine", "knowledge"),
        ("oslo", "location", "knowledge"),
        ("rome", "location", "knowledge"),
        ("resto_oslo_basque", "restaurant", "subjects"),
        ("resto_oslo_greek", "restaurant", "subjects"),
        ("resto_rome_thai", "restaurant", "subjects"),
    ]


def test_prepare_reports_what_it_read(source, tmp_path, capsys):
    _, _, _, metadata = run(source, tmp_path / "out", name="mine")
    assert metadata["name"] == "mine-task1"
    statistics = metadata["statistics"]
    sizes = ["vocabulary", "candidates"]
    assert list(statistics) == [*sizes, "train", "dev", "dev-oov", "test-oov"]
    assert statistics["train"] == {"dialogs": 2, "responses": 5}
    printed = capsys.readouterr().out
    assert "read: 6 dialogs, 10 responses" in printed
    assert "task1: 6 candidates, " in printed
    assert ", dialogs: 2 train, 1 dev, 1 dev-oov, 2 test-oov\n" in printed
    assert "first example: resto_rome_thai R_location rome / hi / hello / thai  =>  " in printed
    # The second call of train has one fact, and the knowledge base two.
    call = "api_call thai rome: 1 facts in the dialog, 2 in the knowledge base"
    assert f"1 calls of train find other facts in the knowledge base, such as {call}" in printed

    every_fact = "4 resto_rome_thai R_location rome\n5 <SILENCE>"
    edit(source / "dialog-babi-task1-x-trn.txt", "4 <SILENCE>", every_fact)
    run(source, tmp_path / "again")
    assert "facts in the dialog" not in capsys.readouterr().out


def test_prepare_makes_a_dataset_a_task(source, tmp_path):
    (source / "dialog-babi-task3-y-trn.txt").write_text("1 hi\thello\n")
    (source / "dialog-babi-task6-y-trn.txt").write_text("1 hi\thello\n")
    (source / "dialog-babi-task6-candidates.txt").write_text("1 hello\n")
    (source / "dialog-babi-task6-kb.txt").write_text("1 prezzo R_price cheap\n")
    run(source, tmp_path / "out")
    candidates = {}
    for file in (tmp_path / "out").rglob("dataset.json"):
        metadata = json.loads(file.read_text())
        candidates[file.parent.name, metadata["name"]] = metadata["statistics"]["candidates"]
    assert candidates == {
        ("task1", "babi-task1"): 6,
        ("task3", "babi-task3"): 6,
        ("task6", "babi-task6"): 1,
    }


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        # no town that training lacks
        ("kb-all", "R_location\toslo", "R_location\trome"),
        # two known towns, no other
        ("task1-x-trn", "rome\tapi", "rome oslo\tapi"),
        # the moved response cannot be given
        ("candidates", "1 resto_oslo_basque\n", ""),
    ],
)
def test_dev_moves_to_a_whole_unseen_domain_only(source, tmp_path, file, old, new):
    edit(source / f"dialog-babi-{file}.txt", old, new)
    _, splits, _, metadata = run(source, tmp_path / "out")
    assert len(splits["dev"]) == 1
    assert splits["dev-oov"] == []
    assert "dev-oov" not in metadata["statistics"]


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("kb-all", "1 prezzo R_price\n", "line 1: expected `number subject R_relation value`"),
        # Responses that are no candidates; also in a later task.
        ("task1-x-tst-OOV", "1 hi\tno\n", "OOV.txt, line 1: .*response of .*'no'$"),
        ("task2-y-trn", "1 hi\thi\n", "task2-y-trn.txt, line 1: .*response of .*'hi'$"),
    ],
)
def test_a_bad_line_of_any_file_leaves_nothing(source, tmp_path, file, content, message):
    (source / f"dialog-babi-{file}.txt").write_text(content)
    before = sorted(tmp_path.rglob("*"))
    assert re.search(message, refusal(prepare, "babi-dialog", source, tmp_path / "out", Settings()))
    assert sorted(tmp_path.rglob("*")) == before


def test_words_that_a_known_vocabulary_lacks_are_noted(source, tmp_path, capsys):
    prepare("babi-dialog", source, tmp_path / "one", Settings())
    candidates = source / "dialog-babi-candidates.txt"
    candidates.write_text(candidates.read_text().replace("1 bye", "1 ciao"))
    settings = Settings(vocabulary_of=str(tmp_path / "one" / "task1"))
    capsys.readouterr()
    prepare("babi-dialog", source, tmp_path / "two", settings)
    assert "reads them as unknown words: ciao\n" in capsys.readouterr().out
