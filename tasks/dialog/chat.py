"""A conversation with a trained dialog model and its searches."""

import itertools

from colloquy.engine.chat import Chat, Note
from colloquy.tasks.dialog.knowledge import NO_RESULT


class DialogChat(Chat):
    """One conversation with a `tasks.dialog.predictor.DialogPredictor`."""

    HELP = (
        "An empty line is silence: the bot continues. What it calls is looked up in the knowledge "
        "base by itself."
    )

    def help(self):
        """Values that a search accepts, and frequent sentences of users."""
        lines = []
        if self.predictor.domain.slot_values_text:
            lines.append(self.predictor.domain.slot_values_text)
        if self.predictor.users.phrases:
            lines.append("People say, for example:")
            lines += self.predictor.users.phrases
        return "\n".join(lines)

    def reply(self, text):
        """Answers a user's sentence until the bot waits for the user again.

        Empty text is silence.
        """
        user = {"speaker": "user", "text": text}
        instance = {"history": [*self.said, user]}
        [answer] = self.predictor.predict([instance])
        # Only now, so that an interrupted answer leaves nothing behind.
        self.said = [*instance["history"], *answer["said"]]
        self.last = instance

        by_speaker = itertools.groupby(answer["said"], key=lambda sentence: sentence["speaker"])
        for speaker, sentences in by_speaker:
            texts = [sentence["text"] for sentence in sentences]
            if speaker == "bot":
                yield from texts
            elif speaker == "fact":
                yield Note("[no result]" if texts == [NO_RESULT] else f"[{len(texts)} facts]")
