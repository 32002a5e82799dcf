"""A chat with a generation model."""

from colloquy.engine.chat import Chat, Note
from colloquy.models.decoding import Decoding
from colloquy.tasks.generation.predictor import CHOICE

ONE_TURN = """\
The model reads what you said last, and nothing before. It learnt both sides of conversations.
"""
SEVERAL_TURNS = """\
The model reads the last {turns} turns, its own replies among them. It learnt both sides of \
conversations and does not know whose turn is whose: now and then it takes yours.
"""
REVERSE_HELP = "\n/reverse W      weight of the reverse model's score, from 0 to 1"


class GenerationChat(Chat):
    """A conversation with a `GenerationPredictor`, reranked by the arguments of its `rerank_by`."""

    HELP = """/beam N         searches with N hypotheses and shows all replies (1: greedy search)
/sample T       draws replies at temperature T"""

    def __init__(self, predictor, reverse_run=None, reverse_weight=0.5):
        super().__init__(predictor)
        # A note after each reply has all that were found.
        self.shows_all = bool(reverse_run)
        turns = predictor.text.turns
        about_turns = ONE_TURN if turns == 1 else SEVERAL_TURNS.format(turns=turns)
        self.HELP = about_turns + self.HELP
        if reverse_run:
            predictor.rerank_by(reverse_run, reverse_weight)
            self.HELP += REVERSE_HELP

    def reply(self, text):
        """Yields the reply, a note if it is not good, and after `/beam` one with all replies."""
        if not self.predictor.text.words(text):
            return
        turns = [*self.said, text]
        answer = self.predictor.explain({"turns": turns})
        self.said = [*turns, answer["response"]]
        self.last = answer
        yield answer["response"]
        if not answer.get("good", True):
            yield Note(f"[{answer['reason']}]")
        if self.shows_all and len(answer["best"]) > 1:
            yield Note(f"{self._score_title()}, and reply:\n{_scored_replies(answer)}")

    def _score_title(self):
        """What the scores of replies are."""
        title = "log probability"
        if self.predictor.decoding.length_penalty:
            title += " by the length penalty"
        if self.predictor.reverse:
            weight = self.predictor.reverse_weight
            title += f", times {1 - weight:g}, plus the reverse model's, times {weight:g}"
        return title

    def beam(self, argument=""):
        if not argument.isdecimal() or not 0 < int(argument) <= 100:
            return f"/beam expects a number from 1 to 100. Received: {argument}"
        beam = int(argument)
        self.predictor.decoding = Decoding(beam=beam, length_penalty=1.0)
        self.shows_all = True
        return f"beam of {beam}" if beam > 1 else "greedy search"

    def sample(self, argument=""):
        beam = CHOICE if self.predictor.reverse else 1
        try:
            temperature = float(argument or 1.0)
            self.predictor.decoding = Decoding(sample=True, temperature=temperature, beam=beam)
        except ValueError:
            return f"/sample expects a temperature from 0.01 to 100. Received: {argument}"
        return f"sampling at temperature {temperature:g}"

    def reverse(self, argument=""):
        try:
            weight = float(argument)
        except ValueError:
            weight = None
        if weight is None or not 0 <= weight <= 1:
            return f"/reverse expects a number from 0 to 1. Received: {argument}"
        self.predictor.reverse_weight = weight
        return f"the reverse model counts {weight:g}"

    def explained(self, details):
        return self.last


def _scored_replies(answer):
    """The replies of an answer, each on a line after its score."""
    return "\n".join(f"{reply['score']:8.2f}  {reply['text']}" for reply in answer["best"])
