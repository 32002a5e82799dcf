"""The lines of a corpus as flat arrays: those of `tasks.selection.data`, with words numbered as they come.

A file is read block by block. A block depends on nothing but its own lines, so other processes can read it.
"""

import array
import contextlib
import functools

import numpy as np

from base.files import UserError
from data.flat_arrays import BLOCK, GrowingArray, StoredArray, first_occurrences, flatten, numbering, smallest_type
from data.text_files import Span
from engine.cluster import Lost
from tasks.selection.data import SPLITS, TYPES, path_of

WORDS = {"words": "uint32"}
"""The numbers of the words, in order of their first appearance in the corpus."""
SPOKEN = {"hash": "int64", "start": "int64", "length": "int32"}
"""Of each utterance of the lines with label 1, those of a context once: hash of the text, place in `words`, length."""
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

# === Reading ===


def blocks_of(reader, file, tokenize, spoken, opener=open):
    """Reads the lines of a file in blocks of whole contexts.

    Args:
        reader: A reader of `data.corpora.CORPORA`.
        file: The file.
        tokenize: Function from a text to its list of words.
        spoken: Whether a block also has the arrays of `SPOKEN`.
        opener: See `data.text_files.read_lines`.

    Yields:
        `(words, arrays)`: the distinct words of a block in order of appearance, and its arrays, as if the file had no
        other lines; `arrays["words"]` are places in `words`.

    Raises:
        UserError: at the first malformed line.
    """
    block = _Block(tokenize, spoken)
    for line in reader.read(file, opener):
        if line.turns != block.turns and len(block.arrays["words"]) > BLOCK:
            yield block.finished()
            block = _Block(tokenize, spoken)
        block.add(line)
    yield block.finished()


def blocks_on_cluster(results, reader, file, tokenize, spoken):
    """`blocks_of` on the machines of a cluster, `results` of `engine.cluster.on_cluster`: each reads parts of the file.

    Raises:
        UserError: at the first malformed line, and if the cluster cannot read the file.
    """
    how = {"reader": reader, "file": file.resolve(), "tokenize": tokenize, "spoken": spoken}
    try:
        yield from results(functools.partial(_blocks_of_span, **how), reader.spans(file, SPAN))
    except Lost as error:
        for _ in reader.read(file):  # raises if a line is malformed
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
        self.turns, self.unspoken = None, []
        self.numbers = functools.lru_cache(CACHED)(lambda text: tuple([self.words[word] for word in tokenize(text)]))

    def finished(self):
        return list(self.words), {name: np.array(values) for name, values in self.arrays.items()}

    def add(self, line):
        arrays = self.arrays
        if line.turns != self.turns:
            self.turns = line.turns
            arrays["context_start"].append(len(arrays["turn_starts"]))
            arrays["context_turns"].append(len(line.turns))
            self.unspoken = [self._add_text(text, "turn_starts", "turn_lengths") for text in line.turns]
        response = self._add_text(line.response, "response_starts", "response_lengths")
        arrays["context"].append(len(arrays["context_start"]) - 1)
        arrays["label"].append(line.label)
        if line.label == 1 and self.spoken:
            for text, start, length in [*self.unspoken, response]:
                arrays["hash"].append(hash(text))
                arrays["start"].append(start)
                arrays["length"].append(length)
            self.unspoken = []

    def _add_text(self, text, starts, lengths):
        numbers, start = self.numbers(text), len(self.arrays["words"])
        self.arrays["words"].extend(numbers)
        self.arrays[starts].append(start)
        self.arrays[lengths].append(len(numbers))
        return text, start, len(numbers)


# === Arrays of a split ===


