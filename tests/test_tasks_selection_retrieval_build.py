"""`tasks.selection.retrieval.build` and `encoder`: turns, names, BM25, vectors against loops;
tools.build_index.
"""

import itertools

import bm25s
import numpy as np
import pytest
from helpers import refusal, run_script

from colloquy.base.files import checksums_of
from colloquy.data.sequences import Sequences
from colloquy.data.vocabulary import Vocabulary
from colloquy.tasks.selection.retrieval.build import (
    TurnStore,
    fit_turns,
    index_of_run,
    of_corpus,
    save_bm25,
    unfit_of,
)
from colloquy.tasks.selection.retrieval.encoder import PairEncoder
from colloquy.tasks.selection.retrieval.index import RetrievalIndex

# === Turns ===


@pytest.fixture
def talks():
    return TurnStore([["a", "b", "c"], ["a", "b"], [], ["d", "a", "b ", "a"], ["e", "d", "a", "b"]])


def test_texts_are_numbered_as_they_occur_and_cut_into_words(talks):
    assert talks.numbers.tolist() == [0, 1, 2, 0, 1, 3, 0, 1, 0, 4, 3, 0, 1]
    assert talks.places.tolist() == [0, 1, 2, 0, 1, 0, 1, 2, 3, 0, 1, 2, 3]
    assert talks.texts == list("abcde")
    assert talks.before(np.array([0, 1, 8]), 2).tolist() == [[-1, -1], [-1, 0], [0, 1]]
    store = TurnStore([["Hi, you!", "You? hi"], ["", "hi"]])
    words, texts = store.words({"tokenizer": "terms", "lower": True})
    assert words == ["", "_EOS_", "_UNK_", "hi", ",", "you", "!", "?"]
    assert texts.lists() == [[3, 4, 5, 6], [5, 7, 3], [], [3]]


def test_every_utterance_but_the_first_is_a_response_once_to_its_last_turns(talks):
    turns = fit_turns(talks, unfit=np.array([False, False, True, False, False]))
    pairs = np.column_stack([talks.before(turns, 2), talks.numbers[turns]]).tolist()
    assert pairs == [[0, 1, 0], [-1, 3, 0], [4, 3, 0], [-1, 0, 1], [3, 0, 1], [-1, 4, 3]]
    # the first of equal ones, of which "d a b" is said twice
    assert turns.tolist() == [8, 6, 11, 1, 7, 10]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(
            (text, True)
            for text in ("bob , try it", "bob : try it", "try it , bob .", "well , bob , try it")
        ),
        # a word that the model does not know
        *((text, True) for text in ("try zork", "zork try it or try it")),
        *((text, True) for text in ("", "try it or try __url__")),  # no word; a placeholder
        *((text, True) for text in ("! try", "yes ! try it | pears")),  # a command to a bot
        *((text, True) for text in ("hi bob !", "try it or try that with bob then")),
        *((text, False) for text in ("yes , try it", "apples , pears , plums and it", "try | it")),
    ],
)
def test_an_utterance_that_calls_somebody_by_name_is_no_answer(text, expected):
    others = [
        "bob , it",
        "it , bob",
        *["yes , it", "it or pears and apples", "well , it is pears"] * 9,
    ]
    texts = [each.split() for each in (*others, text)]
    vocabulary, known = (
        Vocabulary.of(itertools.chain(*texts)),
        "bob try it yes well hi apples pears plums and or",
    )
    found = unfit_of(
        ["", *vocabulary.words], Sequences.of([*map(vocabulary.encode, texts)]), set(known.split())
    )
    assert found[-1] == expected


def test_bm25_is_that_of_bm25s(tmp_path):
    rng = np.random.default_rng(2)
    lists = [rng.integers(0, 11, size=rng.integers(0, 13)).tolist() for _ in range(101)]
    scores = bm25s.BM25().build_index_from_ids(range(13), lists, show_progress=False)
    save_bm25(tmp_path, lambda: Sequences.of(lists).parts(7), 13)
    found = bm25s.BM25.load(tmp_path, load_vocab=False, show_progress=False).scores
    assert found["num_docs"] == 101
    np.testing.assert_array_equal(found["indptr"], scores["indptr"])
    np.testing.assert_array_equal(found["indices"], scores["indices"])
    np.testing.assert_allclose(found["data"], scores["data"], rtol=1e-5)


# === Conversations ===


