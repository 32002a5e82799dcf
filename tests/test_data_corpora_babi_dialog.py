"""`data.corpora.babi_dialog`: the format, line by malformed line, and its own files where they are at hand."""

import pytest

from base.files import UserError
from data.corpora.babi_dialog import (
    SILENCE,
    Fact,
    Turn,
    find_tasks,
    read_candidates,
    read_dialogs,
    read_knowledge,
)

GOOD = (
    "1 hi there\thello what can i help you with\n"
    "2 \t you are  welcome \n"
    "3 resto_rome_2stars R_rating 2\n"
    "4 api_call no result\n"
    "5 <SILENCE>\tapi_call R_cuisine west R_price\n"
    "\n"
    "1 a\u2028b R_x c\tok\n"
    "1 again\tsure\n"
    "2 in  rome \tok"
)
"""A user who says nothing, a leading space, facts, one dialog that ends in a blank line and one that does not, and no
newline at the end."""
DIALOGS = [
    [
        Turn(1, "hi there", "hello what can i help you with"),
        Turn(2, SILENCE, "you are welcome"),
        Fact("resto_rome_2stars", "R_rating", "2"),
        Fact("api_call", "no", "result"),
        Turn(5, SILENCE, "api_call R_cuisine west R_price"),
    ],
    [Turn(7, "a b R_x c", "ok")],
    [Turn(8, "again", "sure"), Turn(9, "in rome", "ok")],
]


