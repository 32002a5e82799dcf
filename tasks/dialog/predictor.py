"""A dialog model that answers plain text."""

import functools
import itertools
from typing import Annotated, Literal, NamedTuple

import keras
import numpy as np
from pydantic import Field
from scipy.special import softmax

from colloquy.base.config import Config
from colloquy.base.files import UserError
from colloquy.data.corpora.babi_dialog import SILENCE
from colloquy.data.text_files import read_lines
from colloquy.data.vocabulary import SPECIALS
from colloquy.engine.parallel import compile_for_all_sizes
from colloquy.engine.predictor import Predictor, Size, attention_map, in_brackets
from colloquy.engine.task import check_fields
from colloquy.layers.dialog_state import READS
from colloquy.tasks.dialog.action_mask import load_mask
from colloquy.tasks.dialog.data import PHRASES, DialogSplit, Domain
from colloquy.tasks.dialog.prepare import encode_dialog

SIGNS = ".,;:!?\"'"  # punctuation around words
SENTENCE = 256  # cells of a sentence beside its words
BEST = 5  # candidates in an answer
RESPONSES = 8  # at most, until the user speaks again


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
    """Its probability among all candidates, or those of the instance."""


class Turn(NamedTuple):
    """One response of the bot."""

    said: list  # `(speaker, text)` of the conversation before it
    best: list  # the best candidates
    response: str
    facts: list  # facts that the response finds
    # attention weights of each hop and head to the sentences before the last, `(H, h, M)`
    weights: np.ndarray


