"""A dialog model that answers plain text."""

import functools

import keras
import numpy as np

from base.files import UserError
from data.corpora.babi_dialog import SILENCE
from data.text_files import read_lines
from data.vocabulary import SPECIALS
from engine.predictor import Predictor
from engine.settings import check_sizes
from tasks.dialog.data import DialogSplit
from tasks.dialog.dataset import PHRASES, World
from tasks.dialog.knowledge import search
from tasks.dialog.prepare import BOT, FACT, USER
from tasks.dialog.response_filter import CALL, Claims
from tasks.dialog.tables import sizes_of

SPEAKERS = {"user": USER, "bot": BOT, "fact": FACT}
SIGNS = ".,;:!?\"'"  # that may stand around a word
BEST = 5  # candidates that an answer lists
TEXTS = {"type": "array", "items": {"type": "string"}, "default": []}


class DialogPredictor(Predictor):
    """Chooses what the bot says next.

    An answer has `response`, the best candidate, and `best`: the five best as `{"text", "score"}`, scores being
    probabilities among the candidates. `facts` is what a response that is an `api_call` finds: a client adds them to
    the history, speaker `fact`, before it asks again. `unknown` are the user's last words that the model does not know.

    Args:
        run: A `engine.run.Run` of a dialog model.

    Raises:
        UserError: where the run lacks a file, or its files do not fit.
    """

    fields = {
        "history": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "speaker": {"type": "string", "description": "user, bot, or fact for what a search brought."},
                    "text": {"type": "string", "description": "Empty: silence, after which the bot goes on."},
                },
            },
            "description": "The conversation, the oldest sentence first; after another than the user's, silence.",
        },
        "facts": {**TEXTS, "description": "What a search brought, known before the last sentence of the user."},
        "candidates": {
            **TEXTS,
            "description": "Only these of the bot's candidates are chosen from; empty: all that claim nothing unsaid.",
        },
    }

    def __init__(self, run):
        self.world = World.load(run.path)
        self.model = run.load_model()
        self.config = self.model.config
        check_sizes(self.config, sizes_of(self.world), run.path)
        self.look = keras.Model(self.model.input, [self.model.output, *self.model.attention_weights])
        self.knowledge = [" ".join(fact) for fact in self.world.knowledge]
        self.claims = Claims(self.world)
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
        [greeting] = self.answer([{"history": [], "facts": [], "candidates": []}])
        return [("user", ""), ("bot", greeting["response"])]

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

    def check(self, instance, where):
        for number, sentence in enumerate(instance["history"]):
            if sentence["speaker"] not in SPEAKERS:
                known, found = ", ".join(SPEAKERS), sentence["speaker"]
                raise UserError(f"{where}, history {number}: speaker must be one of {known}. Received: {found!r}")
        for text in instance["candidates"]:
            if text not in self._place:
                raise UserError(f"{where}: expected candidates that the bot knows. Received: {text!r}")

    def answer(self, instances):
        logits, _, sentences = self._run(instances)
        return [self._best(*each) for each in zip(instances, logits, sentences, strict=True)]

    def answer_with_attention(self, instance):
        [logits], [weights], [sentences] = self._run([instance])
        attention = []
        if len(weights) and len(sentences) > 1:  # the last one is what asks
            columns = [f"hop {hop + 1}" for hop in range(len(weights))]
            mean_MS = weights.mean(axis=1).T.tolist()
            attention = [{"title": "memories", "rows": _lines(sentences), "columns": columns, "weights": mean_MS}]
        return {**self._best(instance, logits, sentences), "attention": attention}

    def details(self, instance, answer):
        """Of each hop what its heads attended to."""
        _, [weights], [sentences] = self._run([instance])
        if len(sentences) < 2:
            return []
        columns = [f"head {head + 1}" for head in range(weights.shape[1])] if len(weights) else []
        return [
            {
                "group": "heads",
                "title": f"hop {hop + 1}",
                "rows": _lines(sentences),
                "columns": columns,
                "weights": of_hop_HM.T.tolist(),
            }
            for hop, of_hop_HM in enumerate(weights)
        ]

    def _run(self, instances):
        """What the model says to each last sentence.

        Returns:
            Of each instance the logits of all candidates `(C,)`, the attention weights `(hops, heads, sentences before
            the last)`, and its sentences as `(speaker, text)`.
        """
        sentences = [self._sentences(instance) for instance in instances]
        dialogs, start = [], 0
        for of_dialog in sentences:
            turns = np.cumsum([speaker == "user" for speaker, _ in of_dialog])
            times = np.maximum(turns - 1, 0)
            dialogs.append(
                {
                    "sentences": np.arange(start, start + len(of_dialog)),
                    "speakers": [SPEAKERS[speaker] for speaker, _ in of_dialog],
                    "times": times - times[-1],  # the last turn is asked for alone, and so counts as turn 0
                    "turns": [len(of_dialog) - 1],
                    "answers": [0],
                }
            )
            start += len(of_dialog)
        split = DialogSplit(self.world.encode([text for of_dialog in sentences for _, text in of_dialog]), dialogs)
        inputs, _ = split.collate(range(len(dialogs)), self.config.reads, self.config.entities)
        logits, *weights = map(np.asarray, keras.tree.flatten(self.look.predict_on_batch(inputs)))
        before = [len(of_dialog) - 1 for of_dialog in sentences]
        seen = [np.array([of_hop[row, :, 0, :count] for of_hop in weights]) for row, count in enumerate(before)]
        return list(logits[:, 0]), seen, sentences

    def _sentences(self, instance):
        """All that was said, and the facts, as `(speaker, text)`; the last is the user's."""
        said = [(sentence["speaker"], sentence["text"]) for sentence in instance["history"]]
        if said and said[0][0] == "user" and self.read(said[0][1]) != [SILENCE]:
            said = [*self.opening, *said]
        if not said or said[-1][0] != "user":
            said.append(("user", ""))
        said[-1:-1] = [("fact", text) for text in instance["facts"]]
        limit = self.config.max_words
        return [
            (speaker, " ".join(self.read(text) if speaker == "user" else text.split()[:limit]))
            for speaker, text in said
        ]

    def _best(self, instance, logits, sentences):
        unknown = self.unknown(sentences[-1][1])
        places = sorted({self._place[text] for text in instance["candidates"]})
        if not places:
            places = np.flatnonzero(self.claims.allowed(sentences, not unknown))
        chosen = logits[places].astype(np.float64)
        scores = np.exp(chosen - chosen.max())
        scores /= scores.sum()
        best = [
            {"text": self.world.candidates[places[i]], "score": float(scores[i])}
            for i in np.argsort(-chosen, kind="stable")[:BEST]
        ]
        response = best[0]["text"]
        facts = search(self.world, response) if response.startswith(CALL) else []
        return {"response": response, "best": best, "facts": facts, "unknown": unknown}


def _lines(sentences):
    """All sentences but the last, which asks, each after its speaker."""
    return [f"{speaker}: {text}" for speaker, text in sentences[:-1]]