@pytest.fixture
def file(tmp_path):
    def write(content, name="file.txt"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


# === Dialogs ===


@pytest.mark.parametrize(
    "content",
    [
        GOOD,
        GOOD + "\n",
        "\ufeff" + GOOD,
        GOOD + "\n\n",
        GOOD.replace("\n", "\r\n") + "\r\n\r\n",
        "\n" + GOOD.replace("\n\n", "\n\n \n\n"),
        GOOD.replace("\n\n", "\n"),  # numbers that restart are enough
    ],
    ids=["as is", "newline", "byte order mark", "blank line", "CRLF", "more blank lines", "no blank line"],
)
def test_read_dialogs(file, content):
    removed = content.count("\n", 0, content.index("1 hi")), content.count("\n", 0, content.index("1 a\u2028b")) - 6
    shifts = (removed[0], removed[1], removed[1])  # what other blank lines make of the lines' numbers
    expected = [
        [entry._replace(number=entry.number + shift) if isinstance(entry, Turn) else entry for entry in dialog]
        for dialog, shift in zip(DIALOGS, shifts, strict=True)
    ]
    assert read_dialogs(file(content)) == expected


def test_a_fact_is_a_text():
    assert Fact("resto", "R_rating", "2").text == "resto R_rating 2"


@pytest.mark.parametrize("blank", ["", "1 hi\thello\n\n"])
def test_read_dialogs_wants_number_1_first(file, blank):
    path = file(blank + "2 hi\thello\n")
    with pytest.raises(UserError) as caught:
        read_dialogs(path)
    line = 3 if blank else 1
    assert str(caught.value) == rf"{path}, line {line}: expected number 1. Received: '2 hi\thello'"


def test_read_dialogs_rejects_missing_and_empty_files(file, tmp_path):
    for content in ("", "\n", "\n \n", "1 resto R_price cheap\n"):
        with pytest.raises(UserError, match=r"trn\.txt: expected dialogs\. Received: no turn$"):
            read_dialogs(file(content, "trn.txt"))
    with pytest.raises(UserError, match=r"absent: expected a readable text file\. Received: No such file"):
        read_dialogs(tmp_path / "absent")


# === Candidates and knowledge bases ===


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("end", ["", "\n"])
def test_read_candidates_in_the_order_of_the_file(file, newline, end):
    lines = ["1 you are welcome", "1  ok , sure", "1 Did you say north?", "2 ok"]
    expected = ["you are welcome", "ok , sure", "Did you say north?", "ok"]
    assert read_candidates(file(newline.join(lines) + end.replace("\n", newline))) == expected


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("end", ["", "\n"])
def test_read_knowledge_in_both_formats(file, newline, end):
    lines = ["1 prezzo R_cuisine\titalian", "1 prezzo R_phone prezzo_phone", "2 cote R_price\tcheap"]
    expected = [
        Fact("prezzo", "R_cuisine", "italian"),
        Fact("prezzo", "R_phone", "prezzo_phone"),
        Fact("cote", "R_price", "cheap"),
    ]
    assert read_knowledge(file(newline.join(lines) + end.replace("\n", newline))) == expected


LINE = "`number user TAB bot`, `number subject R_relation value` or `number api_call no result`"
FACT = "`number subject R_relation value`"
TEXT = "`number text`"
BAD = [  # who reads, what, and what is expected and received: where nothing else is said, the line itself
    (read_dialogs, "hello\tthere", LINE),
    (read_dialogs, "2", LINE),
    (read_dialogs, "2\thello\tthere", LINE),
    (read_dialogs, "-2 hello\tthere", LINE),
    (read_dialogs, "\u0662 hello\tthere", LINE),
    (read_dialogs, "\ufeff2 hello\tthere", LINE),
    (read_dialogs, "3 hello\tthere", "number 2 or 1"),
    (read_dialogs, "0 hello\tthere", "number 2 or 1"),
    (read_dialogs, "2 hello\tthere\tyou", LINE, "'hello\\tthere\\tyou'"),
    (read_dialogs, "2 hello\t", LINE, "'hello\\t'"),
    (read_dialogs, "2 hello\t \x0b\r", LINE, "'hello\\t \\x0b'"),
    (read_dialogs, "2 hello there", LINE, "'hello there'"),
    (read_dialogs, "2 resto has thai", LINE, "'resto has thai'"),
    (read_dialogs, "2 resto R_price", LINE, "'resto R_price'"),
    (read_dialogs, "2 resto R_price very cheap", LINE, "'resto R_price very cheap'"),
    (read_dialogs, "2 resto  R_price cheap", LINE, "'resto  R_price cheap'"),
    (read_dialogs, "2 resto R_price ", LINE, "'resto R_price '"),
    (read_dialogs, "2 api_call no results", LINE, "'api_call no results'"),
    (read_dialogs, "9" * 5000 + " hello\tthere", LINE, f"'{60 * '9'}' ..."),
    (read_dialogs, "2 " + 61 * "o", LINE, f"'{60 * 'o'}' ..."),
    (read_dialogs, b"2 hello\tth\xe8re", "UTF-8"),
    (read_candidates, "hello", TEXT),
    (read_candidates, "", TEXT),
    (read_candidates, "1", TEXT),
    (read_candidates, "1 \t ", TEXT),
    (read_candidates, "x hello", TEXT),
    (read_candidates, "\ufeff1 hello", TEXT),
    (read_candidates, "9" * 10 + " hello", TEXT),
    (read_candidates, "2  hi ,  hello", "a candidate that line 1 does not have already"),
    (read_candidates, b"1 th\xe8re", "UTF-8"),
    (read_knowledge, "1 prezzo R_price", FACT),
    (read_knowledge, "1 prezzo R_price very cheap", FACT),
    (read_knowledge, "1 prezzo price cheap", FACT),
    (read_knowledge, "1 prezzo R_price  cheap", FACT),
    (read_knowledge, "1 prezzo R_price\t", FACT),
    (read_knowledge, "1 prezzo R_price \tcheap", FACT),
    (read_knowledge, "prezzo R_price cheap", FACT),
    (read_knowledge, "", FACT),
    (read_knowledge, b"1 prezzo R_price ch\xe8ap", "UTF-8"),
]
GOOD_LINES = {
    read_dialogs: (b"1 hi\thello\n", b"\n3 x\ty\n"),
    read_candidates: (b"1 hi , hello\n", b"\n1 bye\n"),
    read_knowledge: (b"1 prezzo R_area north\n", b"\n"),
}
"""What stands before and after a bad line."""


@pytest.mark.parametrize("case", BAD, ids=lambda case: f"{case[0].__name__}-{str(case[1])[:30]}")
def test_a_bad_line_is_named(file, case):
    read, line, expected, *received = case
    before, after = GOOD_LINES[read]
    path = file(before + (line.encode() if isinstance(line, str) else line) + after, "x.txt")
    with pytest.raises(UserError) as caught:
        read(path)
    shown = received[0] if received else repr(line)
    assert str(caught.value) == f"{path}, line 2: expected {expected}. Received: {shown}"


@pytest.mark.parametrize(("read", "what"), [(read_candidates, "candidates"), (read_knowledge, "facts")])
def test_empty_files_are_refused(file, read, what):
    path = file("")
    with pytest.raises(UserError) as caught:
        read(path)
    assert str(caught.value) == f"{path}: expected {what}. Received: an empty file"


# === Files of a corpus ===

SHARED = ("dialog-babi-candidates.txt", "dialog-babi-kb-all.txt")
OWN = ("dialog-babi-task6-dstc2-candidates.txt", "dialog-babi-task6-dstc2-kb.txt")


def touch(directory, *names):
    for name in names:
        (directory / name).touch()


def test_find_tasks(tmp_path):
    endings = ("trn", "dev", "tst", "tst-OOV")
    touch(tmp_path, *SHARED, *OWN, "README.txt", "dialog-babi-task7-more-trn.txt")
    touch(tmp_path, *(f"dialog-babi-task3-options-{ending}.txt" for ending in endings))
    touch(tmp_path, "dialog-babi-task1-API-calls-trn.txt", "dialog-babi-task1-API-calls-tst-oov.txt")
    touch(tmp_path, "dialog-babi-task6-dstc2-trn.txt", "dialog-babi-task6-dstc2-tst.txt")
    tasks = find_tasks(str(tmp_path))
    found = [(task.number, {split: path.name for split, path in task.splits.items()}) for task in tasks]
    options = [f"dialog-babi-task3-options-{ending}.txt" for ending in endings]
    assert found == [
        (
            1,
            {"train": "dialog-babi-task1-API-calls-trn.txt", "test-oov": "dialog-babi-task1-API-calls-tst-oov.txt"},
        ),
        (3, dict(zip(("train", "dev", "test", "test-oov"), options, strict=True))),
        (6, {"train": "dialog-babi-task6-dstc2-trn.txt", "test": "dialog-babi-task6-dstc2-tst.txt"}),
    ]
    assert [(task.candidates, task.knowledge) for task in tasks] == [
        tuple(tmp_path / name for name in names) for names in (SHARED, SHARED, OWN)
    ]


def test_find_tasks_prefers_what_is_a_tasks_own(tmp_path):
    own = ("dialog-babi-task2-x-candidates.txt", "dialog-babi-task2-x-kb.txt")
    touch(tmp_path, *SHARED, *own, *(f"dialog-babi-task{number}-x-trn.txt" for number in (1, 2)))
    shared, task = find_tasks(tmp_path)
    assert (shared.candidates.name, shared.knowledge.name) == SHARED
    assert (task.candidates.name, task.knowledge.name) == own


@pytest.mark.parametrize(
    ("number", "missing", "expected"),
    [
        (1, SHARED[0], "its candidates, dialog-babi-task1-*candidates.txt or dialog-babi-candidates.txt"),
        (5, SHARED[1], "its knowledge base, dialog-babi-task5-*kb.txt or dialog-babi-kb-all.txt"),
        (6, OWN[0], "its candidates, dialog-babi-task6-*candidates.txt"),
        (6, OWN[1], "its knowledge base, dialog-babi-task6-*kb.txt"),
    ],
)
def test_a_task_needs_its_files(tmp_path, number, missing, expected):
    touch(tmp_path, f"dialog-babi-task{number}-x-trn.txt", *{*SHARED, *OWN} - {missing})
    with pytest.raises(UserError) as caught:
        find_tasks(tmp_path)
    assert str(caught.value) == f"{tmp_path}: task {number} needs {expected}"


def test_find_tasks_rejects_other_directories(tmp_path):
    with pytest.raises(UserError, match=r"absent: expected the directory of dialog bAbI\. Received: no directory"):
        find_tasks(tmp_path / "absent")
    touch(tmp_path, *SHARED, "dialog-babi-task7-x-trn.txt")
    with pytest.raises(UserError, match=r"expected files dialog-babi-taskN-\*-trn\.txt\. Received: none"):
        find_tasks(tmp_path)
    touch(tmp_path, "dialog-babi-task4-x-dev.txt", "dialog-babi-task4-x-tst.txt")
    with pytest.raises(UserError, match=r"expected a training file dialog-babi-task4-\*-trn\.txt"):
        find_tasks(tmp_path)
