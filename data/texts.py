"""Distinct texts as numbers of words, in flat arrays: a corpus takes 4 bytes per distinct word instead of a string."""

import array

import numpy as np


class Texts:
    """Texts, each split into words once however often it is added.

    Args:
        tokenize: Function from a text to its list of words.

    >>> texts = Texts(str.split)
    >>> [texts.add(text) for text in ("a b", "b b", "a b")]
    [0, 1, 0]
    >>> texts.counts([0, 1]), list(texts.sentences([1, 0]))
    ({'a': 1, 'b': 3}, [['b', 'b'], ['a', 'b']])
    """

    def __init__(self, tokenize):
        self._tokenize = tokenize
        self._numbers, self._words = {}, {}
        self._flat, self._ends = array.array("i"), array.array("q", [0])

    def __len__(self):
        return len(self._ends) - 1

    def add(self, text):
        """The number of a text, a new one where it was not added before."""
        number = self._numbers.setdefault(text, len(self._numbers))
        if number == len(self):
            words = self._words
            self._flat.extend([words.setdefault(word, len(words)) for word in self._tokenize(text)])
            self._ends.append(len(self._flat))
        return number

    def close(self):
        """Forgets the texts, which take more memory than all else; none can be added any more."""
        self._numbers.clear()

    def _of(self, number):
        return self._flat[self._ends[number] : self._ends[number + 1]]

    def counts(self, numbers):
        """How often each word occurs in some texts, `{word: count}`, without words that do not."""
        chosen = np.zeros(len(self), bool)
        chosen[np.asarray(numbers, np.int64)] = True
        lengths = np.diff(np.frombuffer(self._ends, np.int64))
        flat = np.frombuffer(self._flat, np.int32) if self._flat else np.zeros(0, np.int32)
        found = np.bincount(flat[np.repeat(chosen, lengths)], minlength=len(self._words)).tolist()
        return {word: count for word, count in zip(self._words, found, strict=True) if count}

    def sentences(self, numbers):
        """The words of some texts, as something to iterate over as often as one likes."""
        return _Sentences(self, numbers)

    def encoder(self, vocabulary):
        """A function from a text's number to its ids in a vocabulary, a new list each time."""
        ids = vocabulary.encode(self._words)
        return lambda number: [ids[word] for word in self._of(number)]


class _Sentences:
    def __init__(self, texts, numbers):
        self.texts, self.numbers = texts, numbers

    def __iter__(self):
        words = list(self.texts._words)
        for number in self.numbers:
            yield [words[word] for word in self.texts._of(number)]
