"""`data.word_vectors`: rows where ids say, exact repetition, scaling, files of vectors."""

import io
import re
import zipfile

import numpy as np
import pytest
from helpers import refusal, written
from test_data_flat_arrays import header

from colloquy.data import word_vectors
from colloquy.data.vector_files import read_vectors
from colloquy.data.vocabulary import Vocabulary
from colloquy.data.word_vectors import (
    append_vectors,
    complete,
    load_text_vectors,
    scale_to_norm,
    train_word2vec,
)

D = 7
TOPICS = (["tea", "milk", "cup", "sugar"], ["kernel", "driver", "boot", "disk"])
VOCABULARY = Vocabulary(("_EOS_", "_UNK_", *TOPICS[0], *TOPICS[1], "absent", "missing"))


def sentences(seed=0, count=400):
    rng = np.random.default_rng(seed)
    return [["_EOS_", "rare", *rng.choice(TOPICS[i % 2], 5).tolist()] for i in range(count)]


def train(texts=None, **settings):
    settings = {"dimension": D, "window": 3, "negative": 5, "sample": 0, "epochs": 9, **settings}
    return train_word2vec(texts or sentences(), VOCABULARY, **settings)


# === Training ===


def test_word2vec_puts_words_of_a_topic_together():
    vectors = train(workers=2)
    assert vectors.shape == (len(VOCABULARY) + 1, D) and vectors.dtype == np.float32
    unit = scale_to_norm(vectors, 1)[VOCABULARY.encode([*TOPICS[0], *TOPICS[1]])]
    cosine = unit @ unit.T
    within = np.concatenate([cosine[:4, :4].ravel(), cosine[4:, 4:].ravel()])
    assert within.min() > cosine[:4, 4:].max() + 0.3


def test_word2vec_repeats_exactly_for_a_seed():
    vectors = train(seed=3)
    np.testing.assert_array_equal(vectors, train(seed=3))
    for change in ({"seed": 5}, {"window": 1}, {"negative": 2}, {"sample": 1e-2}):
        # words that gensim trains
        assert np.abs(vectors - train(**{"seed": 3, **change}))[3:11].max() > 0.01

    # Words out of the vocabulary are not seen.
    known = [[word for word in words if word in VOCABULARY.words[2:]] for words in sentences()]
    np.testing.assert_array_equal(vectors, train(known, seed=3))


