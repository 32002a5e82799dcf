"""Corpora: what holds for every reader, once for each; then what is particular to conversations of several kinds."""

import ast
import gzip
import json
from collections.abc import Callable
from typing import NamedTuple

import pytest
from fuzzing import accepts, mutated, with_an_odd_part
from hypothesis import given
from hypothesis import strategies as st

from base.files import UserError
from data.corpora import babi_dialog, conversations, cornell, dailydialog, smn, squad, subtitles
from data.corpora.babi_dialog import Fact, Turn
from data.text_files import largest_content
from data.vocabulary import Vocabulary
from data.word_vectors import read_vectors


def with_beside(module, name, content, first):
    """A reader of two files, the other of which is written beside."""

    def read(path):
        other = path.with_name(name)
        other.write_text(content, encoding="utf-8")
        return module.read([path, other] if first else [other, path], "train")

    return read


def of_paths(module):
    return lambda path: module.read([path], "train")


class Reader(NamedTuple):
    """A reader, the good lines that it is tried with and what it makes of them, bad lines with what is expected."""

    read: Callable
    good: str
    found: list
    bad: dict
    empty: str = "conversations"
    """What is expected of an empty file."""
    utf_8: bool = True


CORNELL = {
    "movie_lines.txt": (
        "L1 +++$+++ u0 +++$+++ m1 +++$+++ ANN +++$+++ It\ufffds <u>you</u> \ufffd &quot;Bob&quot;?\n"
        "L2 +++$+++ u1 +++$+++ m1 +++$+++ BOB +++$+++ Yes +++$+++ me.\n"
    ),
    "movie_conversations.txt": "u0 +++$+++ u1 +++$+++ m1 +++$+++ ['L1', 'L2']\n",
}
CORNELL_FOUND = [['It\'s you   "Bob"?', "Yes +++$+++ me."]]
FILM_LINE = "two speakers, a film and lines ['L1', ..] separated by"
DIALOG = "`number user TAB bot`, `number subject R_relation value` or `number api_call no result`"
FACT = "`number subject R_relation value`"
CANDIDATE = "`number text`"
READERS = {
    "smn": Reader(
        lambda path: list(smn.read(path)),
        "1\thello there\thi\ta\u2028b\x85c\x0bd\x0ce\x1cf\rg\n0\t\tno\n",
        [smn.Line(1, 1, ["hello there", "hi"], "a\u2028b\x85c\x0bd\x0ce\x1cf\rg"), smn.Line(2, 0, [""], "no")],
        {
            "": f"{smn.FORMAT}, which has tabs",
            **dict.fromkeys(("2\thello\tthere", "\ufeff1\thello\tthere"), "a label 0 or 1"),
            "1\thello" + 70 * "o": f"{smn.FORMAT}, at least three fields",
            "1\thello\t \x0b\r": "a response that is not empty",
        },
        f"lines of {smn.FORMAT}",
    ),
    "conversations": Reader(
        of_paths(conversations),
        "1\tHello !\na\tb\tc\u2028d\n",
        [["1", "Hello !"], ["a", "b", "c\u2028d"]],
        {
            **dict.fromkeys(("alone", "", "x" * 99), "utterances separated by tabs"),
            **dict.fromkeys(("c\t \td", "a\tb\t"), "no empty utterance"),
        },
    ),
    "dailydialog": Reader(
        of_paths(dailydialog),
        "Say , Jim ! __eou__ I \u2019 Ve a pen . __eou__\nthe ' New ' __eou__b __eou__ ma ' am\t1\t2 1\t0 0\n",
        [["Say , Jim !", "I've a pen ."], ["the ' New '", "b", "ma'am"]],
        {
            **dict.fromkeys(("no end", "one __eou__", ""), "utterances separated by __eou__"),
            "a __eou__ __eou__ b __eou__": "no empty utterance",
        },
    ),
    "subtitles": Reader(
        of_paths(subtitles),
        f"E\nM {{\\an8}}one  two\nM {{\\an8}}{{\\fs16}}\nM {'你好'.encode().decode('iso-8859-2')}\nE\nE\nM M\n",
        [["one  two", "你好"], ["M"]],
        dict.fromkeys(("b c", "Ma", ""), "E or M and an utterance"),
    ),
    "cornell lines": Reader(
        with_beside(cornell, "movie_conversations.txt", CORNELL["movie_conversations.txt"], first=True),
        CORNELL["movie_lines.txt"],
        CORNELL_FOUND,
        dict.fromkeys(("L2 u1 m0 BOB Yes", "L1 +++$+++ u0 +++$+++ m0 +++$+++ A", ""), "5 fields separated by"),
        utf_8=False,
    ),
    "cornell conversations": Reader(
        with_beside(cornell, "movie_lines.txt", CORNELL["movie_lines.txt"], first=False),
        CORNELL["movie_conversations.txt"],
        CORNELL_FOUND,
        dict.fromkeys(
            (
                "",
                *(f"u0 +++$+++ u1 +++$+++ m0 +++$+++ {lines}" for lines in ("L1, L2", "['L1', 5]")),
                f"u0 +++$+++ u1 +++$+++ m{'9' * 5000} +++$+++ ['L1']",
            ),
            FILM_LINE,
        ),
    ),
    "babi dialogs": Reader(
        babi_dialog.read_dialogs,
        "1 hi there\thello what can i help you with\n2 \t you are  welcome \n3 resto_rome_2stars R_rating 2\n"
        "4 api_call no result\n5 <SILENCE>\tapi_call R_cuisine west R_price\n\n1 a\u2028b R_x c\tok\n"
        "1 again\tsure\n2 in  rome \tok\n",
        [
            [
                Turn(1, "hi there", "hello what can i help you with"),
                Turn(2, "<SILENCE>", "you are welcome"),
                Fact("resto_rome_2stars", "R_rating", "2"),
                Fact("api_call", "no", "result"),
                Turn(5, "<SILENCE>", "api_call R_cuisine west R_price"),
            ],
            [Turn(7, "a b R_x c", "ok")],
            [Turn(8, "again", "sure"), Turn(9, "in rome", "ok")],
        ],
        {
            **dict.fromkeys(("3", "-3 hello\tthere", "9" * 5000 + " hello\tthere", "3 " + 61 * "o"), DIALOG),
            **dict.fromkeys(("3 hello\tthere\tyou", "3 hello\t \x0b\r", "3 resto has thai"), DIALOG),
            **dict.fromkeys(("3 resto R_price very cheap", "3 resto R_price ", "3 api_call no results"), DIALOG),
            "4 hello\tthere": "number 3 or 1",
            "\n2 hi\thello": "number 1",
        },
        "dialogs",
    ),
    "babi candidates": Reader(
        babi_dialog.read_candidates,
        "1 you are welcome\n1  ok , sure\n1 Did you say north?\n2 ok\n",
        ["you are welcome", "ok , sure", "Did you say north?", "ok"],
        {
            **dict.fromkeys(("", "1 \t ", "x hello", "9" * 10 + " hello"), CANDIDATE),
            "2  ok ,  sure": "a new candidate; line 2 has this one",
        },
        "candidates",
    ),
    "babi knowledge": Reader(
        babi_dialog.read_knowledge,
        "1 prezzo R_cuisine\titalian\n1 prezzo R_phone prezzo_phone\n2 cote R_price\tcheap\n",
        [
            Fact("prezzo", "R_cuisine", "italian"),
            Fact("prezzo", "R_phone", "prezzo_phone"),
            Fact("cote", "R_price", "cheap"),
        ],
        dict.fromkeys(("1 prezzo R_price very cheap", "1 prezzo price cheap", "1 prezzo R_price\t", ""), FACT),
        "facts",
    ),
}


