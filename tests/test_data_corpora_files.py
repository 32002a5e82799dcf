"""Dialog bAbI and SQuAD, beside what test_data_corpora.py asserts of every reader of lines."""

import gzip
import json

import pytest
from helpers import refusal, turns, written

from colloquy.data.corpora import squad
from colloquy.data.corpora.babi_dialog import (
    SILENCE,
    Fact,
    Turn,
    find_tasks,
    move,
    unseen_entities,
)
from colloquy.data.corpora.squad import Answer
from colloquy.data.offsets import tokenize
from colloquy.data.report import Report

# === Dialog bAbI ===


SHARED = ("dialog-babi-candidates.txt", "dialog-babi-kb-all.txt")
OWN = ("dialog-babi-task6-dstc2-candidates.txt", "dialog-babi-task6-dstc2-kb.txt")


def touch(directory, *names):
    for name in names:
        (directory / name).touch()


def test_find_tasks(tmp_path):
    """Tasks with their own candidates or shared ones, and files of no task."""
    options = [
        f"dialog-babi-task3-options-{ending}.txt" for ending in ("trn", "dev", "tst", "tst-OOV")
    ]
    calls = ["dialog-babi-task1-API-calls-trn.txt", "dialog-babi-task1-API-calls-tst-OOV.txt"]
    own = ("dialog-babi-task1-x-candidates.txt", "dialog-babi-task1-x-kb.txt")
    dstc2 = ["dialog-babi-task6-dstc2-trn.txt", "dialog-babi-task6-dstc2-tst.txt"]
    touch(tmp_path, *SHARED, *OWN, *options, *calls, *own, *dstc2, "dialog-babi-task7-x-trn.txt")
    tasks = find_tasks(str(tmp_path))
    assert [
        (task.name, list(task.splits), [path.name for path in task.splits.values()])
        for task in tasks
    ] == [
        ("task1", ["train", "test-oov"], calls),
        ("task3", ["train", "dev", "test", "test-oov"], options),
        ("task6", ["train", "test"], dstc2),
    ]
    assert [(task.candidates.name, task.knowledge.name) for task in tasks] == [own, SHARED, OWN]

    touch(tmp_path, "train.txt", "dev.txt", "candidates.txt", "knowledge.txt")
    [task] = find_tasks(tmp_path)
    assert (task.name, list(task.splits)) == ("dialogs", ["train", "dev"])

    packed = tmp_path / "packed"
    packed.mkdir()
    touch(packed, "train.txt.gz", "candidates.txt.gz", "knowledge.txt.gz")
    [task] = find_tasks(packed)
    assert task.splits["train"].name == "train.txt.gz"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([], "expected a file dialog-babi-taskN-*-trn.txt or train.txt"),
        (["dialog-babi-task4-x-dev.txt"], "expected a file dialog-babi-task4-*-trn.txt"),
        (
            ["dialog-babi-task5-x-trn.txt", SHARED[0]],
            "expected a file dialog-babi-task5-*kb.txt or dialog-babi-kb-all.txt",
        ),
        (
            ["dialog-babi-task6-x-trn.txt", *SHARED, OWN[1]],
            "expected a file dialog-babi-task6-*candidates.txt",
        ),
    ],
)
def test_a_task_needs_its_files(tmp_path, files, expected):
    touch(tmp_path, *files)
    message = refusal(find_tasks, tmp_path)
    assert message.startswith(f"{tmp_path}: ") and message.endswith(
        f"{expected}, also with .gz. Received: none"
    )


def knowledge(**values):
    return [
        Fact("resto", f"R_{relation}", value)
        for relation, found in values.items()
        for value in found.split()
    ]


TRAIN = [
    [
        Turn("user", "thai food in rome"),
        Turn("bot", "ok"),
        Turn("fact", "resto_paris_thai R_location paris"),
    ]
]


def test_unseen_entities_are_as_many_and_pairs_are_in_sorted_order():
    known = knowledge(
        cuisine="thai greek basque", location="tokyo rome oslo paris berlin", price="cheap dear"
    )
    assert unseen_entities(TRAIN, known) == {"thai": "basque", "paris": "berlin", "rome": "oslo"}
    for cuisine in ("thai", "basque greek"):  # no other one; none that was named
        known = knowledge(cuisine=cuisine, location="tokyo rome oslo paris")
        assert unseen_entities(TRAIN, known) == {}


