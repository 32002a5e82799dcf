"""The lines of a corpus as flat arrays: what `tasks.selection.arrays` has, the words still numbered as they came."""

import functools

import numpy as np

from data.flat_arrays import BLOCK, GrowingArray, StoredArray, first_occurrences, smallest_type
from data.texts import flatten
from tasks.selection.arrays import TYPES, growing, path_of

WORDS = {"words": "uint32"}
"""The numbers of the words, as `data.texts.Words` gives them."""
SPOKEN = {"hash": "int64", "start": "int64", "length": "int32"}
"""Of each utterance of the lines with label 1, those of a context once: of its text, and where its words are."""
UTTERANCES = 2**16
"""Utterances whose words are in memory at once."""


def read_lines(reader, file, directory, split, words, progress):
    """Writes a file's lines into arrays.

    Args:
        reader: Of `data.corpora.CORPORA`.
        file: The file; `None`: there is none, and no lines.
        directory: Where the arrays go.
        split: Name of the split.
        words: `data.texts.Words` of the corpus.
        progress: `rich.progress.Progress`.

    Raises:
        UserError: at the first line that is not in the format.
    """
    types = WORDS | TYPES | (SPOKEN if split == "train" else {})
    with growing(directory, split, **types) as files:
        writer = _Writer(files, words.numbers, split == "train")
        if file is not None:
            opener = functools.partial(progress.open, description=f"reading {file.name}")
            for line in reader.read(file, opener):
                writer.add(line)
                if len(files.words.items) > BLOCK:
                    writer.flush()


class _Writer:
    def __init__(self, files, numbers, keep_spoken):
        self.files, self.numbers, self.keep_spoken = files, numbers, keep_spoken
        self.items = {name: file.items for name, file in vars(files).items()}
        self.turns, self.unspoken = None, ()
        self.words, self.turn, self.context = 0, 0, -1

    def flush(self):
        for file in vars(self.files).values():
            file.flush()

    def add(self, line):
        items = self.items
        if line.turns != self.turns:
            self.turns, self.context = line.turns, self.context + 1
            items["context_start"].append(self.turn)
            items["context_turns"].append(len(line.turns))
            self.turn += len(line.turns)
            self.unspoken = [(text, *self._text(text, "turn_starts", "turn_lengths")) for text in line.turns]
        response = (line.response, *self._text(line.response, "response_starts", "response_lengths"))
        items["context"].append(self.context)
        items["label"].append(line.label)
        if line.label == 1 and self.keep_spoken:
            for text, start, length in (*self.unspoken, response):
                items["hash"].append(hash(text))
                items["start"].append(start)
                items["length"].append(length)
            self.unspoken = ()

    def _text(self, text, starts, lengths):
        """Adds a text; where it begins, and how long it is."""
        numbers, start = self.numbers(text), self.words
        self.items["words"].extend(numbers)
        self.items[starts].append(start)
        self.items[lengths].append(len(numbers))
        self.words += len(numbers)
        return start, len(numbers)


class Utterances:
    """The distinct utterances of the training lines with label 1, in the order of the file.

    Args:
        directory: Where `read_lines` has written.
        words: The corpus's `data.texts.Words`.
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


def encode(directory, split, ids, unknown):
    """Writes the words of a split as ids.

    Args:
        directory, split: As of `read_lines`.
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
