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
from colloquy.data.sequences import Sequences, stack
from colloquy.engine.devices import choose_xla
from colloquy.engine.helplines import helpline_of_turns
from colloquy.engine.predictor import Predictor, attention_map, in_brackets
from colloquy.engine.settings import check_fields
from colloquy.models.decoding import Decoding, put_new_replies_first
from colloquy.tasks.generation import search
from colloquy.tasks.generation.data import read_source_config
from colloquy.tasks.generation.reader import Read, Reader

# Replies that a reverse model chooses from.
CHOICE = 10
# Beams that an instance may ask for; each is compiled, and a server compiles them at its start.
BEAMS = (1, 5, 10)
# Most words of a reply.
LONGEST = 100
NO_KNOWN_WORD = "the model knows no word of the last turn"


class Reply(Config):
    """A reply that was found."""

    text: str
    score: float
    """What the search ranks by: see `models.decoding.decode`, with a reverse model `rerank`."""


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
        self.reader = Reader(self.vocabulary, self.text)
        # Search for replies where an instance names none.
        self.decoding = search.decoding_of(run)
        self.has_helpline = True
        self.reverse = None
        self.reverse_weight = 0.5
        self._rng = np.random.default_rng(1)
        self._rng_lock = threading.Lock()
        self._compiled_decoder = functools.cache(
            functools.partial(search.compile_decoder, self.model)
        )

    def for_scored_examples(self):
        predictor = copy.copy(self)
        predictor.text = self.text.replace(tokenizer="space", lower=False)
        predictor.reader = Reader(self.vocabulary, predictor.text)
        predictor.has_helpline = False  # scoring has none
        return predictor

    def configure(self, options):
        if options.reverse_run:
            self.rerank_by(options.reverse_run, options.reverse_weight)
        if options.decode:
            self.decoding = search.parse_decoding(options.decode)

    def rerank_by(self, reverse_run, weight=0.5):
        """Lets a reverse model choose among the replies found, by default those of a beam.

        See `tasks.generation.search.rerank`.

        Args:
            reverse_run: Its run directory.
            weight: Weight of its scores.

        Raises:
            UserError: It is no reverse model of the same words.
        """
        self.reverse = search.load_reverse(reverse_run, self.vocabulary)
        self.reverse_weight = weight
        self.decoding = Decoding(beam=CHOICE)

    def check(self, instance):
        if not any(self.text.words(turn) for turn in instance.turns):
            raise UserError(f"turns: expected a turn with words. Received: {instance.turns!s:.60}")
        decoding = search.parse_decoding(instance.decode, "decode")
        if decoding.beam not in BEAMS:
            beams = ", ".join(str(beam) for beam in BEAMS)
            raise UserError(f"decode: beam may be {beams}. Received: {decoding.beam}")
        if decoding.max_length > LONGEST:
            raise UserError(
                f"decode: max_length may be {LONGEST} at most. Received: {decoding.max_length}"
            )

    def answer(self, instances):
        helpline_answers = [self._helpline_answer(instance) for instance in instances]
        to_search = []
        for instance, helpline_answer in zip(instances, helpline_answers, strict=True):
            if helpline_answer is None:
                to_search.append(instance)
        searched_answers = iter(self._search_answers(to_search))

        answers = []
        for helpline_answer in helpline_answers:
            if helpline_answer is None:
                answers.append(next(searched_answers))
            else:
                answers.append(helpline_answer)
        return answers

    def _helpline_answer(self, instance):
        """The answer to who writes of hurting themselves; `None` to anybody else."""
        text = helpline_of_turns(instance.turns) if self.has_helpline else None
        if text is None:
            return None
        return self.Answer(response=text, best=[Reply(text=text, score=0.0)])

    def _search_answers(self, instances):
        requests = [self._request(instance) for instance in instances]

        # Requests of one shape are served by one compiled search.
        numbers_by_shape = collections.defaultdict(list)
        for number, request in enumerate(requests):
            shape = search.search_shape(request.decoding, LONGEST)
            numbers_by_shape[shape].append(number)

        answers = {}
        for numbers in numbers_by_shape.values():
            ids, scores = self._search([requests[number] for number in numbers])
            for row, number in enumerate(numbers):
                answers[number] = self._answer(requests[number], ids[row], scores[row])
        return [answers[number] for number in range(len(instances))]

    def padded_rows(self, instance):
        """A row for each hypothesis of the search; against an empty source there are two."""
        decoding = self._decoding(instance)
        return decoding.beam * (2 if decoding.anti_lm_weight else 1)

    def count_tokens(self, text):
        return len(self.text.words(text))

    def show(self, instance):
        [answer] = self.answer([instance])
        source = in_brackets(self.reader.read(instance.turns).words, self.vocabulary)
        replies = [(reply.score, reply.text) for reply in answer.best]
        return [("source", source)], replies

    def answer_with_attention(self, instance, details):
        helpline_answer = self._helpline_answer(instance)
        if helpline_answer is not None:
            return helpline_answer, []
        request = self._request(instance)
        [ids], [scores] = self._search([request])
        weights = search.attention(self.model, request.read.source, ids[0])
        answer = self._answer(request, ids, scores)
        return answer, self._maps(request.read.words, ids[0], weights)

    def conversation(self, said, decode=""):
        return {"turns": [text for _, text in said], "decode": decode}

    def reply(self, answer):
        return answer["response"]

    def _request(self, instance):
        read = self.reader.read(instance.turns)
        return _Request(read, self._decoding(instance), instance.seed)

    def _decoding(self, instance):
        if not instance.decode:
            return self.decoding
        return search.parse_decoding(instance.decode, "decode")

    def _search(self, requests):
        """Searches replies to requests of one shape; returns what `models.decoding.decode` does."""
        decoder = self._compiled_decoder(search.search_shape(requests[0].decoding, LONGEST))
        ids, scores = decoder.predict_on_batch(self._inputs(requests))
        ids, scores = np.asarray(ids), np.asarray(scores)
        if self.reverse is not None:
            sources = Sequences.of([request.read.source for request in requests])
            ids, scores = search.rerank(self.reverse, sources, ids, scores, self.reverse_weight)
        said = self.reader.said_ids([request.read for request in requests], ids.shape[-1])
        ids, scores = put_new_replies_first(ids, scores, said)
        return keras.ops.convert_to_numpy(ids), keras.ops.convert_to_numpy(scores)

    def _inputs(self, requests):
        inputs = {
            "source": stack([request.read.source for request in requests]),
            **search.decoding_inputs([request.decoding for request in requests]),
        }
        shape = search.search_shape(requests[0].decoding, LONGEST)
        if shape.sample:
            noise_shape = (len(requests), shape.num_beams, shape.reply_length)
            with self._rng_lock:
                noise = self._rng.random(noise_shape, np.float32)
            for row, request in enumerate(requests):
                if request.seed is not None:
                    rng = np.random.default_rng(request.seed)
                    noise[row] = rng.random(noise_shape[1:], np.float32)
            inputs["noise"] = noise
        return inputs

    def _text(self, ids):
        return self.text.join(search.words_of(ids, self.vocabulary))

    def _answer(self, request, ids, scores):
        best = []
        for reply, score in zip(ids, scores.tolist(), strict=True):
            best.append(Reply(text=self._text(reply), score=score))
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

    read: Read
    decoding: Decoding
    seed: int | None
