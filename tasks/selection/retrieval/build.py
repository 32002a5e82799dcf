"""Builds an index from conversations: texts, pairs and three searches."""

import array
import collections
import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import re

import bm25s
import numpy as np
import scipy.sparse
from usearch.index import Index as NearestVectors

from colloquy.base.files import (
    UserError,
    atomic_directory,
    check_output,
    checksum,
    checksums_of,
    seal,
)
from colloquy.data.corpora import CORPORA
from colloquy.data.flat_arrays import numbering
from colloquy.data.sequences import Sequences
from colloquy.data.text_files import write_json
from colloquy.data.tokenizers import words_of
from colloquy.data.vocabulary import SPECIALS, Vocabulary
from colloquy.engine.run import BEST
from colloquy.tasks.selection.retrieval import index as files
from colloquy.tasks.selection.retrieval.encoder import PairEncoder
from colloquy.tasks.selection.retrieval.index import READ, TURNS, vocabulary_hash

FIT_PAIRS = 200_000  # most pairs, drawn at random, that the encoder is fitted to
# in a run directory: its index, or conversations (`smn`) to build one from
INDEX, PAIRS = "index", "pairs"
# words in place of removed text
PLACEHOLDERS = {SPECIALS[1].lower(), "__path__", "__url__", "unconvertable"}
PART = 20_000  # texts processed at once
# a word is a name if at least this fraction of its utterances address somebody by it
FRACTION = 0.2
NAMES_ALONE = 0.5  # from this fraction on, an utterance with the name anywhere is unfit
BOT = re.compile(r"^! \w|\B! \S+(?: \S+)? [|>] ")
"""Commands to a bot of #ubuntu, such as `! wifi`, or to have it address somebody, as in `! info
wifi | bob`.
"""
SHORT = 4  # an utterance of at most this many words is unfit if the model lacks one of them
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


def build(predictor, out, conversations, made_of=()):
    """Writes an index for a `tasks.selection.predictor.SelectionPredictor`; returns its
    `config.json`.

    Conversations are lists of texts, the oldest first; responses that `unfit_of` finds are left
    out, a `UserError` if none is left, or `out` is in use. `made_of` names their sources.
    """
    vocabulary = dataclasses.replace(predictor.vocabulary, hashed=0)  # hashed words have no vector
    vectors = predictor.model.get_layer("word_embedding").get_weights()[0]
    with atomic_directory(out) as directory:
        store = TurnStore(conversations)
        words, texts = store.words(predictor.text)
        turns = fit_turns(store, unfit_of(words, texts, set(vocabulary.words)))
        if not len(turns):
            raise UserError("an index needs conversations with suitable responses. Received: none")
        responses, contexts = np.unique(store.numbers[turns]), store.before(turns, TURNS)
        stored = _save_texts(directory, store, turns, responses, contexts)
        Vocabulary(words[1:]).save(directory / files.WORDS)
        parts = functools.partial(_parts, texts)
        save_bm25(directory / files.CONTEXTS, lambda: parts(contexts), len(words))
        save_bm25(directory / files.RESPONSES, lambda: parts(responses[:, None]), len(words))
        known = np.array([0, *vocabulary.encode(words[1:])], np.int32)
        drawn = turns[np.random.default_rng(1).permutation(len(turns))[:FIT_PAIRS]]
        pairs = store.before(drawn, READ), store.numbers[drawn, None]
        encoder = PairEncoder.fit(
            *(functools.partial(parts, numbers, known) for numbers in pairs), vectors
        )
        encoder.save(directory / files.ENCODER)
        sizes = {
            "responses": len(responses),
            "pairs": len(turns),
            "utterances": stored,
            "words": len(words) - 1,
        }
        left_out = len(np.unique(store.numbers[store.places > 0])) - len(responses)
        del store  # the graph of the vectors takes the most memory
        dimension = encoder.response_words.shape[1]
        nearest = NearestVectors(
            ndim=dimension, metric="cos", dtype="f16", connectivity=16, expansion_add=64
        )
        for part in parts(responses[:, None], known):
            nearest.add(len(nearest) + np.arange(len(part)), encoder.responses(part), threads=2)
        nearest.save(directory / files.VECTORS)
        config = {
            "index": files.VERSION,
            "vocabulary": vocabulary_hash(vocabulary),
            "text": predictor.text,
        }
        config |= {**sizes, "left_out": left_out, "made_of": [*made_of]}
        write_json(directory / files.CONFIG, config)
        seal(directory)
    return config


