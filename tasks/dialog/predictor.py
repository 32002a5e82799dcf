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
from engine.predictor import Predictor, in_brackets
from engine.task import check_fields
from tasks.dialog.data import PHRASES, DialogSplit, World
from tasks.dialog.prepare import CALL, encode_dialog
from tasks.dialog.response_filter import ResponseFilter

SIGNS = ".,;:!?\"'"  # punctuation around words
BEST = 5  # candidates in an answer


class Sentence(Config):
    """One sentence of a conversation."""

    speaker: Literal["user", "bot", "fact"]
    """`fact`: found by a search."""
    text: str
    """Empty: silence, after which the bot continues."""


class Candidate(Config):
    """A possible response of the bot."""

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
        """Facts that a search found before the last sentence of the user."""
        candidates: list[str] = []
        """Responses to choose from; empty: all that claim nothing that was not said."""

    class Answer(Config):
        """The bot's response."""

        response: str
        """The best candidate."""
        best: list[Candidate]
        """The five best candidates."""
        facts: list[str]
        """Facts found by a response that is an `api_call`; the next request has them in its history."""
        unknown: list[str]
        """The user's last words that the model does not know."""

    def __init__(self, run):
        self.world = World.load(run.path)
        self.model = run.load_model()
        self.config, self._reads = self.model.config, self.model.config.reads
        check_fields(self.config, self.world.config_fields, run.path)
        self.with_attention = keras.Model(self.model.input, [self.model.output, *self.model.attention_weights])
        self.response_filter = ResponseFilter(self.world)
        phrases = run.path / PHRASES
        self.phrases = [line for _, line in read_lines(phrases, None)] if phrases.is_file() else []
        self._known = {SILENCE, *self.world.vocabulary.words} - set(SPECIALS)
        self._numbers = {text: number for number, text in enumerate(self.world.candidates)}
        self._firsts = {example["instance"]["history"][0]["text"] for example in run.examples()}

    @functools.cached_property
    def opening(self):
        """Sentences before a history that the user begins, if in the dataset the bot always begins."""
        if self._firsts != {SILENCE}:
            return []
        [greeting] = self.answer([self.Instance(history=[])])
        return [("user", ""), ("bot", greeting.response)]

    def read(self, text):
        """Splits a user's text into at most `max_words` words; an empty text is silence.

        A word is taken as it is, without capitals or without punctuation: the first of these that the model knows.
        """
        words = []
        for word in text.split()[: self.config.max_words]:
            forms = (word, word.lower(), word.lower().strip(SIGNS))
            words.append(next((form for form in forms if form in self._known), forms[-1] or word))
        return words or [SILENCE]

    def unknown(self, words):
        """The words from `read` that the model does not know, without punctuation."""
        return [word for word in words if word not in self._known and any(map(str.isalnum, word))]

    def check(self, instance):
        for text in instance.candidates:
            if text not in self._numbers:
                raise UserError(f"candidates: expected those that the bot knows. Received: {text!r}")

    def answer(self, instances):
        found = zip(instances, self._run(instances), strict=True)
        return [self._best(instance, said, logits) for instance, (said, logits, _) in found]

    def show(self, instance):
        [(said, logits, _)] = self._run([instance])
        best = self._best(instance, said, logits).best
        read = [(speaker, in_brackets(text.split(), self.world.vocabulary)) for speaker, text in said]
        return read, [(each.score, each.text) for each in best]

    def answer_with_attention(self, instance, details):
        """See `Predictor.answer_with_attention`; the details are the weights of each head."""
        [(said, logits, weights)] = self._run([instance])
        answer = self._best(instance, said, logits)
        if not weights.size:
            return answer, []
        hops = [f"hop {hop + 1}" for hop in range(len(weights))]
        heads = [f"head {head + 1}" for head in range(weights.shape[1])]
        rows = [f"{speaker}: {text}" for speaker, text in said[:-1]]
        maps = [{"title": "memories", "rows": rows, "columns": hops, "weights": weights.mean(axis=1).T.tolist()}]
        for hop, of_hop_HM in zip(hops, weights if details else [], strict=False):
            shown = {"rows": rows, "columns": heads, "weights": of_hop_HM.T.tolist()}
            maps.append({"group": "heads", "title": hop, **shown})
        return answer, maps

    def _run(self, instances):
        """Scores the candidates after each conversation.

        Yields:
            For each instance its sentences `(speaker, text)`, the logits `(C,)`, and the attention weights of the
            sentences before the last, `(hops, heads, M)`.
        """
        conversations = [self._conversation(instance) for instance in instances]
        sentences, dialogs = {}, []
        for said in conversations:
            coded = encode_dialog(said, sentences)
            times = [time - coded["times"][-1] for time in coded["times"]]  # its only turn counts as turn 0
            dialogs.append({**coded, "times": times, "turns": [len(said) - 1], "answers": [0]})
        split = DialogSplit(self.world.encode([text.split() for text in sentences]), dialogs)
        inputs, _ = split.collate(range(len(dialogs)), self._reads, self.config.entities)
        logits, *hops = map(np.asarray, keras.tree.flatten(self.with_attention.predict_on_batch(inputs)))
        for row, said in enumerate(conversations):
            yield said, logits[row, 0], np.array([weights[row, :, 0, : len(said) - 1] for weights in hops])

    def _conversation(self, instance):
        """The sentences and facts as `(speaker, text)`; the last sentence is the user's."""
        said = [(sentence.speaker, sentence.text) for sentence in instance.history]
        if said and said[0][0] == "user" and self.read(said[0][1]) != [SILENCE]:
            said = [*self.opening, *said]
        if not said or said[-1][0] != "user":
            said.append(("user", ""))
        said[-1:-1] = [("fact", text) for text in instance.facts]
        return [
            (speaker, " ".join(self.read(text) if speaker == "user" else text.split()[: self.config.max_words]))
            for speaker, text in said
        ]

    def _best(self, instance, said, logits):
        unknown = self.unknown(said[-1][1].split())
        allowed = sorted({self._numbers[text] for text in instance.candidates})
        if not allowed:
            allowed = np.flatnonzero(self.response_filter.allowed(said, not unknown))
        chosen = logits[allowed].astype(np.float64)
        scores = np.exp(chosen - chosen.max())
        scores /= scores.sum()
        best = [
            Candidate(text=self.world.candidates[allowed[place]], score=float(scores[place]))
            for place in np.argsort(-chosen, kind="stable")[:BEST]
        ]
        response = best[0].text
        facts = self.world.search(response) if response.startswith(CALL) else []
        return self.Answer(response=response, best=best, facts=facts, unknown=unknown)
