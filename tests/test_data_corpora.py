"""Corpora: a contract of all readers, tried with each; then SMN's files, and conversations of
several kinds.
"""

import ast
import gzip
import json
from collections.abc import Callable
from typing import NamedTuple

import pytest
from fuzzing import any_json, mutated, read_if_accepted
from helpers import refusal, turns, written
from hypothesis import given
from hypothesis import strategies as st

from colloquy.data.corpora import (
    babi_dialog,
    chat_files,
    conversations,
    cornell,
    dailydialog,
    dam_release,
    smn,
    squad,
    subtitles,
    tables,
    whatsapp,
)
from colloquy.data.corpora.babi_dialog import Fact
from colloquy.data.corpora.splits import read_splits
from colloquy.data.mojibake import repair
from colloquy.data.report import Report
from colloquy.data.text_files import largest_content
from colloquy.data.vector_files import read_vectors
from colloquy.data.vocabulary import Vocabulary


def of_paths(module):
    return lambda path: module.read([path], "train", Report())


def with_report(read):
    return lambda path: read(path, Report())


class Reader(NamedTuple):
    """A reader, the good lines that it is tried with, what it makes of them, and bad lines."""

    read: Callable
    good: str
    found: list
    bad: dict
    """`{what is expected: bad lines}`"""
    empty: str = "conversations"
    """What is expected of an empty file."""
    utf_8: bool = True


CORNELL = {
    "movie_lines.txt": (
        "L1 +++$+++ u0 +++$+++ m1 +++$+++ ANN +++$+++ "
        "It\ufffds <u>you</u> \ufffd &quot;Bob&quot;?\n"
        "L2 +++$+++ u1 +++$+++ m1 +++$+++ BOB +++$+++ Yes +++$+++ me.\n"
    ),
    "movie_conversations.txt": "u0 +++$+++ u1 +++$+++ m1 +++$+++ ['L1', 'L2']\n",
}


def of_cornell(name):
    """Reads a file in the place of one of `CORNELL`, with the other one beside it."""

    def read(path):
        files = [
            path if each == name else written(path.with_name(each), text)
            for each, text in CORNELL.items()
        ]
        return cornell.read(files, "train", Report())

    return read


