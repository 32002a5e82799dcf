"""The corpora of conversations: a small file of each, every malformed line, and the real ones."""

import gzip
import pathlib

import pytest

from base.files import UserError
from data.corpora import conversations, cornell, dailydialog, subtitles

DATA = pathlib.Path(__file__).resolve().parents[2] / "shared" / "data"


def read(module, directory):
    """What a module reads of a directory, train and dev."""
    files = module.find_splits(directory)
    return {split: module.read(files[split], split) for split in ("train", "dev")}


def write(directory, **files):
    directory.mkdir(exist_ok=True)
    for name, content in files.items():
        name = name.replace("__", ".")
        (directory / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return directory


# === One's own conversations, and LCCC ===


def test_conversations(tmp_path):
    source = write(
        tmp_path, train1__txt="Hi\tHello !\r\na\tb\tc d\n", toy_train__txt="x\ty", valid__txt="p\tq\u2028q\n"
    )
    write(tmp_path, train2__txt__gz=gzip.compress(b"g\th\n"), train1__txt__gz=gzip.compress(b"again\tagain\n"))
    assert read(conversations, source) == {
        "train": [["Hi", "Hello !"], ["a", "b", "c d"], ["g", "h"], ["x", "y"]],
        "dev": [["p", "q\u2028q"]],
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\tb\nalone\n", "line 2: expected utterances separated by tabs. Received: 'alone'"),
        ("a\tb\n\nc\td\n", "line 2: expected utterances separated by tabs. Received: ''"),
        ("a\tb\nc\t \td\n", "line 2: expected no empty utterance. Received: 'c\\t \\td'"),
        ("a\tb\t\n", "line 1: expected no empty utterance"),
        (b"a\tb\nc\xff\td\n", "line 2: expected UTF-8. Received: b'c\\xff\\td'"),
        ("", "expected conversations. Received: an empty file"),
        (
            "1\ta\tb\n0\ta\tc\n",
            "expected utterances. Received: lines that all begin with 0 or 1, as labels do",
        ),
        ("a\t" + "b" * 2**20, f"line 1: expected at most 1,048,576 bytes. Received: b'a\\t{'b' * 58}' ..."),
        ("x" * 99, f"line 1: expected utterances separated by tabs. Received: '{'x' * 60}' ..."),
    ],
)
def test_conversations_rejects(tmp_path, content, message):
    source = write(tmp_path, train__txt=content, dev__txt="a\tb")
    with pytest.raises(UserError) as error:
        read(conversations, source)
    assert str(error.value).startswith(str(source / "train.txt"))
    assert message in str(error.value)


def test_conversations_may_begin_with_numbers(tmp_path):
    source = write(tmp_path, train__txt="\ufeff1\tone ?\n2\ttwo ?\n", dev__txt="0\tzero ?\nno\tyes\n")
    assert read(conversations, source)["train"] == [["1", "one ?"], ["2", "two ?"]]
    assert len(read(conversations, source)["dev"]) == 2


def test_conversations_rejects_missing_and_damaged_files(tmp_path):
    with pytest.raises(UserError, match=r"no: expected the directory of a corpus\. Received: no directory"):
        conversations.find_splits(tmp_path / "no")
    write(tmp_path, train__txt="a\tb")
    with pytest.raises(UserError, match=r"expected a file dev\*\.txt or valid\*\.txt or toy_valid\*\.txt, also with"):
        conversations.find_splits(tmp_path)
    write(tmp_path, dev__txt__gz=b"no gzip")
    with pytest.raises(UserError, match=r"dev\.txt\.gz: expected a readable text file\. Received: Not a gzipped file"):
        read(conversations, tmp_path)
    with pytest.raises(UserError, match=r"gone\.txt: expected a readable text file\. Received: No such file"):
        conversations.read([tmp_path / "gone.txt"], "train")


# === DailyDialog ===


def test_dailydialog(tmp_path):
    write(
        tmp_path / "train",
        dialogues_train__txt="Say , Jim ! __eou__ I \u2019 Ve a pen . __eou__\nA __eou__ b __eou__ c\n",
    )
    write(tmp_path / "validation", dialogues_validation__txt="You' re ? __eou__ Yes . __eou__\n")
    write(tmp_path, dialogues_text__txt="all __eou__ splits __eou__\n", en_train_human__txt="a __eou__ copy __eou__\n")
    assert read(dailydialog, tmp_path) == {
        "train": [["Say , Jim !", "I've a pen ."], ["A", "b", "c"]],
        "dev": [["You're ?", "Yes ."]],
    }


