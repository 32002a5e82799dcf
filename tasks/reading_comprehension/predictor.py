"""A reading comprehension model that answers plain text.

Letters: B questions   T context words   W words of a window
"""

import json

import keras
import numpy as np

from base.config import Config
from data.corpora.squad import tokenize
from data.sequences import Sequences
from data.vocabulary import Vocabulary
from engine.predictor import Predictor
from engine.run import METRICS
from engine.task import check_sizes
from engine.vocabularies import vocabulary_of
from layers.masking import LOWEST
from layers.span_search import best_spans
from tasks.reading_comprehension.confidence import Scale
from tasks.reading_comprehension.data import CHARACTERS, ReadingSplit, Tokens
from tasks.reading_comprehension.scoring import MAX_LENGTH
from tasks.reading_comprehension.windows import Span, batches_of, best_apart, windows_of

BATCH, BATCH_WORDS = 60, 8000  # windows at once, and their words
BEST, SPANS = 5, 100  # answers that are listed, and spans of a window that they are chosen from


class Found(Config):
    """A part of a passage that may answer a question."""

    answer: str
    """Empty if the passage or the question has no word."""
    start: int
    end: int
    """Its place in the passage, in characters; -1 if there is none."""
    score: float | None
    """The sum of two logits, which can be compared between passages and questions of one model."""
    probability: float
    """Its probability within the passage."""
    confidence: float | None
    """The probability that it is correct, by the scale that evaluating dev fits; see
    `tasks.reading_comprehension.confidence`. Null in a run without that scale."""


