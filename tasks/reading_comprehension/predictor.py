"""A reading comprehension model that answers plain text.

A passage longer than training reads is read in overlapping windows: time grows with its length,
memory does not. Windows are compared by their logits, not by their probabilities, which sum to 1 in
each, also in one without an answer (Clark and Gardner 2018, section 3).

Letters: T passage words   W words of a window   J question words
"""

import dataclasses
import functools
import math
from typing import NamedTuple

import keras
import numpy as np
import scipy.special

from colloquy.base.config import Config
from colloquy.base.files import UserError
from colloquy.data.corpora.squad import TOKEN, tokenize
from colloquy.data.sequences import Sequences
from colloquy.data.vocabulary import Vocabulary
from colloquy.engine.parallel import compile_for_all_sizes
from colloquy.engine.predictor import Predictor, attention_map, in_brackets
from colloquy.engine.task import check_fields
from colloquy.layers.masking import LOWEST
from colloquy.models.bidaf import best_spans
from colloquy.tasks.reading_comprehension.confidence import content_words, scale_of, shared_words
from colloquy.tasks.reading_comprehension.data import CHARACTERS, ReadingSplit, Tokens
from colloquy.tasks.reading_comprehension.scoring import MAX_LENGTH

BATCH_WORDS = 8000  # of the windows that are read at once, padding included, unless one has more
ROW_WORDS = 100  # words of a window, and of a question, that are a row for a server's limits
BEST, SPANS = 5, 100  # answers that are listed, and spans of a window that they are chosen from


class Window(NamedTuple):
    """Words `first` to `end - 1` of passage `row`, which are read at once."""

    row: int
    first: int
    end: int


class Span(NamedTuple):
    """A possible answer: the sum of its two logits, its first and last words in the passage, where
    it was found.
    """

    score: float
    first: int
    last: int
    window: Window | None = None


def windows_of(row, words, size, overlap):
    """The windows of `size` words of a passage, its index `row`; the last one ends where the
    passage ends.

    Neighbours share at least `overlap` words, fewer than `size`: an answer of at most this many is
        whole in a window.

    >>> [window[1:] for window in windows_of(0, 10, size=5, overlap=2)]
    [(0, 5), (3, 8), (5, 10)]
    >>> [window[1:] for window in windows_of(0, 4, size=5, overlap=2)]
    [(0, 4)]
    """
    starts = [*range(0, words - size, size - overlap), max(words - size, 0)]
    return [Window(row, start, min(start + size, words)) for start in starts]


def best_apart(spans, count):
    """The best spans, at most `count`, no two with a common word.

    >>> [span.first for span in best_apart([Span(2.0, 3, 4), Span(1.0, 4, 6), Span(0.5, 5, 6)], 2)]
    [3, 5]
    """
    kept = []
    for span in sorted(spans, key=lambda span: (-span.score, span.first, span.last)):
        if len(kept) < count and all(
            span.last < other.first or other.last < span.first for other in kept
        ):
            kept.append(span)
    return kept


class Found(Config):
    """A part of a passage that may answer a question."""

    answer: str
    start: int
    end: int
    """Its place in the passage, in characters."""
    score: float
    """The sum of two logits, which can be compared between passages and questions of one model."""
    probability: float
    """Its probability within the passage."""
    confidence: float | None
    """The probability that it is correct, if the passage answers every second question: fitted to
    dev, see `tasks.reading_comprehension.confidence`. Null in a run without that scale."""