CORNELL_FOUND = [['It\'s you   "Bob"?', "Yes +++$+++ me."]]
TALK = "u0 +++$+++ u1 +++$+++ m"
READERS = {
    "smn": Reader(
        lambda path: list(smn.read(path)),
        "1\thello there\thi\ta\u2028b\x85c\x0bd\x0ce\x1cf\rg\n0\t\tno\n",
        [
            smn.Line(1, ["hello there", "hi"], "a\u2028b\x85c\x0bd\x0ce\x1cf\rg"),
            smn.Line(0, [""], "no"),
        ],
        {
            f"{smn.FORMAT}, at least three fields separated by tabs": ["", "1\thello" + 70 * "o"],
            "a label 0 or 1": ["2\thello\tthere", "\ufeff1\thello\tthere"],
            "a response that is not empty": ["1\thello\t \x0b\r"],
        },
        f"lines of {smn.FORMAT}",
    ),
    "conversations": Reader(
        of_paths(conversations),
        "1\tHello !\na\tb\tc\u2028d\n",
        [["1", "Hello !"], ["a", "b", "c\u2028d"]],
        {
            "utterances separated by tabs": ["alone", "", "x" * 99],
            "no empty utterance": ["c\t \td", "a\tb\t"],
        },
    ),
    "messages": Reader(
        with_report(chat_files.read_json_lines),
        '{"messages": [{"role": "system", "content": "Be kind."},'
        ' {"role": "user", "content": "Hi\\tyou"},'
        ' {"role": "user", "content": [{"type": "text", "text": "there?"}]},'
        ' {"role": "assistant", "content": null}, {"role": "assistant", "content": "Yes."}]}\n',
        [["Hi you there?", "Yes."]],
        {
            '{"messages": [{"role": TEXT, "content": TEXT}, ...]}': [
                '{"messages": [{"role": "user"}, 3]}',
                '{"message": []}',
                "Hi\tYes",
            ]
        },
        "JSON lines",
    ),
    "whatsapp, Android": Reader(
        with_report(whatsapp.read_whatsapp),
        "12/05/2021, 13:58 - Messages and calls are end-to-end encrypted.\n"
        "12/05/2021, 14:02 - Ann: Hi!\n\nAre you there: yes?\n"
        "12/05/2021, 14:02 - Ann: <Media omitted>\n"
        "12/05/2021, 14:03 - Bob added Cid\nand more\n"
        "12/05/2021, 14:04 - Ann: Hello\n"
        "12/05/2021, 14:59 - Bob B.: Yes.\n"
        "12/05/2021, 18:04 - Bob B.: Alone\n"
        "13/05/2021, 18:04 - Ann: And\n13/05/2021, 18:05 - Bob B.: you?\n",
        [["Hi! Are you there: yes? Hello", "Yes."], ["And", "you?"]],
        {},
    ),
    "whatsapp, iOS": Reader(
        with_report(whatsapp.read_whatsapp),
        "[12.05.21, 11:58:33 AM] Ann: \u200eMessages and calls are end-to-end encrypted.\n"
        "[12.05.21, 11:58:34 AM] Ann: Hi!\n"
        "\u200e[12.05.21, 12:02:33\u202fPM] Bob: \u200eimage omitted\n"
        "[12.05.21, 12:02:33\u202fPM] Bob: Yes. \u200e<This message was edited>\n",
        [["Hi!", "Yes."]],
        {},
    ),
    "table": Reader(
        with_report(tables.read_table),
        'Text;Chat_ID;x\n"Hi;\nyou";1;\nNo.;2;\nYes.;1;\nAgain.;1;y\n',
        [["Hi; you", "Yes.", "Again."]],
        {"3 fields, as in the header": ["Hi", "a;b;c;d"]},
    ),
    "dailydialog": Reader(
        of_paths(dailydialog),
        "Say , Jim ! __eou__ I \u2019 Ve a pen . __eou__\n"
        "the ' New ' __eou__b __eou__ ma ' am\t1\t2 1\t0 0\n",
        [["Say , Jim !", "I've a pen ."], ["the ' New '", "b", "ma'am"]],
        {
            "utterances separated by __eou__": ["no end", "one __eou__", ""],
            "no empty utterance": ["a __eou__ __eou__ b __eou__"],
        },
    ),
    "subtitles": Reader(
        of_paths(subtitles),
        "E\nM {\\an8}one  two\nM {\\an8}{\\fs16}\n"
        f"M {'你好'.encode().decode('iso-8859-2')}\nE\nE\nM M\n",
        [["one  two", "你好"], ["M"]],
        {"E or M and an utterance": ["b c", "Ma", ""]},
        utf_8=False,
    ),
    "cornell lines": Reader(
        of_cornell("movie_lines.txt"),
        CORNELL["movie_lines.txt"],
        CORNELL_FOUND,
        {"5 fields separated by": ["L2 u1 m0 BOB Yes", "L1 +++$+++ u0 +++$+++ m0 +++$+++ A", ""]},
        utf_8=False,
    ),
    "cornell conversations": Reader(
        of_cornell("movie_conversations.txt"),
        CORNELL["movie_conversations.txt"],
        CORNELL_FOUND,
        {
            "two speakers, a film and lines ['L1', ..] separated by": [
                "",
                f"{TALK}0 +++$+++ L1, L2",
                f"{TALK}0 +++$+++ ['L1', 5]",
                f"{TALK}{'9' * 5000} +++$+++ ['L1']",
            ]
        },
    ),
    "babi dialogs": Reader(
        babi_dialog.read_dialogs,
        "1 hi there\thello\n2 \t you are  welcome \n3 rome R_rating 2\n\n"
        "1 <SILENCE>\tapi_call R_cuisine west R_price\n"
        "2 api_call no result\n1 a\u2028b R_x c\tok\n1 again\tsure\n2 in  rome \tok\n",
        [
            [
                *turns("hi there", "hello", "<SILENCE>", "you are welcome"),
                ("fact", "rome R_rating 2"),
            ],
            [
                *turns("<SILENCE>", "api_call R_cuisine west R_price"),
                ("fact", "api_call no result"),
            ],
            turns("a b R_x c", "ok"),
            turns("again", "sure", "in rome", "ok"),
        ],
        {
            babi_dialog.LINE: [
                "9" * 5000 + " hello\tthere",
                "3 " + 61 * "o",
                "3 hello\tthere\tyou",
                "3 hello\t \x0b\r",
                "3 resto R_price very cheap",
                "3 api_call no results",
            ],
            "number 3 or 1": ["4 hello\tthere"],
            "number 1": ["\n2 hi\thello"],
        },
        "dialogs",
    ),
    "babi candidates": Reader(
        babi_dialog.read_candidates,
        "1 you are welcome\n1  ok , sure\n1 Did you say north?\n2 ok\n",
        ["you are welcome", "ok , sure", "Did you say north?", "ok"],
        {
            "`number text`": ["", "1 \t ", "x hello", "9" * 10 + " hello"],
            "a new candidate; line 2 has this one": ["2  ok ,  sure"],
        },
        "candidates",
    ),
    "babi knowledge": Reader(
        babi_dialog.read_knowledge,
        "1 prezzo R_cuisine\titalian\n2 cote R_phone cote_phone\n",
        [Fact("prezzo", "R_cuisine", "italian"), Fact("cote", "R_phone", "cote_phone")],
        {
            "`number subject R_relation value`": [
                *("1 prezzo R_price very cheap", "1 prezzo price cheap", "1 prezzo R_price\t"),
                *("", "x prezzo R_price cheap"),
            ]
        },
        "facts",
    ),
}


