"""The best spans of passages, as a model finds them.

A passage that is longer than those of training is read in overlapping windows: time grows with its
length, memory does not. Spans of different windows are compared by their logits. Probabilities
would mislead, since they sum to 1 in each window, even in one without an answer (Clark and Gardner
2018, section 3).

Letters: T passage words   W words of a window   N spans
"""

from typing import NamedTuple

import keras
import numpy as np

from colloquy.engine.cancellation import checkpoint
from colloquy.engine.parallel import compile_for_all_sizes
from colloquy.layers.masking import LOWEST
from colloquy.models.best_spans import best_spans
from colloquy.tasks.reading_comprehension.questions import Multiples
from colloquy.tasks.reading_comprehension.windows import Window, make_windows

BATCH_WORDS = 2000
"""Words of the windows that are read at once, padding included; a window may have more."""
SPANS = 100
"""Spans of each window that the answers are chosen from."""
MULTIPLES = Multiples(words=16, tokens=256)
"""Sizes of the batches of windows are rounded up to these."""


class Span(NamedTuple):
    """A possible answer: words `first` to `last` of a passage."""

    score: float
    """The sum of the logit of its start and that of its end."""
    first: int
    last: int
    window: Window | None = None
    """The window in which it was found."""


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


class PassageReading(NamedTuple):
    """What a model found in a passage."""

    spans: list[Span]
    """The best spans of each window."""
    logits_of_windows: dict[Window, np.ndarray]
    """Logits of start and end at each word of each window, float64 `(2, W)`."""

    def logits(self, num_words):
        """The logits of the whole passage, `(2, num_words)`; where windows overlap, the highest."""
        logits_2T = np.full((2, num_words), LOWEST)
        for window, logits_2W in self.logits_of_windows.items():
            so_far_2W = logits_2T[:, window.first : window.end]
            logits_2T[:, window.first : window.end] = np.maximum(so_far_2W, logits_2W)
        return logits_2T


class BestSpans(keras.Model):
    """The logits of a model, float32, and its best spans.

    Returns logits `(B, 2, W)`, first words, last words and scores `(B, N)`, see
    `models.best_spans.best_spans`.
    """

    def __init__(self, model):
        super().__init__()
        self.model = model

    def call(self, inputs):
        config = self.model.config
        logits = keras.ops.cast(self.model(inputs), "float32")
        # A window has `max_answer_words` spans for each of its words. With padding, it has at least
        # `MULTIPLES.words` words. `best_spans` cannot return more spans than a window has.
        least_spans = MULTIPLES.words * config.max_answer_words
        num_spans = min(SPANS, least_spans)
        best = best_spans(logits, config.max_answer_words, num_spans, config.length_penalty)
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

    def find(self, questions):
        """Reads the passages of `Questions`; returns a `PassageReading` of each."""
        windows = []
        for row, num_words in enumerate(questions.contexts.lengths.tolist()):
            windows += make_windows(row, num_words, self.window_words)
        # Windows of similar length are read at once, so that little is padding.
        windows.sort(key=lambda window: window.end - window.first)

        readings = [PassageReading([], {}) for _ in range(len(questions))]
        batch_size = max(1, BATCH_WORDS // self.window_words)
        for start in range(0, len(windows), batch_size):
            self._read(questions, windows[start : start + batch_size], readings)
            # Between two batches, a server ends the work for clients that have left.
            checkpoint()
        return readings

    def _read(self, questions, windows, readings):
        """Reads a batch of windows; adds to `readings`, of all passages, what it finds in each."""
        rows = [window.row for window in windows]
        inputs, _ = questions.collate(rows, windows, multiples=MULTIPLES)
        logits_B2W, *best = self.best_spans.predict_on_batch(inputs)
        logits_B2W = np.asarray(logits_B2W, np.float64)
        first_BN, last_BN, score_BN = [np.asarray(array).tolist() for array in best]
        for place, window in enumerate(windows):
            reading = readings[window.row]
            reading.logits_of_windows[window] = logits_B2W[place, :, : window.end - window.first]
            spans = zip(first_BN[place], last_BN[place], score_BN[place], strict=True)
            for first, last, score in spans:
                if score > LOWEST:  # a span with padding has a lower score
                    span = Span(score, window.first + first, window.first + last, window)
                    reading.spans.append(span)
