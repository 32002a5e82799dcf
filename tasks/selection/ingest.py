"""The lines of a corpus as flat arrays: what `tasks.selection.arrays` has, the words still numbered as they came.

A file is read block by block, and blocks depend on nothing but their own lines: other processes can read them.
"""

import array
import functools

import numpy as np

from base.files import UserError
from data.cluster import Lost
from data.flat_arrays import (
    BLOCK,
    GrowingArray,
    StoredArray,
    first_occurrences,
    flatten,
    numbering,
    smallest_type,
)
from data.text_files import Span
from tasks.selection.arrays import TYPES, growing, path_of

WORDS = {"words": "uint32"}
"""The numbers of the words, in order of their first appearance in the corpus."""
SPOKEN = {"hash": "int64", "start": "int64", "length": "int32"}
"""Of each utterance of the lines with label 1, those of a context once: of its text, and where its words are."""
COUNTED_FROM = {
    **{"turn_starts": "words", "response_starts": "words", "start": "words"},
    **{"context_start": "turn_starts", "context": "context_start"},
}
"""The array whose items each of these counts."""
CACHED = 2**16
"""Texts whose words are remembered: those of a conversation come again, line after line."""
SPAN = 2**25
"""Bytes of a file that a machine of a cluster reads at once."""
UTTERANCES = 2**16
"""Utterances whose words are in memory at once."""


def blocks_of(reader, file, tokenize, spoken, opener=open):
    """Reads the lines of a file in blocks of whole contexts.

    Args:
        reader: Of `data.corpora.CORPORA`.
        file: The file.
        tokenize: Function from a text to its list of words.
        spoken: Whether a block also has the arrays of `SPOKEN`.
        opener: As of `data.text_files.read_lines`.

    Yields:
        A block's distinct words in order of appearance, and its arrays, as if the file had no other lines; their
        `words` are places in this list.

    Raises:
        UserError: at the first line that is not in the format.
    """
    block = _Block(tokenize, spoken)
    for line in reader.read(file, opener):
        if line.turns != block.turns and len(block.arrays["words"]) > BLOCK:
            yield block.found()
            block = _Block(tokenize, spoken)
        block.add(line)
    yield block.found()


def blocks_on_cluster(results, reader, file, tokenize, spoken):
    """As `blocks_of`, by the machines of a cluster, each of which reads parts of the file.

    Args:
        results: What `data.cluster.on_cluster` yields.
        reader, file, tokenize, spoken: As of `blocks_of`.

    Raises:
        UserError: also where the cluster cannot read the file.
    """
    how = {"reader": reader, "file": file.resolve(), "tokenize": tokenize, "spoken": spoken}
    try:
        yield from results(functools.partial(_blocks_of_span, **how), reader.spans(file, SPAN))
    except Lost as error:
        for _ in reader.read(file):  # which names a malformed line
            pass
        raise UserError(
            f"{file}: every machine of the Ray cluster must be able to read it. Received: {error}"
        ) from error


def _blocks_of_span(span, **how):
    return blocks_of(**how, opener=lambda path, _: Span(path, *span))


class _Block:
    def __init__(self, tokenize, spoken):
        self.words, self.spoken = numbering(), spoken
        types = WORDS | TYPES | (SPOKEN if spoken else {})
        self.arrays = {name: array.array(np.dtype(dtype).char) for name, dtype in types.items()}
        self.turns, self.unspoken = None, ()
        self.numbers = functools.lru_cache(CACHED)(lambda text: tuple([self.words[word] for word in tokenize(text)]))

    def found(self):
        return list(self.words), {name: np.array(values) for name, values in self.arrays.items()}

    def add(self, line):
        arrays = self.arrays
        if line.turns != self.turns:
            self.turns = line.turns
            arrays["context_start"].append(len(arrays["turn_starts"]))
            arrays["context_turns"].append(len(line.turns))
            self.unspoken = [(text, *self._text(text, "turn_starts", "turn_lengths")) for text in line.turns]
        response = (line.response, *self._text(line.response, "response_starts", "response_lengths"))
        arrays["context"].append(len(arrays["context_start"]) - 1)
        arrays["label"].append(line.label)
        if line.label == 1 and self.spoken:
            for text, start, length in (*self.unspoken, response):
                arrays["hash"].append(hash(text))
                arrays["start"].append(start)
                arrays["length"].append(length)
            self.unspoken = ()

    def _text(self, text, starts, lengths):
        """Adds a text; where it begins, and how long it is."""
        numbers, start = self.numbers(text), len(self.arrays["words"])
        self.arrays["words"].extend(numbers)
        self.arrays[starts].append(start)
        self.arrays[lengths].append(len(numbers))
        return start, len(numbers)


