"""`tasks.reading_comprehension.prepare` and `data`: from SQuAD files to batches."""

import json
import pickle
import shutil

import numpy as np
import pytest
from helpers import refusal

import colloquy
from colloquy.data import pickles
from colloquy.data.batching import XLA_MULTIPLE
from colloquy.data.corpora import squad
from colloquy.data.report import Report
from colloquy.data.samples import SQUAD
from colloquy.tasks.reading_comprehension.data import load_dataset
from colloquy.tasks.reading_comprehension.prepare import Settings, prepare
from colloquy.tasks.reading_comprehension.questions import Multiples, multiples_of


@pytest.fixture(scope="module")
def dataset(prepared_reading):
    return load_dataset(prepared_reading)


def test_prepared_texts_answers_and_spans_agree(dataset):
    train = dataset.splits["train"]
    dev = dataset.splits["dev"]
    assert len(train) == 24
    assert len(dev) == 6
    for split in (train, dev):
        for row in range(len(split)):
            answers = [split.answer(row, first, last) for first, last in split.spans[row]]
            assert answers == split.answers[row]
    assert train.answers[0] == ["Rome"]
    assert train.texts[0] == "Ann lives in Rome. Cyd lives in Paris."
    assert train.offsets.lists()[0][:4] == [0, 3, 4, 9]


def test_a_question_may_be_repeated_as_in_squad(prepared_reading, tmp_path):
    path = shutil.copytree(prepared_reading, tmp_path / "repeated")
    content = pickles.load(path / "reading.pkl")
    train = content["splits"]["train"]
    train.append(train[0])
    (path / "reading.pkl").write_bytes(pickle.dumps(content, 2))
    assert len(load_dataset(path).splits["train"]) == len(train)


def test_questions_in_memory_are_prepared(tmp_path):
    vectors = tmp_path / "glove.txt"
    vectors.write_text("rome 0.5 1\nlives 0.25 0\n", encoding="utf-8")
    question = {
        "id": "one",
        "title": "Ann",
        "context": "Ann lives in Rome.",
        "question": "Where does Ann live?",
        "answers": {"text": ["Rome"], "answer_start": [13]},
    }
    source = {"train": [question], "dev": [question]}
    colloquy.prepare("squad", source, tmp_path / "data", vectors=vectors)
    train = load_dataset(tmp_path / "data").splits["train"]
    assert train.answers == [["Rome"]] and train.texts == ["Ann lives in Rome."]


def test_prepare_without_word_vectors_leaves_nothing(prepared_reading, tmp_path):
    raw = shutil.copytree(prepared_reading.parent / "raw", tmp_path / "raw")
    (raw / "vectors.npz").unlink()
    message = refusal(prepare, "squad", raw, tmp_path / "out", Settings())
    assert "a file of word vectors, *.npz" in message
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


def test_collate_numbers_the_distinct_tokens_of_a_batch(dataset):
    inputs, spans = dataset.splits["train"].collate([0, 1], multiples=Multiples(words=4, tokens=64))
    assert inputs["context"].shape == (2, 12)
    assert inputs["query"].shape == (2, 8)
    assert inputs["words"].shape == (64,)
    assert inputs["characters"].shape == (64, 16)
    assert spans.tolist() == [[[3, 3]], [[8, 8]]]

    # People have no vector, so they are unknown words that only their characters distinguish.
    ids = inputs["words"][inputs["context"][0]]
    words = [dataset.vocabulary.words[id - 1] for id in ids if id]
    assert words == ["_UNK_", "lives", "in", "rome", ".", "_UNK_", "lives", "in", "paris", "."]
    letters = inputs["characters"][inputs["context"][0, 0]]
    assert "".join(dataset.characters.words[id - 1] for id in letters if id) == "Ann"

    assert inputs["words"][0] == 0
    assert not inputs["characters"][0].any()