def test_move_changes_words_and_parts_of_names_at_once_and_takes_the_longest():
    pairs = {"rome": "oslo", "thai": "basque", "oslo": "rome", "thai_x": "dot"}
    dialogs = [
        [
            *turns("thai in rome", "api_call thai rome two"),
            ("fact", "resto_rome_thai_2stars R_phone resto_rome_thai_2stars_phone"),
            *turns("romeo and jerome chrome", "rome, not thailand, oslo thai_x"),
        ],
        turns(SILENCE, "ok"),
    ]
    assert move(dialogs, pairs) == [
        [
            *turns("basque in oslo", "api_call basque oslo two"),
            ("fact", "resto_oslo_basque_2stars R_phone resto_oslo_basque_2stars_phone"),
            *turns("romeo and jerome chrome", "oslo, not thailand, rome dot"),
        ],
        turns(SILENCE, "ok"),
    ]


# === SQuAD ===

CONTEXT = "\uff21lpha met İbrahim 👍🏽 in Cafe\u0301 1,000.5; שלום עולם!"


def item(id="q1", question="Who?", answers=((10, "İbrahim"),)):
    return {
        "id": id,
        "question": question,
        "answers": [{"answer_start": start, "text": text} for start, text in answers],
    }


def paragraph(*items, context=CONTEXT):
    return {"context": context, "qas": list(items)}


def write(path, *paragraphs):
    return written(path, json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]}))


def read(path, split="dev", report=None):
    return squad.read(path, split, report or Report())


def test_read_keeps_order_texts_and_answers(tmp_path):
    file = write(
        tmp_path / "a.json",
        paragraph(
            item(),
            item("q2", "What  number ?", [(CONTEXT.index("1,000"), "1,000.5"), (0, "\uff21lpha")]),
        ),
        paragraph(item("q3", "Is it?", [(0, "So")]), context="So it is."),
    )
    questions = read(file)
    assert [question.id for question in questions] == ["q1", "q2", "q3"]
    assert questions[1].text == "What  number ?"
    found = [
        [question.context[a.start : a.end] for a in question.answers] for question in questions
    ]
    assert found == [["İbrahim"], ["1,000.5", "\uff21lpha"], ["So"]]


@pytest.mark.parametrize(("ending", "pack"), [("", bytes), (".gz", gzip.compress)])
def test_other_starts_give_every_place_of_an_answer(tmp_path, ending, pack):
    context = "x y x z x"
    answers = [(0, "x"), (6, "z")]
    file = write(tmp_path / "a.json", paragraph(item(answers=answers), context=context))
    written(
        tmp_path / f"a.ambiguous_starts.json{ending}",
        pack(json.dumps({"q1": [{"answer": 0, "chosen": 0, "all": [0, 4, 8]}]}).encode()),
    )
    assert read(file)[0].answers == (Answer(0, 1), Answer(6, 7))
    assert read(file, "train")[0].answers == (
        Answer(0, 1),
        Answer(4, 5),
        Answer(8, 9),
        Answer(6, 7),
    )


def test_tokens_are_at_their_offsets_in_any_script():
    tokens = [CONTEXT[start:end] for start, end in tokenize(CONTEXT)]
    # lower-casing İ would make two characters of it
    assert tokens[:3] == ["\uff21lpha", "met", "İbrahim"]
    assert "Cafe\u0301" in tokens  # a combining mark stays with its letter
    assert "1,000.5" in tokens and "שלום" in tokens and tokens[-1] == "!"
    assert "".join(tokens) == "".join(CONTEXT.split())


