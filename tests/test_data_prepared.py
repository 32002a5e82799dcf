"""Prepared datasets: a bad file is refused and named; what prepare.py makes of any corpus can be
read again.
"""

import contextlib
import functools
import importlib
import io
import json
import pickle
import re
import shutil

import numpy as np
import pytest
from fuzzing import accepts, any_json, mutated, read_if_accepted, with_an_odd_part
from helpers import ROOT, contents_of, ran, refusal, run_process, run_script, unpickled, written
from hypothesis import given, settings
from hypothesis import strategies as st
from test_data_corpora import CORNELL, PASSAGE, QAS, SQUAD, VECTORS

from colloquy.base.files import UserError
from colloquy.data import pickles
from colloquy.data.corpora import CORPORA
from colloquy.tasks import TASKS
from colloquy.tasks.dialog.domain import Domain

SMN = "1\ta b\tc b\td\n0\ta b\tc b\tb a\n1\tb a\td\n0\tb a\tx y\n"
TALK = CORNELL["movie_conversations.txt"]
MESSAGE = {"text": "hi", "timestamp": "2018-05-02T19:38:15Z"}
TURNS = [{**MESSAGE, "sender": sender} for sender in "abab"]
RELEASE = {"y": [1, 0], "c": [[3, 1], [3, 1]], "r": [[3], [2]]}
FILES = {
    "chitchat": {"dataset.json": json.dumps({f"{n}": {"messages": [TURNS]} for n in range(8)})},
    "dam-release": {
        "data.pkl": pickle.dumps((RELEASE,) * 3, protocol=2),
        "word_embedding.pkl": pickle.dumps([[0.5, 0.5]] * 4, protocol=2),
    },
    "smn": {"train.txt": SMN, "dev.txt": SMN, "test.txt": SMN},
    "babi-dialog": {
        "dialog-babi-task1-x-trn.txt": (
            "1 hi\thello\n2 thai\tapi_call thai rome\n3 shop R_cuisine thai\n\n1 rome\thello\n"
        ),
        "dialog-babi-task1-x-dev.txt": "1 hi\thello\n2 rome\tapi_call thai rome\n",
        "dialog-babi-candidates.txt": "1 hello\n1 api_call thai rome\n1 api_call basque oslo\n",
        "dialog-babi-kb-all.txt": (
            "1 shop R_cuisine\tthai\n1 shop R_location\trome\n1 bar_x R_cuisine basque\n"
        ),
    },
    "squad": {
        **dict.fromkeys(("train-v1.1.json", "dev-v1.1.json"), SQUAD),
        "train-v1.1.ambiguous_starts.json": json.dumps({"q1": [{"answer": 0, "all": [13]}]}),
        "glove.txt": VECTORS,
    },
    "conversations": {"train.txt": "Hi!\thi there\tbye\na\tb\n", "dev.txt": "hi\tbye\n"},
    "cornell": {**CORNELL, "movie_conversations.txt": TALK + TALK.replace("m1", "m0")},
    "dailydialog": {
        "dialogues_train.txt": "Say , Jim ! __eou__ I \u2019 Ve one . __eou__\n",
        "dialogues_validation.txt": "You ? __eou__ Yes .\n",
    },
    "subtitles": {"a.conv": "E\nM one two\nM {\\an8}three\n" * 20},
}
"""A small corpus of each kind."""


def prepare(corpus, directory, task=None, files=None, **changed):
    """Writes a corpus, of which some files are changed, prepares it, and gives the prepared
    directory.
    """
    task = task or CORPORA[corpus].task
    write_raw(directory, {**(files or FILES[corpus]), **changed})
    module = importlib.import_module(f"colloquy.tasks.{task}.prepare")
    more = {} if corpus == "babi-dialog" else {"min_count": 1}
    if corpus == "dam-release":
        more = {"eos_id": 1}
    if corpus == "smn":
        more["vectors"] = str(written(directory / "vectors.txt", VECTORS.replace("is", "a")))
    module.prepare(corpus, directory / "raw", directory / "out", module.Settings(**more))
    return directory / "out" / "task1" if corpus == "babi-dialog" else directory / "out"


def write_raw(directory, files):
    for name, content in files.items():
        path = directory / "raw" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        written(path, content)


def load(corpus, directory, task=None):
    return TASKS[task or CORPORA[corpus].task].load_dataset(directory)


