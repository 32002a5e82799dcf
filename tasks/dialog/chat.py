"""A conversation with a trained dialog model: it answers, calls the knowledge base, and shows what it attended to."""

import numpy as np
from rich.table import Table

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

    HELP = """An empty line is silence: the bot goes on. What it calls is looked up in the knowledge base by itself.
/attention      what the last answer attended to; with a name, as a picture: /attention a.png
/explain        the same
/reset          starts anew"""

    def __init__(self, predictor):
        self.predictor = predictor
        self.commands = {
            "/attention": self.attention,
            "/explain": self.attention,
            "/reset": lambda _: self.reset(),
        }
        self.reset()

    def reset(self):
        """Forgets the conversation."""
        self.history, self._attention = [], []
        return "A new conversation."

    def help(self):
        """The values that a search takes, and what users say."""
        lines = []
        for type, values in self.predictor.response_filter.searched.items():
            more = f" and {len(values) - VALUES} more" if len(values) > VALUES else ""
            lines.append(f"{type:15} {', '.join(values[:VALUES])}{more}")
        phrases = self.predictor.phrases
        return "\n".join([*lines, *["People say, for example:"] * bool(phrases), *phrases])

    def reply(self, text):
        """Answers a user's sentence; where the answer calls the knowledge base, also what the bot says next.

        Args:
            text: Any text; empty: silence. A word that the model does not know counts as the unknown word, and where
                it knows none, it is not asked.
        """
        unknown, words = self.predictor.unknown(text), self.predictor.read(text)
        if unknown and len(unknown) == sum(any(map(str.isalnum, word)) for word in words):
            yield Note(f"[I know none of these words: {', '.join(unknown)}. /help lists some that I know.]")
            return
        if unknown:
            yield Note(f"[Unknown words: {', '.join(unknown)}. /help lists some that I know.]")
        found = self._answer(" ".join(words))
        yield found["response"]
        while found["facts"]:
            for fact in found["facts"]:
                self._add("fact", fact)
            yield Note(f"[{len(found['facts'])} facts]" if found["facts"] != [NO_RESULT] else "[no result]")
            found = self._answer("")
            yield found["response"]

    def attention(self, path=""):
        """A table of the memories with the largest weights in the last answer, a column per hop, mean over heads; or
        all of them as a picture in a PNG file."""
        if not self.predictor.model.attention_weights:
            return "This model has no attention."
        if not self._attention:
            return "Nothing to look at yet: the history was empty."
        if path:
            return draw_if_named(self._attention, path)
        [found] = self._attention
        weights = np.array(found["weights"])  # (sentences, hops)
        if len(weights) > 1 and weights.max() < 2 / len(weights):
            low, high = 100 * weights.min(), 100 * weights.max()
            return f"Nothing stands out: each of {len(weights)} memories has {low:.2f} to {high:.2f} per cent."
        table = Table(
            "", *found["columns"], title=f"Attention, per cent; {100 / len(weights):.2f} each if spread evenly"
        )
        for place in sorted(np.argsort(-weights.max(axis=1), kind="stable")[:SHOWN]):
            table.add_row(found["rows"][place], *(f"{100 * weight:.2f}" for weight in weights[place]))
        return table

    def _answer(self, text):
        user = {"speaker": "user", "text": " ".join(self.predictor.read(text))}
        found = self.predictor.explain({"history": [*self.history, user]})
        self.history.append(user)  # only now: an interrupted answer leaves nothing behind
        self._attention = found["attention"]
        self._add("bot", found["response"])
        return found

    def _add(self, speaker, text):
        self.history.append({"speaker": speaker, "text": text})