def test_word2vec_leaves_no_file(tmp_path):
    train(epochs=1, directory=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_large_text_has_fewer_passes_and_more_threads(monkeypatch):
    epochs = [word_vectors.default_epochs(words) for words in (0, 2_500_000, 5_000_000, 10**9)]
    assert epochs == [20, 20, 10, 1]
    monkeypatch.setattr(word_vectors, "available_cpus", lambda: 3)
    assert word_vectors.default_workers(0) == 1
    assert word_vectors.default_workers(10_000_000) == 1
    assert word_vectors.default_workers(10_000_001) == 3


def test_complete_makes_up_missing_rows():
    rng = np.random.default_rng(2)
    vectors_by_word = {word: rng.normal(size=D) for word in (*TOPICS[0], *TOPICS[1])}
    for word in ("_EOS_", "_UNK_", "rare"):
        vectors_by_word[word] = np.ones(D)
    vectors = complete(vectors_by_word, VOCABULARY, D, seed=3)

    known = np.array([vectors_by_word[word] for word in VOCABULARY.words[2:10]], np.float32)
    mean = known.mean(axis=0)
    np.testing.assert_array_equal(vectors[0], np.zeros(D))
    np.testing.assert_allclose(vectors[1:3], np.tile(mean, (2, 1)), rtol=1e-6)
    np.testing.assert_array_equal(vectors[3:11], known)
    drawn = np.random.default_rng(3).normal(mean, known.std(axis=0), (5, D))
    np.testing.assert_allclose(vectors[11:], drawn[3:], rtol=1e-5)


def test_complete_without_any_vector_is_as_in_the_release():
    words = Vocabulary(("_EOS_", "_UNK_", *(f"w{i}" for i in range(997))))
    for vectors in (complete({}, words, D), train_word2vec([["rare"], []], words, dimension=D)):
        np.testing.assert_array_equal(vectors[:3], np.zeros((3, D)))
        assert abs(vectors[3:].std() - 0.1) < 0.002
        assert abs(vectors[3:].mean()) < 0.003


def test_scale_to_norm():
    vectors = np.array([[0, 0, 0], [2, -3, 6], [0, 0, -0.5]], np.float32)
    scaled = scale_to_norm(vectors, 3.5)
    assert scaled.dtype == np.float32
    np.testing.assert_allclose(scaled, [[0, 0, 0], [1, -1.5, 3], [0, 0, -3.5]], rtol=1e-6)
    assert vectors[1].tolist() == [2, -3, 6]


# === Files ===

LINES = "tea 1 2 3\nof the night 9 9 9\nrare 5 5 5\n_UNK_ 8 8 8\nmilk -4 5e0 0.5\n"


# The first of equal words counts.
TABS = "tea\t1 2 3\nmilk\t-4\t5\t0.5\ntea 7 8 9\n"


@pytest.mark.parametrize("text", [LINES, "5 3\n" + LINES, LINES.replace("\n", " \r\n"), TABS])
def test_load_text_vectors_reads_glove_and_word2vec(tmp_path, text):
    vectors, found = load_text_vectors(written(tmp_path / "vectors.txt", text), VOCABULARY, seed=3)
    assert found == 2 and vectors[3:5].tolist() == [[1, 2, 3], [-4, 5, 0.5]]
    given = {"tea": [1, 2, 3], "milk": [-4, 5, 0.5]}
    np.testing.assert_array_equal(vectors, complete(given, VOCABULARY, 3, seed=3))


@pytest.mark.parametrize(
    "text, message",
    [
        ("tea 1 2\nmilk 1\n", ", line 2: expected a word and 2 values. Received: 1 values"),
        ("tea\n", ", line 1: expected a word and its values. Received: 0 values"),
        ("2 3\ntea 1 2\n", ", line 2: expected a word and 3 values. Received: 2 values"),
        ("400 3\ntea 1 2 3\n", ": expected 400 words, as line 1 says. Received: 1; the file may"),
        ("2 1\ntea \x00\x00\x80?\n", ": expected UTF-8. Received: a binary file, or "),
        ("tea 1 2\nmilk x 1\n", ", line 2: expected a word and numbers. Received: .*'x'"),
        ("tea 1 2\nmilk 1e99 1\n", ", line 2: expected a word and numbers. .* not finite"),
        ("coffee 1 2\n", ": expected vectors of the corpus's words. Received: none"),
    ],
)
def test_load_text_vectors_rejects_bad_files(tmp_path, text, message):
    found = refusal(load_text_vectors, written(tmp_path / "vectors.txt", text), VOCABULARY)
    assert re.search(rf"vectors\.txt{message}", found), found


def test_append_vectors_gives_each_word_a_second_one(tmp_path):
    file = tmp_path / "general.txt"
    file.write_text("milk 1 2\nelsewhere 100 100\ntea 5 2\n_UNK_ 9 9\n")
    own = np.random.default_rng(5).normal(2.0, 3.0, (len(VOCABULARY) + 1, 4)).astype(np.float32)
    both, count = append_vectors(own, file, VOCABULARY)
    assert count == 2
    assert both.dtype == np.float32
    assert both.shape == (len(VOCABULARY) + 1, 6)
    np.testing.assert_array_equal(both[:, :4], own)

    # The file's vectors have a distance of 2 from their mean, (3, 2).
    mean = own[1:].mean(axis=0)
    distances = [np.sqrt(((row - mean) ** 2).sum()) for row in own[1:]]
    scale = np.mean(distances) / 2.0
    general = {"padding": [0, 0], "tea": [5, 2], "milk": [1, 2]}
    for id, word in enumerate(["padding", *VOCABULARY.words]):
        expected = np.multiply(general.get(word, [3, 2]), scale)
        np.testing.assert_allclose(both[id, 4:], expected, rtol=1e-5)

    file.write_text("tea 5 2\n")  # a single vector keeps its length
    both, count = append_vectors(np.ones((len(VOCABULARY) + 1, 4), np.float32), file, VOCABULARY)
    assert count == 1
    assert both[1:, 4:].tolist() == [[5, 2]] * len(VOCABULARY)


# === Archives ===


def save(path, **arrays):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in arrays.items():
            if isinstance(content, np.ndarray):
                file = io.BytesIO()
                np.save(file, content)
                content = file.getvalue()
            archive.writestr(f"{name}.npy", content)
    return path


WORDS, VECTORS = np.array(["a", "\u4f60"]), np.array([[1, 2, 3], [4, 5, 6]], np.float16)


def test_read_vectors_reads_arrays(tmp_path):
    found = read_vectors(save(tmp_path / "a.npz", words=WORDS, vectors=VECTORS))
    assert {word: vector.tolist() for word, vector in found.items()} == {
        "a": [1, 2, 3],
        "\u4f60": [4, 5, 6],
    }
    assert found["a"].dtype == np.float32
    assert list(read_vectors(tmp_path / "a.npz", {"a"})) == ["a"]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"words": WORDS}, "vectors"),
        ({"words": WORDS, "vectors": VECTORS[:1]}, r"<U1 \(2,\), \(1, 3\)"),
        ({"words": np.array([1, 2]), "vectors": VECTORS}, r"int64 \(2,\)"),
        ({"words": np.array(["a", "\ud800"]), "vectors": VECTORS}, "surrogates"),
        ({"words": WORDS, "vectors": np.array([[None]])}, "Object arrays"),
        ({"words": WORDS, "vectors": header((2, 10**15), "<f4")}, "MemoryError: "),
    ],
)
def test_read_vectors_rejects_arrays(tmp_path, arrays, message):
    found = refusal(read_vectors, save(tmp_path / "a.npz", **arrays))
    assert re.search(
        rf"a\.npz: expected the arrays words and vectors, .*Received: .*({message})", found
    )
    assert "\n" not in found


def test_read_vectors_rejects_other_files(tmp_path):
    whole = save(tmp_path / "a.npz", words=WORDS, vectors=VECTORS).read_bytes()
    for content in (b"", whole[:-9], whole[:60] + bytes(30) + whole[90:]):
        found = refusal(read_vectors, written(tmp_path / "b.npz", content))
        assert re.search(r"b\.npz: expected the arrays words and vectors, .*Received: ", found)
    huge = save(tmp_path / "huge.npz", words=WORDS, vectors=VECTORS.astype("f8") * 1e99)
    assert "huge.npz, row 0: expected a word and numbers" in refusal(read_vectors, huge)
    for name in ("c.npz", "c.txt"):
        assert f"{tmp_path / name}: expected " in refusal(read_vectors, tmp_path / name)
    archive = written(tmp_path / "vectors.zip", "PK")
    assert f"unzip {archive}" in refusal(read_vectors, archive)
