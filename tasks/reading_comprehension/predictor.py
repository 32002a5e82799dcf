"""A reading comprehension model that answers plain text.

A passage longer than training reads is read in overlapping windows: time grows with its length,
memory does not. Windows are compared by their logits, not by their probabilities, which sum to 1 in
each, also in one without an answer (Clark and Gardner 2018, section 3).

Letters: T passage words   W words of a window   J question words
"""

import dataclasses
import functools
import itertools
import math
from typing import NamedTuple

import keras
import numpy as np
import scipy.special

from colloquy.base.config import Config
from colloquy.base.files import UserError
from colloquy.data.corpora.squad import tokenize, words_at
from colloquy.data.sequences import Sequences
from colloquy.data.vocabulary import Vocabulary
from colloquy.engine.parallel import compile_for_all_sizes
from colloquy.engine.predictor import Predictor, attention_map, in_brackets
from colloquy.engine.task import check_fields
from colloquy.layers.masking import LOWEST
from colloquy.models.bidaf import best_spans
from colloquy.tasks.reading_comprehension.confidence import load_scale
from colloquy.tasks.reading_comprehension.data import CHARACTERS, ReadingSplit, Tokens
from colloquy.tasks.reading_comprehension.scoring import MAX_LENGTH
from colloquy.tasks.reading_comprehension.second_contexts import content_words, shared_words

BATCH_WORDS = 8000
"""Words of the windows that are read at once, padding included; a window may have more."""
ROW_WORDS = 100
"""Words of a window, and of a question, that are a row for a server's limits."""
BEST = 5
"""Answers that are listed."""
SPANS = 100
"""Spans of each window that the answers are chosen from."""
MAX_QUESTION_WORDS = 300
"""The longest question that is read: each word is compared with each of the passage."""


class Window(NamedTuple):
    """Words `first` to `end - 1` of passage `row`, which are read at once."""

    row: int
    first: int
    end: int


class Span(NamedTuple):
    """A possible answer: the sum of its two logits, its first and last words, its window."""

    score: float
    first: int
    last: int
    window: Window | None = None


def make_windows(row, words, size, overlap):
    """Makes the windows of `size` words of a passage, its index `row`.

    The last one ends where the passage ends. Neighbours share at least `overlap` words, fewer than
    `size`: an answer of at most this many is whole in a window.

    >>> [window[1:] for window in make_windows(0, 10, size=5, overlap=2)]
    [(0, 5), (3, 8), (5, 10)]
    >>> [window[1:] for window in make_windows(0, 4, size=5, overlap=2)]
    [(0, 4)]
    """
    last_start = max(words - size, 0)
    starts = [*range(0, last_start, size - overlap), last_start]
    return [Window(row, start, min(start + size, words)) for start in starts]


def best_apart(spans, count):
    """The best spans, at most `count`, no two with a common word.

    >>> [span.first for span in best_apart([Span(2.0, 3, 4), Span(1.0, 4, 6), Span(0.5, 5, 6)], 2)]
    [3, 5]
    """
    kept = []
    for span in sorted(spans, key=lambda span: (-span.score, span.first, span.last)):
        if len(kept) == count:
            break
        if all(span.last < other.first or other.last < span.first for other in kept):
            kept.append(span)
    return kept


