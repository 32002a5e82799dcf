"""A generation model that answers plain text."""

import functools
import threading

import numpy as np

from base.files import UserError
from data.tokenizers import TOKENIZERS, normalize
from data.vocabulary import EOS_ID, PADDING_ID, UNK_ID, Vocabulary
from engine.predictor import Predictor
from engine.runs import VOCABULARY
from engine.settings import check_sizes
from models.decoding import Decoder, Decoding
from tasks.generation.batches import LENGTHS
from tasks.generation.search import attention, parse_decoding, words_of

DECODERS = 16  # compiled at once, one per `Decoding` that was asked for
MOST = {"beam": 20, "max_length": 100}  # that an instance may ask for


class GenerationPredictor(Predictor):
    """Writes replies to what was said.

    An answer has `response`, the best reply, and `best`: `{"text", "score"}`, as many as `decoding.beam`; a score
    is a log probability, by the length penalty where there is one.

    Args:
        run: A `engine.runs.Run` of a generation model.
        decoding: A `models.decoding.Decoding`; default: greedy search.
        seed: Of sampling; each answer goes on drawing.

    Raises:
        UserError: where the run lacks a file, or its files do not fit.
    """

    fields = {
        "turns": {
            "type": "array",
            "items": {"type": "string"},
            "description": "What was said, the oldest turn first; the model reads the last ones, as many as it learnt.",
        },
        "decode": {
            "type": "string",
            "description": "How replies are searched for, as `beam=5,length_penalty=1`; empty: as the server was told.",
            "default": "",
        },
    }

    def __init__(self, run, decoding=None, seed=1):
        self.vocabulary = Vocabulary.load(run.path / VOCABULARY)
        self.model = run.load_model()
        check_sizes(self.model.config, {"vocabulary_size": len(self.vocabulary)}, run.path)
        text = run.config["dataset"]["text"]
        self.tokenizer, self.lower, self.turns = TOKENIZERS[text["tokenizer"]], text["lower"], text["turns"]
        self._rng, self._drawing = np.random.default_rng(seed), threading.Lock()
        self._decoder_of = functools.lru_cache(maxsize=DECODERS)(self._make_decoder)
        self.decode_by(decoding or Decoding())

    def decode_by(self, decoding):
        """Changes how replies are searched for, where an instance does not say it."""
        self.decoding = decoding

    def check(self, instance, where):
        decoding = parse_decoding(instance["decode"])
        for field, most in MOST.items():
            if getattr(decoding, field) > most:
                raise UserError(f"{where}, decode: {field} may be {most} at most. Received: {getattr(decoding, field)}")

    def answer(self, instances):
        answers = [None] * len(instances)
        for decode in {instance["decode"] for instance in instances}:
            rows = [row for row, instance in enumerate(instances) if instance["decode"] == decode]
            found = self._found([self.source(instances[row]["turns"])[1] for row in rows], decode)
            for row, ids, scores in zip(rows, *found, strict=True):
                answers[row] = self._answer_of(ids, scores)
        return answers

    def answer_with_attention(self, instance):
        words, ids = self.source(instance["turns"])
        [found], [scores] = self._found([ids], instance["decode"])
        weights = attention(self.model, ids, found[0])
        shown = []
        if weights is not None:
            written = words_of(found[0], self.vocabulary)
            written += ["_EOS_"] * (len(weights) - len(written))
            shown = [{"title": "source", "rows": written, "columns": words, "weights": weights.tolist()}]
        return {**self._answer_of(found, scores), "attention": shown}

    def source(self, turns):
        """What the model reads of some turns: words, with `_EOS_` behind each turn, and their ids."""
        said = [self.tokenizer.tokenize(normalize(text, self.lower)) for text in turns]
        said = [words for words in said if words][-self.turns :]
        words = [word for words in said for word in (*words, "_EOS_")] or ["_EOS_"]
        ids = [id for words in said for id in (*self.vocabulary.encode(words), EOS_ID)] or [EOS_ID]
        return words[-LENGTHS["max_source"] :], ids[-LENGTHS["max_source"] :]

    def _make_decoder(self, decoding):
        return Decoder(self.model, decoding, EOS_ID, UNK_ID)

    def _found(self, sources, decode):
        """Replies to sources: ids, int `(B, K, L)`, the best first, and what they are ranked by, float `(B, K)`."""
        width = max(map(len, sources))
        given = {"source": np.array([[*ids, *[PADDING_ID] * (width - len(ids))] for ids in sources], np.int32)}
        decoding = parse_decoding(decode) if decode else self.decoding
        if decoding.sample:
            shape = len(sources), decoding.beam, decoding.max_length
            with self._drawing:
                given["noise"] = self._rng.random(shape, np.float32)
        return tuple(np.asarray(found) for found in self._decoder_of(decoding).predict_on_batch(given))

    def _answer_of(self, ids, scores):
        texts = [self.tokenizer.detokenize(words_of(each, self.vocabulary)) for each in ids]
        best = [{"text": text, "score": float(score)} for text, score in zip(texts, scores, strict=True)]
        return {"response": texts[0], "best": best}
