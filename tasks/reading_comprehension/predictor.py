"""A reading comprehension model that answers questions about texts as people write them.

Letter: W words of a window
"""

import functools
import math

import scipy.special

from colloquy.base.files import UserError
from colloquy.data.vocabulary import Vocabulary
from colloquy.engine.predictor import Predictor, attention_map
from colloquy.engine.settings import check_fields
from colloquy.tasks.reading_comprehension import answers
from colloquy.tasks.reading_comprehension.attention import FlowMaps
from colloquy.tasks.reading_comprehension.confidence import load_scale
from colloquy.tasks.reading_comprehension.data import CHARACTERS
from colloquy.tasks.reading_comprehension.reader import Reader
from colloquy.tasks.reading_comprehension.spans import SpanFinder, best_apart
from colloquy.tasks.reading_comprehension.windows import make_windows, smallest_size

ROW_WORDS = 100
"""A passage and a question of at most this many words each cost one row of `padded_rows`."""
MAX_QUESTION_WORDS = 300
"""Longest question, in words. The work grows with question words times passage words."""


class ReadingComprehensionPredictor(Predictor):
    """Finds the answer to a question in a passage with the model of a run.

    The constructor raises a `UserError` if a file of the run is wrong.
    """

    Instance = answers.Instance
    Answer = answers.Answer

    def __init__(self, run):
        self.vocabulary = run.vocabulary
        self.characters = Vocabulary.load(run.path / CHARACTERS)
        self.model = run.load_model()
        self.scale = load_scale(run)
        self.reader = Reader(self.vocabulary, self.characters)
        # A window may cut an answer. The next window has it whole if the two share as many words as
        # the longest answer has.
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
        window_words = self.span_finder.window_words
        num_windows = len(make_windows(0, passage_words, window_words))
        rows_of_window = math.ceil(min(passage_words, window_words) / ROW_WORDS)
        return num_windows * rows_of_window * math.ceil(question_words / ROW_WORDS)

    def answer(self, instances):
        tokenized_instances = [instance.tokenized for instance in instances]
        readings = self.span_finder.find(self.reader.questions(tokenized_instances))
        pairs = zip(tokenized_instances, readings, strict=True)
        return [self._make_answer(tokenized, reading) for tokenized, reading in pairs]

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
        window = best_span.window
        words = tokenized.passage.words[window.first : window.end]
        p_2W = scipy.special.softmax(reading.logits_of_windows[window], axis=1)
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
        return answers.make_answer(
            tokenized,
            reading,
            scale=self.scale,
            no_answer=self.model.config.no_answer,
            unknown_percent=self.reader.unknown_percent(tokenized),
        )
