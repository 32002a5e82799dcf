"""Builds what `tasks.selection.retrieval.index` reads: conversations become texts, pairs and three searches.

Texts stay in files and are processed in parts, so that memory holds little more than what is written.
"""

import collections
import dataclasses
import functools
import json
import os
import pathlib
import tempfile

import bm25s
import numpy as np

from base.files import UserError, atomic_directory
from data.corpora import CORPORA
from data.sequences import Sequences, document_frequency
from data.vocabulary import SPECIALS, Vocabulary
from tasks.selection.data import as_texts, load_dataset
from tasks.selection.retrieval import index as files
from tasks.selection.retrieval.encoder import PairEncoder
from tasks.selection.retrieval.index import READ, TURNS, vocabulary_hash
from tasks.selection.retrieval.spool import TurnStore

FIT_PAIRS = 200_000
"""Most pairs, drawn at random, that the encoder is fitted to."""
INDEX, PAIRS = "index", "pairs"
"""In a run directory: its index, and the conversations in the format `smn` that it is built from."""
PLACEHOLDERS = {SPECIALS[1].lower(), "__path__", "__url__"}
"""Words that corpora have in the place of removed text."""
PART = 20_000
"""Texts processed at once."""
FRACTION = 0.2
"""A word is a name if at least this fraction of the utterances with it call somebody by it."""
SHORT = 4
"""An utterance of at most this many words is unfit if the model lacks one of them."""
GREETINGS = frozenset(("hi", "hello", "hey", "bye", "thanks", "thx", "welcome"))
NO_NAMES = frozenset(
    """a ah ahh aha alright also alternatively and anyhow anyway aw aww aye bah basically besides btw but bye c'mon
    cheers cool correct damn dang darn dude dunno eh er err exactly fair fine first firstly frankly fwiw gee geez good
    goodbye goodnight gosh great ha haha hah heh hehe hello hey hi hm hmm hmmm howdy however hrm huh hum imho imo indeed
    jeez k lol look ma'am madam man maybe meh mm mmm nah naw nay nice no nope not np now obviously oh ohh ok okay oki
    ooh oops or ouch perhaps phew please pls right see seriously sir so sorry sry still sure thank thanks then therefore
    thx true uh uhm um unfortunately wait well whatever whoa why wow ya yah yay yea yeah yeh yep yes yo yup""".split()
)
"""Interjections and the like, which appear where names do."""


def build(out, conversations, vocabulary, vectors, text, facts=None, threads=2, seed=1):
    """Writes an index, without responses that `unfit_of` finds.

    Args:
        out: Directory to make.
        conversations: Iterable of lists of texts, the oldest first.
        vocabulary: `data.vocabulary.Vocabulary` of the run.
        vectors: Word vectors of the run, float `(vocabulary + 1, E)`.
        text: `tokenizer` and `lower` of the run.
        facts: Further content of `config.json`, such as the source of the conversations.
        threads: Threads that build the graph of vectors.
        seed: Seed of the pairs that the encoder is fitted to.

    Returns:
        The content of `config.json`.

    Raises:
        UserError: if no response is left, or `out` is in use.
    """
    vocabulary = dataclasses.replace(vocabulary, hashed=0)  # hashed words have no vector
    with atomic_directory(out) as directory, tempfile.TemporaryDirectory(dir=directory) as temporary:
        store = TurnStore(pathlib.Path(temporary), conversations)
        words, texts = store.words(text)
        turns = fit_turns(store, unfit_of(words, texts, set(vocabulary.words)))
        if not len(turns):
            raise UserError("an index needs conversations with responses that are fit. Received: none")
        responses, contexts = np.unique(store.numbers[turns]), store.before(turns, TURNS)
        stored = _save_texts(directory, store, turns, responses, contexts)
        Vocabulary(words[1:]).save(directory / files.WORDS)
        parts = functools.partial(_parts, texts)
        save_bm25(directory / files.CONTEXTS, lambda: parts(contexts), len(words))
        save_bm25(directory / files.RESPONSES, lambda: parts(responses[:, None]), len(words))
        known = np.array([0, *vocabulary.encode(words[1:])], np.int32)
        encoder = _fit_encoder(store, turns, lambda numbers: parts(numbers, known), vectors, seed)
        encoder.save(directory / files.ENCODER)
        config = {
            "index": files.VERSION,
            "vocabulary": vocabulary_hash(vocabulary),
            "text": text,
            "responses": len(responses),
            "pairs": len(turns),
            "utterances": stored,
            "words": len(words) - 1,
            "left_out": len(np.unique(store.numbers[store.places > 0])) - len(responses),
            "dimension": encoder.dimension,
            **(facts or {}),
        }
        del store  # the graph of the vectors takes the most memory
        nearest = files.new_vectors(encoder.dimension)
        for part in parts(responses[:, None], known):
            nearest.add(len(nearest) + np.arange(len(part)), encoder.responses(part), threads=threads)
        nearest.save(directory / files.VECTORS)
        (directory / files.CONFIG).write_text(json.dumps(config, indent=1, ensure_ascii=False), encoding="utf-8")
    return config


