"""Text to arrays: a conversation as the model reads it, and the inputs of model and action mask."""

import itertools
from typing import NamedTuple

from colloquy.base.files import UserError
from colloquy.data.corpora.babi_dialog import SILENCE, Turn
from colloquy.data.tokenizers import normalize
from colloquy.data.vocabulary import SPECIALS
from colloquy.engine.cancellation import checkpoint
from colloquy.layers.dialog_state import INPUTS
from colloquy.tasks.dialog.split import DialogSplit, encode_dialog

SIGNS = ".,;:!?\"()[]{}<>*/\\|=+~^_…\u2013—'-"
"""Signs that may be around a word."""
MAX_FACTS = 5_000
"""The most facts of a conversation; the longest of dialog bAbI has fewer than 812."""


def check_facts(num_facts):
    if num_facts > MAX_FACTS:
        raise UserError(f"history: expected at most {MAX_FACTS:,} facts. Received: {num_facts:,}")


class Read(NamedTuple):
    """A conversation as the model reads it."""

    turns: list[Turn]
    """Its sentences. The last one is the user's, perhaps `SILENCE`."""
    unknown: list[str]
    """Words of the last sentence that users of the training dialogs never say."""


class DialogReader:
    """Reads conversations; `tasks.dialog.graph_history` does the same in a graph.

    Args:
        domain: A `tasks.dialog.domain.Domain`.
        users: The run's `tasks.dialog.users.Users`.
        config: The model's config.
    """

    def __init__(self, domain, users, config):
        self.domain = domain
        self.max_words = config.max_words
        self.entities = config.entities
        self.input_names = {*config.reads, *INPUTS}
        # A text that contains `_EOS_` or `_UNK_` does not mean the special words.
        self.known = set(domain.vocabulary.words) - set(SPECIALS)
        self.users_words = {*users.words, SILENCE} - set(SPECIALS)
        # In dialogs that the bot begins, the user is silent first.
        self.opening = []
        if users.opening:
            self.opening = [Turn("user", SILENCE), Turn("bot", users.opening)]

    # === Words ===

    def split(self, text):
        """Splits a user's text into words. A text without words is silence.

        A word that the model does not know is read without capitals, and if it is still unknown
        without the signs around it.
        """
        words = []
        for word in normalize(text, lower=False).split():
            if word not in self.known:
                word = word.lower()
            if word not in self.known:
                word = word.strip(SIGNS)
            if word:
                words.append(word)
        return words[: self.max_words] or [SILENCE]

    def unknown(self, words):
        """The words that are in no entity and that users of the training dialogs never say."""
        unknown = []
        for linked_words, entities in self.domain.names.link(words):
            if not entities:
                unknown += [word for word in linked_words if word not in self.users_words]
        return unknown

    # === Conversations ===

    def read(self, history):
        """Reads a conversation, a list of `Turn`.

        - A sentence of the bot that is no candidate is left out, such as a remark of
          `tasks.dialog.remarks`, and with it the user's sentence before it, which it answers.
        - If the user speaks first, but the bot in all training dialogs, its greeting is put in.
        - If the last sentence is not the user's, the user is silent.
        """
        turns = []
        for turn in history:
            checkpoint()
            turns.append(self._read_turn(turn))
        turns = self._without_remarks(turns)
        if turns and turns[0].speaker == "user" and turns[0].text != SILENCE:
            turns = [*self.opening, *turns]
        if not turns or turns[-1].speaker != "user":
            turns.append(Turn("user", SILENCE))
        last_words = turns[-1].text.split()
        return Read(turns, self.unknown(last_words))

    def _read_turn(self, turn):
        """Returns a `Turn` of the words that the model reads."""
        if turn.speaker == "user":
            words = self.split(turn.text)
        else:
            words = turn.text.split()[: self.max_words]
        return Turn(turn.speaker, " ".join(words))

    def _without_remarks(self, turns):
        """Leaves out the bot's sentences that are no candidates, and the user's before them."""

        def is_remark(turn):
            return turn.speaker == "bot" and turn.text not in self.domain.candidate_numbers

        kept = []
        for turn, following in itertools.pairwise([*turns, Turn("user", SILENCE)]):
            is_answered = turn.speaker == "user" and is_remark(following)
            if not is_remark(turn) and not is_answered:
                kept.append(turn)
        return kept

    # === Arrays ===

    def collate(self, reads):
        """Makes the inputs of the model and of the action mask for the last turns of `Read`s.

        See `tasks.dialog.split.DialogSplit.collate`.
        """
        sentences = {}
        dialogs = []
        for read in reads:
            dialog = encode_dialog(read.turns, sentences)
            # Only the last sentence is answered, so it is the only turn, and has number 0. Times
            # are numbers of turns: those of the sentences before it become negative.
            dialog["turns"] = [len(read.turns) - 1]
            last_time = dialog["times"][-1]
            dialog["times"] = [time - last_time for time in dialog["times"]]
            dialog["answers"] = [0]  # not used
            dialogs.append(dialog)
        encoded = self.domain.encode([text.split() for text in sentences])
        split = DialogSplit(encoded, dialogs)
        inputs, _answers = split.collate(range(len(dialogs)), self.input_names, self.entities)
        return inputs