def test_a_run_with_pairs_gets_an_index_in_the_cache_once(
    run_with_pairs, selection_predictor, prepared, capsys
):
    before = checksums_of(run_with_pairs)
    built = index_of_run(run_with_pairs, selection_predictor)
    assert (
        built.parent == run_with_pairs.parent / "cache" / "colloquy"
        and checksums_of(run_with_pairs) == before
    )
    assert capsys.readouterr().out == f"{built}: built once, of {run_with_pairs / 'pairs'}\n"
    stored = RetrievalIndex(built, selection_predictor.vocabulary)
    assert stored.config["made_of"] == ["pairs"] and stored.size > 9
    said = {text for talk in of_corpus("smn", prepared.parent / "raw") for text in talk}
    assert {stored.utterance(number) for number in range(stored.size)} <= said
    time = (built / "config.json").stat().st_mtime_ns
    assert (
        index_of_run(run_with_pairs, selection_predictor) == built and capsys.readouterr().out == ""
    )
    assert (built / "config.json").stat().st_mtime_ns == time
    with open(run_with_pairs / "pairs" / "train.txt", "a") as file:
        file.write("1\thow are you ?\tfine\n")
    assert index_of_run(run_with_pairs, selection_predictor) != built


def test_no_index_is_built_without_pairs_or_where_it_cannot_be(
    trained_selection, run_with_pairs, selection_predictor, monkeypatch
):
    assert index_of_run(trained_selection.path, selection_predictor) is None
    with monkeypatch.context() as patch:
        patch.setattr("os.access", lambda path, mode: False)
        assert index_of_run(run_with_pairs, selection_predictor) is None
    (run_with_pairs / "pairs" / "train.txt").write_text("1\tno response\n")
    assert "train.txt, line 1" in refusal(index_of_run, run_with_pairs, selection_predictor)
    assert not list((run_with_pairs.parent / "cache" / "colloquy").iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--corpus=smn"], "--source is missing"),
        (
            ["--corpus=smn", "--source=x", "--source=y"],
            "each --source needs its --corpus. Received: 1 and 2",
        ),
        (["--corpus=smn", "--source=x"], "not a run directory"),
    ],
)
def test_script_refuses_unclear_sources(tmp_path, arguments, message):
    done = run_script("tools/build_index.py", "--run=x", f"--out={tmp_path / 'out'}", *arguments)
    assert done.returncode == 1 and message in done.stderr


# === Vectors ===


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(1)
    contexts = [rng.integers(3, 23, size=rng.integers(1, 9)).tolist() for _ in range(211)]
    responses = [[*rng.integers(3, 23, size=2).tolist(), context[0]] for context in contexts]
    return (
        Sequences.of(contexts),
        Sequences.of(responses),
        rng.normal(size=(23, 5)).astype("float32"),
    )


def fit(contexts, responses, vectors, **options):
    """In parts of another size than that of the whole."""
    return PairEncoder.fit(
        lambda: contexts.parts(37), lambda: responses.parts(37), vectors, **options
    )


def means(encoder, texts, table):
    """The weighted mean of each text's vectors."""
    weights = encoder.weights
    return np.array(
        [sum(weights[w] * table[w] for w in words) / sum(weights[words]) for words in texts.lists()]
    )


def test_vectors_are_weighted_means_of_word_vectors_in_loops(texts):
    contexts, responses, vectors = texts
    encoder = fit(contexts, responses, vectors, dimension=3)
    documents = responses.lists()
    for word in range(3, 23):
        n = sum(word in document for document in documents)
        assert encoder.weights[word] == pytest.approx(
            np.log(1 + (211 - n + 0.5) / (n + 0.5)), rel=1e-5
        )
    found = encoder.contexts(contexts)
    assert found.shape == (211, 3) and found.dtype == np.float32
    expected = means(encoder, contexts, encoder.context_words) - encoder.context_mean
    np.testing.assert_allclose(
        found, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-4
    )


def test_directions_are_canonical(texts):
    """Each direction's projections of contexts and responses correlate, different directions' do
    not.
    """
    contexts, responses, vectors = texts
    encoder = fit(contexts, responses, vectors, dimension=5, ridge=0.0)

    X = means(encoder, contexts, encoder.context_words) - encoder.context_mean
    Y = means(encoder, responses, encoder.response_words) - encoder.response_mean
    correlations = np.diag(X.T @ X / 211)
    assert (np.diff(correlations) < 0).all() and correlations[0] > 0.3
    np.testing.assert_allclose(X.T @ X / 211, np.diag(correlations), atol=1e-4)
    np.testing.assert_allclose(Y.T @ Y / 211, np.diag(correlations), atol=1e-4)
    np.testing.assert_allclose(X.T @ Y / 211, np.diag(correlations**2), atol=1e-4)


def test_an_encoder_saves_and_loads_and_gives_no_vector_to_a_text_that_says_nothing(
    texts, tmp_path
):
    encoder = fit(*texts)
    encoder.save(tmp_path / "encoder.npz")
    again = PairEncoder.load(tmp_path / "encoder.npz")
    np.testing.assert_array_equal(again.responses(texts[0]), encoder.responses(texts[0]))
    assert (
        again.context_words.shape[1] == 5
        and not again.responses(Sequences.of([[2, 1, 2], []])).any()
    )