@pytest.fixture(params=READERS)
def reader(request):
    return READERS[request.param]


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refusal(read, path):
    with pytest.raises(UserError) as caught:
        read(path)
    return str(caught.value)


# === What holds for every reader of lines ===


def test_good_lines_are_read_whatever_their_ends(reader, tmp_path):
    good = reader.good
    for content in (good, good.removesuffix("\n"), good.replace("\n", "\r\n"), "\ufeff" + good, good + "\n \r\n\t\n"):
        assert reader.read(written(tmp_path / "a.txt", content)) == reader.found
    assert reader.read(written(tmp_path / "a.txt.gz", gzip.compress(good.encode()))) == reader.found


BAD = [(name, line) for name, reader in READERS.items() for line in reader.bad]


@pytest.mark.parametrize(("name", "line"), BAD, ids=[f"{name}-{line[:30]!r}" for name, line in BAD])
def test_a_malformed_line_is_named(name, line, tmp_path):
    reader = READERS[name]
    number = reader.good.count("\n") + line.count("\n") + 1
    path = written(tmp_path / "a.txt", reader.good + line + "\n" + reader.good)
    message = refusal(reader.read, path)
    start, shown = f"{path}, line {number}: expected {reader.bad[line]}", message.partition(" Received: ")[2]
    assert message.startswith(start)
    text = ast.literal_eval(shown.removesuffix(" ..."))
    assert text in line and len(text) <= 60 and shown.endswith(" ...") == (len(text) == 60)