@pytest.fixture(params=READERS)
def reader(request):
    return READERS[request.param]


# === What holds for every reader of lines ===


def test_good_lines_are_read_whatever_their_ends(reader, tmp_path):
    good = reader.good
    for content in (
        good,
        good.removesuffix("\n"),
        good.replace("\n", "\r\n"),
        "\ufeff" + good,
        good + "\n \r\n\t\n",
    ):
        assert reader.read(written(tmp_path / "a.txt", content)) == reader.found
    assert reader.read(written(tmp_path / "a.txt.gz", gzip.compress(good.encode()))) == reader.found


BAD = [(name, *bad) for name, reader in READERS.items() for bad in reader.bad.items()]
BAD = [(name, expected, line) for name, expected, lines in BAD for line in lines]


@pytest.mark.parametrize(("name", "expected", "line"), BAD, ids=lambda text: text[:30])
def test_a_malformed_line_is_named(name, expected, line, tmp_path):
    reader = READERS[name]
    number = reader.good.count("\n") + line.count("\n") + 1
    path = written(tmp_path / "a.txt", reader.good + line + "\n" + reader.good)
    message = refusal(reader.read, path)
    assert message.startswith(f"{path}, line {number}: expected {expected}")
    shown = message.partition(" Received: ")[2]
    text = ast.literal_eval(shown.removesuffix(" ..."))
    assert text in line and len(text) <= 60 and shown.endswith(" ...") == (len(text) == 60)


def test_a_line_is_utf_8_and_not_too_long(reader, tmp_path):
    number = reader.good.count("\n") + 1
    for line, expected in ((b"\xff\xe8", "UTF-8"), (b"x" * (2**20 + 1), "at most 1,048,576 bytes")):
        path = written(tmp_path / "a.txt", reader.good.encode() + line + b"\n")
        if reader.utf_8 or expected != "UTF-8":
            assert refusal(reader.read, path).startswith(
                f"{path}, line {number}: expected {expected}"
            )


def test_missing_empty_and_damaged_files_are_named(reader, tmp_path):
    path, directory, packed = tmp_path / "a.txt", tmp_path / "b", tmp_path / "a.txt.gz"
    directory.mkdir()
    for absent, reason in ((path, "No such file or directory"), (directory, "Is a directory")):
        assert (
            refusal(reader.read, absent)
            == f"{absent}: expected a readable text file. Received: {reason}"
        )
    for file, content in ((path, ""), (path, "\n \n"), (packed, gzip.compress(b""))):
        assert refusal(reader.read, written(file, content)).startswith(
            f"{file}: expected {reader.empty}. Received: "
        )
    whole = gzip.compress(reader.good.encode())
    for content in (b"no gzip", whole[:-9], whole[:20], whole[:30] + bytes(9) + whole[39:]):
        message = refusal(reader.read, written(packed, content))
        assert message.startswith(f"{packed}: expected a readable text file. Received: ")


@pytest.mark.parametrize("module", [conversations, cornell, dailydialog, subtitles, squad])
def test_a_directory_without_the_files_is_refused(module, tmp_path):
    assert "no: expected the directory of " in refusal(module.find_splits, tmp_path / "no")
    assert refusal(module.find_splits, tmp_path).startswith(f"{tmp_path}: expected a file ")


# === Any file ===