def of(*items, **more):
    return {"data": [{"paragraphs": [paragraph(*items, **more)]}]}


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"data": []}, "expected questions"),
        ({"data": [{"title": "t"}]}, "data.0.paragraphs"),
        ({"data": [{"paragraphs": [{"qas": []}]}]}, "data.0.paragraphs.0.context"),
        (of(item(), context=" \n"), "the context has no words"),
        (of(None), "valid dictionary"),
        (of(item(question=" ")), "question: "),
        (of(item(answers=[(-3, "x")])), "answers.0.answer_start"),
        (of(item("x" * 999, answers=[(9, "İbrahim")])), "not at its offset"),
        ([{"context": CONTEXT, "question": "Who?"}], "answers"),
    ],
)
def test_a_file_without_a_readable_question_is_refused(tmp_path, value, place):
    file = written(tmp_path / "a.json", json.dumps(value))
    message = refusal(read, file)
    assert message.startswith(str(file))
    assert place in message
    assert len(message) < 400


def test_questions_that_cannot_be_read_are_counted_with_their_ids(tmp_path):
    misplaced = [item(f"m{number}", answers=[(9, "İbrahim")]) for number in range(4)]
    again = item(answers=[(6, "met")])
    repeated = item(question="Else?")
    file = write(tmp_path / "a.json", paragraph(item(), again, repeated, *misplaced))
    report = Report()
    found = read(file, report=report)
    assert [question.answers[0].start for question in found] == [10, 6]
    assert report.left_out == {
        "questions (another question has the same id: q1)": 1,
        "questions (the text of an answer is not at its offset: m0, m1, m2, m3)": 4,
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"is_impossible": True},
        {"answers": []},
        {"answers": [{"text": "", "answer_start": 0}], "is_impossible": False},
        {"answers": [{"text": "CANNOTANSWER", "answer_start": 99}]},
    ],
)
def test_questions_without_an_answer_are_unanswerable(tmp_path, changes):
    file = write(tmp_path / "a.json", paragraph({**item(), **changes}))
    report = Report()
    assert read(file, report=report)[0].answers == ()
    assert not report.left_out


def test_offsets_in_utf16_units_are_recognized_by_the_answers(tmp_path):
    context = "👍🏽 Ann met Bob. 🍞 Bob met Ann."
    start = context.index("Bob")
    by_units = [item(answers=[(start + 2, "Bob")]), item("q2", answers=[(0, "👍🏽")])]
    report = Report()
    file = write(tmp_path / "units.json", paragraph(*by_units, context=context))
    assert read(file, report=report)[0].answers == (Answer(start, start + 3),)
    assert "UTF-16" in report.notes[0]

    # As many answers where characters say decide for characters.
    mixed = [*by_units, item("q3", answers=[(start, "Bob")])]
    report = Report()
    read(write(tmp_path / "mixed.json", paragraph(*mixed, context=context)), report=report)
    assert not report.notes
    assert "offset: q1" in report.reasons()


def test_one_question_of_the_flat_form_does_not_refuse_the_file(tmp_path):
    rows = [
        {"id": str(start), "context": "Ann met Bob.", "question": "Who?", "answers": answers}
        for start, answers in (
            (8, {"text": ["Bob"], "answer_start": [8]}),
            (-1, {"text": ["Bob"], "answer_start": [-1]}),
            (0, {"text": [None], "answer_start": [0]}),
        )
    ]
    report = Report()
    found = read(written(tmp_path / "a.json", json.dumps(rows)), report=report)
    assert [question.id for question in found] == ["8"]
    assert list(report.left_out.values()) == [1, 1]
    assert ": -1)" in report.reasons() and ": 0)" in report.reasons()


def test_hugging_faces_flat_form_is_read(tmp_path):
    answers = {"text": ["Bob"], "answer_start": [8]}
    row = {"context": "Ann met Bob.", "question": "Who?", "answers": answers}
    rows = [{**row, "id": "1", "title": "a"}, {**row, "id": "2", "title": "b"}]
    lines = "".join(json.dumps(each) + "\n" for each in rows)
    rows[1]["title"] = ["b"]
    expected = [("1", 1), ("2", 2)]
    for name, text in (
        ("list.json", json.dumps(rows)),
        ("data.json", json.dumps({"data": rows})),
        ("lines.json", lines),
        ("lines.jsonl", lines),
    ):
        found = read(written(tmp_path / name, text))
        assert [(question.id, question.article) for question in found] == expected
        assert found[0].answers == (Answer(8, 11),)
