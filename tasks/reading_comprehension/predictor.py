"""A reading comprehension model that answers plain text.

Letters: T passage words   W words of a window   J question words
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
"""A window of this many words with a question of this many costs one row, see
`ReadingComprehensionPredictor.padded_rows`."""
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
    """The probability that the answer is correct, where half of the questions can be answered. Its
    scale is fitted to dev, see `tasks.reading_comprehension.calibration`. Null without a scale."""


class ReadingComprehensionPredictor(Predictor):
    """Finds the answer to a question in a passage with the model of a run.

    The constructor raises a `UserError` if a file of the run is wrong.
    """

    class Instance(Config):
        """A question about a text."""

        passage: str
        """The text in which the answer is looked for."""
        question: str

        @property
        def read(self):
            """Passage and question as a `Read`, tokenized at the first call."""
            # In Python 3.11 a `cached_property` has one lock for all instances: a short passage
            # would wait for a long one.
            if "_read" not in self.__dict__:
                self.__dict__["_read"] = Read.of(self.passage, self.question)
            return self.__dict__["_read"]

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
        # Neighbouring windows share a quarter of their words. If that is at least the longest
        # answer, each answer is whole in one window.
        window_words = max(run.training.max_context, 4 * self.model.config.max_answer_words)
        self.span_finder = SpanFinder(self.model, window_words)
        sizes = {"vocabulary_size": len(self.vocabulary), "characters": len(self.characters)}
        check_fields(self.model.config, sizes, run.path)

    def check(self, instance):
        for name, tokenized in instance.read._asdict().items():
            if not tokenized.words:
                raise UserError(f"{name}: expected words. Received: {tokenized.text!r:.60}")
        num_words = len(instance.read.question.words)
        if num_words > MAX_QUESTION_WORDS:
            raise UserError(
                f"question: expected at most {MAX_QUESTION_WORDS} words. Received: {num_words:,}"
            )

    def answer(self, instances):
        reads = [instance.read for instance in instances]
        predictions = self.span_finder.find(self.reader.split(reads))
        pairs = zip(reads, predictions, strict=True)
        return [self._answer(read, prediction) for read, prediction in pairs]

    def padded_rows(self, instance):
        """The cost of all windows: attention compares each word of a window with each of the
        question.
        """
        passage_words = len(instance.read.passage.words)
        question_words = len(instance.read.question.words)
        num_windows = len(self.span_finder.windows(0, passage_words))
        words_per_window = min(passage_words, self.span_finder.window_words)
        rows_of_window = math.ceil(words_per_window / ROW_WORDS)
        rows_of_question = math.ceil(question_words / ROW_WORDS)
        return num_windows * rows_of_window * rows_of_question

    def show(self, instance):
        """As in `Predictor`. A word in brackets has no vector: the model reads its letters."""
        [answer] = self.answer([instance])
        texts = []
        for name, tokenized in instance.read._asdict().items():
            lower_words = [word.lower() for word in tokenized.words]
            texts.append((name, self.vocabulary.in_brackets(lower_words)))
        return texts, [(span.score, span.answer) for span in answer.n_best]

    def answer_with_attention(self, instance, details):
        """Makes the `Answer`, and the maps of the window in which it was found.

        `details` has no effect: the model has no further maps.
        """
        questions = self.reader.split([instance.read])
        [prediction] = self.span_finder.find(questions)
        [best_span] = best_apart(prediction.spans, 1)
        window = best_span.window
        words = instance.read.passage.words[window.first : window.end]
        p_2W = scipy.special.softmax(prediction.logits[window], axis=1)
        maps = [attention_map("probabilities", ["start", "end"], words, p_2W)]
        # Dynamic attention is computed inside an LSTM, and gives no matrix to show.
        if self.model.config.attention == "flow":
            inputs, _ = questions.collate([0], [window])
            maps += self._flow_maps(inputs, words, instance.read.question.words)
        return self._answer(instance.read, prediction), maps

    def _flow_maps(self, inputs, words, question):
        """Makes the maps of the attention flow, see `layers.attention_flow`: `a` has a row for each
        word of the window, `b` one for the whole question.

        A batch of one question has no padding, so no mask is needed.
        """
        flow = self.model.get_layer("attention_flow")
        H_and_U = self._encoder.predict_on_batch(inputs)
        S_WJ = np.asarray(flow.similarity(*H_and_U)[0], np.float64)
        maps = []
        if flow.c2q:
            a_WJ = scipy.special.softmax(S_WJ, axis=1)
            maps.append(attention_map("passage attends to question", words, question, a_WJ))
        if flow.q2c:
            b_W = scipy.special.softmax(S_WJ.max(axis=1))
            maps.append(
                attention_map("question attends to passage", ["question"], words, b_W[None])
            )
        return maps

    @functools.cached_property
    def _encoder(self):
        """The part of the model that computes `H` and `U`, the first inputs of the attention flow;
        the others are masks.
        """
        encoder = keras.Model(self.model.input, self.model.get_layer("attention_flow").input[:2])
        compile_for_all_sizes(encoder)
        return encoder

    def _answer(self, read, prediction):
        """Makes the `Answer` to a `Read` from the `SpanPrediction` of its passage."""
        text, offsets, words = read.passage
        logits_2T = prediction.passage_logits(len(words))
        log_z = np.logaddexp.reduce(logits_2T, axis=1).sum()
        # With `no_answer`, having no answer has the logit 0.
        if self.model.config.no_answer:
            log_z = np.logaddexp(log_z, 0.0)
        spans = best_apart(prediction.spans, MAX_ANSWERS)
        n_best = []
        for span in spans:
            start = offsets[span.first][0]
            end = offsets[span.last][1]
            confidence = None if self.scale is None else self.scale.confidence(span.score)
            log_p = logits_2T[0, span.first] + logits_2T[1, span.last] - log_z
            n_best.append(
                AnswerSpan(
                    answer=text[start:end],
                    start=start,
                    end=end,
                    score=span.score,
                    probability=float(np.exp(log_p)),
                    confidence=confidence,
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