def test_xdailydialog_has_labels_and_no_last_end(tmp_path):
    write(tmp_path, dialogues_text_Zh__txt="a __eou__ b\n", zh_dev_human__txt="c__eou__d__eou__\t1\t2 1\t0 0\n")
    assert read(dailydialog, tmp_path) == {"train": [["a", "b"]], "dev": [["c", "d"]]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("don ' t Don \u2018 t Don\u2019t", "don't Don't Don't"),
        ("I \u2019 m I' m I 'm it \u2019 ll they \u2019 re he \u2019 d", "I'm I'm I'm it'll they're he'd"),
        ("O \u2019 clock , ma ' am", "O'clock , ma'am"),
        ("a ' New College ' to see", "a ' New College ' to see"),
        ("the students \u2019 team", "the students \u2019 team"),
    ],
)
def test_dailydialog_joins_apostrophes(text, expected):
    assert dailydialog.join_apostrophes(text) == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("no end", "line 2: expected utterances separated by __eou__. Received: 'no end'"),
        ("one __eou__", "line 2: expected utterances separated by __eou__. Received: 'one __eou__'"),
        ("", "line 2: expected utterances separated by __eou__. Received: ''"),
        ("a __eou__ __eou__ b __eou__", "line 2: expected no empty utterance"),
        (b"a __eou__ \xff __eou__", "line 2: expected UTF-8"),
    ],
)
def test_dailydialog_rejects(tmp_path, line, message):
    line = line if isinstance(line, bytes) else line.encode()
    write(tmp_path, dialogues_train__txt=b"a __eou__ b __eou__\n" + line + b"\n", en_dev_human__txt="a __eou__ b")
    with pytest.raises(UserError) as error:
        read(dailydialog, tmp_path)
    assert message in str(error.value) and "dialogues_train.txt" in str(error.value)


def test_dailydialog_rejects_missing_files(tmp_path):
    write(tmp_path / "train", dialogues_train__txt="a __eou__ b")
    with pytest.raises(UserError, match=r"expected a file validation/dialogues_validation\.txt or "):
        dailydialog.find_splits(tmp_path)


# === Cornell ===

LINES = (
    "L1 +++$+++ u0 +++$+++ m0 +++$+++ ANN +++$+++ It\ufffds <u>you</u> \ufffd &quot;Bob&quot;?",
    "L2 +++$+++ u1 +++$+++ m0 +++$+++ BOB +++$+++ Yes +++$+++ me.",
    "L3 +++$+++ u0 +++$+++ m0 +++$+++ ANN +++$+++ ",
    "L5 +++$+++ u1 +++$+++ m1 +++$+++ BOB +++$+++ Five.",
    "L6 +++$+++ u1 +++$+++ m1 +++$+++ BOB +++$+++ Six.",
    "L7 +++$+++ u1 +++$+++ m1 +++$+++ BOB +++$+++ Seven.",
)
CONVERSATIONS = (
    "u0 +++$+++ u1 +++$+++ m0 +++$+++ ['L1', 'L2', 'L3']",
    "u0 +++$+++ u1 +++$+++ m1 +++$+++ ['L5', 'L6', 'L4', 'L6', 'L7', 'L5', 'L3', 'L7']",
    "u0 +++$+++ u1 +++$+++ m20 +++$+++ ['L5', 'L6']",
    "u0 +++$+++ u1 +++$+++ m21 +++$+++ ['L5']",
)


def write_cornell(directory, lines=LINES, conversations=CONVERSATIONS, encoding="utf-8"):
    return write(
        directory,
        movie_lines__txt="".join(f"{line}\n" for line in lines).encode(encoding),
        movie_conversations__txt="".join(f"{line}\n" for line in conversations),
    )


def test_cornell_breaks_at_missing_lines_and_holds_films_out(tmp_path):
    found = read(cornell, write_cornell(tmp_path))
    assert found["train"] == [["Five.", "Six."], ["Six.", "Seven.", "Five."]]
    assert found["dev"] == [['It\'s you   "Bob"?', "Yes +++$+++ me."], ["Five.", "Six."]]


def test_cornell_reads_the_official_encoding(tmp_path):
    line = "L1 +++$+++ u0 +++$+++ m0 +++$+++ ANN +++$+++ I don\u2019t, Andr\u00e9"
    source = write_cornell(tmp_path, [line, LINES[1]], CONVERSATIONS[:1], encoding="cp1252")
    assert read(cornell, source)["dev"] == [["I don\u2019t, Andr\u00e9", "Yes +++$+++ me."]]


