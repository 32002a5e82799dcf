"""A chat with a response-selection model, which says what somebody else once said, or ranks the user's own answers."""

import pathlib

from base.files import UserError
from data.tokenizers import TOKENIZERS, WHITESPACE
from engine.chat import Chat, Note
from engine.explain import draw_if_named
from tasks.selection.retrieval.answers import Retriever, ranked

SHOWN = 5


class SelectionChat(Chat):
    """Answers what is said, in view of what was said before.

    Args:
        predictor: A `tasks.selection.predictor.SelectionPredictor`.
        index: Directory of an index to take answers from.
        candidates: File of answers to rank, one per line, UTF-8, if there is no index.

    Raises:
        UserError: where the index or the file cannot be read.
    """

    HELP = """/more N         shows the N best answers with their scores, and where they come from
/explain        shows which words of the conversation the words of the answer match; with a name, as a picture of
                all match matrices and all attention: /explain a.png
/reset          forgets what was said"""

    def __init__(self, predictor, index=None, candidates=None):
        self.predictor = predictor
        self.retriever = Retriever(predictor, index) if index is not None else None
        self.candidates = read_candidates(candidates) if index is None else None
        self.said, self.found, self.context = [], [], []
        self.commands = {"/more": self.more, "/explain": self.explain, "/reset": self.reset}

    def reply(self, text):
        """The best answer to what was said; it is remembered as said.

        Args:
            text: What the user says; nothing happens where it is empty.

        Returns:
            List of texts.
        """
        if not text.strip():
            return []
        turns = [*self.said, text]
        if self.retriever is None:
            found = ranked(self.predictor, turns, self.candidates)
        else:
            found = self.retriever.answers(turns)
        self.said, self.context, self.found = list(turns), turns, found  # only now: it may have been interrupted
        if not found:
            return [Note("[Nothing in the index has a word of that.]")]
        self.said.append(found[0].text)
        return [self._shown(self.found[0].text)]

    # === Commands ===

    def more(self, argument=""):
        """The best answers to what was said last."""
        if not self.found:
            return "Say something first."
        if argument and not (argument.isdecimal() and int(argument)):
            return f"/more expects how many answers to show. Received: {argument}"
        lines = []
        for place, answer in enumerate(self.found[: int(argument or SHOWN)], 1):
            lines.append(f"{place:3}  {answer.score:.3f}  {self._shown(answer.text)}")
            if answer.hit:
                found_by = ", ".join(f"{search} {place}" for search, place in answer.hit.places.items())
                context = " / ".join(map(self._shown, answer.hit.context))
                lines.append(f"            said to: {context}  [{found_by}]")
        return "\n".join(lines)

    def explain(self, path=""):
        """For each word of the answer the word of the conversation that it matches best; or all maps as a picture."""
        if not self.found:
            return "Say something first."
        instance = {"turns": self.context, "candidates": [self.found[0].text]}
        found = self.predictor.explain(instance, details=bool(path))["attention"]
        if not found:
            return "The model reads no word of this."
        if path:
            return draw_if_named(found, path)
        lines = []
        for place, word in enumerate(found[0]["columns"]):
            weight, other, turn = max(
                (row[place], other, table["title"])
                for table in found
                for other, row in zip(table["rows"], table["weights"], strict=True)
            )
            lines.append(f"{word:>20}  {weight:.2f}  {other}  ({turn})")
        return "\n".join([*lines, "match with the best word of the turns that are read; the best of all is 1"])

    def reset(self, _=""):
        """Forgets what was said."""
        self.said, self.found = [], []
        return "A new conversation."

    def _shown(self, text):
        """Texts whose words somebody separated by spaces, as people write them."""
        tokenizer = self.predictor.text["tokenizer"]
        return text if tokenizer == WHITESPACE else TOKENIZERS[tokenizer].detokenize(text.split())


def read_candidates(path):
    """The lines of a file that are not empty.

    Raises:
        UserError: where it cannot be read or has none.
    """
    path = pathlib.Path(path)
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").split("\n")]
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: expected a UTF-8 text file with an answer per line. {error}") from error
    if not any(lines):
        raise UserError(f"{path}: expected an answer per line. Received: none")
    return [line for line in lines if line]
