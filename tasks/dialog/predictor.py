"""A dialog model that answers plain text.

Shape suffixes:
    H hops   h heads   M memories: the sentences before the user's last one
"""

import math

import keras

from colloquy.data.corpora.babi_dialog import Turn
from colloquy.engine.helplines import helpline_of_conversation
from colloquy.engine.parallel import compile_for_all_sizes
from colloquy.engine.predictor import Predictor, attention_map
from colloquy.engine.settings import check_fields
from colloquy.tasks.dialog import answers
from colloquy.tasks.dialog.action_mask import load_mask
from colloquy.tasks.dialog.conversation import join_responses, make_history
from colloquy.tasks.dialog.domain import Domain
from colloquy.tasks.dialog.reader import DialogReader, check_facts
from colloquy.tasks.dialog.talk import Responder
from colloquy.tasks.dialog.users import load_users

SENTENCES_PER_ROW = 10
"""An answer costs a row of `Predictor.padded_rows` for each of this many sentences."""


class DialogPredictor(Predictor):
    """Chooses the bot's next response with a run, or its `model` if that is loaded already.

    A `UserError` if the run lacks a file or its files do not fit.
    """

    Instance = answers.Instance
    Answer = answers.Answer

    def __init__(self, run, model=None):
        self.domain = Domain.load(run.path)
        self.model = run.load_model() if model is None else model
        self.config = self.model.config
        check_fields(self.config, self.domain.tables.required_fields, run.path)
        outputs = [self.model.output, *self.model.attention_weights]
        self.with_attention = keras.Model(self.model.input, outputs)
        # An export passes its model, and makes a graph of it itself.
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
        return [answers.make_answer(steps) for steps in self._talk(instances)]

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
            said=[answers.Sentence(speaker="bot", text=helpline)],
            read=answers.as_sentences(self._read(instance).turns),
        )

    def answer_with_attention(self, instance, details):
        """As `Predictor.answer_with_attention`.

        The maps are those of the first response. The details are the weights of each head.
        """
        [steps] = self._talk([instance])
        return answers.make_answer(steps), _attention_maps(steps[0], details)

    def padded_rows(self, instance):
        return math.ceil((1 + len(instance.history)) / SENTENCES_PER_ROW)

    def show(self, instance):
        [steps] = self._talk([instance])
        first = steps[0]
        in_brackets = self.domain.vocabulary.in_brackets
        texts = [(speaker, in_brackets(text.split())) for speaker, text in first.read.turns]
        return texts, [(candidate.score, candidate.text) for candidate in first.best]

    def _talk(self, instances):
        """Returns the `tasks.dialog.talk.Step`s of the answer to each instance, one or more."""
        return self.responder.talk([self._read(instance) for instance in instances])

    def _read(self, instance):
        turns = [Turn(sentence.speaker, sentence.text) for sentence in instance.history]
        return self.reader.read(turns)

    # === Conversations of users and assistants ===

    def conversation(self, said, decode=""):
        return {"history": make_history(said, self.domain)}

    def reply(self, answer):
        return join_responses(answer["said"])


def _attention_maps(step, details):
    """Makes a map of the hops, averaged over heads; with `details` also one of each hop's heads."""
    if not step.weights_HhM.size:
        return []
    num_hops, num_heads, _ = step.weights_HhM.shape
    hops = [f"hop {hop + 1}" for hop in range(num_hops)]
    heads = [f"head {head + 1}" for head in range(num_heads)]
    memories = [f"{speaker}: {text}" for speaker, text in step.read.turns[:-1]]
    mean_HM = step.weights_HhM.mean(axis=1)
    maps = [attention_map("memories", memories, hops, mean_HM.T)]
    if details:
        for hop, weights_hM in zip(hops, step.weights_HhM, strict=True):
            maps.append(attention_map(hop, memories, heads, weights_hM.T, group="heads"))
    return maps