@pytest.mark.parametrize(
    ("lines", "conversations", "message"),
    [
        ([LINES[0], "L2 u1 m0 BOB Yes"], CONVERSATIONS, "movie_lines.txt, line 2: expected 5 fields separated by"),
        (["L1 +++$+++ u0 +++$+++ m0 +++$+++ A"], CONVERSATIONS, "movie_lines.txt, line 1: expected 5 fields"),
        (LINES, [CONVERSATIONS[0], ""], "movie_conversations.txt, line 2: expected two speakers, a film and lines"),
        (LINES, ["u0 +++$+++ u1 +++$+++ m0 +++$+++ L1, L2"], "movie_conversations.txt, line 1: expected two speakers"),
        (LINES, ["u0 +++$+++ u1 +++$+++ m0 +++$+++ []"], "movie_conversations.txt, line 1: expected two speakers"),
        (LINES, ["u0 +++$+++ u1 +++$+++ x0 +++$+++ ['L1']"], "movie_conversations.txt, line 1: expected two speakers"),
        (LINES, [f"u0 +++$+++ u1 +++$+++ m{'9' * 5000} +++$+++ ['L1']"], "line 1: expected two speakers"),
    ],
)
def test_cornell_rejects(tmp_path, lines, conversations, message):
    source = write_cornell(tmp_path, lines, conversations)
    with pytest.raises(UserError) as error:
        read(cornell, source)
    assert message in str(error.value)


def test_cornell_rejects_missing_files_and_conversations_that_are_no_utf8(tmp_path):
    source = write_cornell(tmp_path)
    write(source, movie_conversations__txt=b"u\xff\n")
    with pytest.raises(UserError, match=r"movie_conversations\.txt, line 1: expected UTF-8"):
        read(cornell, source)
    (source / "movie_lines.txt").unlink()
    with pytest.raises(UserError, match=r"expected a file movie_lines\.txt, also with \.gz"):
        cornell.find_splits(source)


# === Subtitles ===


def test_subtitles(tmp_path):
    wrong = "\u4f60\u597d".encode().decode("iso-8859-2")
    source = write(tmp_path, a__conv=f"E\r\nM {{\\an8}}one  two\r\nM {{\\an8}}{{\\fs16}}\nM {wrong}\nE\nE\nM M\n")
    write(source, b__conv="E\nM Ponce de Le\u00f3n\n")
    assert read(subtitles, source) == {
        "train": [["one  two", "\u4f60\u597d"], ["M"], ["Ponce de Le\u00f3n"]],
        "dev": [],
    }


def test_subtitles_holds_the_last_twentieth_of_each_file_out(tmp_path):
    blocks = [f"E\nM {number}\n" for number in range(43)]
    found = read(subtitles, write(tmp_path, a__conv="".join(blocks), b__conv="".join(blocks[:20])))
    assert found["dev"] == [["41"], ["42"], ["19"]]
    assert len(found["train"]) == 41 + 19


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("M a\nE\n", "line 1: expected E, which opens a block. Received: 'M a'"),
        ("E\nM a\nb c\n", "line 3: expected E or M and an utterance. Received: 'b c'"),
        ("E\nMa\n", "line 2: expected E or M and an utterance. Received: 'Ma'"),
        ("E\n\n", "line 2: expected E or M and an utterance. Received: ''"),
        (b"E\nM \xff\n", "line 2: expected UTF-8"),
        ("", "expected conversations. Received: an empty file"),
    ],
)
def test_subtitles_rejects(tmp_path, content, message):
    with pytest.raises(UserError) as error:
        read(subtitles, write(tmp_path, a__conv=content))
    assert str(error.value).startswith(str(tmp_path / "a.conv")) and message in str(error.value)


def test_subtitles_rejects_missing_files(tmp_path):
    with pytest.raises(UserError, match=r"expected a file \*\.conv, also with \.gz"):
        subtitles.find_splits(tmp_path)


# === The real files ===


@pytest.mark.skipif(not DATA.is_dir(), reason="needs ../shared/data")
@pytest.mark.parametrize(
    ("module", "directory", "conversations", "pairs"),
    [
        (dailydialog, "dailydialog", (11118, 1000), (76053, 7069)),
        (dailydialog, "chinese/xdailydialog", (1000, 995), (6386, 7030)),
        (cornell, "cornell", (60965, 3380), (168083, 8171)),
        (subtitles, "chinese/subtitles", (48774, 2565), (206750, 9306)),
        (conversations, "chinese/lccc-toy", (10000, 2000), (10000, 2000)),
    ],
)
def test_the_real_corpora(module, directory, conversations, pairs):
    found = read(module, DATA / directory).values()
    assert tuple(map(len, found)) == conversations
    assert tuple(sum(len(turns) - 1 for turns in split) for split in found) == pairs
    assert all(turn.strip() and "\n" not in turn for split in found for turns in split for turn in turns)
