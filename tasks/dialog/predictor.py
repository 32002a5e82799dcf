"""A dialog model that answers plain text."""

import functools
import itertools
import math
import re
from typing import Annotated, Literal, NamedTuple

import keras
import numpy as np
from pydantic import Field
from scipy.special import softmax

from colloquy.base.config import Config
from colloquy.base.files import UserError
from colloquy.data.corpora.babi_dialog import SILENCE
from colloquy.data.sequences import Sequences
from colloquy.data.text_files import read_lines
from colloquy.data.vocabulary import SPECIALS
from colloquy.engine.helplines import REPLIES, helpline_reply
from colloquy.engine.parallel import compile_for_all_sizes
from colloquy.engine.predictor import Predictor, attention_map, in_brackets
from colloquy.engine.task import check_fields
from colloquy.layers.dialog_state import INPUTS
from colloquy.tasks.dialog.action_mask import load_mask
from colloquy.tasks.dialog.data import PHRASES
from colloquy.tasks.dialog.domain import Domain
from colloquy.tasks.dialog.prepare import CALL
from colloquy.tasks.dialog.split import DialogSplit, encode_dialog
from colloquy.tasks.dialog.understanding import ABILITIES, load_understanding
from colloquy.tasks.dialog.wishes import Restaurant, Restaurants, Wish, find_wishes
from colloquy.tasks.dialog.wording import Reader, rules_for

