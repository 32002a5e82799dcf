"""A generation model that answers plain text."""

import functools
import threading

import keras
import numpy as np

from base.config import Config
from base.files import UserError
from data.sequences import Sequences, stack
from data.vocabulary import EOS_ID, UNK_ID
from engine.devices import choose_xla
from engine.predictor import Predictor, Size, in_brackets
from engine.task import check_fields
from engine.vocabularies import vocabulary_of
from models.decoding import Decoding, write
from tasks.generation.data import MAX_SOURCE, TextSettings
from tasks.generation.search import attention, decoder_of, load_reverse, parse_decoding, rerank, words_of

DECODERS = 16  # compiled at once, one per `Decoding` that was asked for
STEP = 600  # source words that attention reads in the time that the rest of a step takes
CHOICE = 10  # replies that a reverse model has to choose from
MOST = {"beam": 20, "max_length": 100}  # that an instance may ask for


class Reply(Config):
    """A reply that was found."""

    text: str
    score: float
    """Log probability, divided by the length penalty where there is one; with a reverse model see `rerank`."""


class GenerationPredictor(Predictor):
    """Writes replies with the model of a run; `seed` is that of sampling, where each answer draws anew."""

    class Instance(Config):
        """A conversation."""

        turns: list[str]
        """The conversation, the oldest turn first; the model reads as many of the last ones as it was trained with."""
        decode: str = ""
        """Search for replies, for example `beam=5,length_penalty=1`; empty: the predictor's own way."""

    class Answer(Config):
        """The reply."""

        response: str
        """The best reply."""
        best: list[Reply]
        """`decoding.beam` replies, the best first."""

    def __init__(self, run, seed=1):
        self.vocabulary = vocabulary_of(run)
        self.model = run.load_model()
        choose_xla(self.model, "auto")
        check_fields(self.model.config, {"vocabulary_size": len(self.vocabulary)}, run.path)
        self.text = TextSettings.of(run.dataset["text"])
        self.decoding = Decoding()
        """Search for replies where an instance names none."""
        self.reverse, self.reverse_weight = None, 0.5
        self._rng, self._drawing = np.random.default_rng(seed), threading.Lock()
        self._decoder_of = functools.lru_cache(maxsize=DECODERS)(lambda decoding: decoder_of(self.model, decoding))

    def rerank_by(self, reverse_run, weight=0.5):
        """Lets a reverse model, by its run directory, choose among the replies found, by default those of a beam.

        See `tasks.generation.search.rerank`. A `UserError` if it is no reverse model of the same words.
        """
        self.reverse, self.reverse_weight = load_reverse(reverse_run, self.vocabulary), weight
        self.decoding = Decoding(beam=CHOICE)

    def check(self, instance):
        decoding = parse_decoding(instance.decode)
        for field, most in MOST.items():
            if getattr(decoding, field) > most:
                raise UserError(f"decode: {field} may be {most} at most. Received: {getattr(decoding, field)}")

    def answer(self, instances):
        sources = [self.source(instance.turns)[1] for instance in instances]
        answers = {}
        for decode in {instance.decode for instance in instances}:
            rows = [row for row, instance in enumerate(instances) if instance.decode == decode]
            answers |= zip(rows, map(self._answer, *self._search([sources[row] for row in rows], decode)), strict=True)
        return [answers[row] for row in range(len(instances))]

    def size(self, instance):
        """Like `Predictor`'s: a row for each hypothesis, whose words each attend to the source."""
        decoding = parse_decoding(instance.decode) if instance.decode else self.decoding
        words = sum(len(self.text.words(turn)) for turn in instance.turns)
        return Size({"turns": words}, decoding.beam, (decoding.max_length, STEP + min(words, MAX_SOURCE)))

    def show(self, instance):
        [answer] = self.answer([instance])
        read = in_brackets(self.source(instance.turns)[0], self.vocabulary)
        return [("source", read)], [(each.score, each.text) for each in answer.best]

    def answer_with_attention(self, instance, details):
        words, source = self.source(instance.turns)
        [ids], [scores] = self._search([source], instance.decode)
        return self._answer(ids, scores), self._maps(words, ids[0], attention(self.model, source, ids[0]))

    def write(self, turns):
        """Writes a reply to some turns word by word, by the first hypothesis of `decoding`.

        Yields `{"response", "attention"}` as `explain`, for the words written so far.
        """
        words, source = self.source(turns)
        ids, weights, noise = [], [], self._noise(1, self.decoding)
        for id, row in write(self.model, stack([source]), self.decoding, EOS_ID, UNK_ID, **noise):
            ids.append(id)
            weights += [] if row is None else [keras.ops.convert_to_numpy(row).tolist()]
            yield {"response": self._text(np.array(ids)), "attention": self._maps(words, np.array(ids), weights)}

    def source(self, turns):
        """Words and their ids that the model reads of some turns, `_EOS_` after each turn."""
        said = [words for words in map(self.text.words, turns) if words][-self.text.turns :] or [[]]
        words = [word for words in said for word in (*words, "_EOS_")]
        ids = [id for words in said for id in (*self.vocabulary.encode(words), EOS_ID)]
        return words[-MAX_SOURCE:], ids[-MAX_SOURCE:]

    def _search(self, sources, decode):
        """Replies to sources: ids, int `(B, K, L)`, the best first, and what they are ranked by, float `(B, K)`."""
        decoding = parse_decoding(decode) if decode else self.decoding
        inputs = {"source": stack(sources), **self._noise(len(sources), decoding)}
        ids, scores = map(np.asarray, self._decoder_of(decoding).predict_on_batch(inputs))
        if self.reverse:
            return rerank(self.reverse, Sequences.of(sources), ids, scores, self.reverse_weight)
        return ids, scores

    def _noise(self, count, decoding):
        if not decoding.sample:
            return {}
        with self._drawing:
            return {"noise": self._rng.random((count, decoding.beam, decoding.max_length), np.float32)}

    def _text(self, ids):
        return self.text.join(words_of(ids, self.vocabulary))

    def _answer(self, ids, scores):
        best = [Reply(text=self._text(row), score=float(score)) for row, score in zip(ids, scores, strict=True)]
        return self.Answer(response=best[0].text, best=best)

    def _maps(self, source, ids, weights):
        """The attention of a reply as `explain` returns it."""
        rows = words_of(ids, self.vocabulary)
        rows += ["_EOS_"] * (len(weights) - len(rows))
        return [{"title": "source", "rows": rows, "columns": source, "weights": weights}] if weights else []
