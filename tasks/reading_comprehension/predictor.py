"""A reading comprehension model that answers questions about texts as people write them.

Letters: T passage words   W words of a window
"""

import functools
import math

import numpy as np
import scipy.special
from pydantic import PrivateAttr

from colloquy.base.config import Config
from colloquy.base.files import UserError
from colloquy.data.vocabulary import Vocabulary
from colloquy.engine.predictor import Predictor, attention_map
from colloquy.engine.settings import check_fields
from colloquy.tasks.reading_comprehension.attention import FlowMaps
from colloquy.tasks.reading_comprehension.confidence import load_scale
from colloquy.tasks.reading_comprehension.data import CHARACTERS
from colloquy.tasks.reading_comprehension.reader import Reader, TokenizedInstance
from colloquy.tasks.reading_comprehension.spans import SpanFinder, best_apart
from colloquy.tasks.reading_comprehension.windows import smallest_size

ROW_WORDS = 100
"""The unit of `ReadingComprehensionPredictor.padded_rows`: 100 words of a passage, asked a question
of at most 100 words, cost one row."""
MAX_ANSWERS = 5
"""Most answers in `n_best`."""
MAX_QUESTION_WORDS = 300
"""Longest question, in words. The work grows with question words times passage words."""


class AnswerSpan(Config):
    """A part of a passage that may answer a question."""

    answer: str
    start: int
    """Offset of the answer's first character in the passage."""
    end: int
    """Offset behind the answer's last character."""
    score: float
    """The sum of two logits, which can be compared between passages and questions of one model.
    In a model with `no_answer`, having no answer has the score 0."""
    probability: float
    """Probability among all spans of the passage; with `no_answer`, having no answer is one more.
    Unlike `score`, it has no length penalty, so it may order answers otherwise."""
    confidence: float | None
    """The probability that the answer is correct, if half of all questions have an answer in their
    passage. Its scale is fitted to dev, see `tasks.reading_comprehension.calibration`. Null without
    a scale."""