def write_blocks(blocks, directory, split, words):
    """Writes the blocks of a file, in order, into the arrays of a split.

    Args:
        blocks: As `blocks_of` yields them.
        directory: Where the arrays go.
        split: Name of the split.
        words: `data.flat_arrays.numbering` of the corpus's words.
    """
    with growing(directory, split, **WORDS, **TYPES, **(SPOKEN if split == "train" else {})) as files:
        for found, arrays in blocks:
            arrays["words"] = np.array([words[word] for word in found], np.uint32)[arrays["words"]]
            before = {name: len(files[name]) for name in arrays}
            for name, values in arrays.items():
                files[name].write(values + before[COUNTED_FROM[name]] if name in COUNTED_FROM else values)


class Utterances:
    """The distinct utterances of the training lines with label 1, in the order of the file.

    Args:
        directory: Where `write_blocks` has written.
        words: The corpus's words in order of their numbers.
    """

    def __init__(self, directory, words):
        self._words = words
        self._numbers = StoredArray(path_of(directory, "train", "words"))
        hashes, self._starts, self._lengths = (StoredArray(path_of(directory, "train", name)) for name in SPOKEN)
        self._first = first_occurrences(hashes)

    def __len__(self):
        return int(self._first.sum())

    def _blocks(self):
        for place, starts in self._starts.blocks(UTTERANCES):
            first = self._first[place : place + len(starts)]
            starts, lengths = starts[first], self._lengths.read(place, place + len(first))[first]
            yield lengths, flatten(self._numbers, starts, lengths)

    def counts(self):
        """How often each word occurs, `{word: count}`, without words that do not."""
        counts = np.zeros(len(self._words), np.int64)
        for _, numbers in self._blocks():
            counts += np.bincount(numbers, minlength=len(counts))
        return {word: count for word, count in zip(self._words, counts.tolist(), strict=True) if count}

    def __iter__(self):
        """Yields the list of words of each."""
        names = list(self._words)
        for lengths, numbers in self._blocks():
            words, end = [names[number] for number in numbers.tolist()], 0
            for length in lengths.tolist():
                yield words[end : end + length]
                end += length


def conversations(directory, words):
    """The training conversations: contexts with their correct responses, joined where a line goes on with the last one.

    Args:
        directory, words: As of `Utterances`.

    Yields:
        List of the words of a conversation, all its turns one after the other.
    """
    names = ("words", *TYPES)
    arrays = {name: StoredArray(path_of(directory, "train", name)).mapped() for name in names}
    texts, spoken = list(words), []

    def turn(kind, place):
        start = arrays[f"{kind}_starts"][place]
        return tuple(arrays["words"][start : start + arrays[f"{kind}_lengths"][place]].tolist())

    def said():
        return [texts[number] for each in spoken for number in each]

    for line in np.flatnonzero(arrays["label"] == 1):
        first, count = (int(arrays[name][arrays["context"][line]]) for name in ("context_start", "context_turns"))
        context = [turn("turn", place) for place in range(first, first + count)]
        if context not in (spoken[-count:], spoken[-count - 1 : -1]):  # the latter: another response to the same
            if spoken:
                yield said()
            spoken = context
        spoken = [*spoken, turn("response", line)]
    if spoken:
        yield said()


def encode(directory, split, ids, unknown):
    """Writes the words of a split as ids.

    Args:
        directory, split: As of `write_blocks`.
        ids: The id of each number of a word.
        unknown: Whether the vocabulary lacks it, bool `(len(ids),)`.

    Returns:
        How many words of the split are unknown.
    """
    ids, found = np.asarray(ids, smallest_type(max(ids, default=0))), 0
    with GrowingArray(path_of(directory, split, "ids"), ids.dtype) as file:
        for _, numbers in StoredArray(path_of(directory, split, "words")).blocks():
            file.write(ids[numbers])
            found += int(unknown[numbers].sum())
    return found


def clear(directory):
    """Removes the arrays that no `tasks.selection.arrays` has."""
    for split, types in (("train", WORDS | SPOKEN), ("dev", WORDS), ("test", WORDS)):
        for name in types:
            path_of(directory, split, name).unlink()
