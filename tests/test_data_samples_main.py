"""`python -m data.samples`; what all simulators promise: a seed's bytes, all files or none, clear refusals."""

import re

import pytest
from helpers import run_process, run_script

from data.corpora.conversations import find_splits, read
from data.samples import wording
from data.samples.__main__ import SAMPLES, write_conversations
from data.samples.talk import simulate
from data.samples.world import SEARCH, restaurants, tokenize

SIZES = {
    "selection": {"count": 130, "held_out": 17},
    "dialog": {"count": 53, "held_out": 7},
    "generation": {"count": 53, "held_out": 7},
    "reading_comprehension": {"count": 13, "held_out": 3},
}


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.mark.parametrize("task", SAMPLES)
def test_command_writes_the_same_in_another_process(task, tmp_path):
    sizes = SIZES[task]
    flags = [f"--{name}={value}" for name, value in {"task": task, "out": tmp_path / "a", "seed": 3, **sizes}.items()]
    done = run_process("-m", "data.samples", *flags, PYTHONHASHSEED="1")
    counts = SAMPLES[task](tmp_path / "b", seed=3, **sizes)
    assert (done.returncode, done.stderr) == (0, "")
    listed = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    assert done.stdout == f"Wrote {tmp_path / 'a'}: {listed}\n"
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert counts.keys() == contents(tmp_path / "b").keys()
    SAMPLES[task](tmp_path / "c", seed=4, **sizes)
    others = contents(tmp_path / "c")
    assert all(others[name] != text for name, text in contents(tmp_path / "b").items())


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--task=selection", "--count=5"], r"More conversations .* find 9 negative .*"),
        (["--task=dialog", "--count=5"], r"held_out must be in .* count=5"),
        (["--task=dialog"], r"--out is missing .*"),
        (["--task=dialogs"], r".*--task=dialogs.* <selection\|dialog\|generation\|reading_comprehension>"),
        (["--task=dialog", "--count=30", "--held_out=3", "--out={}/file"], r".*(File exists|cannot be made).*"),
    ],
)
def test_command_reports_errors_in_one_line(arguments, message, tmp_path):
    (tmp_path / "file").touch()
    out = [] if len(arguments) == 1 or "--out" in arguments[-1] else [f"--out={tmp_path / 'new'}"]
    done = run_script("data/samples/__main__.py", *(argument.format(tmp_path) for argument in arguments), *out)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(rf"error: {message}\n", done.stderr)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "task, count, held_out",
    [
        ("dialog", 7, 0),
        ("dialog", 6, 3),
        ("dialog", 0, 100),
        ("generation", 9, 9),
        ("generation", 9, 0),
        ("reading_comprehension", 7, 7),
        ("reading_comprehension", 7, 0),
        ("selection", 60, 0),
    ],
)
def test_held_out_is_checked_before_anything_is_replaced(task, count, held_out, tmp_path):
    (tmp_path / "train.txt").write_text("old")
    with pytest.raises(ValueError, match=rf"held_out must be .* Received: held_out={held_out}(, count={count})?$"):
        SAMPLES[task](tmp_path, count, 3, held_out)
    assert contents(tmp_path) == {"train.txt": b"old"}


@pytest.mark.parametrize("task", ["selection", "dialog", "generation"])
def test_a_failure_leaves_nothing_half_written(task, tmp_path, monkeypatch):
    real_open, opened = open, []

    def full_disk(path, *args, **kwargs):
        if str(tmp_path) in str(path):
            opened.append(path)
        if len(opened) == 2:
            raise OSError("No space left on device")
        return real_open(path, *args, **kwargs)

    monkeypatch.setattr("builtins.open", full_disk)
    with pytest.raises(OSError, match="No space left"):
        SAMPLES[task](tmp_path, seed=3, **SIZES[task])
    assert list(tmp_path.iterdir()) == []


def test_conversations_are_written_as_they_are(tmp_path):
    assert write_conversations(tmp_path, 23, seed=3, held_out=2) == {"train.txt": 21, "dev.txt": 2}
    files = find_splits(tmp_path)
    found = [turns for split in ("train", "dev") for turns in read(files[split], split)]
    assert found == [[turn.text for turn in turns] for turns in simulate(23, 3)]


# === Wording ===


def test_sections_keys_and_options_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(wording, "TEXTS", tmp_path)
    text = "# Of no account: a / b\n\n[first]\na key: One: 1 / Two, /\n    three. / -\n\n# Nor this.\n[second]\nb: 5\n"
    (tmp_path / "some.txt").write_text(text)
    assert wording.read("some") == {"first": {"a key": ("One: 1", "Two,", "three.", "")}, "second": {"b": ("5",)}}


@pytest.mark.parametrize("name", [path.stem for path in wording.TEXTS.glob("*.txt")])
def test_options_are_distinct_sentences_of_known_fields(name):
    known = {"name", "other", "other_dish", "place", "phone", "address", "chef", "rating", "since", "dish"}
    known |= {"value", "old", "craving", "hint", "wanted", "when", "", *wording.SLOTS["asks"], "cuisine"}
    for section, table in wording.read(name).items():
        for key, options in table.items():
            assert len(set(options)) == len(options), (section, key)
            for option in options:
                assert option == option.strip() and "/" not in option and "\n" not in option
                assert set(re.findall(r"{(.*?)}", option)) <= known, option


def test_topics_have_scenes():
    assert set(wording.TOPICS) == {"weather", "hobby", "travel", "treat", "occasion", "pets"}
    assert wording.TOPICS["hobby"].kin == ("travel", "pets", "treat")
    assert wording.TOPICS["weather"].scenes["rain"].replies[2] == "Rubber boots would help."
    assert all(len(topic.scenes) >= 3 for topic in wording.TOPICS.values())


def test_tokenize():
    text, tokens = "Half past six, at 1 O'Neil's?  Ring 555-0107!", "half past six , at 1 o'neil's ? ring 555-0107 !"
    assert tokenize(text) == tokens


# === The world ===


def test_restaurants_come_in_pairs():
    world = restaurants(seed=2, count=100)
    assert len({place.name for place in world}) == len({place.phone for place in world}) == 100
    for first, second in zip(world[::2], world[1::2], strict=True):
        assert [getattr(first, s) for s in SEARCH] == [getattr(second, s) for s in SEARCH]
        assert first.misses(vars(second)) == 0 and first.dish != second.dish
        assert first.misses({**vars(second), "town": "elsewhere", "price": "none"}) == 2
    assert restaurants(seed=3, count=100) != world
