"""A chat with a response-selection model.

It answers with responses of an index, or ranks the user's own answers.
"""

from colloquy.base.files import UserError
from colloquy.data.text_files import read_lines
from colloquy.engine.chat import Chat, Note
from colloquy.tasks.selection.retrieval.answers import AnsweringPredictor


class SelectionChat(Chat):
    """One conversation, with an `AnsweringPredictor`; another predictor is a `UserError`."""

    def __init__(self, predictor):
        if not isinstance(predictor, AnsweringPredictor):
            raise UserError(
                "this model ranks answers: give --index=DIR (tools.build_index) or "
                "--candidates=FILE"
            )
        super().__init__(predictor)

    def reply(self, text):
        if not text.strip():
            return
        turns = [*self.said, text]
        [answer] = self.predictor.predict([{"turns": turns}])

        # The state changes only now: finding answers may have been interrupted.
        if not answer["candidates"]:
            self.said = turns
            self.last = None
            yield Note(f"[{answer['reason']}]")
            return
        best = answer["candidates"][0]
        self.said = [*turns, best]
        self.last = {"turns": turns}
        yield best
        if not answer["good"]:
            yield Note(f"[{answer['reason']}]")

    def explanation(self, answer):
        """The best match in the conversation of each word of the answer."""
        maps = answer["attention"]
        lines = []
        for column, word in enumerate(maps[0]["columns"]):
            matches = []
            for shown in maps:
                for row, weights in zip(shown["rows"], shown["weights"], strict=True):
                    matches.append((weights[column], f"{row}  ({shown['title']})"))
            weight, best_match = max(matches)
            lines.append(f"{word:>20}  {weight:.2f}  {best_match}")
        lines.append("match with the best word of the turns that are read; the best of all is 1")
        return "\n".join(lines)


def read_candidates(path):
    """Reads the user's own answers, a list of texts: one of each line that is not empty."""
    texts = [line.strip() for _, line in read_lines(path, "an answer per line")]
    return [text for text in texts if text]
