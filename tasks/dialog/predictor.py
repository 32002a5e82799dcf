"""A dialog model that answers plain text."""

import math
from typing import Annotated, Literal

import keras
from pydantic import Field

from colloquy.base.config import Config
from colloquy.data.corpora.babi_dialog import SILENCE, Turn
from colloquy.engine.helplines import helpline_of_conversation
from colloquy.engine.parallel import compile_for_all_sizes
from colloquy.engine.predictor import Predictor, attention_map
from colloquy.engine.settings import check_fields
from colloquy.tasks.dialog.action_mask import load_mask
from colloquy.tasks.dialog.conversation import join_responses, make_history
from colloquy.tasks.dialog.domain import Domain
from colloquy.tasks.dialog.reader import DialogReader, check_facts
from colloquy.tasks.dialog.talk import Candidate, Responder
from colloquy.tasks.dialog.users import load_users

SENTENCES_PER_ROW = 10  # for a server's limits
NEVER_SAID = "users of the training dialogs never say "
NO_RESPONSE_FITS = "none of its responses may follow here"


class Sentence(Config):
    """One sentence of a conversation."""

    speaker: Literal["user", "bot", "fact"]
    """`fact`: found by a search."""
    text: str
    """Empty: silence, after which the bot continues."""


class DialogPredictor(Predictor):
    """Chooses the bot's next response with a run, or its `model` if that is loaded already.

    A `UserError` if the run lacks a file or its files do not fit.
    """

    class Instance(Config):
        """A conversation: what was said, and no more.

        A page steps through a dialog of the benchmark by sending its sentences up to each one of
        the user. It edits a sentence by sending another text in its place.
        """

        history: Annotated[list[Sentence], Field(min_length=1)]
        """The conversation, the oldest sentence first. If the last one is not the user's, the user
        is silent.
        """

    class Answer(Config):
        """The bot's response, and what it was chosen from."""

        response: str
        """The best candidate. Where none fits, a remark of `tasks.dialog.remarks`: it names the
        words that users of the training dialogs never say, or says that nothing was found. To
        somebody who writes of hurting themselves, the reply of `engine.helplines`.
        """
        best: list[Candidate]
        """The five best candidates that are allowed, with their probabilities; empty where the
        response is a remark or names helplines.
        """
        facts: list[str]
        """Facts of the knowledge base that the response finds, if it is an `api_call`: `subject
        R_relation value` each.
        """
        unknown: list[str]
        """The user's last words that users of the training dialogs never say."""
        said: list[Sentence]
        """The response, and what follows until the bot waits for the user: facts, silences, further
        responses. They belong to the history of the next request.
        """
        read: list[Sentence]
        """The conversation as the model read it, with the opening of the training dialogs.
        `:explain` adds how much each of these sentences but the last was remembered: the `rows` of
        its attention.
        """
        good: bool = True
        """False if no response fits, so that the bot ends with a remark; otherwise left out."""
        reason: str = ""
        """Why no response fits; otherwise left out."""

    def __init__(self, run, model=None):
        self.domain = Domain.load(run.path)
        self.model = run.load_model() if model is None else model
        self.config = self.model.config
        check_fields(self.config, self.domain.tables.required_fields, run.path)
        outputs = [self.model.output, *self.model.attention_weights]
        self.with_attention = keras.Model(self.model.input, outputs)
        # An export calls its model as a part of its own graph.
        if model is None:
            compile_for_all_sizes(self.with_attention)
        self.users = load_users(run.path, self.domain)
        self.reader = DialogReader(self.domain, self.users, self.config)
        self.responder = Responder(
            domain=self.domain,
            mask=load_mask(run.path, self.domain),
            reader=self.reader,
            model=self.with_attention,
        )

    # === Predictions ===

    def check(self, instance):
        check_facts(sum(sentence.speaker == "fact" for sentence in instance.history))

    def answer(self, instances):
        talks = self._talk(instances)
        return [self._answer(steps) for steps in talks]

    def helpline_answer(self, instance):
        user_texts = [turn.text for turn in instance.history if turn.speaker == "user"]
        bot_texts = [turn.text for turn in instance.history if turn.speaker == "bot"]
        helpline = helpline_of_conversation(user_texts, bot_texts)
        if helpline is None:
            return None
        return self.Answer(
            response=helpline,
            best=[],
            facts=[],
            unknown=[],
            said=[Sentence(speaker="bot", text=helpline)],
            read=as_sentences(self._read(instance).turns),
        )

    def answer_with_attention(self, instance, details):
        """As `Predictor.answer_with_attention`, of the first response.

        The details are the weights of each head.
        """
        [steps] = self._talk([instance])
        answer = self._answer(steps)
        first = steps[0]
        if not first.weights_HhM.size:
            return answer, []
        num_hops, num_heads, _ = first.weights_HhM.shape
        hops = [f"hop {hop + 1}" for hop in range(num_hops)]
        heads = [f"head {head + 1}" for head in range(num_heads)]
        memories = [f"{speaker}: {text}" for speaker, text in first.read.turns[:-1]]
        mean_MH = first.weights_HhM.mean(axis=1).T
        maps = [attention_map("memories", memories, hops, mean_MH)]
        if details:
            for hop, weights_hM in zip(hops, first.weights_HhM, strict=True):
                maps.append(attention_map(hop, memories, heads, weights_hM.T, group="heads"))
        return answer, maps

    def padded_rows(self, instance):
        """A row for each `SENTENCES_PER_ROW` sentences that the model remembers."""
        return math.ceil((1 + len(instance.history)) / SENTENCES_PER_ROW)

    def show(self, instance):
        [[step, *_]] = self._talk([instance])
        vocabulary = self.domain.vocabulary
        shown = []
        for speaker, text in step.read.turns:
            shown.append((speaker, vocabulary.in_brackets(text.split())))
        return shown, [(candidate.score, candidate.text) for candidate in step.best]

    def _talk(self, instances):
        return self.responder.talk([self._read(instance) for instance in instances])

    def _read(self, instance):
        turns = [Turn(sentence.speaker, sentence.text) for sentence in instance.history]
        return self.reader.read(turns)

    def _answer(self, steps):
        first = steps[0]
        last = steps[-1]
        turns = [*last.read.turns, Turn("bot", last.response)]
        return self.Answer(
            response=first.response,
            best=first.best,
            facts=first.facts,
            unknown=first.read.unknown,
            said=as_sentences(turns[len(first.read.turns) :]),
            read=as_sentences(first.read.turns),
            **_judge(last),
        )

    # === Conversations of users and assistants ===

    def conversation(self, said, decode=""):
        return {"history": make_history(said, self.domain)}

    def reply(self, answer):
        return join_responses(answer["said"])


def _judge(step):
    """Returns the fields `good` and `reason` of an answer that ends with this step."""
    if step.best:
        return {}
    reason = NO_RESPONSE_FITS
    if step.read.unknown:
        reason = f"{NEVER_SAID}{', '.join(step.read.unknown)}"
    return {"good": False, "reason": reason}


def as_sentences(turns):
    """Makes `Sentence`s of `Turn`s."""
    sentences = []
    for speaker, text in turns:
        is_silence = speaker == "user" and text == SILENCE
        sentences.append(Sentence(speaker=speaker, text="" if is_silence else text))
    return sentences