class ReadingComprehensionPredictor(Predictor):
    """Finds the answer to a question in a passage with the model of a run.

    The constructor raises a `UserError` if a file of the run is wrong.
    """

    class Instance(Config):
        """A question about a text."""

        passage: str
        """The text in which the answer is looked for."""
        question: str
        _tokenized: TokenizedInstance | None = PrivateAttr(default=None)

        @property
        def tokenized(self):
            """The `TokenizedInstance`, which is made at the first call."""
            # In Python 3.11 a `cached_property` has one lock for all instances: a short passage
            # would wait for a long one.
            if self._tokenized is None:
                self._tokenized = TokenizedInstance.of(self.passage, self.question)
            return self._tokenized

    class Answer(AnswerSpan):
        """The best answer."""

        good: bool | None
        """True if `confidence` is at least `threshold`. Null in a run without a scale of
        confidence."""
        verdict: str | None
        """The confidence in words: sure, likely, may be wrong, or probably not in this text. Null
        in a run without a scale of confidence."""
        threshold: float | None
        """The confidence from which an answer is good, chosen on dev. Null without a scale."""
        n_best: list[AnswerSpan]
        """The best answers that share no word; the first is this one."""
        window_start: int
        """Offset in the passage of the window in which the answer was found. A long passage is read
        in overlapping windows."""
        window_end: int
        """Offset behind this window's last character."""
        unknown_percent: float
        """Percentage of the words of passage and question without a word vector."""
        remark: str | None
        """A sentence if the passage does not seem to be English; otherwise null."""

    def __init__(self, run):
        self.vocabulary = run.vocabulary
        self.characters = Vocabulary.load(run.path / CHARACTERS)
        self.model = run.load_model()
        self.scale = load_scale(run)
        self.reader = Reader(self.vocabulary, self.characters)
        # Neighbouring windows share enough words for the longest answer. So an answer that the end
        # of a window cuts is whole in the next window.
        least_words = smallest_size(self.model.config.max_answer_words)
        window_words = max(run.training.max_context, least_words)
        self.span_finder = SpanFinder(self.model, window_words)
        sizes = {"vocabulary_size": len(self.vocabulary), "characters": len(self.characters)}
        check_fields(self.model.config, sizes, run.path)

    def check(self, instance):
        for name, text in instance.tokenized._asdict().items():
            if not text.words:
                raise UserError(f"{name}: expected words. Received: {text.text!r:.60}")
        num_words = len(instance.tokenized.question.words)
        if num_words > MAX_QUESTION_WORDS:
            raise UserError(
                f"question: expected at most {MAX_QUESTION_WORDS} words. Received: {num_words:,}"
            )

    def padded_rows(self, instance):
        """The cost of all windows, in rows of `ROW_WORDS` words.

        Attention compares each word of a window with each word of the question, so the cost is
        their product.
        """
        passage_words = len(instance.tokenized.passage.words)
        question_words = len(instance.tokenized.question.words)
        num_windows = len(self.span_finder.windows(0, passage_words))
        words_per_window = min(passage_words, self.span_finder.window_words)
        rows_of_window = math.ceil(words_per_window / ROW_WORDS)
        rows_of_question = math.ceil(question_words / ROW_WORDS)
        return num_windows * rows_of_window * rows_of_question

    def answer(self, instances):
        tokenized_instances = [instance.tokenized for instance in instances]
        readings = self.span_finder.find(self.reader.questions(tokenized_instances))
        answers = []
        for tokenized, reading in zip(tokenized_instances, readings, strict=True):
            answers.append(self._make_answer(tokenized, reading))
        return answers

    def show(self, instance):
        """As in `Predictor`. A word in brackets has no vector: the model reads its letters."""
        [answer] = self.answer([instance])
        texts = []
        for name, text in instance.tokenized._asdict().items():
            lower_words = [word.lower() for word in text.words]
            texts.append((name, self.vocabulary.in_brackets(lower_words)))
        return texts, [(span.score, span.answer) for span in answer.n_best]

    def answer_with_attention(self, instance, details):
        """Makes the `Answer`, and the maps of the window in which it was found.

        `details` has no effect: the model has no further maps.
        """
        tokenized = instance.tokenized
        questions = self.reader.questions([tokenized])
        [reading] = self.span_finder.find(questions)
        [best_span] = best_apart(reading.spans, 1)
        window, logits_2W = best_span.source
        words = tokenized.passage.words[window.first : window.end]
        p_2W = scipy.special.softmax(logits_2W, axis=1)
        maps = [attention_map("probabilities", ["start", "end"], words, p_2W)]
        # Dynamic attention is computed inside an LSTM, and gives no matrix to show.
        if self.model.config.attention == "flow":
            inputs, _ = questions.collate(rows=[0], windows=[window])
            maps += self._flow_maps.maps(inputs, words, tokenized.question.words)
        return self._make_answer(tokenized, reading), maps

    @functools.cached_property
    def _flow_maps(self):
        return FlowMaps(self.model)

    def _make_answer(self, tokenized, reading):
        """Makes the `Answer` to a `TokenizedInstance` from the `PassageReading` of its passage."""
        spans = best_apart(reading.spans, MAX_ANSWERS)
        n_best = self._make_answer_spans(tokenized.passage, reading, spans)
        best = n_best[0]
        good = None
        threshold = None
        verdict = None
        if self.scale is not None:
            threshold = self.scale.threshold
            good = best.confidence >= threshold
            verdict = self.scale.verdict(best.confidence)
        offsets = tokenized.passage.offsets
        window = spans[0].source.window
        return self.Answer(
            **dict(best),
            good=good,
            verdict=verdict,
            threshold=threshold,
            n_best=n_best,
            window_start=offsets[window.first][0],
            window_end=offsets[window.end - 1][1],
            unknown_percent=self.reader.unknown_percent(tokenized),
            remark=tokenized.remark(),
        )

    def _make_answer_spans(self, passage, reading, spans):
        """Makes an `AnswerSpan` of each of some spans of a passage, a `TokenizedText`."""
        text, offsets, words = passage
        start_T, end_T = reading.logits(len(words))
        # Log of the sum over all spans: the sum over all starts times the sum over all ends.
        log_z = np.logaddexp.reduce(start_T) + np.logaddexp.reduce(end_T)
        # With `no_answer`, having no answer has the logit 0.
        if self.model.config.no_answer:
            log_z = np.logaddexp(log_z, 0.0)

        answer_spans = []
        for span in spans:
            start = offsets[span.first][0]
            end = offsets[span.last][1]
            confidence = None if self.scale is None else self.scale.confidence(span.score)
            log_p = start_T[span.first] + end_T[span.last] - log_z
            answer_span = AnswerSpan(
                answer=text[start:end],
                start=start,
                end=end,
                score=span.score,
                probability=float(np.exp(log_p)),
                confidence=confidence,
            )
            answer_spans.append(answer_span)
        return answer_spans
