"""A reading comprehension model that answers plain text.

Letters: T words of a passage or window   J question words
"""

import functools
import math

import keras
import numpy as np
import scipy.special

from colloquy.base.config import Config
from colloquy.base.files import UserError
from colloquy.data.vocabulary import Vocabulary
from colloquy.engine.parallel import compile_for_all_sizes
from colloquy.engine.predictor import Predictor, attention_map
from colloquy.engine.settings import check_fields
from colloquy.tasks.reading_comprehension.confidence import load_scale
from colloquy.tasks.reading_comprehension.data import CHARACTERS
from colloquy.tasks.reading_comprehension.reader import Read, Reader
from colloquy.tasks.reading_comprehension.spans import SpanFinder, best_apart

ROW_WORDS = 100
"""Words of a window, and of a question, that are a row for a server's limits."""
BEST = 5
"""Answers that are listed."""
MAX_QUESTION_WORDS = 300
"""The longest question that is read: each word is compared with each of the passage."""


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


class ReadingComprehensionPredictor(Predictor):
    """Finds the answer to a question in a passage with the model of a run.

    A broken run is a `UserError`.
    """

    class Instance(Config):
        """A question about a text."""

        passage: str
        """The text that contains the answer."""
        question: str

        @property
        def read(self):
            """Both texts as tokens; they are tokenized once."""
            # In Python 3.11 a `cached_property` has one lock for all instances: a short passage
            # would wait for a long one.
            if "_read" not in self.__dict__:
                self.__dict__["_read"] = Read.of(self.passage, self.question)
            return self.__dict__["_read"]

    class Answer(AnswerSpan):
        """The best answer."""

        good: bool | None
        """True from a confidence of `threshold`. Null in a run without a scale of confidence."""
        verdict: str | None
        """The confidence in words: sure, likely, may be wrong, or probably not in this text. Null
        in a run without a scale of confidence."""
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
        remark: str | None
        """A sentence if the passage does not seem to be English; otherwise null."""

    def __init__(self, run):
        self.vocabulary = run.vocabulary
        self.characters = Vocabulary.load(run.path / CHARACTERS)
        self.model = run.load_model()
        self.scale = load_scale(run)
        self.reader = Reader(self.vocabulary, self.characters)
        # Any answer is whole in a window: neighbours share a quarter of their words.
        window_words = max(run.training.max_context, 4 * self.model.config.max_answer_words)
        self.span_finder = SpanFinder(self.model, window_words)
        sizes = {"vocabulary_size": len(self.vocabulary), "characters": len(self.characters)}
        check_fields(self.model.config, sizes, run.path)

    def check(self, instance):
        for name, tokenized in instance.read._asdict().items():
            if not tokenized.words:
                raise UserError(f"{name}: expected words. Received: {tokenized.text!r:.60}")
        words = len(instance.read.question.words)
        if words > MAX_QUESTION_WORDS:
            raise UserError(
                f"question: expected at most {MAX_QUESTION_WORDS} words. Received: {words:,}"
            )

    def answer(self, instances):
        reads = [instance.read for instance in instances]
        readings = self.span_finder.find(self.reader.split(reads))
        pairs = zip(reads, readings, strict=True)
        return [self._answer(read, reading) for read, reading in pairs]

    def padded_rows(self, instance):
        """A row for each `ROW_WORDS` words of each window, for as many words of the question."""
        passage_words = len(instance.read.passage.words)
        question_words = len(instance.read.question.words)
        num_windows = len(self.span_finder.windows(0, passage_words))
        words_per_window = min(passage_words, self.span_finder.window_words)
        rows_per_window = math.ceil(words_per_window / ROW_WORDS)
        return num_windows * max(1, rows_per_window) * math.ceil(question_words / ROW_WORDS)

    def show(self, instance):
        """Like `Predictor`'s; words in brackets are read by their letters alone."""
        [answer] = self.answer([instance])
        texts = []
        for name, tokenized in instance.read._asdict().items():
            lower_words = [word.lower() for word in tokenized.words]
            texts.append((name, self.vocabulary.in_brackets(lower_words)))
        return texts, [(span.score, span.answer) for span in answer.n_best]

    def answer_with_attention(self, instance, details):
        """Like `Predictor`'s; of a long passage, in the window that holds the answer."""
        asked = self.reader.split([instance.read])
        [reading] = self.span_finder.find(asked)
        [best_span] = best_apart(reading.spans, 1)
        window = best_span.window
        words = instance.read.passage.words[window.first : window.end]
        p_2W = scipy.special.softmax(reading.logits[window], axis=1)
        maps = [attention_map("probabilities", ["start", "end"], words, p_2W)]
        if self.model.config.attention != "dynamic":
            inputs, _ = asked.collate([0], [window])
            maps += self._flow(inputs, words, instance.read.question.words)
        return self._answer(instance.read, reading), maps

    def _flow(self, inputs, words, question):
        """Attention between the words of a window and of the question.

        `a` and `b` of the paper's section 2.4: C2Q has a row per word of the window, Q2C one for
        the whole question.
        """
        flow = self.model.get_layer("attention_flow")
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

    def _answer(self, read, reading):
        """Makes the answer to a question from what was found in its passage."""
        text, offsets, words = read.passage
        logits_2T = reading.passage_logits(len(words))
        log_z = np.logaddexp.reduce(logits_2T, axis=1).sum()
        if self.model.config.no_answer:
            log_z = np.logaddexp(log_z, 0.0)
        spans = best_apart(reading.spans, BEST)
        n_best = []
        for span in spans:
            start = offsets[span.first][0]
            end = offsets[span.last][1]
            log_p = logits_2T[0, span.first] + logits_2T[1, span.last] - log_z
            n_best.append(
                AnswerSpan(
                    answer=text[start:end],
                    start=start,
                    end=end,
                    score=span.score,
                    probability=float(np.exp(log_p)),
                    confidence=self.scale.confidence(span.score) if self.scale else None,
                )
            )

        window = spans[0].window
        good = None
        threshold = None
        verdict = None
        if self.scale is not None:
            threshold = self.scale.threshold
            good = n_best[0].confidence >= threshold
            verdict = self.scale.verdict(n_best[0].confidence)
        return self.Answer(
            **dict(n_best[0]),
            good=good,
            verdict=verdict,
            threshold=threshold,
            n_best=n_best,
            window_start=offsets[window.first][0],
            window_end=offsets[window.end - 1][1],
            unknown_percent=self.reader.unknown_percent(read),
            remark=read.remark(),
        )
