"""What `tools.fuzz` reads: a small text of every format with its reader, and a small corpus of every kind."""

import contextlib
import io
import json
import os

import numpy as np

from data.corpora import babi_dialog, conversations, cornell, dailydialog, smn, squad, subtitles
from data.vocabulary import Vocabulary
from data.word_vectors import read_vectors
from tasks.dialog import data as dialog_dataset
from tasks.dialog import prepare as prepare_dialog
from tasks.generation import data as generation_dataset
from tasks.generation import prepare as prepare_generation
from tasks.reading_comprehension import data as reading_dataset
from tasks.reading_comprehension import prepare as prepare_reading
from tasks.selection import data as selection_dataset
from tasks.selection import prepare as prepare_selection

SMN = "1\ta b\tc b\td\n0\ta b\tc b\tb a\n1\tb a\td\n0\tb a\tx y\n"
BABI = {
    "dialog-babi-task1-x-trn.txt": "1 hi\thello\n2 thai\tapi_call thai rome\n3 shop R_cuisine thai\n\n1 rome\thello\n",
    "dialog-babi-task1-x-dev.txt": "1 hi\thello\n2 rome\tapi_call thai rome\n",
    "dialog-babi-candidates.txt": "1 hello\n1 api_call thai rome\n1 api_call basque oslo\n",
    "dialog-babi-kb-all.txt": "1 shop R_cuisine\tthai\n1 shop R_location\trome\n1 bar_x R_cuisine basque\n",
}
PASSAGE = "Ann lives in Rome. Bob lives in Oslo."
QAS = [{"id": "q1", "question": "Where is Ann?", "answers": [{"text": "Rome", "answer_start": 13}]}]
SQUAD = json.dumps({"data": [{"title": "t", "paragraphs": [{"context": PASSAGE, "qas": QAS}]}]})
LINES = "L1 +++$+++ u0 +++$+++ m0 +++$+++ ANN +++$+++ Hi &amp; bye\nL2 +++$+++ u1 +++$+++ m0 +++$+++ BOB +++$+++ Yes.\n"
VECTORS = "Ann 1 2 3\nrome 4 5 6\nis 1 1 1\na 3 2 1\nb 7 8 9\nhi 2 2 2\n"
CORPUS = {
    "smn": {"train.txt": SMN, "dev.txt": SMN, "test.txt": SMN},
    "babi-dialog": BABI,
    "squad": {
        "train-v1.1.json": SQUAD,
        "dev-v1.1.json": SQUAD,
        "train-v1.1.ambiguous_starts.json": json.dumps({"q1": [{"answer": 0, "all": [13]}]}),
        "glove.txt": VECTORS,
    },
    "conversations": {"train.txt": "Hi!\thi there\tbye\na\tb\n", "dev.txt": "hi\tbye\n"},
    "cornell": {
        "movie_lines.txt": LINES,
        "movie_conversations.txt": "u0 +++$+++ u1 +++$+++ m0 +++$+++ ['L1', 'L2']\n"
        "u0 +++$+++ u1 +++$+++ m1 +++$+++ ['L1', 'L2', 'L1']\n",
    },
    "dailydialog": {
        "dialogues_train.txt": "Say , Jim ! __eou__ I \u2019 Ve one . __eou__\n",
        "dialogues_validation.txt": "You ? __eou__ Yes .\n",
    },
    "subtitles": {"a.conv": "E\nM one two\nM {\\an8}three\n" * 20},
}
"""A small corpus of each kind, file by file."""


def _pairs(module):
    return lambda path: module.read([path], "train")


def _cornell(path):
    (path.parent / "all.txt").write_text(LINES)
    first = b"['L" not in path.read_bytes()[:10_000]
    return cornell.read([path, path.parent / "all.txt"] if first else [path.parent / "all.txt", path], "train")


def _arrays(path):
    return read_vectors(path.rename(path.with_suffix(".npz")))


ARRAYS = io.BytesIO()
np.savez_compressed(ARRAYS, words=np.array(["a", "b"]), vectors=np.ones((2, 3), np.float16))
READERS = [
    (SMN, lambda path: sum(1 for _ in smn.read(path))),
    (BABI["dialog-babi-task1-x-trn.txt"], babi_dialog.read_dialogs),
    (BABI["dialog-babi-candidates.txt"], babi_dialog.read_candidates),
    (BABI["dialog-babi-kb-all.txt"], babi_dialog.read_knowledge),
    (CORPUS["conversations"]["train.txt"], _pairs(conversations)),
    (CORPUS["dailydialog"]["dialogues_train.txt"], _pairs(dailydialog)),
    (CORPUS["subtitles"]["a.conv"], _pairs(subtitles)),
    (LINES, _cornell),
    (CORPUS["cornell"]["movie_conversations.txt"], _cornell),
    (SQUAD, squad.read),
    (VECTORS, read_vectors),
    ("_EOS_\n_UNK_\na\nb\n", Vocabulary.load),
    ("_EOS_ 4\na 1\nb 2\nc 3\n", lambda path: Vocabulary.load_word2id(path, 4)),
    (ARRAYS.getvalue(), _arrays),
]
"""A text, or bytes, and the reader of its format."""
TASKS = {
    "smn": (prepare_selection, selection_dataset, {"vectors": VECTORS, "min_count": 1}),
    "babi-dialog": (prepare_dialog, dialog_dataset, {}),
    "squad": (prepare_reading, reading_dataset, {"min_count": 1}),
    "conversations": (prepare_generation, generation_dataset, {"min_count": 1}),
    "dailydialog": (prepare_generation, generation_dataset, {"min_count": 1}),
    "cornell": (prepare_generation, generation_dataset, {"min_count": 1, "turns": 2}),
    "subtitles": (prepare_generation, generation_dataset, {"min_count": 1}),
}
"""Of a corpus: what prepares it, what reads that, and settings."""


def prepared(corpus, directory):
    """Prepares a corpus that lies in `directory/raw`, and gives the prepared directory."""
    module, _, settings = TASKS[corpus]
    if "vectors" in settings:
        (directory / "vectors.txt").write_text(settings["vectors"])
        settings = {**settings, "vectors": str(directory / "vectors.txt")}
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing):
        module.prepare(corpus, directory / "raw", directory / "out", module.Settings(**settings))
    return directory / "out" / "task1" if corpus == "babi-dialog" else directory / "out"


def write_corpus(corpus, directory):
    """Writes the small corpus to `directory/raw`."""
    (directory / "raw").mkdir(parents=True)
    for name, text in CORPUS[corpus].items():
        (directory / "raw" / name).write_text(text, encoding="utf-8")