class ReadingComprehensionPredictor(Predictor):
    """Finds the answer to a question in a passage.

    A passage longer than training reads (`max_context`) is read in overlapping windows, and the best span of all is
    taken.

    Args:
        run: A `engine.run.Run` of a reading comprehension model.

    Raises:
        UserError: where the run lacks a file, or its files do not fit.
    """

    class Instance(Config):
        """A question about a text."""

        passage: str
        """The text that contains the answer."""
        question: str

    class Answer(Found):
        """The best answer."""

        good: bool | None
        """Whether the score reaches the threshold of the scale of confidence."""
        n_best: list[Found]
        """The best answers that share no word; the first is this one."""
        unknown_percent: float
        """Percentage of the words of passage and question without a word vector."""

    def __init__(self, run):
        self.vocabulary = vocabulary_of(run)
        self.characters = Vocabulary.load(run.path / CHARACTERS)
        self.model = run.load_model()
        self.window = max(run.training.max_context, 4 * MAX_LENGTH)
        self.scale = _scale_of(run)
        sizes = {"vocabulary_size": len(self.vocabulary), "characters": len(self.characters)}
        check_sizes(self.model.config, sizes, run.path)

    def answer(self, instances):
        return [answer for answer, _, _ in self._found(instances)]

    def answer_with_attention(self, instance, details):
        """As of `Predictor`; of a long passage, in the window that holds the answer."""
        [(answer, p_2W, window)] = self._found([instance])
        if not window:
            return answer, []
        places = tokenize(instance.passage)[window.first : window.end]
        words = [instance.passage[i:j] for i, j in places]
        probabilities = {"title": "probabilities", "rows": ["start", "end"], "columns": words, "weights": p_2W.tolist()}
        return answer, [probabilities, *self._flow(instance, places)]

    def _flow(self, instance, places):
        """What the words of a window and of the question attend to in each other, `a` and `b` of the paper's section
        2.4: C2Q a row per word of the window, Q2C one for the whole question."""
        if self.model.config.attention == "dynamic":
            return []
        flow = self.model.get_layer("attention_flow")
        if not (flow.c2q or flow.q2c):
            return []
        if not hasattr(self, "_encoder"):
            self._encoder = keras.Model(self.model.input, flow.input[:2])
        of_question = tokenize(instance.question)
        inputs, _ = self._split([instance], [(places, of_question)]).collate([0])
        S_TJ = keras.ops.cast(flow.similarity(*self._encoder.predict_on_batch(inputs))[0], "float32")
        words, question = (
            [getattr(instance, field)[i:j] for i, j in spans]
            for field, spans in (("passage", places), ("question", of_question))
        )
        shown = []
        if flow.c2q:
            a_TJ = keras.ops.convert_to_numpy(keras.ops.softmax(S_TJ)).tolist()
            shown.append({"title": "passage attends to question", "rows": words, "columns": question, "weights": a_TJ})
        if flow.q2c:
            b_T = keras.ops.convert_to_numpy(keras.ops.softmax(keras.ops.max(S_TJ, axis=1))).tolist()
            shown.append(
                {"title": "question attends to passage", "rows": ["question"], "columns": words, "weights": [b_T]}
            )
        return shown

    def _found(self, instances):
        """Of each instance its answer, and the probabilities of start and end `(2, W)` in the window that holds it."""
        spans = [(tokenize(instance.passage), tokenize(instance.question)) for instance in instances]
        real = [row for row, (passage, question) in enumerate(spans) if passage and question]
        overlap = self.window // 4
        windows = [window for row in real for window in windows_of(row, len(spans[row][0]), self.window, overlap)]
        read = {row: [] for row in real}  # (window, its logits, its best spans)
        for batch in batches_of(windows, BATCH_WORDS, BATCH):
            places = [(spans[row][0][first:end], spans[row][1]) for row, first, end in batch]
            inputs, _ = self._split([instances[row] for row, _, _ in batch], places).collate(
                range(len(batch)), multiple=16
            )
            logits = np.asarray(self.model.predict_on_batch(inputs), np.float32)
            found = best_spans(logits, MAX_LENGTH, SPANS, self.model.config.length_penalty)
            best = zip(*(np.asarray(out) for out in found), strict=True)
            for window, l_2T, (first, last, score) in zip(batch, logits, best, strict=True):
                found = [
                    Span(float(s), window.first + int(i), window.first + int(j))
                    for i, j, s in zip(first, last, score, strict=True)
                    if s > LOWEST
                ]
                read[window.row].append((window, l_2T[:, : window.end - window.first].astype(np.float64), found))
        return [
            self._answer_of(instance, *spans[row], read[row]) if row in read else (self._no_answer(), None, None)
            for row, instance in enumerate(instances)
        ]

    def _answer_of(self, instance, places, of_question, read):
        """The answer among the windows of a passage: `(answer, probabilities in its window, its window)`."""
        logits_2T = np.full((2, len(places)), LOWEST)  # where windows overlap, the highest
        for window, l_2W, _ in read:
            part = logits_2T[:, window.first : window.end]
            np.maximum(part, l_2W, out=part)
        log_z = sum(np.logaddexp.reduce(logits_2T, axis=1))
        best = best_apart([span for _, _, found in read for span in found], BEST)
        n_best = [self._described(instance.passage, places, span, log_z) for span in best]
        window, l_2W, _ = next(each for each in read if best[0] in each[2])
        p_2W = np.exp(l_2W - np.logaddexp.reduce(l_2W, axis=1)[:, None])
        good = None if self.scale is None else best[0].score >= self.scale.threshold
        unknown = self._unknown_percent(instance, places, of_question)
        answer = self.Answer(**dict(n_best[0]), good=good, n_best=n_best, unknown_percent=unknown)
        return answer, p_2W, window

    def _no_answer(self):
        nothing = {"answer": "", "start": -1, "end": -1, "score": None, "probability": 0.0, "confidence": None}
        return self.Answer(**nothing, good=None, n_best=[], unknown_percent=0.0)

    def _described(self, text, places, span, log_z):
        start, end = places[span.first][0], places[span.last][1]
        log_p = span.score + self.model.config.length_penalty * (span.last - span.first) - log_z
        return Found(
            answer=text[start:end],
            start=start,
            end=end,
            score=span.score,
            probability=float(np.exp(log_p)),
            confidence=None if self.scale is None else self.scale.confidence(span.score),
        )

    def _unknown_percent(self, instance, places, of_question):
        words = [
            getattr(instance, field)[i:j].lower()
            for field, spans in (("passage", places), ("question", of_question))
            for i, j in spans
        ]
        words = [word for word in words if any(map(str.isalnum, word))]
        unknown = sum(id == self.vocabulary.unk_id for id in self.vocabulary.encode(words))
        return round(100 * unknown / max(len(words), 1), 1)

    def _split(self, instances, spans):
        tokens = {}

        def encode(text, places):
            return [tokens.setdefault(text[i:j], len(tokens) + 1) for i, j in places]

        passages = [encode(instance.passage, places) for instance, (places, _) in zip(instances, spans, strict=True)]
        questions = [encode(instance.question, places) for instance, (_, places) in zip(instances, spans, strict=True)]
        return ReadingSplit(
            Tokens.of(list(tokens), self.vocabulary, self.characters),
            Sequences.of(passages),
            [instance.passage for instance in instances],
            offsets=[],
            ids=[""] * len(instances),
            context=np.arange(len(instances)),
            questions=Sequences.of(questions),
            answers=[[]] * len(instances),
            spans=[[]] * len(instances),
            question_texts=[],
        )


def _scale_of(run):
    """The scale that evaluating dev fitted; `None` where that was not done, or none fits."""
    file = run.path / METRICS
    record = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    found = record.get("dev", {}).get("confidence")
    return Scale(found["slope"], found["offset"], found["threshold"]) if found else None
