"""A conversation with a trained dialog model, its searches, and its attention."""

import itertools

import numpy as np
from rich.table import Table

from colloquy.engine.chat import Chat, Note
from colloquy.tasks.dialog.data import listed
from colloquy.tasks.dialog.prepare import NO_RESULT

SHOWN = 8  # memories that /explain shows


class DialogChat(Chat):
    """One conversation with a `tasks.dialog.predictor.DialogPredictor`."""

    HELP = "An empty line is silence: the bot continues. What it calls is looked up in the knowledge base by itself."

    def help(self):
        """Values that a search accepts, and frequent sentences of users."""
        lines = [
            f"{type:15} {listed(values)}"
            for type, values in self.predictor.domain.slot_values.items()
        ]
        if self.predictor.phrases:
            lines += ["People say, for example:", *self.predictor.phrases]
        return "\n".join(lines)

    def reply(self, text):
        """Answers a user's sentence until the bot waits for the user again; empty text is
        silence.
        """
        user = {"speaker": "user", "text": text}
        asked = {"history": [*self.said, user]}
        [found] = self.predictor.predict([asked])
        # Only now, so that an interrupted answer leaves nothing behind.
        self.said, self.last = [*asked["history"], *found["said"]], asked
        if found["unknown"]:
            yield Note(
                f"[Unknown words: {', '.join(found['unknown'])}. /help lists some that I know.]"
            )
        for speaker, said in itertools.groupby(found["said"], key=lambda each: each["speaker"]):
            texts = [each["text"] for each in said]
            if speaker == "fact":
                yield Note(f"[{len(texts)} facts]" if texts != [NO_RESULT] else "[no result]")
            elif speaker == "bot":
                yield from texts

    def explanation(self, found):
        """The memories with the largest weights, mean over heads."""
        [found] = found["attention"]
        weights = 100 * np.array(found["weights"])  # (sentences, hops)
        even = 100 / len(weights)
        if len(weights) > 1 and weights.max() < 2 * even:
            most = f"{weights.min():.2f} to {weights.max():.2f} per cent"
            return f"No memory dominates: each of {len(weights)} memories has {most}."
        table = Table(
            "", *found["columns"], title=f"Attention, per cent; {even:.2f} each if spread evenly"
        )
        for place in sorted(np.argsort(-weights.max(axis=1), kind="stable")[:SHOWN]):
            table.add_row(found["rows"][place], *(f"{weight:.2f}" for weight in weights[place]))
        return table