class DialogPredictor(Predictor):
    """Chooses the bot's next response with a run, or its `model` if that is loaded already.

    A `UserError` if the run lacks a file or its files do not fit.
    """

    class Instance(Config):
        """A conversation."""

        history: Annotated[list[Sentence], Field(min_length=1)]
        """The conversation, the oldest sentence first. If the last one is not the user's, the user
        is silent.
        """
        facts: list[str] = []
        """Facts that a search found before the last sentence of the user."""
        candidates: list[str] = []
        """Responses to choose from; empty: all that the action mask allows."""

    class Answer(Config):
        """The bot's response."""

        response: str
        """The best candidate, or that the bot did not understand."""
        best: list[Candidate]
        """The five best candidates that are allowed."""
        facts: list[str]
        """Facts found by a response that is an `api_call`."""
        unknown: list[str]
        """The user's last words that the model does not know."""
        said: list[Sentence]
        """The response, and what follows until the bot waits for the user: facts, silences, further
        responses. They belong to the history of the next request."""

    def __init__(self, run, model=None):
        self.domain, self.model = (
            Domain.load(run.path),
            run.load_model() if model is None else model,
        )
        self.config = self.model.config
        check_fields(self.config, self.domain.required_fields, run.path)
        self.with_attention = keras.Model(
            self.model.input, [self.model.output, *self.model.attention_weights]
        )
        if model is None:  # an export calls that of its model as a part of its own graph
            compile_for_all_sizes(self.with_attention)
        self.mask = load_mask(run.path, self.domain)
        phrases = run.path / PHRASES
        self.knowledge = [" ".join(fact) for fact in self.domain.knowledge]  # for the pages
        self.phrases = [line for _, line in read_lines(phrases, None)] if phrases.is_file() else []
        self._known = {SILENCE, *self.domain.vocabulary.words} - set(SPECIALS)
        examples = [
            self.valid(each["instance"], f"{run.path}, {each['title']}") for each in run.examples()
        ]
        self._firsts = {example.history[0].text for example in examples}

    @functools.cached_property
    def opening(self):
        """Sentences before a history that the user begins, if in the dataset the bot always
        begins.
        """
        if self._firsts != {SILENCE}:
            return []
        [greeting] = self._turns([[("user", SILENCE)]], [[]])
        return [("user", ""), ("bot", greeting.response)] if greeting.best else []

    def read(self, text):
        """Splits a user's text into at most `max_words` words; an empty text is silence.

        A word is taken as it is, without capitals or without punctuation: the first of these that
            the model knows.
        """
        words = text.split()[: self.config.max_words]
        forms = [(word, word.lower(), word.lower().strip(SIGNS)) for word in words]
        read = [
            next((form for form in each if form in self._known), each[2] or each[0])
            for each in forms
        ]
        return read or [SILENCE]

    def unknown(self, words):
        """The words from `read` that the model does not know, without punctuation."""
        return [word for word in words if word not in self._known and any(map(str.isalnum, word))]

    def check(self, instance):
        for text in instance.candidates:
            if text not in self.domain.numbers:
                raise UserError(
                    f"candidates: expected those that the bot knows. Received: {text!r}"
                )

    def answer(self, instances):
        return [*map(self._answer, self._talk(instances))]

    def size(self, instance):
        """Like `Predictor`'s: one row of all sentences before the response."""
        texts = {**dict(instance), "history": [sentence.text for sentence in instance.history]}
        words = {name: [len(text.split()) for text in each] for name, each in texts.items()}
        longest = min(self.config.max_words, max(1, *words["history"], *words["facts"]))
        shape = 1 + len(instance.history) + len(instance.facts), SENTENCE + 4 * longest
        return Size({name: sum(counts) for name, counts in words.items()}, 1, shape)

    def show(self, instance):
        [[turn, *_]] = self._talk([instance])
        read = [
            (speaker, in_brackets(text.split(), self.domain.vocabulary))
            for speaker, text in turn.said
        ]
        return read, [(each.score, each.text) for each in turn.best]

    def conversation(self, said, decode=""):
        """Like `Predictor`'s; each line of the bot is a response, after which it continued with
        what a search found.
        """
        lines = [
            (by, line)
            for by, text in said
            for line in (text.splitlines() if by == "bot" else [text])
        ]
        history = []
        for (speaker, text), (following, _) in itertools.pairwise([*lines, ("user", "")]):
            history.append((speaker, text))
            if speaker == following == "bot":
                history += [*(("fact", fact) for fact in self.domain.search(text)), ("user", "")]
        return {"history": [{"speaker": speaker, "text": text} for speaker, text in history]}

    def reply(self, answer):
        return "\n".join(each["text"] for each in answer["said"] if each["speaker"] == "bot")

    def answer_with_attention(self, instance, details):
        """See `Predictor.answer_with_attention`, of the last response; the details are the weights
        of each head.
        """
        [turns] = self._talk([instance])
        answer, said, weights = self._answer(turns), turns[-1].said, turns[-1].weights
        if not weights.size:
            return answer, []
        hops = [f"hop {hop + 1}" for hop in range(len(weights))]
        heads = [f"head {head + 1}" for head in range(weights.shape[1])]
        rows = [f"{speaker}: {text}" for speaker, text in said[:-1]]
        maps = [attention_map("memories", rows, hops, weights.mean(axis=1).T)]
        for hop, of_hop_HM in zip(hops, weights if details else [], strict=False):
            maps.append(attention_map(hop, rows, heads, of_hop_HM.T, group="heads"))
        return answer, maps

    def _answer(self, turns):
        first, last = turns[0], turns[-1]
        said = [*last.said, ("bot", last.response)][len(first.said) :]
        return self.Answer(
            response=first.response,
            best=first.best,
            facts=first.facts,
            unknown=self.unknown(first.said[-1][1].split()),
            said=[
                Sentence(speaker=by, text="" if (by, text) == ("user", SILENCE) else text)
                for by, text in said
            ],
        )

    def _talk(self, instances):
        """The `Turn`s of each instance: one, and more while the bot continues by itself."""
        conversations, talks = [*map(self._conversation, instances)], [[] for _ in instances]
        waiting = range(len(instances))
        while waiting:
            found = self._turns(
                [conversations[i] for i in waiting], [instances[i].candidates for i in waiting]
            )
            for i, turn in zip(waiting, found, strict=True):
                talks[i].append(turn)
                facts = (("fact", text) for text in turn.facts)
                conversations[i] += [("bot", turn.response), *facts, ("user", SILENCE)]
            waiting = [
                i for i in waiting if not instances[i].candidates and self._continues(talks[i])
            ]
        return talks

    def _continues(self, turns):
        """True if the bot speaks again: after a search, and after responses to which users of train
        are silent.
        """
        *before, turn = turns
        if (
            not turn.best
            or len(turns) == RESPONSES
            or turn.response in [each.response for each in before]
        ):
            return False
        return bool(
            turn.facts or (self.mask and self.mask.continues_C[self.domain.numbers[turn.response]])
        )

    def _turns(self, conversations, candidates):
        """The next `Turn` of each conversation; those without `candidates` choose from all that the
        mask allows.
        """
        domain, sentences, dialogs = self.domain, {}, []
        for said in conversations:
            coded = encode_dialog(said, sentences)
            # the only turn is turn 0
            times = [time - coded["times"][-1] for time in coded["times"]]
            dialogs.append({**coded, "times": times, "turns": [len(said) - 1], "answers": [0]})
        split = DialogSplit(domain.encode([text.split() for text in sentences]), dialogs)
        inputs, _ = split.collate(
            range(len(dialogs)), {*self.config.reads, *READS}, self.config.entities
        )
        reads = {name: inputs[name] for name in self.config.reads}
        logits, *hops = map(
            np.asarray, keras.tree.flatten(self.with_attention.predict_on_batch(reads))
        )
        allowed = (
            self.mask.predict_on_batch(inputs)[:, 0]
            if self.mask
            else np.ones(logits[:, 0].shape, bool)
        )
        found = []
        for row, (said, given) in enumerate(zip(conversations, candidates, strict=True)):
            pool_C = np.isin(
                np.arange(len(domain.candidates)), [domain.numbers[text] for text in given]
            ) | (not given)
            scores_C = softmax(np.where(pool_C, logits[row, 0].astype(np.float64), -np.inf))
            understood = any(
                word in self._known and any(map(str.isalnum, word)) for word in said[-1][1].split()
            )
            may_C = pool_C if given else allowed[row] & understood
            order = np.argsort(-logits[row, 0], kind="stable")
            order = order[may_C[order]][:BEST]
            best = [Candidate(text=domain.candidates[i], score=float(scores_C[i])) for i in order]
            response = best[0].text if best else domain.fallback_response
            weights = np.array([weights[row, :, 0, : len(said) - 1] for weights in hops])
            found.append(Turn(list(said), best, response, domain.search(response), weights))
        return found

    def _conversation(self, instance):
        """The sentences and facts as `(speaker, text)`; the last sentence is the user's."""
        said = [
            (each.speaker, each.text)
            for each in instance.history
            if each.text != self.domain.fallback_response
        ]
        if said and said[0][0] == "user" and self.read(said[0][1]) != [SILENCE]:
            said = [*self.opening, *said]
        if not said or said[-1][0] != "user":
            said.append(("user", ""))
        said[-1:-1] = [("fact", text) for text in instance.facts if text]
        return [
            (
                speaker,
                " ".join(
                    self.read(text) if speaker == "user" else text.split()[: self.config.max_words]
                ),
            )
            for speaker, text in said
        ]
