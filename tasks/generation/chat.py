"""A chat with a generation model."""

from colloquy.engine.chat import Chat, Note
from colloquy.models.decoding import Decoding

ONE_TURN = """\
The model reads what you said last, and nothing before. It learnt both sides of conversations.
"""
SEVERAL_TURNS = """\
The model reads the last {turns} turns, its own replies among them. It learnt both sides of \
conversations and does not know whose turn is whose: now and then it takes yours.
"""


class GenerationChat(Chat):
    """A conversation with a `GenerationPredictor`."""

    HELP = """/beam N         searches with N hypotheses and shows all replies (1: greedy search)
/sample T       draws replies at temperature T"""

    def __init__(self, predictor):
        super().__init__(predictor)
        # A note after each reply has all that were found.
        self.shows_all = False
        turns = predictor.source_config.turns
        about_turns = ONE_TURN if turns == 1 else SEVERAL_TURNS.format(turns=turns)
        self.HELP = about_turns + self.HELP

    def reply(self, text):
        """Yields the reply, a note if it is not good, and after `/beam` one with all replies."""
        if not self.predictor.source_config.words(text):
            return
        turns = [*self.said, text]
        answer = self.predictor.explain({"turns": turns})
        self.said = [*turns, answer["response"]]
        self.last = answer
        yield answer["response"]
        if not answer.get("good", True):
            yield Note(f"[{answer['reason']}]")
        if self.shows_all and len(answer["best"]) > 1:
            lines = ["log probability by the length penalty, and reply:"]
            for reply in answer["best"]:
                lines.append(f"{reply['score']:8.2f}  {reply['text']}")
            yield Note("\n".join(lines))

    def beam(self, argument):
        if not argument.isdecimal() or len(argument) > 3 or not 0 < int(argument) <= 100:
            return f"/beam expects a number from 1 to 100. Received: {argument:.60}"
        beam = int(argument)
        self.predictor.decoding = Decoding(beam=beam, length_penalty=1.0)
        self.shows_all = True
        return f"beam of {beam}" if beam > 1 else "greedy search"

    def sample(self, argument):
        try:
            temperature = float(argument or 1.0)
            self.predictor.decoding = Decoding(sample=True, temperature=temperature)
        except ValueError:
            return f"/sample expects a temperature from 0.01 to 100. Received: {argument}"
        return f"sampling at temperature {temperature:g}"

    def explained(self, details):
        return self.last