def test_with_xla_few_shapes_occur(dataset):
    split = dataset.splits["train"]
    inputs, spans = split.collate([0, 1], multiples=multiples_of(XLA_MULTIPLE))
    assert spans.shape == (2, 16, 2)
    assert len(inputs["words"]) == 2048
    for row in (0, 1):
        assert spans[row][spans[row] >= 0].tolist() == np.ravel(split.spans[row]).tolist()


def test_collate_cuts_questions_and_takes_the_window_with_the_answer(dataset):
    train = dataset.splits["train"]
    windows = train.windows_of_answers([0, 1], 5)
    inputs, spans = train.collate([0, 1], windows, 3, Multiples(words=16))
    assert inputs["context"].shape == inputs["query"].shape == (2, 16)
    assert np.count_nonzero(inputs["context"]) == 10
    assert np.count_nonzero(inputs["query"]) == 6
    # The second answer, word 8, is in the window of words 4 to 8.
    assert spans.tolist() == [[[3, 3]], [[4, 4]]]


def test_the_excerpt_of_squad_is_small_whole_and_licensed():
    sizes = [path.stat().st_size for path in SQUAD.iterdir()]
    assert sum(sizes) < 250_000
    assert "CC BY-SA 4.0" in (SQUAD / "LICENCE").read_text("utf-8")
    files = squad.find_splits(SQUAD)
    for split, contexts, num_questions in (("train", 40, 198), ("dev", 10, 40)):
        report = Report()
        questions = squad.read(files[split], split, report)
        assert not report.left_out and not report.notes
        assert len({question.context for question in questions}) == contexts
        assert len(questions) == num_questions
        assert all(question.answers for question in questions)


def test_without_articles_each_context_is_one(tmp_path):
    rows = []
    for number in range(2):
        answers = {"text": ["Ann"], "answer_start": [0]}
        row = {"id": str(number), "context": f"Ann {number}", "question": "Who?"}
        rows.append({**row, "answers": answers})
    for split in ("train", "dev"):
        (tmp_path / f"{split}.json").write_text(json.dumps(rows), "utf-8")
    (tmp_path / "glove.txt").write_text("ann 1 2\n", "utf-8")
    prepare("squad", tmp_path, tmp_path / "out", Settings())
    assert load_dataset(tmp_path / "out").splits["dev"].articles.tolist() == [-1, -2]


def test_the_report_says_what_is_read_and_what_is_left_out(tmp_path, capsys):
    context = "Ann lives in Rome."
    items = []
    for id, question, answer in (
        (262, "Where is Ann?", "Rome"),
        ("b", "Who?", ""),
        ("c", "What?", "Rom"),
    ):
        answers = [{"text": answer, "answer_start": context.index(answer)}]
        items.append({"id": id, "question": question, "answers": answers})
    content = json.dumps({"data": [{"paragraphs": [{"context": context, "qas": items}]}]})
    for split in ("train", "dev"):
        (tmp_path / f"{split}.json").write_text(content, "utf-8")
    (tmp_path / "glove.txt").write_text("Ann 0 1\nlives 1 1\nRome 2 1\nrome 3 1\n", "utf-8")
    prepare("squad", tmp_path, tmp_path / "out", Settings())

    dataset = load_dataset(tmp_path / "out")
    assert dataset.splits["dev"].ids == ["262", "c"]
    # A lower-case vector goes before that of a word with capitals.
    assert dataset.vectors[dataset.vocabulary.encode(["rome"])[0], 0] == 3
    metadata = json.loads((tmp_path / "out" / "dataset.json").read_text("utf-8"))
    assert metadata["statistics"]["dev"] == {
        "file": "dev.json",
        "questions": 2,
        "contexts": 1,
        "context_words_95": 5,
        "inexact_answers": 1,
    }
    printed = capsys.readouterr().out
    assert "left out: 2 questions without an answer" in printed
    example = "ann lives [in] rome [.] / [where] [is] ann [?]  =>  Rome"
    assert f"first example: {example}" in printed
