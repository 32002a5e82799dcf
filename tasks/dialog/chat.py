"""A conversation with a trained dialog model: it answers, calls the knowledge base, and shows what it looked at."""

import keras
import numpy as np
from rich.table import Table

from data.corpora.babi_dialog import SILENCE
from tasks.dialog.batches import DialogSplit
from tasks.dialog.dataset import World
from tasks.dialog.prepare import BOT, FACT, USER
from tasks.dialog.task import check_world

SHOWN = 8  # memories that /attention shows
NO_RESULT = "api_call no result"


class Chat:
    """One conversation.

    Args:
        run: A `engine.runs.Run` of a dialog model.

    Raises:
        UserError: where the run lacks a file, or its files do not fit.
    """

    HELP = (
        "An empty line is silence: the bot goes on. An api_call is looked up in the knowledge base by itself.\n"
        "/attention  what the last answer looked at      /reset  starts anew"
    )

    def __init__(self, run):
        self.world = World.load(run.path)
        self.model = run.load_model()
        check_world(self.model.config, self.world, run.path)
        self._look = keras.Model(self.model.input, [self.model.output, *self.model.attention_weights])
        self.commands = {"/attention": lambda _: self.attention(), "/reset": lambda _: self.reset()}
        self.reset()

    def reset(self):
        """Forgets the conversation."""
        self._texts, self._speakers, self._times, self._turns = [], [], [], []
        self._weights = []
        return "A new conversation."

    def reply(self, text):
        """Answers a user's sentence; where the answer calls the knowledge base, also what the bot says next.

        Args:
            text: Any text; empty: silence. Words that the model does not know count as one unknown word.

        Returns:
            List of texts: answers, and facts that a call brought.
        """
        said = [self._answer(self._tokens(text))]
        while said[-1].startswith("api_call ") and len(said) < 10:
            facts = search(self.world, said[-1])
            for fact in facts:
                self._add(fact, FACT, len(self._turns) - 1)
            said.append(f"[{len(facts)} facts]" if facts != [NO_RESULT] else "[no result]")
            said.append(self._answer([SILENCE]))
        return said

    def attention(self):
        """A table of the memories with the largest weights in the last answer, a column a hop, mean over heads."""
        if not self.model.attention_weights:
            return "This model has no attention."
        if not self._weights or not len(self._weights[0]):
            return "Nothing to look at yet: the history was empty."
        weights = np.stack(self._weights)  # (hops, sentences)
        table = Table("", *(f"hop {hop + 1}" for hop in range(len(weights))), title="Attention, per cent")
        speakers = {USER: "user", BOT: "bot", FACT: "knows"}
        for place in sorted(np.argsort(-weights.max(axis=0), kind="stable")[:SHOWN]):
            cells = [f"{100 * weight:.0f}" for weight in weights[:, place]]
            table.add_row(f"{speakers[self._speakers[place]]}: {self._texts[place]}", *cells)
        return table

    def _answer(self, words):
        self._turns.append(len(self._texts))
        self._add(" ".join(words), USER, len(self._turns) - 1)
        dialog = {
            "sentences": range(len(self._texts)),
            "speakers": self._speakers,
            "times": self._times,
            "turns": self._turns,
            "answers": [0] * len(self._turns),
        }
        split = DialogSplit(self.world.encode(self._texts), [{name: list(values) for name, values in dialog.items()}])
        config = self.model.config
        inputs, _ = split.collate([0], config.reads, config.entities)
        logits, *weights = (np.asarray(out) for out in self._look.predict_on_batch(inputs))
        turn, before = len(self._turns) - 1, self._turns[-1]
        self._weights = [of_hop[0, :, turn, :before].mean(axis=0) for of_hop in weights]
        answer = self.world.candidates[int(np.argmax(logits[0, turn]))]
        self._add(answer, BOT, turn)
        return answer

    def _add(self, text, speaker, time):
        self._texts.append(text)
        self._speakers.append(speaker)
        self._times.append(time)

    def _tokens(self, text):
        """The words of a user, near to those that the model knows: also without capitals and punctuation."""
        known = set(self.world.vocabulary.words)
        words = []
        for word in text.split()[: self.model.config.max_words]:
            forms = (word, word.lower(), word.lower().strip(".,;:!?\"'"))
            words.append(next((form for form in forms if form in known), forms[-1] or word))
        return words or [SILENCE]


def search(world, call):
    """What an `api_call` finds: all facts about the subjects that have every value the call names.

    Words that are no value of the knowledge base, as `R_price` for "any price", ask for nothing if they stand for a
    relation; any other makes the search fail.

    Args:
        world: A `tasks.dialog.dataset.World`.
        call: The bot's text.

    Returns:
        List of facts as texts, or `api_call no result` alone.
    """
    wanted = [word for word in call.split()[1:] if not word.startswith("R_")]
    values = {}
    for subject, _, value in world.knowledge:
        values.setdefault(subject, set()).add(value)
    found = {subject for subject, has in values.items() if has.issuperset(wanted)}
    return [" ".join(fact) for fact in world.knowledge if fact[0] in found] or [NO_RESULT]
