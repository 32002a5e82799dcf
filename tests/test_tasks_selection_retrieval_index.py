"""tasks/selection: names, vectors, the index of pairs on disk, and tools.build_index."""

import json
import shutil

import bm25s
import numpy as np
import pytest
from helpers import run_script

from base.files import UserError
from data.sequences import Sequences
from data.tokenizers import words_of
from data.vocabulary import Vocabulary
from tasks.selection.retrieval import build as indexing
from tasks.selection.retrieval import index as files
from tasks.selection.retrieval import spool
from tasks.selection.retrieval.build import addressing, build, fit_turns, of_corpus, of_dataset, save_bm25
from tasks.selection.retrieval.encoder import PairEncoder
from tasks.selection.retrieval.index import RetrievalIndex, best_by_words
from tasks.selection.retrieval.spool import TurnStore

TEXT = {"tokenizer": "terms", "lower": True}
TOPICS = {
    "tea": ["I like tea.", "Tea is hot!", "Drink the tea slowly."],
    "rain": ["The rain falls.", "Rain is wet, so wet.", "I like rain too."],
    "dog": ["My dog barks.", "A dog eats bones.", "The dog sleeps; the dog dreams."],
}
CONVERSATIONS = [["Hello!", *turns] for turns in TOPICS.values()] + [
    ["Who likes tea?", "Zed, look at the tea."],
    ["A dog?", "_UNK_ is a dog"],
    ["Where?", "?!", "See __url__ !"],
]
WORDS = (
    "hello i like tea is hot drink the slowly rain falls wet so too my dog barks a eats bones sleeps look who ? ! . ,"
)
VOCABULARY = Vocabulary.of(WORDS.split())
VECTORS = np.random.default_rng(3).normal(size=(len(VOCABULARY) + 1, 7)).astype("float32")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("index") / "index"
    build(path, CONVERSATIONS, VOCABULARY, VECTORS, TEXT, {"made_of": ["x"]})
    return path


@pytest.fixture(scope="module")
def index(path):
    return RetrievalIndex(path, VOCABULARY)


@pytest.fixture
def copy(path, tmp_path):
    shutil.copytree(path, tmp_path / "copy")
    return tmp_path / "copy"


# === Names ===


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bob , try it", True),
        ("bob : try it", True),
        ("try it , bob .", True),
        ("well , bob , try it", True),
        ("hi bob !", True),
        ("yes , try it", False),
        ("apples , pears , plums and it", False),
        ("zork try it or try it", True),  # a word that the model does not know
        ("try it or try it zork", False),
        ("try zork", True),
        ("", False),
        ("?", False),
    ],
)
def test_an_answer_that_calls_somebody_by_name_is_found(text, expected):
    known = set("bob try it yes well hi apples pears plums and or".split())
    others = ["bob , it", "it , bob", *["yes , it", "it or pears and apples", "well , it is pears"] * 9]
    assert called_by_name([*others, text], known)[-1] == expected


def called_by_name(texts, known):
    vocabulary = Vocabulary.of(word for text in texts for word in text.split())
    words = ["", *vocabulary.words]
    return addressing(Sequences.of([vocabulary.encode(text.split()) for text in texts]), words, known)


def test_names_are_found_whatever_is_looked_at_at_once(monkeypatch):
    known = set("bob no a dog and look yes it is the eat in".split())
    texts = ["bob , look", "no , bob !", "yes , a dog", "the dog , and bob , eat", "", "zork it is", "is zork in it ?"]
    expected = [True, True, False, True, False, True, False]
    assert called_by_name(texts, known).tolist() == expected
    monkeypatch.setattr(indexing, "PART", 2)
    assert called_by_name(texts, known).tolist() == expected


# === Vectors ===


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(1)
    contexts = [rng.integers(3, 23, size=rng.integers(1, 9)).tolist() for _ in range(211)]
    responses = [[*rng.integers(3, 23, size=2).tolist(), context[0]] for context in contexts]
    return Sequences.of(contexts), Sequences.of(responses), rng.normal(size=(23, 5)).astype("float32")


def fit(contexts, responses, vectors, **options):
    """In parts of another size than that of the whole."""
    return PairEncoder.fit(lambda: contexts.parts(37), lambda: responses.parts(37), vectors, **options)


def test_vectors_are_weighted_means_of_word_vectors_in_loops(texts):
    contexts, responses, vectors = texts
    encoder = fit(contexts, responses, vectors, dimension=3)
    documents = responses.lists()
    for word in range(3, 23):
        n = sum(word in document for document in documents)
        assert encoder.weights[word] == pytest.approx(np.log(1 + (211 - n + 0.5) / (n + 0.5)), rel=1e-5)
    found = encoder.contexts(contexts)
    assert found.shape == (211, 3) and found.dtype == np.float32
    for vector, words in zip(found, contexts.lists(), strict=True):
        mean = sum(encoder.weights[w] * encoder.context_words[w] for w in words) / sum(encoder.weights[words])
        expected = mean - encoder.context_mean
        np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), atol=1e-4)