SENTENCES_PER_ROW = 10  # for a server's limits
BEST = 5  # candidates in an answer
RESPONSES = 8  # at most, until the user speaks again
NOT_UNDERSTOOD = "sorry, i did not understand"
NOTHING_FOUND = "sorry, i found nothing"
TAKEN = ", i take it"  # after values that misspelt words were taken for
HELPLINES = "|".join(re.escape(reply) for reply in REPLIES)
REMARK = f"(?s)(?:{NOT_UNDERSTOOD}|{NOTHING_FOUND}).*|.*{TAKEN}|{HELPLINES}"
"""A pattern of whole sentences, for Python and for TensorFlow's regular expressions (RE2)."""
MAX_FACTS = 5_000  # of a conversation; the longest of dialog bAbI has fewer than 812


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

    conversation: list
    """`(speaker, text)` of the sentences before it."""
    best: list
    """The best candidates."""
    response: str
    facts: list
    """Facts that the response finds."""
    weights: np.ndarray
    """Attention weights of each hop and head to the sentences before the last, `(H, h, M)`."""


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
        """The best candidate; or that the bot did not understand, or found nothing; or the reply of
        `engine.helplines`."""
        best: list[Candidate]
        """The five best candidates that are allowed."""
        facts: list[str]
        """Facts found by a response that is an `api_call`."""
        unknown: list[str]
        """The user's last words that the model does not know."""
        said: list[Sentence]
        """The response, and what follows until the bot waits for the user: facts, silences, further
        responses. Before it, the values that misspelt words were taken for. They belong to the
        history of the next request."""
        wishes: list[Wish]
        """What the bot understood that the user wishes, up to the last sentence of the history."""
        restaurants: list[Restaurant]
        """The restaurants that `said` is about: those found, and those that the bot names."""

    def __init__(self, run, model=None):
        self.domain = Domain.load(run.path)
        self.model = run.load_model() if model is None else model
        self.config = self.model.config
        check_fields(self.config, self.domain.required_fields, run.path)
        outputs = [self.model.output, *self.model.attention_weights]
        self.with_attention = keras.Model(self.model.input, outputs)
        # An export calls its model as a part of its own graph.
        if model is None:
            compile_for_all_sizes(self.with_attention)
        self.mask = load_mask(run.path, self.domain)
        self.knowledge = [" ".join(fact) for fact in self.domain.knowledge]  # for the pages
        self.restaurants = Restaurants(self.domain)
        self.phrases = []
        if (run.path / PHRASES).is_file():
            self.phrases = [line for _, line in read_lines(run.path / PHRASES, None)]
        self._known = {SILENCE, *self.domain.vocabulary.words} - set(SPECIALS)
        self.understanding = load_understanding(run.path, self.domain, self.mask)
        self.reader = self._make_reader()
        self._first_texts = set()
        for example in run.examples():
            instance = self.valid(example["instance"], f"{run.path}, {example['title']}")
            self._first_texts.add(instance.history[0].text)

    # === Words ===

    def _make_reader(self):
        values = set(itertools.chain(*self.domain.slot_values.values()))
        if not self.understanding:
            return Reader(self._known, values, self.config.max_words)
        return Reader(
            self._known,
            values,
            self.config.max_words,
            of_users=self.understanding.words.of_users & self._known,
            rules=rules_for(self._known, values),
        )

    def read(self, text):
        """Reads a user's text, see `wording.Reader`."""
        words, _ = self.reader.read(text)
        return list(words)

    def unknown(self, words):
        """The words from `read` that the model does not know, without punctuation."""
        unknown = []
        for word in words:
            # A bot that knows ratings does not know the number 5 of guests.
            is_known = word in self._known and not word.isdecimal()
            if has_letter(word) and not is_known:
                unknown.append(word)
        return unknown

    # === Predictions ===

    def check(self, instance):
        for text in instance.candidates:
            if text not in self.domain.candidate_numbers:
                raise UserError(
                    f"candidates: expected those that the bot knows. Received: {text!r}"
                )
        facts = [sentence for sentence in instance.history if sentence.speaker == "fact"]
        check_facts(len(facts) + len(instance.facts))

    def answer(self, instances):
        talks = self._talk(instances)
        answers = []
        for instance, turns in zip(instances, talks, strict=True):
            answers.append(self._answer(instance, turns))
        return answers

    def answer_with_attention(self, instance, details):
        """As `Predictor.answer_with_attention`, of the last response.

        The details are the weights of each head.
        """
        [turns] = self._talk([instance])
        answer = self._answer(instance, turns)
        weights_HhM = turns[-1].weights
        if not weights_HhM.size:
            return answer, []
        hops = [f"hop {hop + 1}" for hop in range(weights_HhM.shape[0])]
        heads = [f"head {head + 1}" for head in range(weights_HhM.shape[1])]
        memories = [f"{speaker}: {text}" for speaker, text in turns[-1].conversation[:-1]]
        maps = [attention_map("memories", memories, hops, weights_HhM.mean(axis=1).T)]
        if details:
            for hop, weights_hM in zip(hops, weights_HhM, strict=True):
                maps.append(attention_map(hop, memories, heads, weights_hM.T, group="heads"))
        return answer, maps

    def padded_rows(self, instance):
        """A row for each `SENTENCES_PER_ROW` sentences that the model remembers."""
        num_sentences = 1 + len(instance.history) + len(instance.facts)
        return math.ceil(num_sentences / SENTENCES_PER_ROW)

    def show(self, instance):
        [[turn, *_]] = self._talk([instance])
        vocabulary = self.domain.vocabulary
        read = []
        for speaker, text in turn.conversation:
            read.append((speaker, in_brackets(text.split(), vocabulary)))
        return read, [(candidate.score, candidate.text) for candidate in turn.best]

    # === Conversations of users and assistants ===

    def conversation(self, said, decode=""):
        """Like `Predictor`'s.

        Each line of the bot is a response. After one that another follows, the bot continued with
        what its search found.
        """
        lines = []
        for speaker, text in said:
            texts = text.splitlines() if speaker == "bot" else [text]
            for line in texts:
                if speaker == "user" or not is_remark(line):
                    lines.append((speaker, line))

        history = []
        num_facts = 0
        for (speaker, text), (next_speaker, _) in itertools.pairwise([*lines, ("user", "")]):
            history.append({"speaker": speaker, "text": text})
            if speaker == next_speaker == "bot":
                facts = self.domain.search(text)
                num_facts += len(facts)
                check_facts(num_facts)
                history += [{"speaker": "fact", "text": fact} for fact in facts]
                history.append({"speaker": "user", "text": ""})
        return {"history": history}

    def reply(self, answer):
        responses = [turn["text"] for turn in answer["said"] if turn["speaker"] == "bot"]
        return "\n".join(responses)

    # === Turns ===

    @functools.cached_property
    def opening(self):
        """The bot's greeting, before a history that the user begins.

        It is empty for a dataset in which users begin.
        """
        bot_begins = self._first_texts == {SILENCE}
        if not bot_begins:
            return []
        silence = [("user", SILENCE)]
        [greeting] = self._next_turns(conversations=[silence], candidates=[[]])
        if not greeting.best:
            return []
        return [("user", ""), ("bot", greeting.response)]

    def _answer(self, instance, turns):
        sentences = []
        for place, sentence in enumerate(instance.history):
            if sentence.speaker == "user":
                sentences.append((place, self.read(sentence.text)))
        wishes = find_wishes(self.domain, sentences)

        last_sentence = instance.history[-1]
        is_users = last_sentence.speaker == "user"
        helpline = helpline_reply(last_sentence.text) if is_users else None
        if helpline is not None:
            return self.Answer(
                response=helpline,
                best=[],
                facts=[],
                unknown=[],
                said=[Sentence(speaker="bot", text=helpline)],
                wishes=wishes,
                restaurants=[],
            )

        first, last = turns[0], turns[-1]
        conversation = [*last.conversation, ("bot", last.response)]
        said = []
        if is_users:
            _, values = self.reader.read(last_sentence.text)
            if values:
                said.append(Sentence(speaker="bot", text=f"{', '.join(values)}{TAKEN}"))
        for speaker, text in conversation[len(first.conversation) :]:
            is_silence = speaker == "user" and text == SILENCE
            said.append(Sentence(speaker=speaker, text="" if is_silence else text))
        _, asked = first.conversation[-1]
        return self.Answer(
            response=first.response,
            best=first.best,
            facts=first.facts,
            unknown=self.unknown(asked.split()),
            said=said,
            wishes=wishes,
            restaurants=self.restaurants.named_in(sentence.text for sentence in said),
        )

    def _talk(self, instances):
        """The `Turn`s of each instance: one, and more while the bot continues by itself."""
        conversations = [self._conversation(instance) for instance in instances]
        talks = [[] for _ in instances]
        waiting = range(len(instances))
        while waiting:
            turns = self._next_turns(
                conversations=[conversations[i] for i in waiting],
                candidates=[instances[i].candidates for i in waiting],
            )
            continuing = []
            for i, turn in zip(waiting, turns, strict=True):
                talks[i].append(turn)
                facts = [("fact", text) for text in turn.facts]
                conversations[i] += [("bot", turn.response), *facts, ("user", SILENCE)]
                if not instances[i].candidates and self._continues(talks[i]):
                    continuing.append(i)
            waiting = continuing
        return talks

    def _conversation(self, instance):
        """The sentences and facts as `(speaker, text)`; the last sentence is the user's."""
        said = []
        for sentence in instance.history:
            if sentence.speaker != "bot" or not is_remark(sentence.text):
                said.append((sentence.speaker, sentence.text))
            elif sentence.text.startswith(NOTHING_FOUND) and said and said[-1] == ("user", ""):
                said.pop()
        if said and said[0][0] == "user" and self.read(said[0][1]) != [SILENCE]:
            said = [*self.opening, *said]
        if not said or said[-1][0] != "user":
            said.append(("user", ""))
        said[-1:-1] = [("fact", text) for text in instance.facts if text]

        conversation = []
        for speaker, text in said:
            words = text.split()[: self.config.max_words]
            if speaker == "user":
                words = self.read(text)
            conversation.append((speaker, " ".join(words)))
        return conversation

    def _continues(self, turns):
        """True if the bot speaks again.

        It does after a search, and after responses to which users of train are silent.
        """
        *former_turns, turn = turns
        if not turn.best or len(turns) == RESPONSES:
            return False
        if turn.response in [former.response for former in former_turns]:
            return False
        if turn.facts:
            return True
        if self.mask is None:
            return False
        return bool(self.mask.continues_C[self.domain.candidate_numbers[turn.response]])

    def _next_turns(self, conversations, candidates):
        """The next `Turn` of each conversation.

        Those with `candidates` choose among these, the others among all that the mask allows.
        """
        logits_BC, allowed_BC, hops = self._compute(conversations)
        turns = []
        for b, conversation in enumerate(conversations):
            is_choice_C = self._mark_candidates(candidates[b])
            is_allowed_C = is_choice_C
            if not candidates[b]:
                _, asked = conversation[-1]
                is_allowed_C = allowed_BC[b] & self._understands(asked)
            best = self._best_candidates(logits_BC[b], is_choice_C, is_allowed_C)
            response = best[0].text if best else self._excuse(conversation)
            num_memories = len(conversation) - 1
            weights_HhM = [hop_BhTM[b, :, 0, :num_memories] for hop_BhTM in hops]
            turn = Turn(
                conversation=list(conversation),
                best=best,
                response=response,
                facts=self.domain.search(response),
                weights=np.array(weights_HhM),
            )
            turns.append(turn)
        return turns

    def _compute(self, conversations):
        """Computes the last turn of each conversation.

        Returns:
            The logits of the candidates, `(B, C)`.
            The candidates that the mask allows, bool `(B, C)`.
            The attention weights of each hop, `(B, h, 1, M)`.
        """
        sentences = {}
        dialogs = []
        for conversation in conversations:
            dialog = encode_dialog(conversation, sentences)
            # Only the last sentence is answered: the dialog has one turn, with number 0.
            last_time = dialog["times"][-1]
            dialog["times"] = [time - last_time for time in dialog["times"]]
            dialog["turns"] = [len(conversation) - 1]
            dialog["answers"] = [0]
            dialogs.append(dialog)
        encoded = self.domain.encode([text.split() for text in sentences])
        # What the model reads, and what the mask reads.
        names = {*self.config.reads, *INPUTS}
        inputs, _ = DialogSplit(encoded, dialogs).collate(
            range(len(dialogs)), names, self.config.entities
        )

        model_inputs = {name: inputs[name] for name in self.config.reads}
        outputs = keras.tree.flatten(self.with_attention.predict_on_batch(model_inputs))
        logits_BTC, *hops = [np.asarray(output) for output in outputs]
        logits_BC = logits_BTC[:, 0]
        allowed_BC = np.ones(logits_BC.shape, bool)
        if self.understanding:
            asked = [conversation[-1][1].split() for conversation in conversations]
            ids = Sequences.of([self.domain.vocabulary.encode(words) for words in asked])
            words_BW = ids.padded(range(len(asked)), self.config.max_words)
            heard = {name: inputs[name] for name in INPUTS}
            heard = {**heard, "words": words_BW, "logits": logits_BC}
            allowed_BC = self.understanding.predict_on_batch(heard)
        elif self.mask:
            allowed_BC = self.mask.predict_on_batch(inputs)[:, 0]
        return logits_BC, allowed_BC, hops

    def _mark_candidates(self, texts):
        """Marks the candidates of an instance, bool `(C,)`; all if it has none."""
        marks_C = np.full(len(self.domain.candidates), not texts)
        for text in texts:
            marks_C[self.domain.candidate_numbers[text]] = True
        return marks_C

    def _excuse(self, conversation):
        """What the bot says instead of a response: that it did not understand, or found nothing."""
        _, asked = conversation[-1]
        responses = [text for speaker, text in conversation if speaker == "bot"]
        calls = [place for place, text in enumerate(responses) if text.startswith(CALL)]
        if asked == SILENCE and calls:
            _, *wishes = responses[calls[-1]].split()
            after_call = responses[calls[-1] + 1 :]
            else_ = " else" if after_call else ""
            *slots, last_slot = self.domain.slot_values
            other_slots = f"{', '.join(slots)} or {last_slot}"
            found_nothing = f"{NOTHING_FOUND}{else_} for {', '.join(wishes)}"
            return f"{found_nothing}. would you like another {other_slots}?"

        unknown = self.unknown(asked.split())
        not_understood = f"{NOT_UNDERSTOOD} {', '.join(unknown)}".strip()
        abilities = f" {ABILITIES}." if self.understanding else ""
        return f"{not_understood}.{abilities} {self.domain.search_values}"

    def _understands(self, text):
        return any(word in self._known and has_letter(word) for word in text.split())

    def _best_candidates(self, logits_C, is_choice_C, is_allowed_C):
        """The best of the allowed candidates; their probabilities are those among the choices."""
        scores_C = softmax(np.where(is_choice_C, logits_C.astype(np.float64), -np.inf))
        order = np.argsort(-logits_C, kind="stable")
        best = order[is_allowed_C[order]][:BEST]
        candidates = self.domain.candidates
        return [Candidate(text=candidates[c], score=float(scores_C[c])) for c in best]


def is_remark(text):
    """True for a sentence of the bot that is no response, so that models do not read it."""
    return re.fullmatch(REMARK, text) is not None


def has_letter(word):
    """True if a word has a letter or a digit."""
    return any(character.isalnum() for character in word)


def check_facts(count):
    if count > MAX_FACTS:
        raise UserError(f"history: expected at most {MAX_FACTS:,} facts. Received: {count:,}")
