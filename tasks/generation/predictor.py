"""A generation model that answers plain text."""

import copy
from typing import Annotated

from pydantic import Field

from colloquy.base.config import Config
from colloquy.base.files import UserError
from colloquy.engine.devices import choose_xla
from colloquy.engine.helplines import helpline_of_turns
from colloquy.engine.predictor import Predictor, attention_map
from colloquy.engine.settings import check_fields
from colloquy.tasks.generation.data import read_source_config
from colloquy.tasks.generation.decoding_settings import decoding_of, parse_decoding
from colloquy.tasks.generation.reader import encode_turns
from colloquy.tasks.generation.request_search import LONGEST, Request, RequestSearch
from colloquy.tasks.generation.search import attention, words_of

# Beams that an instance may ask for; each is compiled, and a server compiles them at its start.
BEAMS = (1, 5, 10)
NO_KNOWN_WORD = "the model knows no word of the last turn"


class Reply(Config):
    """A reply that was found."""

    text: str
    score: float
    """What the search ranks by: see `models.decoding.decode`."""


class GenerationPredictor(Predictor):
    """Writes replies with the model of a run. Sampled replies to equal instances differ.

    `engine.predictor.Predictor` describes the public methods.
    """

    class Instance(Config):
        """A conversation."""

        turns: Annotated[list[str], Field(min_length=1)]
        """The conversation, the oldest turn first; the model reads the last ones. The last turn is
        the user's, the one before it the bot's, and so on. The bot repeats none of its replies if
        the search finds another."""
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
        """As many replies as the search has hypotheses (`beam`), the best first."""
        good: bool = True
        """False if the model knows no word of the last turn. A good reply leaves it out."""
        reason: str = ""
        """Why the reply is not good. A good reply leaves it out."""

    def __init__(self, run):
        self.vocabulary = run.vocabulary
        self.model = run.load_model()
        choose_xla(self.model, "auto")
        check_fields(self.model.config, {"vocabulary_size": len(self.vocabulary)}, run.path)
        self.source_config = read_source_config(run.dataset.get("text"), run.path)
        # Settings of the search for an instance that has none.
        self.decoding = decoding_of(run)
        self.has_helpline = True
        self.search = RequestSearch(self.model)

    # === Answers ===

    def answer(self, instances):
        requests = [self._request(instance) for instance in instances]
        answers = []
        for request, (ids, scores) in zip(requests, self.search.find(requests), strict=True):
            answers.append(self._answer(request, ids, scores))
        return answers

    def answer_with_attention(self, instance, details):
        request = self._request(instance)
        [(ids, scores)] = self.search.find([request])
        best_ids = ids[0]
        weights = attention(self.model, request.encoded.source, best_ids)
        maps = []
        if weights:  # a model without attention has none
            words = words_of(best_ids, self.vocabulary)
            if len(words) < len(weights):
                words.append("_EOS_")  # the reply ended within its longest length
            maps.append(attention_map("source", words, request.encoded.words, weights))
        return self._answer(request, ids, scores), maps

    def _request(self, instance):
        encoded = encode_turns(instance.turns, self.source_config, self.vocabulary)
        return Request(encoded, self._decoding(instance), instance.seed)

    def _decoding(self, instance):
        return parse_decoding(instance.decode, "decode") if instance.decode else self.decoding

    def _answer(self, request, ids, scores):
        """The answer with the replies found: their ids, `(K, L)`, and scores, `(K,)`."""
        best = []
        for reply_ids, score in zip(ids, scores.tolist(), strict=True):
            text = self.source_config.join(words_of(reply_ids, self.vocabulary))
            best.append(Reply(text=text, score=score))
        verdict = {}
        if request.encoded.is_unknown:
            verdict = {"good": False, "reason": NO_KNOWN_WORD}
        return self.Answer(response=best[0].text, best=best, **verdict)

    # === evaluate.py and predict.py ===

    def configure(self, options):
        if options.reverse_run:
            raise UserError("reverse_run is for evaluate.py, which compares its replies")
        if options.decode:
            self.decoding = parse_decoding(options.decode)

    def for_scored_examples(self):
        # The texts of scored examples are words with spaces between them.
        predictor = copy.copy(self)
        predictor.source_config = self.source_config.replace(tokenizer="space", lower=False)
        predictor.has_helpline = False  # evaluate.py scores what the model itself replies
        return predictor

    def show(self, instance):
        [answer] = self.answer([instance])
        source = self.vocabulary.in_brackets(self._request(instance).encoded.words)
        replies = [(reply.score, reply.text) for reply in answer.best]
        return [("source", source)], replies

    # === Servers ===

    def check(self, instance):
        if not any(self.source_config.words(turn) for turn in instance.turns):
            raise UserError(f"turns: expected a turn with words. Received: {instance.turns!s:.60}")
        decoding = parse_decoding(instance.decode, "decode")
        if decoding.beam not in BEAMS:
            beams = ", ".join(map(str, BEAMS))
            raise UserError(f"decode: beam may be {beams}. Received: {decoding.beam}")
        if decoding.max_length > LONGEST:
            raise UserError(
                f"decode: max_length may be {LONGEST} at most. Received: {decoding.max_length}"
            )

    def helpline_answer(self, instance):
        text = helpline_of_turns(instance.turns)
        if text is None or not self.has_helpline:
            return None
        return self.Answer(response=text, best=[Reply(text=text, score=0.0)])

    def padded_rows(self, instance):
        """A row for each hypothesis of the search; MMI-antiLM computes each a second time."""
        decoding = self._decoding(instance)
        if decoding.anti_lm_weight:
            return 2 * decoding.beam
        return decoding.beam

    # === Chats and chat completions ===

    def conversation(self, said, decode=""):
        return {"turns": [text for _, text in said], "decode": decode}

    def reply(self, answer):
        return answer["response"]

    def count_tokens(self, text):
        return len(self.source_config.words(text))
