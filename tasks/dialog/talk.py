"""Responses of the bot, one after the other until it waits for the user.

Shape suffixes:
    B dialogs   C candidates   H hops   h heads   T turns   M sentences
"""

from typing import NamedTuple

import keras
import numpy as np
from scipy.special import softmax

from colloquy.base.config import Config
from colloquy.data.corpora.babi_dialog import SILENCE, Turn
from colloquy.engine.checkpoints import checkpoint
from colloquy.tasks.dialog import remarks
from colloquy.tasks.dialog.reader import Read

BEST = 5  # candidates in an answer
RESPONSES = 8  # at most, until the user speaks again


class Candidate(Config):
    """A possible response of the bot."""

    text: str
    score: float
    """Its probability among all candidates, or among those of the instance."""


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
        mask: Its `ActionMask` or `None`.
        reader: A `DialogReader`.
        predict: Returns logits and attention weights for a dict of inputs, `[(B, T, C), ...]`.
        reads: Names of the inputs of `predict`.
    """

    def __init__(self, domain, mask, reader, predict, reads):
        self.domain = domain
        self.mask = mask
        self.reader = reader
        self.predict = predict
        self.reads = reads
        self.wishes = remarks.Wishes(domain)

    def talk(self, reads, choices):
        """The `Step`s that answer each `Read`: one, and more while the bot continues by itself.

        `choices` are for each one the texts to choose from; empty: what the action mask allows.
        """
        reads = list(reads)
        talks = [[] for _ in reads]
        waiting = range(len(reads))
        while waiting:
            checkpoint()
            steps = self.respond([reads[i] for i in waiting], [choices[i] for i in waiting])
            continuing = []
            for i, step in zip(waiting, steps, strict=True):
                talks[i].append(step)
                facts = [Turn("fact", text) for text in step.facts]
                added = [Turn("bot", step.response), *facts, Turn("user", SILENCE)]
                reads[i] = Read([*step.read.turns, *added], unknown=[])
                if not choices[i] and self._continues(talks[i]):
                    continuing.append(i)
            waiting = continuing
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
        if self.mask is None:
            return False
        return bool(self.mask.continues_C[self.domain.candidate_numbers[step.response]])

    def respond(self, reads, choices):
        """The next `Step` of each conversation."""
        inputs = self.reader.collate(reads)
        outputs = self.predict({name: inputs[name] for name in self.reads})
        logits_BTC, *hops = [np.asarray(output) for output in keras.tree.flatten(outputs)]
        allowed_BC = np.ones(logits_BTC[:, 0].shape, bool)
        if self.mask:
            allowed_BC = self.mask.predict_on_batch(inputs)[:, 0]

        steps = []
        remarks_B = None
        for b, (read, texts) in enumerate(zip(reads, choices, strict=True)):
            is_choice_C = self._mark(texts)
            is_allowed_C = is_choice_C
            if not texts:
                is_allowed_C = allowed_BC[b] & (not read.unknown)
            best = self._best_candidates(logits_BTC[b, 0], is_choice_C, is_allowed_C)
            if not best and remarks_B is None:
                remarks_B = self._make_remarks(reads, inputs)
            response = best[0].text if best else remarks_B[b]
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

    def _mark(self, texts):
        """Marks candidates, bool `(C,)`; all if there are no texts."""
        marks_C = np.full(len(self.domain.candidates), not texts)
        for text in texts:
            marks_C[self.domain.candidate_numbers[text]] = True
        return marks_C

    def _best_candidates(self, logits_C, is_choice_C, is_allowed_C):
        """The best of the allowed candidates; their probabilities are those among the choices."""
        scores_C = softmax(np.where(is_choice_C, logits_C.astype(np.float64), -np.inf))
        order = np.argsort(-logits_C, kind="stable")
        best = order[is_allowed_C[order]][:BEST]
        candidates = self.domain.candidates
        return [Candidate(text=candidates[c], score=float(scores_C[c])) for c in best]

    def _make_remarks(self, reads, inputs):
        """What the bot says to each conversation if none of its responses fits."""
        wished_BTE, exists_BT, is_open_BT = self.wishes.predict_on_batch(inputs)
        texts = []
        for b, read in enumerate(reads):
            numbers = np.flatnonzero(wished_BTE[b, 0])
            values = [self.domain.entities[number - 1].name for number in numbers]
            if read.unknown:
                texts.append(remarks.unknown_words(self.domain, read.unknown))
            elif values and not is_open_BT[b, 0]:
                found = remarks.NOTHING_ELSE if exists_BT[b, 0] else remarks.NOTHING_FOUND
                texts.append(found + ", ".join(values))
            else:
                texts.append(remarks.no_response(self.domain))
        return texts
