"""A conversation with a trained dialog model: it answers, calls the knowledge base, and shows what it attended to."""

import numpy as np
from rich.table import Table

from tasks.dialog.knowledge import NO_RESULT

SHOWN = 8  # memories that /attention shows


class DialogChat:
    """One conversation.

    Args:
        predictor: A `tasks.dialog.predictor.DialogPredictor`.
    """

    HELP = (
        "An empty line is silence: the bot goes on. An api_call is looked up in the knowledge base by itself.\n"
        "/attention  what the last answer attended to    /reset  starts anew"
    )

    def __init__(self, predictor):
        self.predictor = predictor
        self.commands = {"/attention": lambda _: self.attention(), "/reset": lambda _: self.reset()}
        self.reset()

    def reset(self):
        """Forgets the conversation."""
        self.history, self._attention = [], []
        return "A new conversation."

    def reply(self, text):
        """Answers a user's sentence; where the answer calls the knowledge base, also what the bot says next.

        Args:
            text: Any text; empty: silence. Words that the model does not know count as one unknown word.

        Returns:
            List of texts: answers, and facts that a call brought.
        """
        found = self._answer(text)
        said = [found["response"]]
        while found["facts"] and len(said) < 10:
            for fact in found["facts"]:
                self._add("fact", fact)
            said.append(f"[{len(found['facts'])} facts]" if found["facts"] != [NO_RESULT] else "[no result]")
            found = self._answer("")
            said.append(found["response"])
        return said

    def attention(self):
        """A table of the memories with the largest weights in the last answer, a column per hop, mean over heads."""
        if not self.predictor.model.attention_weights:
            return "This model has no attention."
        if not self._attention:
            return "Nothing to look at yet: the history was empty."
        [found] = self._attention
        weights = np.array(found["weights"])  # (sentences, hops)
        table = Table("", *found["columns"], title="Attention, per cent")
        for place in sorted(np.argsort(-weights.max(axis=1), kind="stable")[:SHOWN]):
            table.add_row(found["rows"][place], *(f"{100 * weight:.0f}" for weight in weights[place]))
        return table

    def _answer(self, text):
        self._add("user", " ".join(self.predictor.read(text)))
        found = self.predictor.explain({"history": self.history})
        self._attention = found["attention"]
        self._add("bot", found["response"])
        return found

    def _add(self, speaker, text):
        self.history.append({"speaker": speaker, "text": text})