class SpanReader(keras.Model):
    """The logits of a model, float32, and its best spans, see `models.bidaf.best_spans`."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def call(self, inputs):
        logits = keras.ops.cast(self.model(inputs), "float32")
        return logits, *best_spans(logits, MAX_LENGTH, SPANS, self.model.config.length_penalty)


class ReadingComprehensionPredictor(Predictor):
    """Finds the answer to a question in a passage, with the model of a run; a broken one is a
    `UserError`.
    """

    class Instance(Config):
        """A question about a text."""

        passage: str
        """The text that contains the answer."""
        question: str

    class Answer(Found):
        """The best answer."""

        good: bool | None
        """False if 95 % of the correct answers of dev had a higher confidence. Null without that
        scale.
        """
        n_best: list[Found]
        """The best answers that share no word; the first is this one."""
        unknown_percent: float
        """Percentage of the words of passage and question without a word vector."""

    def __init__(self, run):
        self.vocabulary, self.characters = run.vocabulary, Vocabulary.load(run.path / CHARACTERS)
        self.model, self.scale = run.load_model(), scale_of(run)
        self._reader = SpanReader(self.model)
        compile_for_all_sizes(self._reader, self.model.input)
        self.window = max(run.training.max_context, 4 * MAX_LENGTH)  # words
        sizes = {"vocabulary_size": len(self.vocabulary), "characters": len(self.characters)}
        check_fields(self.model.config, sizes, run.path)

    def check(self, instance):
        for name, text in instance:
            if not TOKEN.search(text):
                raise UserError(f"{name}: expected words. Received: {text!r:.60}")

    def answer(self, instances):
        asked = self._split(instances)
        return [self._answer(asked, row, *found) for row, found in enumerate(self._read(asked))]

    def padded_rows(self, instance):
        """A row for each `ROW_WORDS` words of each window, for as many words of the question."""
        passage_words = len(tokenize(instance.passage))
        question_words = len(tokenize(instance.question))
        windows = windows_of(0, passage_words, self.window, self.window // 4)
        rows_per_window = math.ceil(min(passage_words, self.window) / ROW_WORDS)
        return len(windows) * max(1, rows_per_window) * math.ceil(question_words / ROW_WORDS)

    def show(self, instance):
        """Like `Predictor`'s; words in brackets are read by their letters alone."""
        [answer] = self.answer([instance])
        read = [
            (name, in_brackets([word.lower() for word in _words(text)], self.vocabulary))
            for name, text in instance
        ]
        return read, [(each.score, each.answer) for each in answer.n_best]

    def answer_with_attention(self, instance, details):
        """Like `Predictor`'s; of a long passage, in the window that holds the answer."""
        asked = self._split([instance])
        [(spans, logits)] = self._read(asked)
        window = best_apart(spans, 1)[0].window
        p_2W = scipy.special.softmax(logits[window], axis=1)
        words = _words(instance.passage)[window.first : window.end]
        maps = [attention_map("probabilities", ["start", "end"], words, p_2W)]
        if self.model.config.attention != "dynamic":
            maps += self._flow(_split_of(asked, [window]), words, _words(instance.question))
        return self._answer(asked, 0, spans, logits), maps

    def _flow(self, split, words, question):
        """Attention between the words of a window and of the question, `a` and `b` of the paper's
        section
        2.4: C2Q a row per word of the window, Q2C one for the whole question."""
        flow, (inputs, _) = self.model.get_layer("attention_flow"), split.collate([0])
        S_TJ = np.asarray(flow.similarity(*self._encoder.predict_on_batch(inputs))[0], np.float64)
        a_TJ, b_T = scipy.special.softmax(S_TJ, axis=1), scipy.special.softmax(S_TJ.max(axis=1))
        c2q = attention_map("passage attends to question", words, question, a_TJ)
        q2c = attention_map("question attends to passage", ["question"], words, b_T[None])
        return [c2q] * flow.c2q + [q2c] * flow.q2c

    @functools.cached_property
    def _encoder(self):
        """A model of what enters the attention flow, `H` and `U`."""
        encoder = keras.Model(self.model.input, self.model.get_layer("attention_flow").input[:2])
        compile_for_all_sizes(encoder)
        return encoder

    def _split(self, instances):
        """Questions on passages, a context each."""
        passages, questions = (
            [getattr(each, name) for each in instances] for name in ("passage", "question")
        )
        index, count = {}, len(instances)
        contexts, asked = (
            Sequences.of(
                [
                    [index.setdefault(word, len(index) + 1) for word in _words(text)]
                    for text in texts
                ]
            )
            for texts in (passages, questions)
        )
        return ReadingSplit(
            tokens=Tokens.of(list(index), self.vocabulary, self.characters),
            contexts=contexts,
            texts=passages,
            offsets=Sequences.of(
                [[place for span in tokenize(text) for place in span] for text in passages]
            ),
            articles=np.zeros(count, int),
            ids=[""] * count,
            context=np.arange(count),
            questions=asked,
            answers=[[]] * count,
            spans=[[]] * count,
            question_texts=questions,
        )

    def _read(self, asked):
        """Reads each passage: a list of its best spans, and `{window: logits of start and end,
        float64 (2, W)}`.
        """
        read, lengths = [([], {}) for _ in asked.texts], enumerate(asked.contexts.lengths.tolist())
        windows = [
            each
            for row, words in lengths
            for each in windows_of(row, words, self.window, self.window // 4)
        ]
        windows.sort(key=lambda window: window.end - window.first)
        size = max(1, BATCH_WORDS // self.window)
        for batch in (windows[start : start + size] for start in range(0, len(windows), size)):
            inputs, _ = _split_of(asked, batch).collate(np.arange(len(batch)), multiple=16)
            found = map(np.asarray, self._reader.predict_on_batch(inputs))
            for window, logits_2T, *places in zip(batch, *found, strict=True):
                spans, logits = read[window.row]
                logits[window] = logits_2T[:, : window.end - window.first].astype(np.float64)
                for first, last, score in zip(*map(np.ndarray.tolist, places), strict=True):
                    if score > LOWEST:
                        spans.append(Span(score, window.first + first, window.first + last, window))
        return read

    def _answer(self, asked, row, spans, logits):
        # where windows overlap, the highest
        logits_2T = np.full((2, asked.contexts.lengths[row]), LOWEST)
        for window, logits_2W in logits.items():
            part = logits_2T[:, window.first : window.end]
            np.maximum(part, logits_2W, out=part)
        log_z, n_best = np.logaddexp.reduce(logits_2T, axis=1).sum(), []
        question, passage = (each.lists([row])[0] for each in (asked.questions, asked.contexts))
        for score, first, last, window in best_apart(spans, BEST):
            start, end = asked.place(row, first, last)
            log_p = logits_2T[0, first] + logits_2T[1, last] - log_z
            found = {
                "answer": asked.texts[row][start:end],
                "start": start,
                "end": end,
                "score": score,
            }
            words = (
                content_words(asked.tokens, each)
                for each in (question, passage[window.first : window.end])
            )
            confidence = self.scale and self.scale.confidence(score, shared_words(*words))
            n_best.append(Found(**found, probability=float(np.exp(log_p)), confidence=confidence))
        good = self.scale and n_best[0].confidence >= self.scale.threshold
        words = [
            word.lower()
            for text in (asked.texts[row], asked.question_texts[row])
            for word in _words(text)
        ]
        ids = self.vocabulary.encode(word for word in words if any(map(str.isalnum, word)))
        unknown = round(100 * ids.count(self.vocabulary.unk_id) / max(len(ids), 1), 1)
        return self.Answer(**dict(n_best[0]), good=good, n_best=n_best, unknown_percent=unknown)


def _words(text):
    return [text[start:end] for start, end in tokenize(text)]


def _split_of(asked, windows):
    """A question for each window; the context of each is the window."""
    rows, first, end = np.array(windows).T
    contexts = Sequences(asked.contexts.ids, asked.contexts.starts[rows] + first, end - first)
    return dataclasses.replace(asked.asked_of(rows, np.arange(len(windows))), contexts=contexts)
