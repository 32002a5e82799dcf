"""A conversation with a trained dialog model, its searches, and its attention."""

import numpy as np
from rich.table import Table

from data.corpora.babi_dialog import SILENCE
from engine.chat import Chat, Note
from engine.explain import draw_if_named
from tasks.dialog.data import NO_RESULT

SHOWN = 8  # memories that /attention shows
VALUES = 24  # of a type that /help lists


class DialogChat(Chat):
    """One conversation.

    Args:
        predictor: A `tasks.dialog.predictor.DialogPredictor`.
    """

    HELP = """An empty line is silence: the bot continues. What it calls is looked up in the knowledge base by itself.
/attention      what the last answer attended to; with a name, as a picture: /attention a.png
/explain        the same
/reset          starts anew"""

    def __init__(self, predictor):
        self.predictor = predictor
        self.commands = {"/attention": self.attention, "/explain": self.attention, "/reset": self.reset}
        self.reset()

    def reset(self, _=""):
        """Forgets the conversation."""
        self.history, self._attention = [], []
        return "A new conversation."

    def help(self):
        """The values that a search takes, and frequent sentences of users."""
        lines = []
        for type, values in self.predictor.response_filter.searched.items():
            more = f" and {len(values) - VALUES} more" if len(values) > VALUES else ""
            lines.append(f"{type:15} {', '.join(values[:VALUES])}{more}")
        if self.predictor.phrases:
            lines += ["People say, for example:", *self.predictor.phrases]
        return "\n".join(lines)

    def reply(self, text):
        """Answers a user's sentence; after a search, the bot speaks again. Empty text is silence.

        The model is not asked if it knows no word of the sentence.
        """
        words = self.predictor.read(text)
        unknown = self.predictor.unknown(words)
        listed = f"{', '.join(unknown)}. /help lists some that I know.]"
        if unknown and len(unknown) == sum(any(map(str.isalnum, word)) for word in words):
            yield Note(f"[I know none of these words: {listed}")
            return
        if unknown:
            yield Note(f"[Unknown words: {listed}")
        facts = yield from self._answer(" ".join(words))
        while facts:
            self.history += [{"speaker": "fact", "text": fact} for fact in facts]
            yield Note(f"[{len(facts)} facts]" if facts != [NO_RESULT] else "[no result]")
            facts = yield from self._answer(SILENCE)

    def _answer(self, text):
        """Yields the response; returns what it finds."""
        user = {"speaker": "user", "text": text}
        found = self.predictor.explain({"history": [*self.history, user]})
        # Only now, so that an interrupted answer leaves nothing behind.
        self.history += [user, {"speaker": "bot", "text": found["response"]}]
        self._attention = found["attention"]
        yield found["response"]
        return found["facts"]

    def attention(self, path=""):
        """Shows the memories with the largest weights in the last answer, mean over heads; or all as a PNG file."""
        if not self.predictor.model.attention_weights:
            return "This model has no attention."
        if not self._attention:
            return "Nothing to look at yet: the history was empty."
        if path:
            return draw_if_named(self._attention, path)
        [found] = self._attention
        weights = 100 * np.array(found["weights"])  # (sentences, hops)
        even = 100 / len(weights)
        if len(weights) > 1 and weights.max() < 2 * even:
            return (
                f"No memory dominates: each of {len(weights)} memories has {weights.min():.2f} to {weights.max():.2f} "
                "per cent."
            )
        table = Table("", *found["columns"], title=f"Attention, per cent; {even:.2f} each if spread evenly")
        for place in sorted(np.argsort(-weights.max(axis=1), kind="stable")[:SHOWN]):
            table.add_row(found["rows"][place], *(f"{weight:.2f}" for weight in weights[place]))
        return table