def write_blocks(blocks, directory, split, words):
    """Writes the blocks of a file, in order, into the arrays of a split.

    Args:
        blocks: Yielded by `blocks_of`.
        directory: Directory of the arrays.
        split: Name of the split.
        words: `data.flat_arrays.numbering` of the corpus's words.
    """
    types = WORDS | TYPES | (SPOKEN if split == "train" else {})
    with contextlib.ExitStack() as stack:
        files = {
            name: stack.enter_context(GrowingArray(path_of(directory, split, name), dtype))
            for name, dtype in types.items()
        }
        for found, arrays in blocks:
            arrays["words"] = np.array([words[word] for word in found], np.uint32)[arrays["words"]]
            before = {name: len(file) for name, file in files.items()}
            for name, values in arrays.items():
                files[name].write(values + before[COUNTED_FROM[name]] if name in COUNTED_FROM else values)


def encode(directory, split, ids, unknown):
    """Writes the words of a split as ids, and returns how many are unknown.

    Args:
        directory, split: See `write_blocks`.
        ids: The id of each word, by its number.
        unknown: Whether the vocabulary lacks it, bool `(len(ids),)`.
    """
    ids, found = np.asarray(ids, smallest_type(max(ids, default=0))), 0
    with GrowingArray(path_of(directory, split, "ids"), ids.dtype) as file:
        for _, numbers in StoredArray(path_of(directory, split, "words")).blocks():
            file.write(ids[numbers])
            found += int(unknown[numbers].sum())
    return found


def clear(directory):
    """Removes the arrays that a prepared dataset lacks."""
    for split in SPLITS:
        for name in WORDS | SPOKEN:
            path_of(directory, split, name).unlink(missing_ok=True)


# === Training text ===


class Utterances:
    """The distinct utterances of the training lines with label 1, in file order: an iterable of lists of words.

    Args:
        directory: See `write_blocks`.
        words: The corpus's words in order of their numbers.
    """

    def __init__(self, directory, words):
        self._words = list(words)
        self._numbers = StoredArray(path_of(directory, "train", "words"))
        hashes, self._starts, self._lengths = (StoredArray(path_of(directory, "train", name)) for name in SPOKEN)
        self._first = first_occurrences(hashes)

    def __len__(self):
        return int(self._first.sum())

    def __iter__(self):
        for lengths, numbers in self._blocks():
            words, end = [self._words[number] for number in numbers.tolist()], 0
            for length in lengths.tolist():
                yield words[end : end + length]
                end += length

    def counts(self):
        """Counts the words that occur: `{word: count}`."""
        counts = np.zeros(len(self._words), np.int64)
        for _, numbers in self._blocks():
            counts += np.bincount(numbers, minlength=len(counts))
        return {word: count for word, count in zip(self._words, counts.tolist(), strict=True) if count}

    def _blocks(self):
        for place, starts in self._starts.blocks(UTTERANCES):
            first = self._first[place : place + len(starts)]
            starts, lengths = starts[first], self._lengths.read(place, place + len(first))[first]
            yield lengths, flatten(self._numbers, starts, lengths)


def conversations(directory, words):
    """Yields the words of each training conversation: a context with its correct response, or several lines joined.

    Lines are joined if a context is the previous one with its response, or has another response to the same.

    Args:
        directory, words: See `Utterances`.
    """
    arrays = {name: StoredArray(path_of(directory, "train", name)).mapped() for name in ("words", *TYPES)}
    names, spoken = list(words), []

    def text(kind, place):
        start = arrays[f"{kind}_starts"][place]
        return arrays["words"][start : start + arrays[f"{kind}_lengths"][place]].tolist()

    for line in np.flatnonzero(arrays["label"] == 1):
        first, count = (int(arrays[name][arrays["context"][line]]) for name in ("context_start", "context_turns"))
        context = [text("turn", place) for place in range(first, first + count)]
        if context not in (spoken[-count:], spoken[-count - 1 : -1]):  # the latter: another response to the same
            if spoken:
                yield [names[number] for turn in spoken for number in turn]
            spoken = context
        spoken = [*spoken, text("response", line)]
    if spoken:
        yield [names[number] for turn in spoken for number in turn]
