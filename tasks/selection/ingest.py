"""The lines of a corpus as the flat arrays of `tasks.selection.data`, with words numbered in order
of appearance.

A file is read block by block. A block depends on nothing but its own lines, so other processes can
read it.
"""

import collections
import contextlib
import functools
import itertools

import numpy as np

from colloquy.base.files import UserError
from colloquy.data.flat_arrays import (
    BLOCK,
    GrowingArray,
    StoredArray,
    first_occurrences,
    flatten,
    numbering,
)
from colloquy.data.text_files import Span
from colloquy.engine.cluster import Lost
from colloquy.tasks.selection.data import TYPES, path_of

SPOKEN = {"hash": "int64", "start": "int64", "length": "int32"}
"""Of each utterance of the lines with label 1, those of a context once: hash of the text, place in
`words`, length.
"""
NUMBERED = {"words": "uint32", **TYPES, **SPOKEN}
"""All arrays of a split; `words` are numbers of words, in order of their first appearance in the
corpus.
"""
COUNTED_FROM = {
    **{"turn_starts": "words", "response_starts": "words", "start": "words"},
    **{"context_start": "turn_starts", "context": "context_start"},
}
"""The array whose items each of these counts."""
# texts whose words are cached: the turns of a conversation are repeated line after line
CACHED = 2**16
SPAN = 2**25  # bytes of a file that one machine of a cluster reads at a time
UTTERANCES = 2**16  # utterances whose words are in memory at once


def blocks_of(reader, file, tokenize, opener=open):
    """Reads the lines of a file in blocks of whole contexts; a malformed one is a `UserError`.

    Yields `(words, arrays)`: the distinct words of a block in order of appearance, and its arrays,
    as if the file had no other lines; `arrays["words"]` are places in `words`.
    """
    block = _Block(tokenize)
    for line in reader.read(file, opener):
        if line.turns != block.turns and len(block.lists["words"]) > BLOCK:
            yield block.finished()
            block = _Block(tokenize)
        block.add(line)
    yield block.finished()


def blocks_on_cluster(results, reader, file, tokenize):
    """`blocks_of` by the machines of a cluster: `results` of `engine.cluster.on_cluster` of parts
    of the file.
    """
    read_span = functools.partial(
        _blocks_of_span, reader=reader, file=file.resolve(), tokenize=tokenize
    )
    try:
        yield from results(read_span, reader.spans(file, SPAN))
    except Lost as error:
        for _ in reader.read(file):  # raises if a line is malformed
            pass
        raise UserError(
            f"{file}: expected every machine of the Ray cluster to read it. Received: {error}"
        ) from error


def _blocks_of_span(span, **of):
    return blocks_of(**of, opener=lambda path, _: Span(path, *span))


class _Block:
    def __init__(self, tokenize):
        self.words, self.lists, self.turns, self.unspoken = (
            numbering(),
            collections.defaultdict(list),
            None,
            [],
        )
        self.numbers = functools.lru_cache(CACHED)(
            lambda text: [self.words[word] for word in tokenize(text)]
        )

    def finished(self):
        return list(self.words), {
            name: np.array(self.lists[name], dtype) for name, dtype in NUMBERED.items()
        }

    def add(self, line):
        lists = self.lists
        if line.turns != self.turns:
            self.turns = line.turns
            lists["context_start"].append(len(lists["turn_starts"]))
            lists["context_turns"].append(len(line.turns))
            self.unspoken = [self._add_text(text, "turn") for text in line.turns]
        response = self._add_text(line.response, "response")
        lists["context"].append(len(lists["context_start"]) - 1)
        lists["label"].append(line.label)
        if line.label == 1:
            for spoken in (*self.unspoken, response):
                for name, value in zip(SPOKEN, spoken, strict=True):
                    lists[name].append(value)
            self.unspoken = []

    def _add_text(self, text, kind):
        numbers, start = self.numbers(text), len(self.lists["words"])
        self.lists["words"] += numbers
        self.lists[f"{kind}_starts"].append(start)
        self.lists[f"{kind}_lengths"].append(len(numbers))
        return hash(text), start, len(numbers)


def write_blocks(blocks, directory, split, words):
    """Writes the `blocks_of` a file into the arrays of a split; `words`:
    `data.flat_arrays.numbering` of the corpus.
    """
    with contextlib.ExitStack() as stack:
        files = {
            name: stack.enter_context(GrowingArray(path_of(directory, split, name), dtype))
            for name, dtype in NUMBERED.items()
        }
        for found, arrays in blocks:
            arrays["words"] = np.array([words[word] for word in found], np.uint32)[arrays["words"]]
            before = {name: len(file) for name, file in files.items()}
            for name, values in arrays.items():
                files[name].write(
                    values + before[COUNTED_FROM[name]] if name in COUNTED_FROM else values
                )


def encode(directory, split, ids, unknown):
    """Replaces the word numbers of a split by ids, and removes arrays that a prepared dataset does
    not have.

    Returns the number of its words that are `unknown`, bool `(len(ids),)`.
    """
    ids, found = np.asarray(ids, "uint16" if max(ids, default=0) < 2**16 else "uint32"), 0
    with GrowingArray(path_of(directory, split, "ids"), ids.dtype) as file:
        for _, numbers in StoredArray(path_of(directory, split, "words")).blocks():
            file.write(ids[numbers])
            found += int(unknown[numbers].sum())
    for name in NUMBERED.keys() - TYPES.keys():
        path_of(directory, split, name).unlink()
    return found


class Utterances:
    """The distinct utterances of the training lines with label 1, in file order: an iterable of
    lists of words.
    """

    def __init__(self, directory, words):
        self._words = words
        self._numbers, hashes, self._starts, self._lengths = (
            StoredArray(path_of(directory, "train", name)) for name in ("words", *SPOKEN)
        )
        self._first = first_occurrences(hashes)

    def __len__(self):
        return int(self._first.sum())

    def __iter__(self):
        for lengths, numbers in self._blocks():
            words = iter([self._words[number] for number in numbers.tolist()])
            yield from (list(itertools.islice(words, length)) for length in lengths.tolist())

    def counts(self):
        counts = np.zeros(len(self._words), np.int64)
        for _, numbers in self._blocks():
            counts += np.bincount(numbers, minlength=len(counts))
        return {self._words[number]: int(counts[number]) for number in np.flatnonzero(counts)}

    def _blocks(self):
        for place, starts in self._starts.blocks(UTTERANCES):
            first = self._first[place : place + len(starts)]
            starts, lengths = starts[first], self._lengths.read(place, place + len(first))[first]
            yield lengths, flatten(self._numbers, starts, lengths)


def conversations(split, words):
    """Yields the words of each conversation of a split whose ids are numbers of `words`.

    A conversation is a context with its correct response. Lines are joined if a context is the
    previous one with its response, or has another response to the same.
    """
    spoken = []
    for line in np.flatnonzero(split.label == 1):
        context = split.turns.lists(split.turns_of(split.context[line]))
        if context not in (spoken[-len(context) :], spoken[-len(context) - 1 : -1]):
            if spoken:
                yield [words[number] for turn in spoken for number in turn]
            spoken = context
        spoken = spoken + split.responses.lists([line])
    yield [words[number] for turn in spoken for number in turn]