VECTORS = "Ann 1 2 3\nrome 4 5 6\nis 1 1 1\n"
OTHERS = [
    (read_vectors, VECTORS),
    (Vocabulary.load, "_EOS_\n_UNK_\na\nb\n"),
    (lambda path: dam_release.load_word2id(path, 4), "_EOS_ 4\na 1\nb 2\nc 3\n"),
]
FUZZED = [*((reader.read, reader.good) for reader in READERS.values()), *OTHERS]


@given(st.sampled_from(FUZZED), st.booleans(), st.data())
def test_any_lines_are_read_or_refused(tmp_path_factory, reader, packed, data):
    read, good = reader
    content = data.draw(mutated(good.encode()))
    path = tmp_path_factory.getbasetemp() / ("any.gz" if packed else "any")
    if packed:
        content = gzip.compress(content, 1)
        content = data.draw(
            st.one_of(st.just(content), mutated(content, [b"\x1f\x8b\x08", b"\0" * 20]))
        )
    written(path, content)
    value = read_if_accepted(lambda: read(path), largest_content(path))
    if value is not None:
        assert shown(read(path)) == shown(value)  # a reader keeps nothing of the first time


def shown(value):
    """What a reader of lines returns, as a text that another value does not have."""
    if isinstance(value, Vocabulary):
        return repr(value.words)
    if isinstance(value, dict):
        return repr({word: vector.tolist() for word, vector in value.items()})
    return repr(value)


PASSAGE = "Ann lives in Rome. Bob lives in Oslo."
QAS = [{"id": "q1", "question": "Where is Ann?", "answers": [{"text": "Rome", "answer_start": 13}]}]
SQUAD = json.dumps({"data": [{"title": "t", "paragraphs": [{"context": PASSAGE, "qas": QAS}]}]})


def check_questions(questions):
    """Each has an id, words, and answers that are parts of its context."""
    for question in questions:
        assert question.text.strip() and question.id.strip()
        for answer in question.answers:
            assert question.context[answer.start : answer.end].strip()
            assert 0 <= answer.start < answer.end <= len(question.context)


@given(st.one_of(mutated(SQUAD.encode()), any_json(SQUAD)))
def test_any_squad_is_read_or_refused(tmp_path_factory, content):
    path = written(tmp_path_factory.getbasetemp() / "any.json", content)
    questions = read_if_accepted(lambda: squad.read(path, "dev", Report()), len(content))
    check_questions(questions or [])


# === SMN ===


def test_find_split_takes_the_first_of_its_names(tmp_path):
    assert smn.find_split(tmp_path, "dev") is None and smn.find_split(tmp_path, "test") is None
    assert refusal(smn.find_split, tmp_path, "train").endswith(
        "expected a file train or train.txt or train.tsv, also with .gz. Received: none"
    )
    for name in ("validation.tsv", "valid.txt.gz", "valid", "dev.tsv"):
        (tmp_path / name).touch()
        assert smn.find_split(tmp_path, "dev") == tmp_path / name
    assert "absent: expected the directory of a corpus" in refusal(
        smn.find_split, tmp_path / "absent", "dev"
    )


# === Conversations ===


def read(module, directory):
    """What a module reads of a directory, train and dev."""
    files = module.find_splits(directory)
    return {split: module.read(files[split], split, Report()) for split in ("train", "dev")}


def write(directory, files):
    for name, content in files.items():
        (directory / name).parent.mkdir(exist_ok=True)
        written(directory / name, content)
    return directory


def test_files_of_a_split_are_read_in_order(tmp_path):
    files = {
        "train1.txt": "Hi\tHello !\n",
        "train2.txt.gz": gzip.compress(b"g\th\n"),
        "train1.txt.gz": gzip.compress(b"again\tagain\n"),
        "toy_train.txt": "x\ty",
        "valid.txt": "p\tq\n",
    }
    train = [["Hi", "Hello !"], ["g", "h"], ["x", "y"]]
    assert read(conversations, write(tmp_path, files)) == {"train": train, "dev": [["p", "q"]]}

    names = ("train/dialogues_train.txt", "en_train_human.txt", "dialogues_text_Zh.txt")
    files = {name: f"{name} __eou__ z\n" for name in (*names, "zh_dev_human.txt")}
    write(tmp_path, files)
    for name in names:
        found = read(dailydialog, tmp_path)
        assert found == {"train": [[name, "z"]], "dev": [["zh_dev_human.txt", "z"]]}
        (tmp_path / name).unlink()