def index_of_run(path, predictor):
    """The index for the run in the directory `path` of a
    `tasks.selection.predictor.SelectionPredictor`.

    That of its directory. Else it is built, once, from the run's conversations in
    `$XDG_CACHE_HOME/colloquy`, under a name that depends on them and the model; nothing is written
    into the run. `None` without conversations, or where nothing can be written.
    """
    index, pairs = path / INDEX, path / PAIRS
    if index.is_dir():
        return index
    if not pairs.is_dir():
        return None
    made_of = [
        files.VERSION,
        vocabulary_hash(predictor.vocabulary),
        checksum(path / BEST),
        checksums_of(pairs),
    ]
    key = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()
    index = pathlib.Path(
        os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "colloquy", key
    )
    if not index.is_dir():
        try:
            check_output(index)
        except UserError:
            return None
        print(f"{index}: built once, of {pairs}", flush=True)
        try:
            build(predictor, index, of_corpus("smn", pairs), [PAIRS])
        except UserError:
            if not index.is_dir():  # else another process has built it meanwhile
                raise
    return index


# === Conversations ===


def of_corpus(corpus, source, split="train"):
    """Yields the conversations of a corpus as lists of texts; of selection contexts with their
    positive responses.
    """
    task, reader = CORPORA[corpus]
    if task == "selection":
        lines = reader.read(reader.find_split(source, split))
        yield from ([*line.turns, line.response] for line in lines if line.label == 1)
    else:
        yield from reader.read(reader.find_splits(pathlib.Path(source))[split], split)


class TurnStore:
    """The turns of conversations, lists of texts; equal texts have one number.

    Attributes:
        texts: The distinct texts, in order of first occurrence.
        numbers: Number of the text of each turn, int32 `(turns,)`.
        places: Turns before each turn in its conversation, int32 `(turns,)`.
    """

    def __init__(self, conversations):
        texts, numbers, places = numbering(), array.array("i"), array.array("i")
        for turns in conversations:
            numbers.extend(texts[turn.strip()] for turn in turns)
            places.extend(range(len(turns)))
        self.texts, self.numbers, self.places = list(texts), np.asarray(numbers), np.asarray(places)

    def before(self, turns, count):
        """Numbers of the texts of the `count` turns before each of `turns`, int32 `(turns, count)`;
        -1: no turn.
        """
        back = np.arange(count, 0, -1)
        there = self.places[turns, None] >= back
        return np.where(
            there, self.numbers[np.where(there, turns[:, None] - back, 0)], np.int32(-1)
        )

    def words(self, text):
        """Splits the distinct texts into words by `data.tokenizers.words_of` with the settings
        `text`.

        Returns every distinct word, at the index that is its id in a `data.vocabulary.Vocabulary`
        of them, and the words of every text, `Sequences` of ids.
        """
        ids, flat, lengths = numbering(), array.array("i"), array.array("i")
        for word in ("", *SPECIALS):
            ids[word]
        for each in self.texts:
            words = words_of(each, **text)
            lengths.append(len(words))
            flat.extend(ids[word] for word in words)
        lengths = np.asarray(lengths)
        return list(ids), Sequences(np.asarray(flat), np.cumsum(lengths) - lengths, lengths)


# === Which texts are answers ===


def fit_turns(store, unfit):
    """The turns of a `TurnStore` that are responses, by the numbers of their texts, int `(pairs,)`.

    Texts that are `unfit`, bool `(texts,)`, are none; of turns with equal text and equal `TURNS`
    turns before, one is.
    """
    turns = np.flatnonzero((store.places > 0) & ~unfit[store.numbers])
    pairs = np.column_stack([store.before(turns, TURNS), store.numbers[turns]])
    order = np.lexsort(pairs.T)  # by the response first
    is_new = np.diff(pairs[order], axis=0, prepend=-2).any(axis=1)
    return turns[order[is_new]]