def test_directions_are_canonical(texts):
    """Each direction's projections of contexts and responses correlate, different directions' do not."""
    contexts, responses, vectors = texts
    encoder = fit(contexts, responses, vectors, dimension=5, ridge=0.0)

    def projected(texts, table, mean):
        rows = [sum(encoder.weights[w] * table[w] for w in words) / sum(encoder.weights[words]) for words in texts]
        return np.array(rows) - mean

    X = projected(contexts.lists(), encoder.context_words, encoder.context_mean)
    Y = projected(responses.lists(), encoder.response_words, encoder.response_mean)
    correlations = np.diag(X.T @ X / 211)
    assert (np.diff(correlations) < 0).all() and correlations[0] > 0.3
    np.testing.assert_allclose(X.T @ X / 211, np.diag(correlations), atol=1e-4)
    np.testing.assert_allclose(Y.T @ Y / 211, np.diag(correlations), atol=1e-4)
    np.testing.assert_allclose(X.T @ Y / 211, np.diag(correlations**2), atol=1e-4)


def test_a_text_that_says_nothing_has_no_vector(texts):
    encoder = fit(*texts)
    assert encoder.dimension == 5
    assert not encoder.responses(Sequences.of([[2, 1, 2], []])).any()


def test_an_encoder_saves_and_loads(texts, tmp_path):
    encoder = fit(*texts)
    encoder.save(tmp_path / "encoder.npz")
    again = PairEncoder.load(tmp_path / "encoder.npz")
    np.testing.assert_array_equal(again.responses(texts[0]), encoder.responses(texts[0]))


# === Pairs ===


TALKS = [["a", "b", "c"], ["a", "b"], [], ["d", "a", "b ", "a"], ["e", "d", "a", "b"]]


@pytest.fixture(params=[20_000, 2])
def talks(request, tmp_path, monkeypatch):
    monkeypatch.setattr(spool, "PART", request.param)
    return TurnStore(tmp_path, TALKS)


def test_a_spool_numbers_texts_as_they_occur(talks):
    assert talks.numbers.tolist() == [0, 1, 2, 0, 1, 3, 0, 1, 0, 4, 3, 0, 1]
    assert talks.places.tolist() == [0, 1, 2, 0, 1, 0, 1, 2, 3, 0, 1, 2, 3]
    assert list(talks.texts(np.arange(5))) == [b"a", b"b", b"c", b"d", b"e"]
    assert list(talks.texts(np.array([3, 0]))) == [b"d", b"a"] and len(talks) == 5
    assert talks.before(np.array([0, 1, 8]), 2).tolist() == [[-1, -1], [-1, 0], [0, 1]]


def test_a_spool_cuts_texts_into_words(tmp_path):
    words, texts = TurnStore(tmp_path, [["Hi, you!", "You? hi"], ["", "hi"]]).words(TEXT)
    assert words == ["", "_EOS_", "_UNK_", "hi", ",", "you", "!", "?"]
    assert texts.lists() == [[3, 4, 5, 6], [5, 7, 3], [], [3]]


def test_every_utterance_but_the_first_is_a_response_once_to_its_last_turns(talks):
    unfit = np.array([False, False, True, False, False])
    turns = fit_turns(talks, unfit)
    pairs = np.column_stack([talks.before(turns, 2), talks.numbers[turns]]).tolist()
    assert pairs == [[0, 1, 0], [-1, 3, 0], [4, 3, 0], [-1, 0, 1], [3, 0, 1], [-1, 4, 3]]
    assert turns.tolist() == [8, 6, 11, 1, 7, 10]  # the first of equal ones, of which "d a b" is said twice


def test_bm25_is_that_of_bm25s(tmp_path):
    rng = np.random.default_rng(2)
    lists = [rng.integers(0, 11, size=rng.integers(0, 13)).tolist() for _ in range(101)]
    expected = bm25s.BM25()
    scores = expected.build_index_from_ids(range(13), lists, show_progress=False)
    save_bm25(tmp_path, lambda: Sequences.of(lists).parts(7), 13)
    found = bm25s.BM25.load(tmp_path, load_vocab=False, show_progress=False).scores
    assert found["num_docs"] == 101
    np.testing.assert_array_equal(found["indptr"], scores["indptr"])
    np.testing.assert_array_equal(found["indices"], scores["indices"])
    np.testing.assert_allclose(found["data"], scores["data"], rtol=1e-5)