def test_a_line_is_utf_8_and_not_too_long(reader, tmp_path):
    number = reader.good.count("\n") + 1
    for line, expected in ((b"\xff\xe8", "UTF-8"), (b"x" * (2**20 + 1), "at most 1,048,576 bytes")):
        path = written(tmp_path / "a.txt", reader.good.encode() + line + b"\n")
        if reader.utf_8 or expected != "UTF-8":
            assert refusal(reader.read, path).startswith(f"{path}, line {number}: expected {expected}. Received: b'")


def test_missing_empty_and_damaged_files_are_named(reader, tmp_path):
    path = tmp_path / "a.txt"
    assert refusal(reader.read, path) == f"{path}: expected a readable text file. Received: No such file or directory"
    for content in ("", "\n \n"):
        assert refusal(reader.read, written(path, content)).startswith(f"{path}: expected {reader.empty}. Received: ")
    packed, whole = tmp_path / "a.txt.gz", gzip.compress(reader.good.encode())
    assert refusal(reader.read, written(packed, gzip.compress(b""))).startswith(f"{packed}: expected {reader.empty}.")
    for content in (b"no gzip", whole[:-9], whole[:20]):
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
    (lambda path: Vocabulary.load_word2id(path, 4), "_EOS_ 4\na 1\nb 2\nc 3\n"),
]
FUZZED = [*((reader.read, reader.good) for reader in READERS.values()), *OTHERS]


@given(st.sampled_from(FUZZED), st.booleans(), st.data())
def test_any_lines_are_read_or_refused(tmp_path_factory, reader, packed, data):
    read, good = reader
    content = data.draw(mutated(good.encode()))
    path = tmp_path_factory.getbasetemp() / ("any.gz" if packed else "any")
    if packed:
        content = gzip.compress(content, 1)
        content = data.draw(st.one_of(st.just(content), mutated(content, [b"\x1f\x8b\x08", b"\0" * 20])))
    written(path, content)
    accepts(lambda: read(path), largest_content(path))


PASSAGE = "Ann lives in Rome. Bob lives in Oslo."
QAS = [{"id": "q1", "question": "Where is Ann?", "answers": [{"text": "Rome", "answer_start": 13}]}]
SQUAD = {"data": [{"title": "t", "paragraphs": [{"context": PASSAGE, "qas": QAS}]}]}
SURROGATES = st.sampled_from(["\\ud800", "\\u2028"])


@given(
    st.one_of(
        mutated(json.dumps(SQUAD).encode()),
        st.tuples(with_an_odd_part(SQUAD), SURROGATES).map(
            lambda drawn: json.dumps(drawn[0], default=str).replace("\\u2028", drawn[1]).encode()
        ),
    )
)
def test_any_squad_is_read_or_refused(tmp_path_factory, content):
    path = written(tmp_path_factory.getbasetemp() / "any.json", content)
    accepts(lambda: squad.read(path), len(content))