def test_one_file_has_all_conversations(tmp_path):
    lines = [f"Hi {number}\tHello\tYou?\tYes." for number in range(12)]
    path = written(tmp_path / "my talk.txt", "\n".join(lines))
    splits = read_splits(conversations, path)
    assert [len(splits[name].conversations) for name in ("train", "dev", "test")] == [8, 2, 2]
    assert read_splits(conversations, tmp_path) == splits
    path.rename(tmp_path / "train.txt")
    renamed = read_splits(conversations, tmp_path)
    assert renamed["dev"].conversations == splits["dev"].conversations
    written(tmp_path / "test.txt", "a\tb\n")
    message = refusal(conversations.find_splits, tmp_path)
    assert message.startswith(f"{tmp_path}: expected a file dev*.txt or ")


def test_too_few_conversations_of_several_files_are_those_of_their_directory(tmp_path):
    for name in ("a.txt", "b.txt"):
        written(tmp_path / name, "Hi\tYes\n")
    message = refusal(read_splits, conversations, tmp_path)
    assert message.startswith(f"{tmp_path}: expected at least 3 conversations")


TALK_OF_TWO = [["Hi you", "Yes"], ["So", "No"]]
ROWS = ["text,chat,speaker", "Hi,1,Ann", "you,1,Ann", "Yes,1,Bob", "So,2,Ann", "No,2,Bob"]
TIMES = [
    "date,text,from,id",
    "2021-03-01T10:02:00Z,Yes,Bob,5",
    "2021-03-01T10:01:00Z,Hi you,Ann,4",
    "2021-03-01T19:02:00Z,No,Bob,3",
    "2021-03-01T19:01:00Z,So,Ann,2",
]
OPENAI = [{"role": "user", "content": "{0}"}, {"role": "assistant", "content": "{1}"}]
WHATSAPP = "12/05/2021, 14:02 - Ann: {0}\n12/05/2021, 14:03 - Bob: {1}\n"
FORMS = {
    "OpenAI": (
        "a.txt",
        "\n".join(
            json.dumps({"messages": OPENAI}).replace("{0}", a).replace("{1}", b)
            for a, b in TALK_OF_TWO
        ),
    ),
    "a caption": (
        "_chat.txt",
        WHATSAPP.format("IMG-1.jpg (file attached)\nHi you", "Yes")
        + WHATSAPP.format(*TALK_OF_TWO[1]).replace("12/", "13/"),
    ),
    "WhatsApp": (
        "_chat.txt",
        WHATSAPP.format(*TALK_OF_TWO[0]) + WHATSAPP.format(*TALK_OF_TWO[1]).replace("12/", "13/"),
    ),
    "ParlAI": ("train.txt", "text:Hi you\tlabels:Yes\tepisode_done:True\ntext:So\tlabels:No|Yes\n"),
    "a table": ("a.csv", "\n".join(ROWS)),
    "a table of Excel": ("a.csv", "sep=;\n" + "\n".join(ROWS).replace(",", ";")),
    "tabs": ("a.txt", "\n".join(ROWS).replace(",", "\t")),
    "UTF-16": ("a.tsv", "\n".join(ROWS).replace(",", "\t").encode("utf-16")),
    "UTF-16 of JSON": ("a.json", json.dumps(TALK_OF_TWO).encode("utf-16")),
    "bars": ("a.txt", "\n".join(ROWS).replace(",", "|")),
    "times": ("a.csv", "\n".join(TIMES)),
    "dates and times of day": (
        "a.csv",
        "\n".join(TIMES).replace("date,", "date,time,").replace("T", ","),
    ),
    "the newest conversation first": (
        "a.csv",
        "chat,date,from,text\n1,2021-03-02,Ann,Hi you\n1,2021-03-02,Bob,Yes\n"
        "2,2021-03-01,Ann,So\n2,2021-03-01,Bob,No\n",
    ),
    "pairs": ("a.csv", "chat,question,answer\n1,Hi you,Yes\n1,So,No\n"),
}
"""Files as they are downloaded or exported: all are `TALK_OF_TWO`."""


@pytest.mark.parametrize("form", FORMS)
def test_a_form_of_conversations_is_read_as_it_is(form, tmp_path):
    name, content = FORMS[form]
    report = Report()
    found = conversations.read([written(tmp_path / name, content)], "train", report)
    assert found == TALK_OF_TWO
    assert len(report.files) == 1