def build_for(predictor, out, conversations, facts=None):
    """Writes an index for the model of a `tasks.selection.predictor.SelectionPredictor`, see `build`."""
    vectors = predictor.model.get_layer("word_embedding").get_weights()[0]
    return build(out, conversations, predictor.vocabulary, vectors, predictor.text, facts)


def index_of_run(path, predictor):
    """The path of the index in a run directory, built if there is none but conversations to build it from.

    Args:
        path: The run directory, a `pathlib.Path`.
        predictor: `tasks.selection.predictor.SelectionPredictor` of the run.

    Returns:
        `None` if there is neither, or the directory is read-only.
    """
    index, pairs = path / INDEX, path / PAIRS
    if not index.is_dir() and pairs.is_dir() and os.access(path, os.W_OK):
        print(f"{index}: built once, of {pairs}", flush=True)
        try:
            build_for(predictor, index, of_corpus("smn", pairs), {"made_of": [PAIRS]})
        except UserError:
            if not index.is_dir():  # else another process has built it meanwhile
                raise
    return index if index.is_dir() else None


# === Conversations ===


def of_dataset(path, vocabulary, split="train"):
    """Yields the contexts of a prepared dataset with their positive responses, as lists of texts.

    Raises:
        UserError: if it cannot be read or has another vocabulary than `vocabulary`.
    """
    dataset = load_dataset(path)
    if dataset.vocabulary is None or vocabulary_hash(dataset.vocabulary) != vocabulary_hash(vocabulary):
        raise UserError(f"{path}: expected a dataset with the vocabulary of the run. Received: another, or none")
    found = dataset.splits[split]
    for line in np.flatnonzero(found.label == 1):
        first, count = found.context_start[found.context[line]], found.context_turns[found.context[line]]
        turns = as_texts(found.turns, slice(first, first + count), dataset.vocabulary)
        yield turns + as_texts(found.responses, [line], dataset.vocabulary)


def of_corpus(corpus, source, split="train"):
    """Yields the conversations of a corpus as lists of texts; of selection the contexts with their positive responses.

    Args:
        corpus: Key of `data.corpora.CORPORA`.
        source: Directory of its files.
        split: `"train"` or `"dev"`.
    """
    task, reader = CORPORA[corpus]
    if task == "selection":
        lines = reader.read(reader.find_split(source, split))
        yield from ([*line.turns, line.response] for line in lines if line.label == 1)
    else:
        yield from reader.read(reader.find_splits(pathlib.Path(source))[split], split)


# === Which texts are answers ===


def fit_turns(store, unfit):
    """The turns that are responses, one of those with the same text and the same `TURNS` turns before.

    Args:
        store: `tasks.selection.retrieval.spool.TurnStore`.
        unfit: Which of its texts are no answers, bool `(texts,)`.

    Returns:
        int `(pairs,)`, in the order of the numbers of their texts.
    """
    turns = np.flatnonzero((store.places > 0) & ~unfit[store.numbers])
    pairs = np.column_stack([store.before(turns, TURNS), store.numbers[turns]])
    order = np.lexsort(pairs.T)  # by the response first
    is_new = np.diff(pairs[order], axis=0, prepend=-2).any(axis=1)
    return turns[order[is_new]]


def unfit_of(words, texts, known):
    """Texts that are no answers: without a word, with a placeholder, or calling somebody by name, bool `(texts,)`.

    An answer with a name suits one person alone, and the user is another. No list of names is needed: in conversations
    a name appears where somebody is called, and hardly anywhere else. At the beginning of an utterance an unknown word
    is taken for a name, as in `kesroesweyth you could try dpkg`, and so it is in a short one, as in `hello mernilio`.

    Args:
        words: Every word, lower-case.
        texts: `data.sequences.Sequences` of indices of `words`.
        known: Set of the words of the model.
    """

    def utterances():
        for part in texts.parts(PART):
            for ids in part.lists():
                yield [words[id] for id in ids]

    total, calls = collections.Counter(), collections.Counter()
    for utterance in utterances():
        total.update(set(utterance))
        calls.update(set(_called(utterance)))
    names = {word for word, count in calls.items() if count >= FRACTION * total[word]} - NO_NAMES

    def is_unfit(utterance):
        exposed = utterance if len(utterance) <= SHORT else utterance[:1]
        return (
            not any(any(map(str.isalnum, word)) for word in utterance)
            or any(word.lower() in PLACEHOLDERS for word in utterance)
            or any(word[:1].isalpha() and word not in known for word in exposed)
            or not names.isdisjoint(_called(utterance, inside=True))
        )

    return np.fromiter(map(is_unfit, utterances()), bool, len(texts))


