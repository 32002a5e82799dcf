"""A generation model that answers plain text."""

import functools
import threading
from typing import Annotated

import keras
import numpy as np
from pydantic import Field

from colloquy.base.config import Config
from colloquy.base.files import UserError
from colloquy.data.sequences import Sequences, stack
from colloquy.data.vocabulary import EOS_ID, UNK_ID
from colloquy.engine.devices import choose_xla
from colloquy.engine.predictor import Predictor, Size, attention_map, in_brackets
from colloquy.engine.task import check_fields
from colloquy.models.decoding import Decoding, write
from colloquy.tasks.generation import search
from colloquy.tasks.generation.data import MAX_SOURCE, read_tokenizer_config

STEP = 600  # source words that attention reads in the time that the rest of a step takes
CHOICE = 10  # replies that a reverse model has to choose from
BEAMS, LONGEST = (1, 2, 3, 4, 5, 10, 20), 100
"""Beams that an instance may ask for, each compiled separately, and the most words of a reply."""


class Reply(Config):
    """A reply that was found."""

    text: str
    score: float
    """The number that the search ranks by, see `models.decoding.decode`; with a reverse model see
    `rerank`.
    """


class GenerationPredictor(Predictor):
    """Writes replies with the model of a run; where they are sampled, each answer draws anew."""

    class Instance(Config):
        """A conversation."""

        turns: Annotated[list[str], Field(min_length=1)]
        """The conversation, the oldest turn first. The model reads the last ones, as many as in its
        training.
        """
        decode: Annotated[str, Field(max_length=200)] = ""
        """Search for replies, for example `beam=5,length_penalty=1`; empty: the predictor's own
        way.
        """

    class Answer(Config):
        """The reply."""

        response: str
        """The best reply."""
        best: list[Reply]
        """`decoding.beam` replies, the best first."""

    def __init__(self, run):
        self.vocabulary, self.model = run.vocabulary, run.load_model()
        choose_xla(self.model, "auto")
        check_fields(self.model.config, {"vocabulary_size": len(self.vocabulary)}, run.path)
        self.text = read_tokenizer_config(run.dataset.get("text"), run.path)
        self.decoding = Decoding()  # search for replies where an instance names none
        self.reverse, self.reverse_weight = None, 0.5
        self._rng, self._drawing = np.random.default_rng(1), threading.Lock()
        self._decoder_of = functools.cache(functools.partial(search.decoder_of, self.model))

    def rerank_by(self, reverse_run, weight=0.5):
        """Lets a reverse model, by its run directory, choose among the replies found, by default
        those of a beam.

        See `tasks.generation.search.rerank`. A `UserError` if it is no reverse model of the same
        words.
        """
        self.reverse, self.reverse_weight = (
            search.load_reverse(reverse_run, self.vocabulary),
            weight,
        )
        self.decoding = Decoding(beam=CHOICE)

    def check(self, instance):
        if not any(map(self.text.words, instance.turns)):
            raise UserError(f"turns: expected a turn with words. Received: {instance.turns!s:.60}")
        decoding = search.parse_decoding(instance.decode, "decode")
        if decoding.beam not in BEAMS:
            raise UserError(
                f"decode: beam may be {', '.join(map(str, BEAMS))}. Received: {decoding.beam}"
            )
        if decoding.max_length > LONGEST:
            raise UserError(
                f"decode: max_length may be {LONGEST} at most. Received: {decoding.max_length}"
            )

    def answer(self, instances):
        asked = [(self.source(each.turns)[1], self._decoding(each)) for each in instances]
        answers = {}
        kinds = [search.kind_of(decoding, LONGEST) for _, decoding in asked]
        for kind in {*kinds}:  # those that one compiled search serves together
            rows = [row for row, of_row in enumerate(kinds) if of_row == kind]
            answers |= zip(
                rows, map(self._answer, *self._search([asked[row] for row in rows])), strict=True
            )
        return [answers[row] for row in range(len(instances))]

    def size(self, instance):
        """Like `Predictor`'s: a row for each hypothesis, or two, whose words each attend to the
        source.
        """
        decoding = self._decoding(instance)
        rows = decoding.beam * (2 if decoding.against_empty else 1)
        words = sum(len(self.text.words(turn)) for turn in instance.turns)
        return Size({"turns": words}, rows, (decoding.max_length, STEP + min(words, MAX_SOURCE)))

    def show(self, instance):
        [answer] = self.answer([instance])
        read = in_brackets(self.source(instance.turns)[0], self.vocabulary)
        return [("source", read)], [(each.score, each.text) for each in answer.best]

    def answer_with_attention(self, instance, details):
        words, source = self.source(instance.turns)
        [ids], [scores] = self._search([(source, self._decoding(instance))])
        return self._answer(ids, scores), self._maps(
            words, ids[0], search.attention(self.model, source, ids[0])
        )

    def conversation(self, said, decode=""):
        return {"turns": [text for _, text in said], "decode": decode}

    def reply(self, answer):
        return answer["response"]

    def write(self, instance):
        """Writes the reply word by word if the search keeps one hypothesis, else at once.

        Yields `{"response", "attention"}` as `explain`, for the words written so far.
        """
        decoding = self._decoding(instance)
        if decoding.beam > 1 or self.reverse:
            yield self.explain(instance)
            return
        words, source = self.source(instance.turns)
        inputs, ids, weights = self._inputs([(source, decoding)]), [], []
        for id, row in write(self.model, inputs, EOS_ID, UNK_ID):
            ids.append(id)
            weights += [] if row is None else [keras.ops.convert_to_numpy(row).tolist()]
            yield {
                "response": self._text(np.array(ids)),
                "attention": self._maps(words, np.array(ids), weights),
            }

    def source(self, turns):
        """Words and their ids that the model reads of some turns, `_EOS_` after each turn."""
        said = [words for words in map(self.text.words, turns) if words][-self.text.turns :] or [[]]
        words = [word for words in said for word in (*words, "_EOS_")]
        ids = [id for words in said for id in (*self.vocabulary.encode(words), EOS_ID)]
        return words[-MAX_SOURCE:], ids[-MAX_SOURCE:]

    def _decoding(self, instance):
        return (
            search.parse_decoding(instance.decode, "decode") if instance.decode else self.decoding
        )

    def _search(self, asked):
        """Searches replies for sources, each with a `Decoding` of one kind; returns what `decode`
        does.
        """
        decoder = self._decoder_of(*search.kind_of(asked[0][1], LONGEST))
        ids, scores = map(np.asarray, decoder.predict_on_batch(self._inputs(asked)))
        if self.reverse:
            sources = Sequences.of([source for source, _ in asked])
            return search.rerank(self.reverse, sources, ids, scores, self.reverse_weight)
        return ids, scores

    def _inputs(self, asked):
        sources, decodings = zip(*asked, strict=True)
        inputs = {"source": stack(sources), **search.columns(decodings)}
        beam, room, sample, _ = search.kind_of(decodings[0], LONGEST)
        if sample:
            with self._drawing:
                inputs["noise"] = self._rng.random((len(sources), beam, room), np.float32)
        return inputs

    def _text(self, ids):
        return self.text.join(search.words_of(ids, self.vocabulary))

    def _answer(self, ids, scores):
        best = [
            Reply(text=self._text(row), score=score)
            for row, score in zip(ids, scores.tolist(), strict=True)
        ]
        return self.Answer(response=best[0].text, best=best)

    def _maps(self, source, ids, weights):
        rows = search.words_of(ids, self.vocabulary)
        rows += ["_EOS_"] * (len(weights) - len(rows))
        return [attention_map("source", rows, source, weights)] if weights else []