def test_a_table_says_that_its_times_give_no_order(tmp_path):
    report = Report()
    rows = ["chat,date,text", "1,2021-03-02,Yes", "1,2021-03-02,Hi you"]
    assert tables.read_table(written(tmp_path / "a.csv", "\n".join(rows)), report) == [
        ["Yes", "Hi you"]
    ]
    assert "the same time" in "".join(report.notes)


def lines(form, count=9):
    return "".join(form.format(n) for n in range(count))


HONEST = {
    "French": "\u00ab\u00a0Il est all\u00e9 au caf\u00e9\u00a0\u00bb",
    "Spanish": "\u201cNo s\u00e9 d\u00f3nde est\u00e1\u2026\u201d",
    "Portuguese": "AT\u00c9 AMANH\u00c3\u2026",
    "German": "\u201e\u00c4\u201c",
    "the end of a quotation": "voil\u00e0\u00a0\u00bb",
}


@pytest.mark.parametrize("encoding", ["iso-8859-1", "cp1252"])
def test_an_emoji_does_not_come_about_by_chance(encoding):
    text = "don\u00f6t \U0001f600"
    assert repair(text.encode().decode(encoding)) == text


@pytest.mark.parametrize("language", HONEST)
def test_a_text_that_was_read_as_it_is_stays(language):
    assert repair(HONEST[language]) == HONEST[language]


@pytest.mark.parametrize(
    "content", ["12+5\t17\n3+4\t7\n", lines("what is 3 plus {0}?\t7\n"), lines("Hello!\tyou {0}\n")]
)
def test_conversations_may_consist_of_numbers_and_begin_alike(content, tmp_path):
    path = written(tmp_path / "a.txt", content)
    found = conversations.read([path], "train", Report())
    assert len(found) == content.count("\n")


def test_people_of_a_chat_may_have_names_that_begin_alike(tmp_path):
    talk = ""
    for n in range(1, 5):
        talk += WHATSAPP.format(f"Hi {n}", f"um {n}9.30").replace("Bob", "Ann de Boer")
    report = Report()
    whatsapp.read_whatsapp(written(tmp_path / "a.txt", talk), report)
    assert report.senders == {"Ann", "Ann de Boer"}
    assert not report.left_out


def test_what_people_write_in_angle_brackets_stays(tmp_path):
    talk = ""
    for n in range(1, 5):
        talk += WHATSAPP.format(f"use List<String> {n}", f"see {n} <https://x.org>")
    [turns] = whatsapp.read_whatsapp(written(tmp_path / "a.txt", talk), Report())
    assert "use List<String> 1" in turns[0] and turns[-1].endswith("see 4 <https://x.org>")


def test_a_table_may_begin_with_empty_lines_and_have_an_empty_time(tmp_path):
    rows = ["", "chat,sender,text,date", "1,A,Hi,2021-01-02", "1,B,Yes,"]
    report = Report()
    path = written(tmp_path / "a.csv", "\n".join(rows))
    assert tables.read_table(path, report) == [["Hi", "Yes"]]
    assert "the times, such as '(empty)', cannot be read" in "".join(report.notes)


def test_lines_of_a_context_are_repaired_alike(tmp_path):
    context = "don\u2019t go".encode().decode("cp1252")
    path = written(tmp_path / "train.txt", f"1\t{context}\tyes\n0\t{context}\tthe caf\u00e9\n")
    assert [line.turns for line in smn.read(path)] == [["don\u2019t go"]] * 2


def test_a_table_says_what_it_lacks(tmp_path):
    path = tmp_path / "a.csv"
    report = Report()
    rows = ["chat,text,date,topic", "1,Yes,9/3/21,x", "1,Hi,3/3/21,y"]
    assert tables.read_table(written(path, "\n".join(rows)), report) == [["Yes", "Hi"]]
    assert "columns used: chat, text, date; not used: topic" in report.files[0]
    no_senders, no_times = report.notes
    assert "no column of senders" in no_senders and "'9/3/21', cannot be read" in no_times
    read = with_report(tables.read_table)
    for header, name in (("chat,topic", "text"), ("sender,text", "conversation")):
        message = refusal(read, written(path, f"{header}\n1,Hi\n"))
        assert message.startswith(f"{path}, line 1: expected a column {name}")


