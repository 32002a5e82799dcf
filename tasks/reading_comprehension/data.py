"""Reading comprehension: questions on contexts in memory, and their batches as NumPy arrays.

Letters: N distinct tokens   L characters   B questions   T context words   J query words   A spans of an answer
"""

import dataclasses

import numpy as np

from data.sequences import Sequences, round_up

CHARACTERS = 16  # of a word that are read, as in the paper
NO_SPAN = -1


@dataclasses.dataclass(frozen=True)
class Tokens:
    """What is known of each distinct token; row 0 is padding."""

    words: np.ndarray
    """Word ids, int32 `(tokens + 1,)`."""
    characters: np.ndarray
    """Character ids, int32 `(tokens + 1, L)`, padded with 0."""

    @classmethod
    def of(cls, texts, vocabulary, characters):
        """Looks tokens up: words in lower case, characters as they are.

        Args:
            texts: List of tokens.
            vocabulary: `data.vocabulary.Vocabulary` of lower-case words.
            characters: `Vocabulary` of characters.

        >>> from data.vocabulary import Vocabulary
        >>> tokens = Tokens.of(["Ab", "c"], Vocabulary.of(["ab"]), Vocabulary.of("abA"))
        >>> tokens.words.tolist(), tokens.characters[:, :3].tolist()
        ([0, 3, 2], [[0, 0, 0], [5, 4, 0], [2, 0, 0]])
        """
        words = np.zeros(len(texts) + 1, np.int32)
        words[1:] = vocabulary.encode(text.lower() for text in texts)
        ids = np.zeros((len(texts) + 1, CHARACTERS), np.int32)
        for row, text in enumerate(texts, 1):
            found = characters.encode(text[:CHARACTERS])
            ids[row, : len(found)] = found
        return cls(words, ids)


@dataclasses.dataclass(frozen=True)
class ReadingSplit:
    """The questions of a split."""

    tokens: Tokens
    contexts: Sequences
    """Tokens of every context of the dataset."""
    texts: list[str]
    """Their texts."""
    offsets: list[list[int]]
    """Starts and ends of their tokens, in turn."""
    ids: list[str]
    context: np.ndarray
    """The context of each question `(questions,)`."""
    questions: Sequences
    """Their tokens."""
    answers: list[list[str]]
    """Their reference answers."""
    spans: list[list[tuple[int, int]]]
    """First and last tokens of these."""
    question_texts: list[str] = dataclasses.field(default_factory=list)
    """The questions as they were asked."""

    def __len__(self):
        return len(self.ids)

    @property
    def sizes(self):
        """Context and query words of each question, int `(questions, 2)`."""
        return np.stack([self.contexts.lengths[self.context], self.questions.lengths], axis=1)

    def collate(self, rows, max_context=None, max_question=None, multiple=1):
        """A batch of questions.

        Args:
            rows: Numbers of questions, int `(B,)`.
            max_context, max_question: Words that are read of each, the first ones; `None`: all.
            multiple: Sizes are rounded up to it.

        Returns:
            `(inputs, spans)`: the dict that `models.bidaf.BiDAF` takes, and int32 `(B, A, 2)`, first and last words of
            the answers within the words that are read, padded with -1.
        """

        def cut(sequences, numbers, limit):
            return sequences.padded(numbers, sequences.width(numbers, limit, multiple), limit, keep="first")

        context = cut(self.contexts, self.context[rows], max_context)
        query = cut(self.questions, rows, max_question)
        distinct, number = np.unique(np.concatenate([[0], context.ravel(), query.ravel()]), return_inverse=True)
        number = number[1:].astype(np.int32)
        size = round_up(len(distinct), 16 * multiple)
        words = np.zeros(size, np.int32)
        characters = np.zeros((size, self.tokens.characters.shape[1]), np.int32)
        words[: len(distinct)] = self.tokens.words[distinct]
        characters[: len(distinct)] = self.tokens.characters[distinct]
        read = max_context or context.shape[1]  # words; the width may be more, for it is rounded up
        spans = [[span for span in self.spans[row] if span[1] < read] for row in rows]
        padded = np.full((len(rows), max([1, *map(len, spans)]), 2), NO_SPAN, np.int32)
        for row, found in enumerate(spans):
            padded[row, : len(found)] = np.array(found).reshape(-1, 2)
        inputs = {
            "words": words,
            "characters": characters,
            "context": number[: context.size].reshape(context.shape),
            "query": number[context.size :].reshape(query.shape),
        }
        return inputs, padded

    def answer(self, row, first, last):
        """The text from one word of a question's context to another, as the context has it."""
        offsets = self.offsets[self.context[row]]
        return self.texts[self.context[row]][offsets[2 * first] : offsets[2 * last + 1]]
