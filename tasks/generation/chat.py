"""A chat with a generation model."""

import contextlib

from colloquy.engine.chat import Chat, Note
from colloquy.engine.explain import heat_map
from colloquy.models.decoding import Decoding
from colloquy.tasks.generation.predictor import CHOICE

ONE_TURN = "The model reads what you said last, and nothing before. It learnt both sides of conversations.\n"
SEVERAL_TURNS = """The model reads the last {turns} turns, its own replies among them. It learnt both sides of \
conversations and does not know whose turn is whose: now and then it takes yours.
"""


class GenerationChat(Chat):
    """A conversation with a `GenerationPredictor`, reranked by the arguments of its `rerank_by`."""

    HELP = """/beam N         searches with N hypotheses and shows all replies (1: greedy search)
/sample T       draws replies at temperature T"""

    def __init__(self, predictor, reverse_run=None, reverse_weight=0.5):
        super().__init__(predictor)
        turns = predictor.text.turns
        self.HELP = (ONE_TURN if turns == 1 else SEVERAL_TURNS.format(turns=turns)) + self.HELP
        if reverse_run:
            predictor.rerank_by(reverse_run, reverse_weight)
            self.HELP += "\n/reverse W      weight of the reverse model's score, from 0 to 1"

    def reply(self, text):
        """Yields the reply, and after a beam search a note with all replies and their scores.

        Any other reply is written word by word; if it is stopped, what was written is remembered.
        """
        if not self.predictor.text.words(text):
            return
        turns = [*self.said, text]
        if self.predictor.decoding.beam == 1:
            yield self._written(turns)
            return
        found = self.predictor.explain({"turns": turns})
        self.said, self.last = [*turns, found["response"]], found
        yield found["response"]
        best = "\n".join(f"{each['score']:8.2f}  {each['text']}" for each in found["best"])
        penalty = " by the length penalty" if self.predictor.decoding.length_penalty else ""
        weight = self.predictor.reverse_weight
        both = (
            f", times {1 - weight:g}, plus the reverse model's, times {weight:g}"
            if self.predictor.reverse
            else ""
        )
        yield Note(f"log probability{penalty}{both}, and reply:\n{best}")

    def _written(self, turns):
        found = None
        try:
            for found in self.predictor.write(self.predictor.Instance(turns=turns)):
                yield found["response"]
        finally:
            if found:
                self.said, self.last = [*turns, found["response"]], found

    def beam(self, argument=""):
        if not argument.isdecimal() or not 0 < (beam := int(argument)) <= 100:
            return f"/beam expects a number from 1 to 100. Received: {argument}"
        self.predictor.decoding = Decoding(beam=beam, length_penalty=1.0)
        return f"beam of {beam}" if beam > 1 else "greedy search"

    def sample(self, argument=""):
        try:
            temperature, beam = float(argument or 1.0), CHOICE if self.predictor.reverse else 1
            self.predictor.decoding = Decoding(sample=True, temperature=temperature, beam=beam)
        except ValueError:
            return f"/sample expects a temperature from 0.01 to 100. Received: {argument}"
        return f"sampling at temperature {temperature:g}"

    def reverse(self, argument=""):
        with contextlib.suppress(ValueError):
            if 0 <= (weight := float(argument)) <= 1:
                self.predictor.reverse_weight = weight
                return f"the reverse model counts {weight:g}"
        return f"/reverse expects a number from 0 to 1. Received: {argument}"

    def explained(self, details):
        return self.last

    def explanation(self, found):
        return heat_map(found["attention"][0])