# === On disk ===


def test_an_index_is_the_same_whatever_is_worked_on_at_once(path, tmp_path, monkeypatch):
    monkeypatch.setattr(indexing, "PART", 2)
    build(tmp_path / "index", CONVERSATIONS, VOCABULARY, VECTORS, TEXT, {"made_of": ["x"]})
    for file in sorted(file.relative_to(path) for file in path.rglob("*") if file.is_file()):
        if file.name not in (files.VECTORS, files.ENCODER):  # rounded otherwise
            assert (path / file).read_bytes() == (tmp_path / "index" / file).read_bytes(), file
    assert sorted(p.name for p in path.iterdir()) == sorted(p.name for p in (tmp_path / "index").iterdir())


def test_what_is_no_answer_is_left_out(index):
    stored = [index.utterance(number) for number in range(index.size)]
    assert sorted(stored) == sorted(text for turns in TOPICS.values() for text in turns)
    assert index.config["left_out"] == 4  # a name, an unknown word, no word, a word that the corpus hides
    assert (index.size, index.config["pairs"], index.config["made_of"]) == (9, 9, ["x"])


def test_pairs_say_what_a_response_was_said_to(index, path):
    pairs = np.load(path / files.PAIRS)
    found = {
        (tuple(index.utterance(number) for number in row[:-1] if number >= 0), index.utterance(row[-1]))
        for row in pairs
    }
    expected = {
        (tuple(["Hello!", *turns][max(0, i - 1) : i + 1]), turns[i]) for turns in TOPICS.values() for i in range(3)
    }
    assert found == expected
    assert (np.diff(pairs[:, -1]) >= 0).all()


def test_search_finds_by_the_words_of_contexts_and_responses(index):
    hits = {hit.text: hit for hit in index.search(["Does it bark?", "My dog barks!"], count=9)}
    assert hits["A dog eats bones."].places["contexts"] == 1  # it was said to that
    assert hits["My dog barks."].places["responses"] == 1  # it has these words
    assert hits["A dog eats bones."].context == ["Hello!", "My dog barks."]


def test_contexts_are_ordered_by_the_likeness_of_the_last_turns(index):
    hits = {hit.text: hit for hit in index.search(["Rain!", "A dog barks, my tea is hot!"], count=9)}
    cut = {text: set(words_of(text, **TEXT)) for text in [*hits, *(hit.context[-1] for hit in hits.values())]}
    assert len(hits) == 9  # all that the index has
    idf = {w: np.log(10 / (1 + sum(w in cut[text] for text in hits))) for words in cut.values() for w in words}
    last = set(words_of("A dog barks, my tea is hot!", **TEXT))
    for hit in hits.values():
        both, ours, theirs = (
            sum(idf[word] ** 2 for word in words if word in idf)
            for words in (last & cut[hit.context[-1]], last, cut[hit.context[-1]])
        )
        assert hit.question == pytest.approx(both / np.sqrt(max(ours * theirs, 1e-9)), abs=1e-6), hit
    asked = sorted((hit for hit in hits.values() if "contexts" in hit.places), key=lambda hit: hit.places["contexts"])
    assert [hit.question for hit in asked] == sorted((hit.question for hit in asked), reverse=True)
    assert len(asked) > 3 and asked[0].context[-1] == "Tea is hot!"


def test_search_orders_by_the_words_of_the_whole_conversation(index):
    said = ["Rain is wet.", "Hello!", "Who?", "Hello!", "Look!", "Who?", "My dog barks!"]
    hits = index.search(said, count=9)
    cut = {text: set(words_of(text, **TEXT)) for text in [*said, *map(index.utterance, range(9))]}
    documents = [cut[index.utterance(number)] for number in range(9)]
    idf = {w: np.log((1 + 9) / (1 + sum(w in d for d in documents))) for w in index.words.words[2:]}
    context = set().union(*(cut[text] for text in said)) & set(idf)

    def squares(words):
        return sum(idf[word] ** 2 for word in words)

    read = [word for text in said[-files.READ :] for word in words_of(text, **TEXT)]
    vector = index.encoder.contexts(index._ids([read]))[0]
    scores = []
    for hit in hits:
        words = cut[hit.text]
        assert hit.cosine == pytest.approx(squares(words & context) / np.sqrt(squares(words) * squares(context)))
        [found] = index.encoder.responses(Sequences.of([VOCABULARY.encode(words_of(hit.text, **TEXT))]))
        scores.append(hit.cosine + files.VECTOR_WEIGHT * float(found @ vector))
    assert scores == pytest.approx(sorted(scores, reverse=True)) and len({hit.text for hit in hits}) == len(hits)
    for search in files.SEARCHES:
        places = sorted(hit.places[search] for hit in hits if search in hit.places)
        assert places == list(range(1, len(places) + 1))
    assert [hit.text for hit in index.search(said, count=2)] == [hit.text for hit in hits[:2]]