# === Conversations ===


def read(module, directory):
    """What a module reads of a directory, train and dev."""
    files = module.find_splits(directory)
    return {split: module.read(files[split], split) for split in ("train", "dev")}


def write(directory, files):
    for name, content in files.items():
        (directory / name).parent.mkdir(exist_ok=True)
        written(directory / name, content)
    return directory


def test_conversations_are_in_several_files(tmp_path):
    packed = {"train2.txt.gz": gzip.compress(b"g\th\n"), "train1.txt.gz": gzip.compress(b"again\tagain\n")}
    files = {"train1.txt": "Hi\tHello !\n", "toy_train.txt": "x\ty", "valid.txt": "p\tq\n", **packed}
    assert read(conversations, write(tmp_path, files)) == {
        "train": [["Hi", "Hello !"], ["g", "h"], ["x", "y"]],
        "dev": [["p", "q"]],
    }


def test_conversations_are_not_those_of_smn(tmp_path):
    path = written(tmp_path / "train.txt", "1\ta\tb\n0\ta\tc\n")
    assert "Received: lines that all begin with 0 or 1, as labels do" in refusal(of_paths(conversations), path)


@pytest.mark.parametrize(
    ("files", "train"),
    [
        ({"train/dialogues_train.txt": "a", "dialogues_text.txt": "no", "en_train_human.txt": "no"}, ["a"]),
        ({"dialogues_text_Zh.txt": "b"}, ["b"]),
        ({"zh_train_human.txt": "c", "dialogues_text.txt": "no"}, ["c"]),
    ],
)
def test_dailydialog_takes_the_first_of_its_names(tmp_path, files, train):
    files = {**files, "zh_dev_human.txt": "d"}
    found = read(dailydialog, write(tmp_path, {name: f"{text} __eou__ z\n" for name, text in files.items()}))
    assert found == {"train": [[*train, "z"]], "dev": [["d", "z"]]}


def test_cornell_breaks_at_missing_lines_and_holds_films_out(tmp_path):
    said = {1: "One", 2: "Two", 3: "", 5: "Five", 6: "Six", 7: "Seven"}
    films = {0: [1, 2, 3], 1: [5, 6, 4, 6, 7, 5, 3, 7], 20: [5, 6], 21: [5]}
    lines = "".join(f"L{n} +++$+++ u +++$+++ m +++$+++ A +++$+++ {text}\n" for n, text in said.items())
    talks = "".join(f"u +++$+++ v +++$+++ m{m} +++$+++ {[f'L{n}' for n in ids]}\n" for m, ids in films.items())
    found = read(cornell, write(tmp_path, {"movie_lines.txt": lines, "movie_conversations.txt": talks}))
    assert found["train"] == [["Five", "Six"], ["Six", "Seven", "Five"]]
    assert found["dev"] == [["One", "Two"], ["Five", "Six"]]


def test_cornell_reads_the_official_encoding(tmp_path):
    lines = CORNELL["movie_lines.txt"].replace("It\ufffds", "I don\u2019t, Andr\u00e9").replace(" \ufffd", "")
    files = {**CORNELL, "movie_lines.txt": lines.encode("cp1252")}
    assert read(cornell, write(tmp_path, files))["train"][0][0] == 'I don\u2019t, Andr\u00e9 you "Bob"?'


def test_subtitles_hold_the_last_twentieth_of_each_file_out(tmp_path):
    blocks = [f"E\nM {number}\n" for number in range(43)]
    found = read(subtitles, write(tmp_path, {"a.conv": "".join(blocks), "b.conv": "".join(blocks[:20])}))
    assert found["dev"] == [["41"], ["42"], ["19"]]
    assert len(found["train"]) == 41 + 19


def test_subtitles_begin_with_a_block(tmp_path):
    message = refusal(of_paths(subtitles), written(tmp_path / "a.conv", "M Ponce de Le\u00f3n\nE\n"))
    assert message.endswith("a.conv, line 1: expected E, which opens a block. Received: 'M Ponce de Le\u00f3n'")