class AnswerSpan(Config):
    """A part of a passage that may answer a question."""

    answer: str
    start: int
    end: int
    """Its offsets in the passage, in characters."""
    score: float
    """The sum of two logits, which can be compared between passages and questions of one model.
    With the model's `no_answer`, no answer has 0."""
    probability: float
    """Its probability within the passage; with `no_answer` the passage may also have no answer."""
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
    """Finds the answer to a question in a passage with the model of a run.

    A broken run is a `UserError`.
    """

    class Instance(Config):
        """A question about a text."""

        passage: str
        """The text that contains the answer."""
        question: str

    class Answer(AnswerSpan):
        """The best answer."""

        good: bool | None
        """True from a confidence of `threshold`. Null in a run without a scale of confidence."""
        threshold: float | None
        """Chosen on dev, see `tasks.reading_comprehension.confidence.Scale`."""
        n_best: list[AnswerSpan]
        """The best answers that share no word; the first is this one."""
        window_start: int
        window_end: int
        """Offsets in the passage, in characters, of the part in which the answer was found: a long
        passage is read in windows."""
        unknown_percent: float
        """Percentage of the words of passage and question without a word vector."""

    def __init__(self, run):
        self.vocabulary = run.vocabulary
        self.characters = Vocabulary.load(run.path / CHARACTERS)
        self.model = run.load_model()
        self.scale = load_scale(run)
        self._reader = SpanReader(self.model)
        compile_for_all_sizes(self._reader, self.model.input)
        self.window = max(run.training.max_context, 4 * MAX_LENGTH)  # words
        sizes = {"vocabulary_size": len(self.vocabulary), "characters": len(self.characters)}
        check_fields(self.model.config, sizes, run.path)

    def check(self, instance):
        for name, text in instance:
            if not tokenize(text):
                raise UserError(f"{name}: expected words. Received: {text!r:.60}")
        words = len(tokenize(instance.question))
        if words > MAX_QUESTION_WORDS:
            raise UserError(
                f"question: expected at most {MAX_QUESTION_WORDS} words. Received: {words:,}"
            )

    def answer(self, instances):
        asked = self._split(instances)
        answers = []
        for row, (spans, logits) in enumerate(self._read(asked)):
            answers.append(self._answer(asked, row, spans, logits))
        return answers

    def padded_rows(self, instance):
        """A row for each `ROW_WORDS` words of each window, for as many words of the question."""
        passage_words = len(tokenize(instance.passage))
        question_words = len(tokenize(instance.question))
        num_windows = len(self._windows(0, passage_words))
        rows_per_window = math.ceil(min(passage_words, self.window) / ROW_WORDS)
        return num_windows * max(1, rows_per_window) * math.ceil(question_words / ROW_WORDS)

    def show(self, instance):
        """Like `Predictor`'s; words in brackets are read by their letters alone."""
        [answer] = self.answer([instance])
        texts = []
        for name, text in instance:
            lower_words = [word.lower() for word in _words(text)]
            texts.append((name, in_brackets(lower_words, self.vocabulary)))
        return texts, [(span.score, span.answer) for span in answer.n_best]

    def answer_with_attention(self, instance, details):
        """Like `Predictor`'s; of a long passage, in the window that holds the answer."""
        asked = self._split([instance])
        [(spans, logits)] = self._read(asked)
        [best_span] = best_apart(spans, 1)
        window = best_span.window
        words = _words(instance.passage)[window.first : window.end]
        p_2W = scipy.special.softmax(logits[window], axis=1)
        maps = [attention_map("probabilities", ["start", "end"], words, p_2W)]
        if self.model.config.attention != "dynamic":
            question = _words(instance.question)
            maps += self._flow(_ask_of_windows(asked, [window]), words, question)
        return self._answer(asked, 0, spans, logits), maps

    def _flow(self, split, words, question):
        """Attention between the words of a window and of the question.

        `a` and `b` of the paper's section 2.4: C2Q has a row per word of the window, Q2C one for
        the whole question.
        """
        flow = self.model.get_layer("attention_flow")
        inputs, _ = split.collate([0])
        H_and_U = self._encoder.predict_on_batch(inputs)
        S_TJ = np.asarray(flow.similarity(*H_and_U)[0], np.float64)
        maps = []
        if flow.c2q:
            a_TJ = scipy.special.softmax(S_TJ, axis=1)
            maps.append(attention_map("passage attends to question", words, question, a_TJ))
        if flow.q2c:
            b_T = scipy.special.softmax(S_TJ.max(axis=1))
            maps.append(
                attention_map("question attends to passage", ["question"], words, b_T[None])
            )
        return maps

    @functools.cached_property
    def _encoder(self):
        """A model of what enters the attention flow, `H` and `U`."""
        encoder = keras.Model(self.model.input, self.model.get_layer("attention_flow").input[:2])
        compile_for_all_sizes(encoder)
        return encoder

    def _split(self, instances):
        """The split of these questions; each has a context of its own."""
        passages = [instance.passage for instance in instances]
        questions = [instance.question for instance in instances]
        count = len(instances)

        token_numbers = {}
        contexts = [_number_tokens(text, token_numbers) for text in passages]
        question_tokens = [_number_tokens(text, token_numbers) for text in questions]
        offsets = [list(itertools.chain(*tokenize(text))) for text in passages]
        return ReadingSplit(
            tokens=Tokens.of(list(token_numbers), self.vocabulary, self.characters),
            contexts=Sequences.of(contexts),
            texts=passages,
            offsets=Sequences.of(offsets),
            articles=np.zeros(count, int),
            ids=[""] * count,
            context=np.arange(count),
            questions=Sequences.of(question_tokens),
            answers=[[]] * count,
            spans=[[]] * count,
            question_texts=questions,
        )

    def _windows(self, row, words):
        return make_windows(row, words, size=self.window, overlap=self.window // 4)

    def _read(self, asked):
        """Reads each passage, in windows.

        Returns for each its best spans, and `{window: logits of start and end, float64 (2, W)}`.
        """
        windows = []
        for row, words in enumerate(asked.contexts.lengths.tolist()):
            windows += self._windows(row, words)
        windows.sort(key=lambda window: window.end - window.first)

        spans_and_logits = [([], {}) for _ in asked.texts]
        batch_size = max(1, BATCH_WORDS // self.window)
        for start in range(0, len(windows), batch_size):
            batch = windows[start : start + batch_size]
            batch_split = _ask_of_windows(asked, batch)
            inputs, _ = batch_split.collate(np.arange(len(batch)), multiple=16)
            outputs = [np.asarray(x) for x in self._reader.predict_on_batch(inputs)]
            for window, logits_2T, first_N, last_N, score_N in zip(batch, *outputs, strict=True):
                spans, logits = spans_and_logits[window.row]
                spans += _spans_of_passage(window, first_N, last_N, score_N)
                words = window.end - window.first
                logits[window] = logits_2T[:, :words].astype(np.float64)
        return spans_and_logits

    def _answer(self, asked, row, spans, logits):
        """Makes the answer of question `row` from what `_read` returns for it."""
        logits_2T = _merge_windows(logits, words=asked.contexts.lengths[row])
        log_z = np.logaddexp.reduce(logits_2T, axis=1).sum()
        if self.model.config.no_answer:
            log_z = np.logaddexp(log_z, 0.0)
        best_spans = best_apart(spans, BEST)
        n_best = []
        for span in best_spans:
            start, end = asked.char_offsets(row, span.first, span.last)
            log_p = logits_2T[0, span.first] + logits_2T[1, span.last] - log_z
            n_best.append(
                AnswerSpan(
                    answer=asked.texts[row][start:end],
                    start=start,
                    end=end,
                    score=span.score,
                    probability=float(np.exp(log_p)),
                    confidence=self._confidence(asked, row, span),
                )
            )

        window = best_spans[0].window
        window_start, window_end = asked.char_offsets(row, window.first, window.end - 1)
        good = None
        threshold = None
        if self.scale is not None:
            threshold = self.scale.threshold
            good = n_best[0].confidence >= threshold
        return self.Answer(
            **dict(n_best[0]),
            good=good,
            threshold=threshold,
            n_best=n_best,
            window_start=window_start,
            window_end=window_end,
            unknown_percent=self._unknown_percent(asked.texts[row], asked.question_texts[row]),
        )

    def _confidence(self, asked, row, span):
        """The confidence of a span by the scale of the run; `None` without one."""
        if self.scale is None:
            return None
        [question] = asked.questions.lists([row])
        [passage] = asked.contexts.lists([row])
        window_words = passage[span.window.first : span.window.end]
        shared = shared_words(
            content_words(asked.tokens, question), content_words(asked.tokens, window_words)
        )
        return self.scale.confidence(span.score, shared)

    def _unknown_percent(self, passage, question):
        """The percentage of words without a vector; punctuation does not count."""
        words = []
        for word in _words(passage) + _words(question):
            if any(char.isalnum() for char in word):
                words.append(word.lower())
        unknown = self.vocabulary.encode(words).count(self.vocabulary.unk_id)
        return round(100 * unknown / max(len(words), 1), 1)


def _words(text):
    return words_at(text, tokenize(text))


def _number_tokens(text, numbers):
    """The numbers of a text's tokens, from 1; new tokens are added to the dict `numbers`."""
    return [numbers.setdefault(token, len(numbers) + 1) for token in _words(text)]


def _ask_of_windows(asked, windows):
    """A split with a question for each window, whose context is the window."""
    rows, first, end = np.array(windows).T
    starts = asked.contexts.starts[rows] + first
    contexts = Sequences(asked.contexts.ids, starts, end - first)
    split = asked.asked_of(rows, np.arange(len(windows)))
    return dataclasses.replace(split, contexts=contexts)


def _spans_of_passage(window, first_N, last_N, score_N):
    """The `Span`s of a window, counted from the begin of its passage."""
    spans = []
    for first, last, score in zip(first_N.tolist(), last_N.tolist(), score_N.tolist(), strict=True):
        if score > LOWEST:
            spans.append(Span(score, window.first + first, window.first + last, window))
    return spans


def _merge_windows(logits, words):
    """The logits of a passage, `(2, T)`; where windows overlap, the highest."""
    logits_2T = np.full((2, words), LOWEST)
    for window, logits_2W in logits.items():
        part_2W = logits_2T[:, window.first : window.end]
        np.maximum(part_2W, logits_2W, out=part_2W)
    return logits_2T
