"""A generation model that answers plain text."""

import collections
import copy
import functools
import threading
from typing import Annotated, NamedTuple

import keras
import numpy as np
from pydantic import Field

from colloquy.base.config import Config
from colloquy.base.files import UserError
from colloquy.data.sequences import stack
from colloquy.engine.devices import choose_xla
from colloquy.engine.helplines import helpline_of_turns
from colloquy.engine.predictor import Predictor, attention_map
from colloquy.engine.settings import check_fields
from colloquy.models.decoding import Decoding, put_new_replies_first
from colloquy.tasks.generation import reader, search
from colloquy.tasks.generation.data import read_source_config
from colloquy.tasks.generation.decoding_settings import decoding_of, parse_decoding

# Beams that an instance may ask for; each is compiled, and a server compiles them at its start.
BEAMS = (1, 5, 10)
# Most words of a reply.
LONGEST = 100
NO_KNOWN_WORD = "the model knows no word of the last turn"


class Reply(Config):
    """A reply that was found."""

    text: str
    score: float
    """What the search ranks by: see `models.decoding.decode`."""


class GenerationPredictor(Predictor):
    """Writes replies with the model of a run; where they are sampled, each answer draws anew."""

    class Instance(Config):
        """A conversation."""

        turns: Annotated[list[str], Field(min_length=1)]
        """The conversation, the oldest turn first; the model reads the last ones. The last turn is
        the user's, and every second one before it the bot's: a reply that the bot has given is not
        given again while the search has another."""
        decode: Annotated[str, Field(max_length=200)] = ""
        """Search for replies, as `beam=5,length_penalty=1`, or `beam=1`: greedy search; empty: the
        run's own."""
        seed: Annotated[int, Field(ge=0)] | None = None
        """With `sample=true`, the same seed draws the same reply."""

    class Answer(Config):
        """The reply."""

        response: str
        """The best reply."""
        best: list[Reply]
        """`decoding.beam` replies, the best first."""
        good: bool = True
        """False if the model knows no word of the last turn; otherwise left out."""
        reason: str = ""
        """Why the reply is not good; otherwise left out."""

    def __init__(self, run):
        self.vocabulary = run.vocabulary
        self.model = run.load_model()
        choose_xla(self.model, "auto")
        check_fields(self.model.config, {"vocabulary_size": len(self.vocabulary)}, run.path)
        self.text = read_source_config(run.dataset.get("text"), run.path)
        # Search for replies where an instance names none.
        self.decoding = decoding_of(run)
        self.has_helpline = True
        self._rng = np.random.default_rng(1)
        self._rng_lock = threading.Lock()
        self._compiled_decoder = functools.cache(
            functools.partial(search.compile_decoder, self.model)
        )

    def for_scored_examples(self):
        predictor = copy.copy(self)
        predictor.text = self.text.replace(tokenizer="space", lower=False)
        predictor.has_helpline = False  # scoring has none
        return predictor

    def configure(self, options):
        if options.reverse_run:
            raise UserError("reverse_run is for evaluate.py, which compares its replies")
        if options.decode:
            self.decoding = parse_decoding(options.decode)

    def check(self, instance):
        if not any(self.text.words(turn) for turn in instance.turns):
            raise UserError(f"turns: expected a turn with words. Received: {instance.turns!s:.60}")
        decoding = parse_decoding(instance.decode, "decode")
        if decoding.beam not in BEAMS:
            beams = ", ".join(str(beam) for beam in BEAMS)
            raise UserError(f"decode: beam may be {beams}. Received: {decoding.beam}")
        if decoding.max_length > LONGEST:
            raise UserError(
                f"decode: max_length may be {LONGEST} at most. Received: {decoding.max_length}"
            )

    def answer(self, instances):
        answers = {}
        # Requests of one shape are served by one compiled search.
        requests_by_shape = collections.defaultdict(dict)
        for number, instance in enumerate(instances):
            request = self._request(instance)
            shape = search.search_shape(request.decoding, LONGEST)
            requests_by_shape[shape][number] = request

        for shape, requests in requests_by_shape.items():
            ids, scores = self._search(list(requests.values()), shape)
            for row, (number, request) in enumerate(requests.items()):
                answers[number] = self._answer(request, ids[row], scores[row])
        return [answers[number] for number in range(len(instances))]

    def helpline_answer(self, instance):
        text = helpline_of_turns(instance.turns) if self.has_helpline else None
        if text is None:
            return None
        return self.Answer(response=text, best=[Reply(text=text, score=0.0)])

    def padded_rows(self, instance):
        """A row for each hypothesis of the search; against an empty source there are two."""
        decoding = self._decoding(instance)
        return decoding.beam * (2 if decoding.anti_lm_weight else 1)

    def count_tokens(self, text):
        return len(self.text.words(text))

    def show(self, instance):
        [answer] = self.answer([instance])
        source = self.vocabulary.in_brackets(self._request(instance).read.words)
        replies = [(reply.score, reply.text) for reply in answer.best]
        return [("source", source)], replies

    def answer_with_attention(self, instance, details):
        request = self._request(instance)
        shape = search.search_shape(request.decoding, LONGEST)
        [ids], [scores] = self._search([request], shape)
        weights = search.attention(self.model, request.read.source, ids[0])
        answer = self._answer(request, ids, scores)
        return answer, self._maps(request.read.words, ids[0], weights)

    def conversation(self, said, decode=""):
        return {"turns": [text for _, text in said], "decode": decode}

    def reply(self, answer):
        return answer["response"]

    def _request(self, instance):
        read = reader.read(instance.turns, self.text, self.vocabulary)
        return _Request(read, self._decoding(instance), instance.seed)

    def _decoding(self, instance):
        if not instance.decode:
            return self.decoding
        return parse_decoding(instance.decode, "decode")

    def _search(self, requests, shape):
        """Searches replies to requests of one shape; returns what `models.decoding.decode` does."""
        reads = [request.read for request in requests]
        inputs = {
            "source": stack([read.source for read in reads]),
            **search.decoding_inputs([request.decoding for request in requests]),
        }
        if shape.sample:
            inputs["noise"] = self._noise(requests, shape)
        ids, scores = self._compiled_decoder(shape).predict_on_batch(inputs)
        max_lengths = [request.decoding.max_length for request in requests]
        said = reader.said_ids(reads, max_lengths, shape.reply_length)
        ids, scores = put_new_replies_first(ids, scores, said)
        return keras.ops.convert_to_numpy(ids), keras.ops.convert_to_numpy(scores)

    def _noise(self, requests, shape):
        """The random numbers of sampling; those of a request with a seed depend on it alone."""
        noise_shape = (len(requests), shape.num_beams, shape.reply_length)
        with self._rng_lock:
            noise = self._rng.random(noise_shape, np.float32)
        for row, request in enumerate(requests):
            if request.seed is not None:
                rng = np.random.default_rng(request.seed)
                noise[row] = rng.random(noise_shape[1:], np.float32)
        return noise

    def _answer(self, request, ids, scores):
        best = []
        for reply_ids, score in zip(ids, scores.tolist(), strict=True):
            text = self.text.join(search.words_of(reply_ids, self.vocabulary))
            best.append(Reply(text=text, score=score))
        doubt = {}
        if request.read.is_unknown:
            doubt = {"good": False, "reason": NO_KNOWN_WORD}
        return self.Answer(response=best[0].text, best=best, **doubt)

    def _maps(self, source_words, ids, weights):
        """The map of attention over the source, if the model has attention."""
        if not weights:
            return []
        rows = search.words_of(ids, self.vocabulary)
        rows += ["_EOS_"] * (len(weights) - len(rows))
        return [attention_map("source", rows, source_words, weights)]


class _Request(NamedTuple):
    """What the model reads of an instance, and how its reply is searched."""

    read: reader.Read
    decoding: Decoding
    seed: int | None
