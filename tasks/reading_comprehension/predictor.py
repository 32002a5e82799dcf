"""A reading comprehension model that answers plain text.

Letters: B questions   T context words
"""

import keras
import numpy as np

from data.corpora.squad import tokenize
from data.sequences import Sequences
from data.vocabulary import Vocabulary
from engine.predictor import Predictor
from engine.runs import VOCABULARY
from engine.settings import check_sizes
from layers.span_search import best_spans
from tasks.reading_comprehension.batches import ReadingSplit, Tokens
from tasks.reading_comprehension.prepare import CHARACTERS
from tasks.reading_comprehension.spans import MAX_LENGTH

BATCH = 60  # questions at once
NO_ANSWER = {"answer": "", "start": -1, "end": -1, "score": None, "probability": 0.0}


class ReadingComprehensionPredictor(Predictor):
    """Finds the answer to a question in a passage.

    An answer has `answer`, a part of the passage, `start` and `end`, its places in characters, `score`, the sum of two
    logits, which can be compared between passages and questions of one model, and its `probability` within the
    passage. Where the passage or the question has no word, `answer` is empty, the places are -1 and `score` is null.

    Args:
        run: A `engine.runs.Run` of a reading comprehension model.

    Raises:
        UserError: where the run lacks a file, or its files do not fit.
    """

    fields = {
        "passage": {"type": "string", "description": "The text in which the answer stands."},
        "question": {"type": "string", "description": "What is asked."},
    }

    def __init__(self, run):
        self.vocabulary = Vocabulary.load(run.path / VOCABULARY)
        self.characters = Vocabulary.load(run.path / CHARACTERS)
        self.model = run.load_model()
        sizes = {"vocabulary_size": len(self.vocabulary), "characters": len(self.characters)}
        check_sizes(self.model.config, sizes, run.path)

    def answer(self, instances):
        return [answer for answer, _, _ in self._found(instances)]

    def answer_with_attention(self, instance):
        [(answer, p_2T, words)] = self._found([instance])
        attention = []
        if words:
            attention = [
                {"title": "probabilities", "rows": ["start", "end"], "columns": words, "weights": p_2T.tolist()},
                *self._context_to_query(instance, words),
            ]
        return {**answer, "attention": attention}

    def _context_to_query(self, instance, words):
        """What each word of the passage attends to in the question, `a_t` of the paper's section 2.4."""
        flow = self.model.get_layer("attention_flow")
        if not flow.c2q:
            return []
        places = tokenize(instance["passage"]), tokenize(instance["question"])
        inputs, _ = self._split([instance], [places]).collate([0])
        H_BTD, U_BJD = keras.Model(self.model.input, flow.input[:2]).predict_on_batch(inputs)
        a_TJ = keras.ops.softmax(keras.ops.cast(flow.similarity(H_BTD, U_BJD)[0], "float32"))
        question = [instance["question"][i:j] for i, j in places[1]]
        weights = keras.ops.convert_to_numpy(a_TJ).tolist()
        return [{"title": "passage attends to question", "rows": words, "columns": question, "weights": weights}]

    def _found(self, instances):
        """Of each instance its answer, the probabilities of start and end `(2, T)`, and the words of its passage."""
        found = [(NO_ANSWER, None, [])] * len(instances)
        spans = [(tokenize(instance["passage"]), tokenize(instance["question"])) for instance in instances]
        real = [row for row, (passage, question) in enumerate(spans) if passage and question]
        real.sort(key=lambda row: len(spans[row][0]))
        for first in range(0, len(real), BATCH):
            rows = real[first : first + BATCH]
            split = self._split([instances[row] for row in rows], [spans[row] for row in rows])
            inputs, _ = split.collate(range(len(rows)), multiple=16)
            logits = np.asarray(self.model.predict_on_batch(inputs), np.float32)
            starts, ends, scores = (np.asarray(out)[:, 0] for out in best_spans(logits, MAX_LENGTH))
            for at, row in enumerate(rows):
                found[row] = self._answer_of(
                    instances[row]["passage"], spans[row][0], logits[at], int(starts[at]), int(ends[at]), scores[at]
                )
        return found

    def _answer_of(self, text, places, logits, first, last, score):
        p_2T = np.exp(logits[:, : len(places)] - logits.max(axis=1, keepdims=True)).astype(np.float64)
        p_2T /= p_2T.sum(axis=1, keepdims=True)
        start, end = places[first][0], places[last][1]
        answer = {
            "answer": text[start:end],
            "start": start,
            "end": end,
            "score": float(score),
            "probability": float(p_2T[0, first] * p_2T[1, last]),
        }
        return answer, p_2T, [text[i:j] for i, j in places]

    def _split(self, instances, spans):
        tokens = {}

        def encode(text, places):
            return [tokens.setdefault(text[i:j], len(tokens) + 1) for i, j in places]

        passages = [encode(instance["passage"], places) for instance, (places, _) in zip(instances, spans, strict=True)]
        questions = [
            encode(instance["question"], places) for instance, (_, places) in zip(instances, spans, strict=True)
        ]
        return ReadingSplit(
            Tokens.of(list(tokens), self.vocabulary, self.characters),
            Sequences.of(passages),
            [instance["passage"] for instance in instances],
            offsets=[],
            ids=[""] * len(instances),
            context=np.arange(len(instances)),
            questions=Sequences.of(questions),
            answers=[[]] * len(instances),
            spans=[[]] * len(instances),
        )