def pickled(value):
    file = io.BytesIO()
    pickle.dump(value, file, protocol=2)
    return file.getvalue()


def any_file(name, content):
    """What may be in the place of a file: other bytes, or a value with an odd part."""
    kinds = [mutated(content)]
    if name.endswith(".json"):
        kinds.append(any_json(content))
    if name.endswith(".pkl"):
        kinds += [with_an_odd_part(unpickled(content)).map(pickled)] * 2
    return st.one_of(kinds)


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """A prepared dataset of each task."""
    corpora = ("smn", "babi-dialog", "squad", "conversations")
    return {corpus: prepare(corpus, tmp_path_factory.mktemp(corpus)) for corpus in corpora}


TALKS = [[f"how is {word} ?", f"{word} is fine .", "good ."] for word in ("tea", "rain", "snow")]
LCCC = json.dumps(TALKS)
LINES = "\n".join(json.dumps(talk) for talk in TALKS)
DIALOG_LINES = "\n".join(json.dumps({"dialog": talk, "act": [1, 2, 1]}) for talk in TALKS)
END_OF_TURN = "\n".join(" __eou__ ".join(talk) for talk in TALKS)
LABELLED = END_OF_TURN.replace("\n", "\t1\t2 1\t0 0\n")
SLASHES = "E\nM \u4f60/\u597d/\nM \u662f/\u7684/\n" * 20
TURNS_OF_TALKS = "read: 6 conversations, 18 turns"
MISPLACED = {**QAS[0], "id": "q2", "answers": [{"text": "Rome", "answer_start": 3}]}
SQUAD_FILE = {"data": [{"paragraphs": [{"context": PASSAGE, "qas": [*QAS, MISPLACED]}]}]}
LAYOUTS = [
    ("Ubuntu V1, Douban", "smn", {"valid.txt": SMN}, "valid.txt: lines of a label"),
    ("Ubuntu V1, Douban", "dam-release", FILES["dam-release"], "ids of DAM's release"),
    ("E-commerce", "smn", {}, "first example: a b / c b  =>  d"),
    ("#ubuntu", "smn", {"dev.txt": SMN}, "dev.txt: lines of a label"),
    ("dialog bAbI", "babi-dialog", FILES["babi-dialog"], "task1: 3 candidates"),
    (
        "SQuAD 1.1",
        "squad",
        {**FILES["squad"], "dev-v1.1.json": json.dumps(SQUAD_FILE)},
        "left out: 1 questions (the text of an answer is not at its offset: q2)",
    ),
    (
        "DailyDialog",
        "dailydialog",
        {
            "train/dialogues_train.txt": END_OF_TURN,
            "validation/dialogues_validation.txt": END_OF_TURN,
        },
        "dialogues_train.txt: utterances separated by __eou__",
    ),
    (
        "DailyDialog",
        "dailydialog",
        {"train.jsonl": DIALOG_LINES, "validation.jsonl": DIALOG_LINES},
        TURNS_OF_TALKS,
    ),
    ("Cornell Movie-Dialogs", "cornell", FILES["cornell"], "read: 2 conversations, 4 turns"),
    ("Chinese film subtitles", "subtitles", FILES["subtitles"], "a.conv: blocks of utterances"),
    (
        "Chinese film subtitles",
        "subtitles",
        {"xiaohuangji50w_fenciA.conv": SLASHES},
        "first example: \u4f60 \u597d => \u662f \u7684",
    ),
    (
        "Chinese film subtitles",
        "subtitles",
        {"xiaohuangji50w_nofenci.conv": SLASHES.replace("/", "").encode("gbk")},
        "nofenci.conv: blocks of utterances, in GBK",
    ),
    (
        "LCCC",
        "conversations",
        {"LCCC-base_train.json": LCCC, "LCCC-base_valid.json": LCCC},
        "LCCC-base_train.json: a JSON list of conversations",
    ),
    (
        "LCCC",
        "conversations",
        {"lccc_base_train.jsonl": LINES, "lccc_base_valid.jsonl": LINES},
        TURNS_OF_TALKS,
    ),
    (
        "XDailyDialog",
        "dailydialog",
        {"Zh_train_human.txt": LABELLED, "Zh_dev_human.txt": LABELLED},
        TURNS_OF_TALKS,
    ),
    ("chitchat", "chitchat", FILES["chitchat"], "read: 8 conversations, 32 turns"),
]
"""Rows of the table of public corpora in docs/data.md, in the layout that one downloads, and a part
of what `prepare.py` prints."""
LAYOUTS_OF_TASKS = [(*layout, task) for layout in LAYOUTS for task in CORPORA[layout[1]].tasks]


