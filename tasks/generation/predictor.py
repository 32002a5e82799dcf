"""A generation model that answers plain text."""

import functools
import threading

import keras
import numpy as np

from base.config import Config
from base.files import UserError
from data.tokenizers import TOKENIZERS, normalize
from data.vocabulary import EOS_ID, PADDING_ID, UNK_ID
from engine.predictor import Predictor
from engine.task import check_sizes
from engine.vocabularies import vocabulary_of
from models.decoding import Decoder, Decoding, write
from tasks.generation.data import MAX_SOURCE
from tasks.generation.search import attention, load_reverse, parse_decoding, rerank, words_of

DECODERS = 16  # compiled at once, one per `Decoding` that was asked for
CHOICE = 10  # replies that a reverse model has to choose from
MOST = {"beam": 20, "max_length": 100}  # that an instance may ask for


class Reply(Config):
    """A reply that was found."""

    text: str
    score: float
    """Log probability, divided by the length penalty where there is one; with a reverse model see `rerank`."""


class GenerationPredictor(Predictor):
    """Writes replies to what was said.

    Args:
        run: A `engine.run.Run` of a generation model.
        decoding: A `models.decoding.Decoding`; default: greedy search.
        seed: Seed of sampling; each answer draws anew.

    Raises:
        UserError: where the run lacks a file, or its files do not fit.
    """

    class Instance(Config):
        """A conversation."""

        turns: list[str]
        """The conversation, the oldest turn first; the model reads as many of the last ones as it was trained with."""
        decode: str = ""
        """How replies are searched for, for example `beam=5,length_penalty=1`; empty: the predictor's own way."""

    class Answer(Config):
        """What is replied."""

        response: str
        """The best reply."""
        best: list[Reply]
        """`decoding.beam` replies, the best first."""

    def __init__(self, run, decoding=None, seed=1):
        self.vocabulary = vocabulary_of(run)
        self.model = run.load_model()
        check_sizes(self.model.config, {"vocabulary_size": len(self.vocabulary)}, run.path)
        text = run.dataset["text"]
        self.tokenizer, self.lower, self.turns = TOKENIZERS[text["tokenizer"]], text["lower"], text["turns"]
        self._rng, self._drawing = np.random.default_rng(seed), threading.Lock()
        self._decoder_of = functools.lru_cache(maxsize=DECODERS)(self._make_decoder)
        self.reverse, self.reverse_weight = None, 0.5
        self.decode_by(decoding or Decoding())

    def decode_by(self, decoding):
        """Changes how replies are searched for, where an instance does not say it."""
        self.decoding = decoding

    def rerank_by(self, reverse_run, weight=0.5):
        """Lets a reverse model choose among the replies found, by default those of a beam; see
        `tasks.generation.search.rerank`.

        Args:
            reverse_run: Its run directory.
            weight: Lambda, from 0 to 1.

        Raises:
            UserError: where it is no reverse model of the same words.
        """
        self.reverse, self.reverse_weight = load_reverse(reverse_run, self.vocabulary), weight
        self.decode_by(Decoding(beam=CHOICE))

    def check(self, instance):
        decoding = parse_decoding(instance.decode)
        for field, most in MOST.items():
            if getattr(decoding, field) > most:
                raise UserError(f"decode: {field} may be {most} at most. Received: {getattr(decoding, field)}")

    def answer(self, instances):
        answers = [None] * len(instances)
        for decode in {instance.decode for instance in instances}:
            rows = [row for row, instance in enumerate(instances) if instance.decode == decode]
            found = self._found([self.source(instances[row].turns)[1] for row in rows], decode)
            for row, ids, scores in zip(rows, *found, strict=True):
                answers[row] = self._answer_of(ids, scores)
        return answers

    def answer_with_attention(self, instance, details):
        words, ids = self.source(instance.turns)
        [found], [scores] = self._found([ids], instance.decode)
        return self._answer_of(found, scores), self._shown(words, found[0], attention(self.model, ids, found[0]))

    def write(self, turns):
        """Writes a reply word by word, by the first hypothesis of `decoding`.

        Args:
            turns: What was said, the oldest turn first.

        Yields:
            `{"response", "attention"}` as of `explain`, for the words that are written so far.
        """
        words, ids = self.source(turns)
        noise = self._noise(1, self.decoding)[:, :1] if self.decoding.sample else None
        written, weights = [], []
        for id, row in write(self.model, np.array([ids], np.int32), self.decoding, EOS_ID, UNK_ID, noise):
            written.append(id)
            weights += [] if row is None else [keras.ops.convert_to_numpy(row)]
            reply = np.array(written)
            text = self.tokenizer.detokenize(words_of(reply, self.vocabulary))
            shown = self._shown(words, reply, np.array(weights, np.float32) if weights else None)
            yield {"response": text, "attention": shown}

    def _shown(self, source, ids, weights):
        """The attention of a reply as `explain` returns it."""
        if weights is None:
            return []
        written = words_of(ids, self.vocabulary)
        written += ["_EOS_"] * (len(weights) - len(written))
        return [{"title": "source", "rows": written, "columns": source, "weights": weights.tolist()}]

    def source(self, turns):
        """What the model reads of some turns: words, with `_EOS_` after each turn, and their ids."""
        said = [self.tokenizer.tokenize(normalize(text, self.lower)) for text in turns]
        said = [words for words in said if words][-self.turns :]
        words = [word for words in said for word in (*words, "_EOS_")] or ["_EOS_"]
        ids = [id for words in said for id in (*self.vocabulary.encode(words), EOS_ID)] or [EOS_ID]
        return words[-MAX_SOURCE:], ids[-MAX_SOURCE:]

    def _make_decoder(self, decoding):
        return Decoder(self.model, decoding, EOS_ID, UNK_ID)

    def _found(self, sources, decode):
        """Replies to sources: ids, int `(B, K, L)`, the best first, and what they are ranked by, float `(B, K)`."""
        width = max(map(len, sources))
        given = {"source": np.array([[*ids, *[PADDING_ID] * (width - len(ids))] for ids in sources], np.int32)}
        decoding = parse_decoding(decode) if decode else self.decoding
        if decoding.sample:
            given["noise"] = self._noise(len(sources), decoding)
        ids, scores = (np.asarray(found) for found in self._decoder_of(decoding).predict_on_batch(given))
        return rerank(self.reverse, sources, ids, scores, self.reverse_weight) if self.reverse else (ids, scores)

    def _noise(self, count, decoding):
        with self._drawing:
            return self._rng.random((count, decoding.beam, decoding.max_length), np.float32)

    def _answer_of(self, ids, scores):
        texts = [self.tokenizer.detokenize(words_of(each, self.vocabulary)) for each in ids]
        best = [Reply(text=text, score=float(score)) for text, score in zip(texts, scores, strict=True)]
        return self.Answer(response=texts[0], best=best)
