"""Responses of the bot, one after the other until it waits for the user.

Shape suffixes:
    B dialogs   C candidates   E entities   H hops   h heads   T turns   M sentences
"""

from typing import NamedTuple

import keras
import numpy as np
from scipy.special import softmax

from colloquy.base.config import Config
from colloquy.data.corpora.babi_dialog import SILENCE, Turn
from colloquy.engine.cancellation import checkpoint
from colloquy.tasks.dialog import remarks
from colloquy.tasks.dialog.reader import Read

BEST = 5  # candidates in an answer
RESPONSES = 8  # the most responses until the user speaks again


class Candidate(Config):
    """A possible response of the bot."""

    text: str
    score: float
    """Its probability among all candidates."""


class Step(NamedTuple):
    """One response of the bot."""

    read: Read
    """The conversation that it answers."""
    best: list[Candidate]
    """The best candidates; empty where the response is a remark."""
    response: str
    facts: list[str]
    """Facts that the response finds, if it is a call."""
    weights_HhM: np.ndarray
    """Attention weights of each hop and head to the sentences before the last."""


class Responder:
    """Chooses responses.

    Args:
        domain: A `tasks.dialog.domain.Domain`.
        mask: Its `ActionMask`.
        reader: A `DialogReader`.
        model: Returns logits and attention weights for a dict of inputs, `[(B, T, C), ...]`.
    """

    def __init__(self, domain, mask, reader, model):
        self.domain = domain
        self.mask = mask
        self.reader = reader
        self.model = model

    def talk(self, reads):
        """The `Step`s that answer each `Read`: one, and more while the bot continues by itself."""
        talks = [[] for _ in reads]
        # Only the talks in which the bot speaks next have a `Read` here.
        reads_by_talk = dict(enumerate(reads))
        while reads_by_talk:
            checkpoint()
            steps = self.respond(reads_by_talk.values())
            next_reads = {}
            for number, step in zip(reads_by_talk, steps, strict=True):
                talks[number].append(step)
                if self._continues(talks[number]):
                    facts = [Turn("fact", text) for text in step.facts]
                    added = [Turn("bot", step.response), *facts, Turn("user", SILENCE)]
                    next_reads[number] = Read([*step.read.turns, *added], unknown=[])
            reads_by_talk = next_reads
        return talks

    def _continues(self, steps):
        """True if the bot speaks again.

        It does after a search, and after responses to which users of train are silent.
        """
        *former_steps, step = steps
        if not step.best or len(steps) == RESPONSES:
            return False
        if step.response in [former.response for former in former_steps]:
            return False
        if step.facts:
            return True
        return bool(self.mask.continues_C[self.domain.candidate_numbers[step.response]])

    def respond(self, reads):
        """The next `Step` of each conversation."""
        inputs = self.reader.collate(reads)
        outputs = self.model.predict_on_batch({name: inputs[name] for name in self.model.input})
        logits_BTC, *hops = [np.asarray(output) for output in keras.tree.flatten(outputs)]
        allowed_BTC, wished_BTE = self.mask.predict_on_batch(inputs)

        steps = []
        for b, read in enumerate(reads):
            best = []
            if not read.unknown:
                best = self._best_candidates(logits_BTC[b, 0], allowed_BTC[b, 0])
            if best:
                response = best[0].text
            elif read.unknown:
                response = remarks.name_unknown(self.domain, read.unknown)
            else:
                response = remarks.name_missing(self.domain, wished_BTE[b, 0])
            num_memories = len(read.turns) - 1
            step = Step(
                read=read,
                best=best,
                response=response,
                facts=self.domain.search(response),
                weights_HhM=np.array([hop_BhTM[b, :, 0, :num_memories] for hop_BhTM in hops]),
            )
            steps.append(step)
        return steps

    def _best_candidates(self, logits_C, is_allowed_C):
        """The best of the allowed candidates, with their probabilities among all."""
        scores_C = softmax(logits_C.astype(np.float64))
        order = np.argsort(-logits_C, kind="stable")
        best = order[is_allowed_C[order]][:BEST]
        candidates = self.domain.candidates
        return [Candidate(text=candidates[c], score=float(scores_C[c])) for c in best]