def _called(words, inside=False):
    """The words by which an utterance may call somebody: at its beginning before a comma or a colon, at its end after a
    comma or a greeting; `inside`: also between two commas, where an enumeration has other words."""
    end = max((place for place, word in enumerate(words, 1) if word[:1].isalnum()), default=0)
    called = []
    if len(words) > 2 and words[1] in (",", ":"):
        called.append(words[0])
    for place in range(2, end):
        if words[place - 1] == "," and (place == end - 1 or (inside and words[place + 1] == ",")):
            called.append(words[place])
    if end == 2 and words[0] in GREETINGS:
        called.append(words[1])
    return [word for word in called if word[:1].isalpha()]


# === Files ===


def _parts(texts, numbers, ids=None):
    """Yields `texts.joined(numbers)` in parts; `ids`: the new id of each id."""
    for start in range(0, len(numbers), PART):
        part = texts.joined(numbers[start : start + PART])
        yield part if ids is None else Sequences(ids[part.ids], part.starts, part.lengths)


def _fit_encoder(store, turns, parts, vectors, seed):
    drawn = turns[np.random.default_rng(seed).permutation(len(turns))[:FIT_PAIRS]]
    contexts, responses = store.before(drawn, READ), store.numbers[drawn, None]
    return PairEncoder.fit(lambda: parts(contexts), lambda: parts(responses), vectors)


def _save_texts(directory, store, turns, responses, contexts):
    """Stores the responses, then all other texts that contexts need, and the pairs by these new numbers.

    Returns the number of texts.
    """
    others = np.zeros(len(store), bool)
    others[contexts[contexts >= 0]] = True
    others[responses] = False
    order = np.concatenate([responses, np.flatnonzero(others)])
    number = np.full(len(store) + 1, -1, np.int32)
    number[order] = np.arange(len(order))  # the last, that of -1, stays -1
    np.save(directory / files.PAIRS, number[np.column_stack([contexts, store.numbers[turns]])])
    ends = [0]
    with open(directory / files.TEXTS, "wb") as file:
        for text in store.texts(order):
            ends.append(ends[-1] + file.write(text))
    np.save(directory / files.OFFSETS, np.array(ends, np.int64))
    return len(order)


def save_bm25(directory, parts, words):
    """Writes an index that `bm25s.BM25.load` reads (Lu 2024), without the words themselves.

        score(w, d) = idf(w) tf / (tf + k1 (1 - b + b |d| / mean |d|)),   idf(w) = log(1 + (N - df + 1/2) / (df + 1/2))

    bm25s computes the same from lists of Python numbers: fifteen times slower, and all in memory.

    Args:
        directory: Directory to write to.
        parts: Function that returns an iterator of `data.sequences.Sequences` of word ids, all documents together;
            called twice.
        words: The number of ids.
    """
    frequency, documents, length = np.zeros(words, np.int64), 0, 0
    for part in parts():
        frequency += document_frequency(part.owners(), part.flat(), words)
        documents, length = documents + len(part), length + int(part.lengths.sum())
    index = bm25s.BM25()
    idf = np.log1p((documents - frequency + 0.5) / (frequency + 0.5))
    ends = np.cumsum(frequency)
    place = ends - frequency  # of the next entry of each word
    data, indices = np.empty(frequency.sum(), np.float32), np.empty(frequency.sum(), np.int32)
    first = 0
    for part in parts():
        key, tf = np.unique(part.owners() * words + part.flat(), return_counts=True)
        document, word = key // words, key % words
        relative = part.lengths[document] / max(length / documents, 1e-9)
        score = idf[word] * tf / (tf + index.k1 * (1 - index.b + index.b * relative))
        order = np.argsort(word, kind="stable")
        word = word[order]
        at = place[word] + np.arange(len(word)) - np.searchsorted(word, word)
        data[at], indices[at] = score[order], first + document[order]
        place += np.bincount(word, minlength=words)
        first += len(part)
    starts = np.concatenate([[0], ends]).astype(np.int64)
    index.scores = {"data": data, "indices": indices, "indptr": starts, "num_docs": documents}
    index.vocab_dict, index.nonoccurrence_array = {}, None
    index.save(directory, show_progress=False)
