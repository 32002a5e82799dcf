"""A dialog model that answers plain text."""

import functools
from typing import Literal

import keras
import numpy as np

from base.config import Config
from base.files import UserError
from data.corpora.babi_dialog import SILENCE
from data.text_files import read_lines
from data.vocabulary import SPECIALS
from engine.predictor import Predictor
from engine.task import check_sizes
from tasks.dialog.data import PHRASES, DialogSplit, World
from tasks.dialog.prepare import CALL, encode_dialog
from tasks.dialog.response_filter import ResponseFilter

SIGNS = ".,;:!?\"'"  # that may stand around a word
BEST = 5  # candidates that an answer lists


class Sentence(Config):
    """One sentence of a conversation."""

    speaker: Literal["user", "bot", "fact"]
    """`fact` for what a search found."""
    text: str
    """Empty: silence, after which the bot continues."""


class Candidate(Config):
    """A response that the bot may give."""

    text: str
    score: float
    """Its probability among the candidates."""


class DialogPredictor(Predictor):
    """Chooses what the bot says next.

    Args:
        run: A `engine.run.Run` of a dialog model.

    Raises:
        UserError: where the run lacks a file, or its files do not fit.
    """

    class Instance(Config):
        """A conversation."""

        history: list[Sentence]
        """The conversation, the oldest sentence first. If the last one is not the user's, the user is silent."""
        facts: list[str] = []
        """What a search found, known before the last sentence of the user."""
        candidates: list[str] = []
        """Those of the bot's candidates to choose from; empty: all that claim nothing that was not said."""

    class Answer(Config):
        """What the bot says."""

        response: str
        """The best candidate."""
        best: list[Candidate]
        """The five best candidates."""
        facts: list[str]
        """What a response that is an `api_call` finds. A client adds them to the history, before it asks again."""
        unknown: list[str]
        """The user's last words that the model does not know."""

    def __init__(self, run):
        self.world = World.load(run.path)
        self.model = run.load_model()
        self.config = self.model.config
        check_sizes(self.config, self.world.config_fields, run.path)
        self.look = keras.Model(self.model.input, [self.model.output, *self.model.attention_weights])
        self.knowledge = [" ".join(fact) for fact in self.world.knowledge]
        self.response_filter = ResponseFilter(self.world)
        said = run.path / PHRASES
        self.phrases = [line for _, line in read_lines(said, None)] if said.is_file() else []
        self._known = set(self.world.vocabulary.words) - set(SPECIALS)
        self._place = {text: number for number, text in enumerate(self.world.candidates)}
        self._firsts = {example["instance"]["history"][0]["text"] for example in run.examples()}

    @functools.cached_property
    def opening(self):
        """What goes before a history in which the user speaks first, if in the dataset the bot always did."""
        if self._firsts != {SILENCE}:
            return []
        [greeting] = self.answer([self.Instance(history=[])])
        return [("user", ""), ("bot", greeting.response)]

    def read(self, text):
        """The words of a user, near to those that the model knows: also without capitals and punctuation.

        Args:
            text: Any text; empty: silence.

        Returns:
            List of at most `max_words` words; one that the model does not know counts as the unknown word.
        """
        words = []
        for word in text.split()[: self.config.max_words]:
            forms = (word, word.lower(), word.lower().strip(SIGNS))
            words.append(next((form for form in forms if form in self._known), forms[-1] or word))
        return words or [SILENCE]

    def unknown(self, text):
        """The words of a user that the model does not know, as `read` gives them; signs alone are none."""
        return [word for word in self.read(text) if word not in self._known | {SILENCE} and any(map(str.isalnum, word))]

    def check(self, instance):
        for text in instance.candidates:
            if text not in self._place:
                raise UserError(f"candidates: expected those that the bot knows. Received: {text!r}")

    def answer(self, instances):
        logits, _, sentences = self._run(instances)
        return [self._best(*each) for each in zip(instances, logits, sentences, strict=True)]

    def answer_with_attention(self, instance, details):
        """As of `Predictor`; the details are what each head of a hop attended to."""
        [logits], [weights], [sentences] = self._run([instance])
        answer = self._best(instance, logits, sentences)
        if not len(weights) or len(sentences) < 2:  # the last one is what asks
            return answer, []
        hops = [f"hop {hop + 1}" for hop in range(len(weights))]
        heads = [f"head {head + 1}" for head in range(weights.shape[1])]
        rows = [f"{speaker}: {text}" for speaker, text in sentences[:-1]]
        mean_MS = weights.mean(axis=1).T.tolist()
        maps = [{"title": "memories", "rows": rows, "columns": hops, "weights": mean_MS}]
        if details:
            for hop, of_hop_HM in zip(hops, weights, strict=True):
                shown = {"rows": rows, "columns": heads, "weights": of_hop_HM.T.tolist()}
                maps.append({"group": "heads", "title": hop, **shown})
        return answer, maps

    def _run(self, instances):
        """What the model says to each last sentence.

        Returns:
            Of each instance the logits of all candidates `(C,)`, the attention weights `(hops, heads, sentences before
            the last)`, and its sentences as `(speaker, text)`.
        """
        sentences = [self._sentences(instance) for instance in instances]
        texts, dialogs = {}, []
        for said in sentences:
            coded = encode_dialog(said, texts)
            times = [time - coded["times"][-1] for time in coded["times"]]
            # The last turn is asked for alone, and so counts as turn 0.
            dialogs.append({**coded, "times": times, "turns": [len(said) - 1], "answers": [0]})
        split = DialogSplit(self.world.encode([text.split() for text in texts]), dialogs)
        inputs, _ = split.collate(range(len(dialogs)), self.config.reads, self.config.entities)
        logits, *weights = map(np.asarray, keras.tree.flatten(self.look.predict_on_batch(inputs)))
        before = [len(of_dialog) - 1 for of_dialog in sentences]
        seen = [np.array([of_hop[row, :, 0, :count] for of_hop in weights]) for row, count in enumerate(before)]
        return list(logits[:, 0]), seen, sentences

    def _sentences(self, instance):
        """All that was said, and the facts, as `(speaker, text)`; the last is the user's."""
        said = [(sentence.speaker, sentence.text) for sentence in instance.history]
        if said and said[0][0] == "user" and self.read(said[0][1]) != [SILENCE]:
            said = [*self.opening, *said]
        if not said or said[-1][0] != "user":
            said.append(("user", ""))
        said[-1:-1] = [("fact", text) for text in instance.facts]
        limit = self.config.max_words
        return [
            (speaker, " ".join(self.read(text) if speaker == "user" else text.split()[:limit]))
            for speaker, text in said
        ]

    def _best(self, instance, logits, sentences):
        unknown = self.unknown(sentences[-1][1])
        places = sorted({self._place[text] for text in instance.candidates})
        if not places:
            places = np.flatnonzero(self.response_filter.allowed(sentences, not unknown))
        chosen = logits[places].astype(np.float64)
        scores = np.exp(chosen - chosen.max())
        scores /= scores.sum()
        best = [
            Candidate(text=self.world.candidates[places[i]], score=float(scores[i]))
            for i in np.argsort(-chosen, kind="stable")[:BEST]
        ]
        response = best[0].text
        facts = self.world.search(response) if response.startswith(CALL) else []
        return self.Answer(response=response, best=best, facts=facts, unknown=unknown)
