"""A chat with a response-selection model.

It answers with responses of an index, or ranks the user's own answers.
"""

from colloquy.data.text_files import read_lines
from colloquy.engine.chat import Chat, Note
from colloquy.engine.helplines import helpline_of_turns
from colloquy.tasks.selection.retrieval.answers import answers_of, as_written, ranked
from colloquy.tasks.selection.retrieval.index import Hit, RetrievalIndex

SHOWN = 5


class SelectionChat(Chat):
    """One conversation.

    Args:
        predictor: `SelectionPredictor`.
        index: Directory of an index, whose responses are the answers.
        candidates: Without an index: UTF-8 file with an answer per line.
    """

    HELP = (
        "/more N         shows the N best answers, the numbers that order them, "
        "and where they come from"
    )

    def __init__(self, predictor, index=None, candidates=None):
        super().__init__(predictor)
        self.index = None
        self.candidates = []
        if index:
            self.index = RetrievalIndex(index, predictor.vocabulary)
            return
        for _, line in read_lines(candidates, "an answer per line"):
            text = line.strip()
            if text:
                self.candidates.append(Hit(text))

    def reply(self, text):
        if not text.strip():
            return []
        turns = [*self.said, text]
        helpline = helpline_of_turns(turns)
        if helpline is not None:
            self.said = [*turns, helpline]
            self.last = None
            return [helpline]
        if self.index:
            answers = answers_of(self.predictor, self.index, turns)
        else:
            answers = ranked(self.predictor, turns, self.candidates)

        # The state changes only now: finding answers may have been interrupted.
        self.said = turns
        self.answers = answers
        self.last = None
        if not answers:
            return [Note("[The index has no response with these words.]")]
        best = answers[0].text
        self.said = [*turns, best]
        self.last = {"turns": turns, "candidates": [best]}
        return [self._shown(best)]

    def more(self, argument=""):
        if self.last is None:
            return "Say something first."
        if argument and not (argument.isdecimal() and int(argument)):
            return f"/more expects how many answers to show. Received: {argument}"
        count = int(argument or SHOWN)
        lines = []
        for number, answer in enumerate(self.answers[:count], 1):
            lines.append(f"{number:3}  {answer.total:6.2f}  {self._shown(answer.text)}")
            if answer.context:
                context = " / ".join(self._shown(turn) for turn in answer.context)
                ranks = ", ".join(f"{search} {rank}" for search, rank in answer.ranks.items())
                lines.append(f"            said to: {context}  [{ranks}]")
        return "\n".join(lines)

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

    def _shown(self, text):
        """A text of the index as people write it; the user's own candidates as they are."""
        return as_written(text, self.predictor.text["tokenizer"]) if self.index else text