@pytest.mark.parametrize(("first_line", "number"), [("", 3), ("sep=,\n", 4)])
@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("bob,a,b", "expected 2 fields, as in the header"),
        ("bob," + "a" * 140_000, "expected a CSV row. field larger than field limit"),
    ],
    ids=["fields", "long field"],
)
def test_a_wrong_row_of_a_table_is_named_by_its_line(first_line, number, row, expected, tmp_path):
    path = written(tmp_path / "a.csv", f"{first_line}sender,text\nann,hi\n{row}\n")
    message = refusal(conversations.read, [path], "train", Report())
    assert message.startswith(f"{path}, line {number}: {expected}")


def test_a_table_counts_what_it_leaves_out(tmp_path):
    rows = ["thread,user,text,text", "1,Ann,Hi,x", "1,,Yes,x", ",Bob,No,x", "1,Ann,,x"]
    report = Report()
    found = tables.read_table(written(tmp_path / "a.csv", "\n".join(rows)), report)
    assert found == [["Hi", "Yes"]]
    assert report.files[0].endswith("columns used: thread, user, text; not used: text")
    assert dict(report.left_out) == {
        "messages without text": 1,
        "messages without a conversation's name": 1,
    }
    assert "1 messages have no sender" in report.notes[0]


def test_json_lines_name_the_fields_that_are_not_used(tmp_path):
    said = [*OPENAI, {"role": "tool", "content": "x"}, {**OPENAI[0], "content": None, "weight": 0}]
    report = Report()
    line = json.dumps({"messages": said, "tools": []})
    assert chat_files.read_json_lines(written(tmp_path / "a.jsonl", line), report) == [
        ["{0}", "{1}"]
    ]
    assert report.files[0].endswith("; not used: tools, weight")
    assert report.reasons() == "1 messages of the role tool, 1 messages without text"
    roles = json.dumps({"messages": [{"role": "human", "content": "Hi"}]})
    read = with_report(chat_files.read_json_lines)
    assert "1 messages of the role human" in refusal(read, written(tmp_path / "b.jsonl", roles))


def test_the_report_names_what_a_reader_cannot_mend(tmp_path):
    turns = ["[deleted]\tHi", "So\t[deleted]", "[deleted]\tA&amp;B", "Caf\ufffd\tYes"]
    written(tmp_path / "train.txt", "\n".join(turns))
    written(tmp_path / "notes.md", "x")
    report = Report()
    read_splits(conversations, tmp_path, report)
    report.note_unread(tmp_path)
    assert [note.partition(":")[0] for note in report.notes] == [
        "most frequent turns",
        "1 turns have marks of HTML, such as &amp; or <br>, which stay",
        "1 turns have U+FFFD",
        "train, dev and test were drawn from all conversations",
        str(tmp_path),
    ]
    assert report.notes[0].endswith(': 3 x "[deleted]"') and report.notes[-1].endswith(": notes.md")


NOTES = """\
01.03.21, 10:18 - Ann hat den Betreff von \u201eTrip\u201c zu \u201eTrip: Rome\u201c
01.03.21, 10:18 - Trip: Ann hat Bob eingeladen
01.03.21, 10:19 - Ann: Hi {n} ok
01.03.21, 10:19 - Bob: <Medien>
01.03.21, 10:19 - Bob: \u2039Foto\u203a
01.03.21, 10:20 - Bob: IMG-20.jpg (Datei)
01.03.21, 10:20 - Bob: Diese Nachricht wurde entfernt
01.03.21, 10:20 - Bob: Mein Plan.pdf (Datei)
01.03.21, 10:20 - Ann hat Gruppe erstellt: Trip
01.03.21, 10:20 - Bob: ok.Gut https://a.b/{n}.html
"""