def test_vectors_are_searched_by_cosine(index):
    words = ["hot", "tea"]
    found = index._vectors.search(index.encoder.contexts(Sequences.of([VOCABULARY.encode(words)]))[0], 9).keys.tolist()
    query = index.encoder.contexts(Sequences.of([VOCABULARY.encode(words)]))[0]
    stored = Sequences.of(
        [VOCABULARY.encode(index.utterance(i).lower().replace(".", " .").replace("!", " !").split()) for i in range(9)]
    )
    cosines = index.encoder.responses(stored) @ query
    exact = [
        i for i in range(9) if index.utterance(i) not in ("Rain is wet, so wet.", "The dog sleeps; the dog dreams.")
    ]
    assert [i for i in found if i in exact] == sorted(exact, key=lambda i: -cosines[i])


def test_words_that_nobody_knows_find_nothing(index):
    assert index.search(["zork"]) == [] and index.search([""]) == []


def test_bm25_reads_rare_words_first(index, monkeypatch):
    ids = index.words.encode(["the", "dog", "bones"])
    frequency = np.diff(index._responses.scores["indptr"])[ids].tolist()
    assert frequency == [3, 3, 1]
    everything = best_by_words(index._responses, ids, 9)
    assert len(everything) == 5 and index.utterance(everything[0]) == "A dog eats bones."
    monkeypatch.setattr(files, "POSTINGS", 2)
    assert [index.utterance(i) for i in best_by_words(index._responses, ids, 9)] == ["A dog eats bones."]
    monkeypatch.setattr(files, "POSTINGS", 0)  # the rarest is read in any case
    assert len(best_by_words(index._responses, ids[:1], 9)) == 3


def test_another_vocabulary_is_refused(path):
    with pytest.raises(UserError, match="built for a run of another vocabulary"):
        RetrievalIndex(path, Vocabulary.of(WORDS.split()[::-1]))


@pytest.mark.parametrize("name", [files.TEXTS, files.PAIRS, files.WORDS, files.VECTORS, files.ENCODER, files.CONTEXTS])
def test_a_missing_file_is_the_users_error(copy, name):
    shutil.rmtree(copy / name, ignore_errors=True)
    (copy / name).unlink(missing_ok=True)
    with pytest.raises(UserError, match="expected"):
        RetrievalIndex(copy, VOCABULARY)


def test_other_directories_and_versions_are_refused(copy, tmp_path):
    with pytest.raises(UserError, match=r"expected an index that tools.build_index wrote"):
        RetrievalIndex(tmp_path, VOCABULARY)
    config = json.loads((copy / files.CONFIG).read_text())
    (copy / files.CONFIG).write_text(json.dumps({**config, "index": 0}))
    with pytest.raises(UserError, match=r"expected an index of version 1: build it again"):
        RetrievalIndex(copy, VOCABULARY)


def test_nothing_is_left_where_nothing_is_fit(tmp_path):
    for conversations in ([], [["a"]], [["hello", "?"]]):
        with pytest.raises(UserError, match="an index needs conversations"):
            build(tmp_path / "out", conversations, VOCABULARY, VECTORS, TEXT)
    assert list(tmp_path.iterdir()) == []


# === Sources ===


def test_conversations_of_a_prepared_dataset_and_of_its_files_are_the_same(prepared):
    vocabulary = Vocabulary.load(prepared / "vocabulary.txt")
    found = list(of_dataset(prepared, vocabulary))
    raw = list(of_corpus("smn", prepared.parent / "raw"))
    words = set(vocabulary.words[2:])

    def known(text):
        return " ".join(word if word in words else "_UNK_" for word in text.split())

    assert found == [[known(text) for text in turns] for turns in raw]
    with pytest.raises(UserError, match="expected a dataset with the vocabulary of the run"):
        next(of_dataset(prepared, VOCABULARY))


def test_build_index_refuses_unclear_sources(tmp_path):
    def error(*arguments):
        done = run_script("tools/build_index.py", "--run=x", f"--out={tmp_path / 'out'}", *arguments)
        assert done.returncode == 1
        return done.stderr

    assert "give either --data, or --corpus and --source" in error()
    assert "give either --data, or --corpus and --source" in error("--data=x", "--source=y")
    assert "each --source needs its --corpus. Received: 1 and 2" in error("--corpus=smn", "--source=x", "--source=y")
    assert "no run directory" in error("--data=x")
