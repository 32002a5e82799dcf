"""The best spans of passages, as a model finds them.

A passage longer than training reads is read in overlapping windows: time grows with its length,
memory does not. Windows are compared by their logits, not by their probabilities, which sum to 1 in
each, also in one without an answer (Clark and Gardner 2018, section 3).

Letters: T passage words   W words of a window   N spans
"""

from typing import NamedTuple

import keras
import numpy as np

from colloquy.engine.cancellation import checkpoint
from colloquy.engine.parallel import compile_for_all_sizes
from colloquy.layers.masking import LOWEST
from colloquy.models.best_spans import best_spans
from colloquy.tasks.reading_comprehension.windows import Window, make_windows

BATCH_WORDS = 2000
"""Words of the windows that are read at once, padding included; a window may have more. Between two
batches a server gives up what nobody waits for."""
SPANS = 100
"""Spans of each window that the answers are chosen from."""
MULTIPLE = 16
"""The numbers of words of windows and questions are rounded up to multiples of this."""


class Span(NamedTuple):
    """A possible answer: the sum of its two logits, its first and last words, its window."""

    score: float
    first: int
    last: int
    window: Window | None = None


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


class SpanPrediction(NamedTuple):
    """What the model found in a passage, window by window."""

    spans: list[Span]
    """The best spans of all windows."""
    logits: dict[Window, np.ndarray]
    """Logits of start and end in each window, float64 `(2, W)`."""

    def passage_logits(self, num_words):
        """The logits of the whole passage, `(2, num_words)`; where windows overlap, the highest."""
        logits_2T = np.full((2, num_words), LOWEST)
        for window, logits_2W in self.logits.items():
            part_2W = logits_2T[:, window.first : window.end]
            np.maximum(part_2W, logits_2W, out=part_2W)
        return logits_2T


class BestSpans(keras.Model):
    """The logits of a model, float32, and its best spans, see `models.best_spans.best_spans`."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def call(self, inputs):
        logits = keras.ops.cast(self.model(inputs), "float32")
        config = self.model.config
        # A window has at least `MULTIPLE` words, padding included, and each is a span.
        count = min(SPANS, MULTIPLE * config.max_answer_words)
        best = best_spans(logits, config.max_answer_words, count, config.length_penalty)
        return logits, *best


class SpanFinder:
    """Finds the best spans of passages, window by window.

    Args:
        model: `models.bidaf.BiDAF`.
        window_words: The most words of a window.
    """

    def __init__(self, model, window_words):
        self.window_words = window_words
        self.best_spans = BestSpans(model)
        compile_for_all_sizes(self.best_spans, model.input)

    def windows(self, row, num_words):
        """The `Window`s of passage `row`, which has `num_words` words."""
        return make_windows(row, num_words, self.window_words)

    def find(self, asked):
        """Reads the passages of `Questions`; returns a `SpanPrediction` of each."""
        windows = []
        for row, words in enumerate(asked.contexts.lengths.tolist()):
            windows += self.windows(row, words)
        windows.sort(key=lambda window: window.end - window.first)

        readings = [SpanPrediction([], {}) for _ in range(len(asked))]
        batch_size = max(1, BATCH_WORDS // self.window_words)
        for start in range(0, len(windows), batch_size):
            batch = windows[start : start + batch_size]
            inputs, _ = asked.collate([window.row for window in batch], batch, multiple=MULTIPLE)
            outputs = [np.asarray(x) for x in self.best_spans.predict_on_batch(inputs)]
            for window, logits_2T, first_N, last_N, score_N in zip(batch, *outputs, strict=True):
                words = window.end - window.first
                reading = readings[window.row]
                reading.spans.extend(_spans_of_passage(window, first_N, last_N, score_N))
                reading.logits[window] = logits_2T[:, :words].astype(np.float64)
            checkpoint()
        return readings


def _spans_of_passage(window, first_N, last_N, score_N):
    """The `Span`s of a window, counted from the begin of its passage."""
    spans = []
    for first, last, score in zip(first_N.tolist(), last_N.tolist(), score_N.tolist(), strict=True):
        if score > LOWEST:
            spans.append(Span(score, window.first + first, window.first + last, window))
    return spans
