"""A chat with a generation model."""

from engine.explanations import draw_if_named, heat_map
from models.decoding import Decoding


class GenerationChat:
    """Answers what is said, in view of what was said before.

    Args:
        predictor: A `tasks.generation.predictor.GenerationPredictor`.
    """

    HELP = """/beam N         looks for the likeliest reply among N, and shows all N (1: greedy search)
/sample T       draws replies at temperature T
/attention      shows what the model attended to in its last reply; with a name, as a picture: /attention a.png
/reset          forgets what was said"""

    def __init__(self, predictor):
        self.predictor, self.said, self.last = predictor, [], None
        self.commands = {
            "/beam": self.beam,
            "/sample": self.sample,
            "/attention": self.attention,
            "/reset": self.reset,
        }

    def reply(self, text):
        """The replies to what was said, the best first; the best is remembered as said.

        Args:
            text: What the user says.

        Returns:
            List of texts.
        """
        self.said.append(text)
        found = self.predictor.explain({"turns": self.said})
        self.said.append(found["response"])
        self.last = found
        if len(found["best"]) == 1:
            return [found["response"]]
        return [f"{each['text']}  ({each['score']:.1f})" for each in found["best"]]

    # === Commands ===

    def beam(self, argument=""):
        """Looks for replies by a beam."""
        if not argument.isdecimal() or not 0 < int(argument) <= 100:
            return f"/beam expects a number from 1 to 100. Received: {argument}"
        beam = int(argument)
        self.predictor.decode_by(Decoding(beam=beam, length_penalty=1.0))
        return f"beam of {beam}" if beam > 1 else "greedy search"

    def sample(self, argument=""):
        """Draws replies."""
        try:
            self.predictor.decode_by(Decoding(sample=True, temperature=float(argument or 1.0)))
        except ValueError:
            return f"/sample expects a temperature above 0, as 0.7. Received: {argument}"
        return f"sampling at temperature {self.predictor.decoding.temperature:g}"

    def reset(self, _=""):
        """Forgets what was said."""
        self.said, self.last = [], None
        return "forgotten"

    def attention(self, path=""):
        """What the model attended to when it wrote its last reply, as text, or as a picture in a PNG file."""
        if self.last is None:
            return "Say something first."
        if not self.last["attention"]:
            return "This model has no attention."
        [found] = self.last["attention"]
        return draw_if_named([found], path) or heat_map(found)