def unfit_of(words, texts, known):
    """Marks texts that are no answers, bool `(texts,)`: without words, or with a placeholder, a
    bot's command, a name.

    An answer with a name suits one person alone, and the user is another. No list of names is
    needed: in conversations a name appears where somebody is called, and hardly anywhere else. At
    the beginning of an utterance a word that the model does not know is taken for a name, as in
    `kesroesweyth you could try dpkg`, and so it is in a short one, as in `hello mernilio`. `texts`
    are `data.sequences.Sequences` of indices of `words`, lower-case.
    """

    def utterances():
        for part in texts.parts(PART):
            for ids in part.lists():
                yield [words[id] for id in ids]

    total, calls = collections.Counter(), collections.Counter()
    for utterance in utterances():
        total.update(set(utterance))
        calls.update(set(_called(utterance)))
    names, sure = (
        {word for word, count in calls.items() if count >= fraction * total[word]} - NO_NAMES
        for fraction in (FRACTION, NAMES_ALONE)
    )

    def is_unfit(utterance):
        exposed = utterance if len(utterance) <= SHORT else utterance[:1]
        return (
            not any(any(map(str.isalnum, word)) for word in utterance)
            or any(word.lower() in PLACEHOLDERS for word in utterance)
            or any(word[:1].isalpha() and word not in known for word in exposed)
            or not names.isdisjoint(_called(utterance, inside=True))
            or not sure.isdisjoint(utterance)
            or BOT.search(" ".join(utterance))
        )

    return np.fromiter(map(bool, map(is_unfit, utterances())), bool, len(texts))


def _called(words, inside=False):
    """The words by which an utterance may call somebody: at its beginning before a comma or a
    colon, at its end after a comma or a greeting; `inside`: also between two commas, where an
    enumeration has other words."""
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


def _save_texts(directory, store, turns, responses, contexts):
    """Stores the responses, then all other texts that contexts need, and the pairs by these new
    numbers.
    """
    others = np.zeros(len(store.texts), bool)
    others[contexts[contexts >= 0]] = True
    others[responses] = False
    order = np.concatenate([responses, np.flatnonzero(others)])
    number = np.full(len(others) + 1, -1, np.int32)
    number[order] = np.arange(len(order))  # the last, that of -1, stays -1
    np.save(directory / files.PAIRS, number[np.column_stack([contexts, store.numbers[turns]])])
    with open(directory / files.TEXTS, "wb") as file:
        sizes = [file.write(store.texts[place].encode()) for place in order]
    np.save(directory / files.OFFSETS, np.cumsum([0, *sizes], dtype=np.int64))
    return len(order)


def save_bm25(directory, parts, words):
    """Writes an index that `bm25s.BM25.load` reads (Lu 2024), without the words themselves.

        score(w, d) = idf(w) tf / (tf + k1 (1 - b + b |d| / mean |d|)),   idf(w) = log(1 + (N - df +
        1/2) / (df + 1/2))

    bm25s computes the same from lists of Python numbers: fifteen times slower.

    `parts()`, called twice, yields all documents as `data.sequences.Sequences.parts` does, with ids
    below `words`.
    """
    frequency, documents, length = np.zeros(words, np.int64), 0, 0
    for part in parts():
        frequency += part.document_frequency(words)
        documents, length = documents + len(part), length + len(part.ids)
    index = bm25s.BM25()
    idf = np.log1p((documents - frequency + 0.5) / (frequency + 0.5))
    ends = np.cumsum(frequency)
    data, indices = np.empty(ends[-1], np.float32), np.empty(ends[-1], np.int32)
    place, first = ends - frequency, 0  # of the next entry of each word; of the next document
    for part in parts():
        tf = scipy.sparse.csc_matrix(
            (np.ones(len(part.ids)), (part.owners(), part.ids)), (len(part), words)
        )
        counts, relative = (
            np.diff(tf.indptr),
            (part.lengths / max(length / documents, 1e-9))[tf.indices],
        )
        at = np.arange(tf.nnz) + np.repeat(place - tf.indptr[:-1], counts)
        data[at] = (
            np.repeat(idf, counts)
            * tf.data
            / (tf.data + index.k1 * (1 - index.b + index.b * relative))
        )
        indices[at] = first + tf.indices
        place, first = place + counts, first + len(part)
    starts = np.concatenate([[0], ends]).astype(np.int64)
    index.scores = {"data": data, "indices": indices, "indptr": starts, "num_docs": documents}
    index.vocab_dict, index.nonoccurrence_array = {}, None
    index.save(directory, show_progress=False)