@pytest.mark.parametrize(("name", "corpus", "files", "shown", "task"), LAYOUTS_OF_TASKS)
def test_a_public_corpus_is_prepared_as_it_is_downloaded(
    name, corpus, files, shown, task, tmp_path, capsys
):
    if corpus == "smn":
        files = {"train.txt": SMN, "dev.txt": SMN, "test.txt": SMN, **files}
        if "valid.txt" in files:
            del files["dev.txt"]
    splits = load(corpus, prepare(corpus, tmp_path, task, files), task).splits
    assert splits["train"] and splits["dev"]
    printed = " ".join(capsys.readouterr().out.split())
    assert " ".join(shown.split()) in printed


def test_every_row_of_public_corpora_has_a_layout():
    page = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    table = page.partition("## Public corpora")[2].partition("\n\n    python")[0]
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")]
    rows.remove("corpus")
    assert len(rows) >= 10
    for row in rows:
        assert any(row.startswith(layout[0]) for layout in LAYOUTS), row


MOJIBAKE = "don\u00e2\u20ac\u2122t"
SAID = {
    "a repaired file of candidates": (
        "smn",
        {"train.txt": SMN.replace("x y", MOJIBAKE)},
        "train.txt: UTF-8 read as Windows-1252 was repaired",
    ),
    "candidates with one label": (
        "smn",
        {"train.txt": SMN.replace("0\t", "1\t")},
        "2 of 2 contexts have no line with label 0",
    ),
    "an unread file": ("smn", {"valid.txt": SMN}, "raw: not read: valid.txt"),
    "vectors of other texts": ("squad", {}, "of the words of train have no word vector"),
    "vectors that are not UTF-8": (
        "squad",
        {"glove.txt": VECTORS.encode() + b"caf\xe9 " + VECTORS.split(" ", 1)[1].encode()},
        "1 words have U+FFFD, or bytes that are not UTF-8",
    ),
    "a mistaken passage": (
        "squad",
        {
            "train-v1.1.json": SQUAD.replace(PASSAGE, f"{PASSAGE} {MOJIBAKE}"),
            "train-v1.1.ambiguous_starts.json": "{}",
        },
        "1 texts have UTF-8 read as Windows-1252",
    ),
    "a mistaken dialog": (
        "babi-dialog",
        {"dialog-babi-task1-x-dev.txt": f"1 {MOJIBAKE}\thello\n"},
        "1 texts have UTF-8 read as Windows-1252",
    ),
    "facts alone": (
        "babi-dialog",
        {"dialog-babi-task1-x-dev.txt": "1 hi\thello\n\n1 shop R_cuisine thai\n"},
        "left out: 1 dialogs of facts alone",
    ),
}


@pytest.mark.parametrize("odd", SAID)
def test_what_a_user_may_not_expect_is_said(odd, tmp_path, capsys):
    corpus, files, shown = SAID[odd]
    prepare(corpus, tmp_path, **files)
    assert shown in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("corpus", ["chitchat", "smn"])
def test_a_raw_corpus_is_to_be_prepared_first(corpus, tmp_path):
    prepare(corpus, tmp_path)
    message = refusal(load, corpus, tmp_path / "raw")
    assert f"python prepare.py --corpus=FORMAT --task=selection --source={tmp_path}/raw" in message
    assert "chitchat, smn, dam-release" in message


@given(st.data())
def test_a_dataset_with_any_file_is_read_or_refused(samples, tmp_path_factory, data):
    corpus = data.draw(st.sampled_from(sorted(samples)))
    out = tmp_path_factory.getbasetemp() / "any-dataset"
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(samples[corpus], out)
    path = data.draw(st.sampled_from(sorted(file for file in out.rglob("*") if file.is_file())))
    path.write_bytes(data.draw(any_file(path.name, path.read_bytes())))
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    dataset = read_if_accepted(lambda: load(corpus, out), size)
    assert dataset is None or dataset.splits.keys() >= {"train", "dev"}


