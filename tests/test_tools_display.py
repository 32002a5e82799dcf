"""tools/display.py and tasks/*/view.py: examples as models see them."""

import importlib
import re

import pytest
from helpers import run_script
from rich.text import Text

from engine.view import Line, Word, legend, render
from tasks import TASKS
from tasks.generation.view import lines_of


def plain(task, path, split, number, **settings):
    dataset = TASKS[task].open_dataset(path)
    view = importlib.import_module(f"tasks.{task}.view")
    lines = view.lines_of(dataset, split, number, settings)
    return [(line.label, str(render([Line("", line.words)], False)).strip()) for line in lines], dataset


def test_a_context_shows_which_turns_and_words_are_read(prepared):
    lines, dataset = plain("selection", prepared, "dev", 0, max_turns=2, max_words=3)
    split, words = dataset.splits["dev"], dataset.vocabulary.words
    turns = split.context_turns[0]
    assert [label for label, _ in lines] == [f"turn {n + 1}" for n in range(turns)] + [
        f"candidate {n + 1}" for n in range((split.context == 0).sum())
    ]
    for n, (_, text) in enumerate(lines[:turns]):
        start, length = split.turns.starts[n], split.turns.lengths[n]
        expected = []
        for place, id in enumerate(split.turns.ids[start : start + length]):
            word = words[id - 1] if id != dataset.unk_id else f"[{words[id - 1]}]"
            expected.append(word if n >= turns - 2 and place >= length - 3 else f"{{{word}}}")
        assert text == " ".join(expected)
    assert sum(text.startswith(("*", "{*")) or ("{" in text and text.endswith("*")) for _, text in lines[turns:]) == 1


def test_a_pair_keeps_its_unknown_words(prepared_generation):
    dataset = TASKS["generation"].open_dataset(prepared_generation)
    dataset.splits["dev"].source_texts[0] = dataset.splits["dev"].source_texts[0].replace("i ", "I ", 1)
    split = dataset.splits["dev"]
    split.source.ids[split.source.starts[0]] = 2
    first, *_, target = lines_of(dataset, "dev", 0, {})
    assert first.label == "turn 1" and first.words[0].marks == ["unknown"] and first.words[-1] == Word("_EOS_")
    assert target.label == "target" and all(word.answer for word in target.words)
    assert [word.text for word in target.words[:-1]] == split.target_texts[0].split()


def test_a_passage_shows_its_answer(prepared_reading):
    lines, dataset = plain("reading_comprehension", prepared_reading, "dev", 0, max_context=4, max_question=30)
    first = dataset.splits["dev"].texts[dataset.splits["dev"].context[0]].split()[0]
    assert lines[0][1].split()[0].strip("[]") == first
    passage = dict(lines)["passage"].split()
    assert passage[3].startswith("*") and all(word.startswith("{") for word in passage[4:]) and len(passage) == 10
    assert dict(lines)["question"].startswith("Where does [") and dict(lines)["question"].endswith("live ?")


def test_a_dialog_shows_who_speaks(prepared_dialog):
    lines, dataset = plain("dialog", prepared_dialog, "dev", 0)
    dialog = dataset.splits["dev"].dialogs[0]
    assert len(lines) == len(dialog["sentences"])
    assert lines[0][0] == "1 user" and lines[1][0] == "1 bot" and lines[1][1].startswith("*")
    assert {label.split()[1] for label, _ in lines} == {"user", "bot", "fact"}
    assert "{" not in lines[0][1]
    cut, _ = plain("dialog", prepared_dialog, "dev", 0, max_words=2)
    assert all(("{" in text) == (len(text.split()) > 2) for _, text in cut)


def test_marks_are_colors_in_a_terminal():
    text = render([Line("a", [Word("x"), Word("y", known=False, answer=True)])], True)
    assert str(text) == "a   x y" and [str(span.style) for span in text.spans] == [
        "bold cyan",
        "bold yellow bold reverse",
    ]
    assert str(legend(False)).startswith("[word] has no vector of its own, {word} is not read, *word*")
    assert isinstance(legend(True), Text) and "{" not in str(legend(True))


def test_the_tool_shows_examples_of_a_dataset_and_as_a_run_reads_them(prepared, trained_selection):
    done = run_script("tools/display.py", f"--data={prepared}", "--count=2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[word] has no vector") and done.stdout.count("train, example ") == 2
    assert "{" not in done.stdout.partition("\n")[2]
    done = run_script("tools/display.py", f"--data={prepared}", f"--run={trained_selection.path}", "--count=999")
    assert "{" in done.stdout.partition("\n")[2]
    totals = re.findall(r"train, example [\d,]+ of ([\d,]+)", done.stdout)
    assert len(totals) == int(totals[0].replace(",", "")) > 9


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--split=none"], "has no examples in the split none. It has train, dev, test"),
        (["--data=/"], "prepare.py made"),
    ],
)
def test_what_is_not_there_is_said(prepared, flags, message):
    done = run_script("tools/display.py", f"--data={prepared}", *flags)
    assert done.returncode == 1 and message in done.stderr
