"""A chat with a response-selection model, which answers with responses of an index, or ranks the
user's own answers.
"""

from colloquy.data.text_files import read_lines
from colloquy.engine.chat import Chat, Note
from colloquy.tasks.selection.retrieval.answers import answers_of, as_written, ranked
from colloquy.tasks.selection.retrieval.index import Hit, RetrievalIndex

SHOWN = 5


class SelectionChat(Chat):
    """One conversation, with answers of the index in a directory, or of a UTF-8 file with one per
    line.
    """

    HELP = "/more N         shows the N best answers, the numbers that order them, and where they come from"

    def __init__(self, predictor, index=None, candidates=None):
        super().__init__(predictor)
        self.index = RetrievalIndex(index, predictor.vocabulary) if index else None
        lines = () if index else read_lines(candidates, "an answer per line")
        self.candidates = [Hit(text) for _, line in lines if (text := line.strip())]

    def reply(self, text):
        if not text.strip():
            return []
        turns = [*self.said, text]
        if self.index:
            found = answers_of(self.predictor, self.index, turns)
        else:
            found = ranked(self.predictor, turns, self.candidates)
        # only now: it may have been interrupted
        self.said, self.found, self.last = turns, found, None
        if not found:
            return [Note("[The index has no response with these words.]")]
        self.said, self.last = (
            [*turns, found[0].text],
            {"turns": turns, "candidates": [found[0].text]},
        )
        return [self._shown(found[0].text)]

    def more(self, argument=""):
        if self.last is None:
            return "Say something first."
        if argument and not (argument.isdecimal() and int(argument)):
            return f"/more expects how many answers to show. Received: {argument}"
        lines = []
        for place, answer in enumerate(self.found[: int(argument or SHOWN)], 1):
            lines.append(f"{place:3}  {answer.total:6.2f}  {self._shown(answer.text)}")
            if answer.context:
                context = " / ".join(map(self._shown, answer.context))
                found_by = ", ".join(f"{search} {place}" for search, place in answer.ranks.items())
                lines.append(f"            said to: {context}  [{found_by}]")
        return "\n".join(lines)

    def explanation(self, found):
        """The best match in the conversation of each word of the answer."""
        maps = found["attention"]
        rows = [
            (weights, f"{word}  ({each['title']})")
            for each in maps
            for word, weights in zip(each["rows"], each["weights"], strict=True)
        ]
        lines = []
        for place, word in enumerate(maps[0]["columns"]):
            weight, other = max((weights[place], other) for weights, other in rows)
            lines.append(f"{word:>20}  {weight:.2f}  {other}")
        return "\n".join(
            [*lines, "match with the best word of the turns that are read; the best of all is 1"]
        )

    def _shown(self, text):
        """A text of the index as people write it; the user's own candidates as they are."""
        return as_written(text, self.predictor.text["tokenizer"]) if self.index else text