@settings(max_examples=max(40, settings().max_examples // 10))
@given(st.data())
def test_what_is_prepared_of_any_corpus_is_read_again(tmp_path_factory, data):
    corpus = data.draw(st.sampled_from(sorted(FILES)))
    directory = tmp_path_factory.getbasetemp() / "any-corpus"
    shutil.rmtree(directory, ignore_errors=True)
    name = data.draw(st.sampled_from(sorted(FILES[corpus])))
    content = FILES[corpus][name]
    if isinstance(content, str):
        content = content.encode()
    content = data.draw(any_file(name, content))

    def read():
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            out = prepare(corpus, directory, **{name: content})
        try:
            return load(corpus, out)
        except UserError as error:
            raise AssertionError(f"what prepare.py wrote cannot be read: {error}") from error

    accepts(read, len(content) + 10_000)


REPEATED = {
    "smn": {"min_count": 1, "dimension": 5, "word2vec_epochs": 2},
    "babi-dialog": {},
    "squad": {"min_count": 1},
    "conversations": {"min_count": 1},
}
"""A corpus of each task, and flags of prepare.py."""


@pytest.mark.slow
@pytest.mark.parametrize("corpus", REPEATED)
def test_the_script_repeats_byte_for_byte(corpus, tmp_path):
    """Also in a process where texts have other hashes, and so sets another order."""
    files = dict(FILES[corpus])
    if corpus == "babi-dialog":
        # A name of many types, and an unknown one in its place of calls.
        for relation in ("type", "of", "any", "name"):
            files["dialog-babi-kb-all.txt"] += f"1 shop R_{relation}\trome\n"
        files["dialog-babi-candidates.txt"] += "1 api_call thai moon\n"
    write_raw(tmp_path, files)
    all_contents = []
    for runner in (run_script, functools.partial(run_process, PYTHONHASHSEED="1")):
        out = tmp_path / f"out{len(all_contents)}"
        flags = {"corpus": corpus, "source": tmp_path / "raw", "out": out, **REPEATED[corpus]}
        done = ran("prepare.py", *(f"--{name}={value}" for name, value in flags.items()), by=runner)
        assert done.stderr == ""
        all_contents.append(contents_of(out))
    assert all_contents[0] == all_contents[1]


# === Bad files ===


def put(name, *keys, **value):
    """Puts `value` somewhere into a JSON or pickle file; without one it takes away what is
    there.
    """

    def damage(path):
        binary = name.endswith(".pkl")
        content = pickles.load(path / name) if binary else json.loads((path / name).read_text())
        place = content
        for key in keys[:-1]:
            place = place[key]
        if value:
            place[keys[-1]] = value["value"]
        else:
            del place[keys[-1]]
        written(path / name, pickle.dumps(content, 2) if binary else json.dumps(content))

    return damage


def whole(name, content):
    """Writes a file; what is not a text or bytes is pickled."""
    return lambda path: written(
        path / name, content if isinstance(content, str | bytes) else pickle.dumps(content, 2)
    )


def without(name):
    return lambda path: (path / name).unlink()


def array(name, change):
    """Changes an array of the split train."""

    def damage(path):
        file = path / "arrays" / f"train.{name}.npy"
        np.save(file, change(np.load(file)))

    return damage


def last(value):
    """Another value at the end of an array."""
    return lambda array: np.append(array[:-1], value).astype(array.dtype)


# === Response selection ===


BAD_VECTORS = [
    [[0.0, float("nan")]],
    [1.0, 2.0],
    np.zeros((3, 2), complex),
    [[0.5] * 3000] * 3000,
]
FACTS = [
    ("text", {"tokenizer": "x"}, "json: text"),
    ("eos_id", 2, r"vocabulary\.txt: expected _EOS_ to be word 2"),
    ("eos_id", None, r"_EOS_ from 1 to \d+\. Received: "),
    ("hashed_words", 2**24 + 1, "json: hashed_words"),
]
SELECTION = [
    *(
        (whole("word_embedding.pkl", value), "word_embedding.pkl: expected")
        for value in BAD_VECTORS
    ),
    *((put("dataset.json", name, value=value), message) for name, value, message in FACTS),
    (whole("dataset.json", "{"), "dataset.json: expected"),
    (whole("word_embedding.pkl", np.zeros((9, 7), "float32")), r"dimension\)\. Received: \(9, 7\)"),
    (without("arrays/dev.label.npy"), r"dev\.label\.npy: .*No such file"),
    (array("turn_ids", last(2**16 - 1)), r"train\W.* 0 to \d+\. Received: \d+ to 65535"),
    (array("turn_ids", lambda ids: ids.astype("float32")), "array of whole numbers"),
    (array("label", last(2)), r" 0 to 1\. Received: 0 to 2"),
    (array("label", lambda labels: labels[1:]), "label must be equally long"),
    (array("turn_lengths", last(1000)), "turn_lengths: expected a sum"),
    (array("response_lengths", last(-1)), "Received: "),
    (array("context_turns", last(1000)), "context_turns: expected a sum"),
    (array("context_lines", lambda lines: np.append(lines, 0)), "must be equally long"),
    (whole("arrays/train.label.npy", b"no array"), "train.label.npy: expected an array of whole"),
]

# === Dialog ===

of_dialog = functools.partial(put, "dialogs.pkl", "splits", "dev", 2)
FIRST = slice(1)
DIALOG = [
    *((without(name), f"{name}: .*No such file") for name in (*Domain.FILES, "dialogs.pkl")),
    (without("dataset.json"), "Prepare it first: python prepare.py"),
    (whole("candidates.txt", b"ok\n" * 2**10 + b"rome " * 2**17), "similar numbers"),
    (whole("entities.txt", b"_" * 100 + b"\tcuisine\tknowledge\n"), "at most 100 parts"),
    (whole("knowledge.txt", "\u2028\tR_x\t\x85\nask\tR_x\ty\tz\n"), "line 2: .*three fields"),
    (whole("dialogs.pkl", {"splits": {}}), "KeyError: 'sentences'"),
    (of_dialog("answers", FIRST, value=[531]), "answers must be 11 numbers from 0 to 530$"),
    (of_dialog("speakers", FIRST, value=[4]), r"speakers must be \d+ numbers from 0 to 3"),
]

# === Generation ===

of_pairs = functools.partial(put, "pairs.pkl", "dev")
GENERATION = [
    (put("dataset.json", "settings", "tokenizer", value="no"), "dataset.json: tokenizer: "),
    (without("vocabulary.txt"), "vocabulary.txt: expected a vocabulary"),
    (whole("vocabulary.txt", "_EOS_\n_UNK_\na\n"), "ids must be from 1 to 3"),
    (of_pairs("target", -1), "of one length"),
    (of_pairs("target", 1, value=[]), "must end with 1"),
    (of_pairs("source_text", value=[1] * 21), "a list of texts"),
    (of_pairs("seen", value=[0.9] * 21), "seen must be True or False"),
]

# === Reading comprehension ===

of_context = functools.partial(put, "reading.pkl", "contexts", 0)
of_question = functools.partial(put, "reading.pkl", "splits", "dev", 0)


def with_equal_ids(path):
    content = pickles.load(path / "reading.pkl")
    first, second, *_ = content["splits"]["dev"]
    second["id"] = first["id"]
    written(path / "reading.pkl", pickle.dumps(content, 2))


READING = [
    (put("dataset.json", "trained_words", value=99), "expected trained_words to be a whole"),
    (whole("vocabulary.txt", "_EOS_\n_UNK_\n"), r"shape \(3, dimension\)"),
    (put("reading.pkl", "tokens", value="a"), "a list of texts"),
    (of_context("tokens", value=[999] * 10), "tokens must be from 1 to"),
    (of_context("offsets", value=[0] * 19 + [99]), "must not fall, and end within"),
    (of_question("context", value=99), "contexts must be from 0 to"),
    (of_question("spans", value=[[0, 99]]), "spans must be whole numbers within"),
    (of_question("answers", value=[]), "must have an answer"),
    (with_equal_ids, "different questions have the id"),
]

# === All ===

DAMAGED = {
    "selection": SELECTION,
    "dialog": DIALOG,
    "generation": GENERATION,
    "reading_comprehension": READING,
}
CASES = []
for damaged_task, damaged_cases in DAMAGED.items():
    other = f"expected a dataset for models of {damaged_task}, .* Received: one for 'reading'"
    CASES += [(damaged_task, *case) for case in damaged_cases]
    CASES.append((damaged_task, put("dataset.json", "task", value="reading"), other))
    CASES.append((damaged_task, shutil.rmtree, "is not a directory"))


@pytest.mark.parametrize(("task", "damage", "message"), CASES)
def test_a_dataset_with_a_bad_file_is_refused(data, tmp_path, task, damage, message):
    path = shutil.copytree(data[task], tmp_path / "bad")
    damage(path)
    found = refusal(TASKS[task].load_dataset, path)
    assert found.startswith(str(path)) and re.search(message, found), found