def test_notes_of_a_chat_program_are_known_by_their_structure(tmp_path):
    days = [NOTES.format(n=n).replace("01.03", f"0{n}.03") for n in range(1, 6)]
    report = Report()
    found = whatsapp.read_whatsapp(written(tmp_path / "a.txt", "".join(days)), report)
    assert found == [[f"Hi {n} ok", f"ok.Gut https://a.b/{n}.html"] for n in range(1, 6)]
    assert report.left_out == {"notes of the chat program": 40}
    assert report.notes == [
        'taken for notes of the chat program, since they repeat: "Diese Nachricht wurde entfernt"',
        'taken for notes of the chat program, not for senders: "Ann hat Gruppe erstellt", "Trip"',
    ]
    assert report.senders == {"Ann", "Bob"}


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("a.txt", "Hello there.\n", "docs/own_conversations.md"),
        ("a.txt", lines("{0}\tHi\tYes\n"), "number"),
        ("a.txt", lines("conv_{0}\tHi\tYes\n"), "begin with a number, id or time, as conv_8"),
        ("a.txt", lines("Hi {0}\tYes {0}\t0\n"), "end with a number"),
        ("a.txt", "Hi\tYes\rSo\tNo\r", "tr '\\r' '\\n'"),
        ("a.txt", lines("Q: why {0}\tA: so\n"), "Q:"),
        ("a.txt", "1\ta\tb\n0\ta\tc\n", "--corpus=smn"),
        ("a.txt", "Hi\tYes\n".encode("utf-16-le"), "iconv"),
        ("a.txt", "Hi\tYes\xe9\n".encode("cp1252"), "iconv"),
        ("a.csv", "text,topic\nHi,1\n", "a column conversation or "),
        ("a.csv", "text,sender,date\nHi,Ann,soon\nYes,Bob,later\n", "or times"),
        ("a.csv", "sep=;\n", "a column text"),
        ("a.csv", 'chat,"text\n1,Hi\n1,Yes\n', 'line 1: expected a `"` that is closed'),
        ("a.csv", "chat,text\n1,Hi\n\0\n1,Yes\n", "line 3: expected 2 fields"),
        ("a.csv", "sep=;\n\nchat;topic\n1;x\n", "line 3: expected a column text"),
        ("a.csv", 'chat,sender,text\n1,A,Hi\n1,B,"So\n1,A,Yes\n', 'line 3: expected a `"` that'),
        ("dialogs", "1 resto R_price cheap\n", "expected dialogs. Received: facts alone"),
        ("a.conv", "M Ponce de Le\u00f3n\nE\n", "line 1: expected E, which opens a block"),
    ],
)
def test_what_is_no_conversation_is_refused_by_its_name(name, content, word, tmp_path):
    readers = {"a.conv": of_paths(subtitles), "dialogs": babi_dialog.read_dialogs}
    read = readers.get(name, of_paths(conversations))
    assert word in refusal(read, written(tmp_path / name, content))


def test_wrongly_decoded_turns_are_repaired_and_named(tmp_path):
    content = "".join(f"don\u00e2\u20ac\u2122t {n}\tcaf\u00e9 {n}\n" for n in range(12))
    report = Report()
    written(tmp_path / "a.txt", "So\tYes\n")
    written(tmp_path / "b.txt", content)
    splits = read_splits(conversations, tmp_path, report)
    assert ["don\u2019t 2", "caf\u00e9 2"] in splits["train"].conversations
    # The note names no file: the turns of both were read before they are repaired.
    note = f"{tmp_path}: UTF-8 read as Windows-1252 was repaired in 12 turns"
    assert report.notes[0] == note
    assert report.counts == {"conversations": 13, "turns": 26}


def test_cornell_breaks_at_missing_lines_and_holds_films_out(tmp_path):
    said = {1: "One", 2: "Two", 3: "", 5: "Five", 6: "Six", 7: "Seven"}
    films = {0: [1, 2, 3], 1: [5, 6, 4, 6, 7, 5, 3, 7], 20: [5, 6], 21: [5]}
    lines = "".join(
        f"L{n} +++$+++ u +++$+++ m +++$+++ A +++$+++ {text}\n" for n, text in said.items()
    )
    talks = "".join(
        f"u +++$+++ v +++$+++ m{m} +++$+++ {[f'L{n}' for n in ids]}\n" for m, ids in films.items()
    )
    files = {"movie_lines.txt": lines, "movie_conversations.txt": talks}
    found = read(cornell, write(tmp_path, files))
    assert found["train"] == [["Five", "Six"], ["Six", "Seven", "Five"]]
    assert found["dev"] == [["One", "Two"], ["Five", "Six"]]

    official = CORNELL["movie_lines.txt"].replace("It\ufffds", "Andr\u00e9").replace(" \ufffd", "")
    write(tmp_path, {**CORNELL, "movie_lines.txt": official.encode("cp1252")})
    assert read(cornell, tmp_path)["train"][0][0] == 'Andr\u00e9 you "Bob"?'


def test_subtitles_hold_the_last_twentieth_of_each_file_out(tmp_path):
    blocks = [f"E\nM {number}\n" for number in range(43)]
    write(tmp_path, {"a.conv": "".join(blocks), "b.conv": "".join(blocks[:20])})
    found = read(subtitles, tmp_path)
    assert found["dev"] == [["41"], ["42"], ["19"]]
    assert len(found["train"]) == 41 + 19
