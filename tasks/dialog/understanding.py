"""Did the bot understand? Leaves out responses that the user's words do not ask for.

The action mask leaves two or three candidates in a state, and a softmax among them always answers:
"is it open on sunday?" gets an address. Here a candidate stays only if the words of the user's
last sentence are those that users say before it in train, if its probability among all candidates
is not tiny, and if it reserves nothing but a restaurant that was just offered.

Shape suffixes:
    B dialogs   M sentences   W words of a sentence   C candidates   L templates
    V ids of words, from 0, the padding
"""

import collections
import itertools
import math

import keras
import numpy as np
from keras import ops

from colloquy.base.config import Config
from colloquy.data.corpora.babi_dialog import SILENCE
from colloquy.data.prepared import checked
from colloquy.data.text_files import read_json
from colloquy.data.vocabulary import PADDING_ID, SPECIALS
from colloquy.tasks.dialog.augment import (
    ANOTHER,
    ANYTHING,
    CALL,
    GREETED,
    OFFER,
    RESERVED,
    UPDATE,
    WELCOME,
)

FILE = "understanding.json"
UNKNOWN = SPECIALS[1]
MIN_COVERAGE = 0.6
"""Least share of a sentence's words, by weight, that users of train say before the response."""
MIN_PROBABILITY = 0.01
"""Least probability among all candidates of a response to a sentence without values."""
ASKED_BY = 0.5
"""Least share of train's sentences before a fact that have a word which asks for it."""
ASKS_FOR = 0.75
"""Least share of train's sentences with such a word that come before the fact."""
ABILITIES = "i can find restaurants, reserve a table, and tell phone numbers and addresses"
ASKING = tuple("is are was does did what which who when why how".split())
"""A sentence that begins with one of these is a question, and no yes to an offer."""
ASKED_PERSONS = ("you", "people", "we", "i")
"""A sentence that begins with `do` and one of these is a question, too."""
POLITE = (ANYTHING, WELCOME)
"""Responses that fit any state."""


class Words(Config):
    """The contents of `understanding.json`, learnt from train."""

    weights: dict[str, float]
    """Words of users, and types of entities in braces -> how much they tell: the logarithm of 1 /
    the share of sentences with it.
    """
    said_before: dict[str, list[str]]
    """Templates of responses -> the words that users say before them."""
    begun_by: dict[str, list[str]]
    """Templates of responses -> the first words of what users say before them."""
    asked_by: dict[str, list[str]]
    """Templates that state a fact, such as an address -> the words that ask for it."""

    @property
    def of_users(self):
        """Words that users say, without types of entities."""
        return {word for word in self.weights if word != UNKNOWN and not word.startswith("{")}


# === Learning ===


def learn_words(domain, conversations):
    """Learns `Words` from train's dialogs, lists of `{"speaker", "text"}`."""
    num_sentences = 0
    sentences_of_word = collections.Counter()
    sentences_of_template = collections.Counter()
    words_of_template = collections.defaultdict(collections.Counter)
    first_words_of_template = collections.defaultdict(set)
    for user, bot in _turns(conversations):
        sentence = domain.template(user).split()
        words = set(sentence)
        template = domain.template(bot)
        num_sentences += 1
        sentences_of_word.update(words)
        sentences_of_template[template] += 1
        words_of_template[template].update(words)
        first_words_of_template[template].add(sentence[0])

    weights = {}
    for word, count in sorted(sentences_of_word.items()):
        weights[word] = round(math.log(num_sentences / count), 3)
    said_before = {}
    begun_by = {}
    asked_by = {}
    for template, counts in sorted(words_of_template.items()):
        said_before[template] = sorted(counts)
        begun_by[template] = sorted(first_words_of_template[template])
        if _states_fact(template):
            asked_by[template] = []
            for word, count in sorted(counts.items()):
                is_frequent = count >= ASKED_BY * sentences_of_template[template]
                if is_frequent and count >= ASKS_FOR * sentences_of_word[word]:
                    asked_by[template].append(word)
    # An unknown word tells most.
    weights[UNKNOWN] = round(math.log(max(num_sentences, 2)), 3)
    return Words(weights=weights, said_before=said_before, begun_by=begun_by, asked_by=asked_by)


def _turns(conversations):
    """Yields the sentences of users who are not silent, with the bot's responses."""
    for conversation in conversations:
        for first, second in itertools.pairwise(conversation):
            is_turn = first["speaker"] == "user" and second["speaker"] == "bot"
            if is_turn and first["text"] not in ("", SILENCE):
                yield first["text"], second["text"]


def _states_fact(template):
    return "{" in template and not template.startswith((CALL, OFFER))


def load_understanding(path, domain, mask):
    """Loads the `Understanding` of a run on top of its action mask; `None` if it lacks a file.

    A file that does not fit the domain is a `UserError`.
    """
    file = path / FILE
    if mask is None or not file.is_file():
        return None
    with checked(file, "words that training learnt for this run"):
        return Understanding(domain, mask, Words.model_validate(read_json(file)))


# === Use ===


class Understanding(keras.Model):
    """Marks the candidates that answer what the user said, bool `(B, C)`.

    Takes a dict of:

        words: Ids of the words of the user's last sentence, int `(B, W)`, 0 = padding.
        logits: `(B, C)`.
        speakers, turns, entities, responses: See `layers.dialog_state`; only the first turn counts.
    """

    def __init__(self, domain, mask, words):
        super().__init__()
        self.mask = mask
        self.words = words
        templates = sorted({*domain.templates, *words.said_before})
        numbers = {template: number for number, template in enumerate(templates)}
        template_C = [numbers[template] for template in domain.candidate_templates]
        self.template_C = np.array(template_C, np.int32)
        self.weight_V, self.is_value_V = _weigh(domain, words)
        self.said_VL = _mark_words(domain, words.said_before, templates)
        self.begins_VL = _mark_words(domain, words.begun_by, templates)
        self.asks_VL = _mark_words(domain, words.asked_by, templates)
        self.needs_asking_L = self.asks_VL.any(axis=0)
        self.takes_values_L = _mark_takers(domain, words.said_before, templates)
        self.is_asking_V = _mark_ids(domain, ASKING)
        self.is_do_V = _mark_ids(domain, ["do"])
        self.is_person_V = _mark_ids(domain, ASKED_PERSONS)
        self.is_offer_C = _mark_candidates(domain, OFFER)
        self.ends_offer_C = _mark_candidates(domain, RESERVED, ANOTHER, CALL)
        self.is_reservation_C = _mark_candidates(domain, RESERVED)
        self.is_update_C = _mark_candidates(domain, UPDATE)
        self.is_greeting_C = _mark_candidates(domain, GREETED)
        self.is_polite_C = _mark_candidates(domain, *POLITE)

    def call(self, inputs):
        allowed_BC = self.mask(inputs)[:, 0]
        # After a changed wish the bot searches at once: it does not ask for more changes.
        allowed_BC &= ~ops.convert_to_tensor(self.is_update_C)
        may_reserve_B = self._offer_stands(inputs["responses"])
        may_reserve_B &= ~self._is_question(inputs["words"])
        allowed_BC &= may_reserve_B[:, None] | ~ops.convert_to_tensor(self.is_reservation_C)

        fits_BC = self._fits_words(inputs["words"])
        is_likely_BC = keras.activations.softmax(inputs["logits"]) >= MIN_PROBABILITY
        names_value_B1 = self._names_value(inputs["words"])
        is_polite_BC = self.is_polite_C & fits_BC & is_likely_BC
        fits_BC &= is_likely_BC | names_value_B1
        # Before any wish the bot greets whoever says something that users say.
        is_unknown_BW = ops.take(self.weight_V == self.weight_V.max(), inputs["words"])
        fits_BC |= self.is_greeting_C & ~ops.any(is_unknown_BW, axis=1, keepdims=True)
        understood_BC = allowed_BC & fits_BC
        is_understood_B1 = ops.any(understood_BC, axis=1, keepdims=True)
        understood_BC = ops.where(is_understood_B1, understood_BC, is_polite_BC)

        turn_response_B1 = ops.take_along_axis(inputs["responses"], inputs["turns"][:, :1], axis=1)
        return ops.where(turn_response_B1 < 0, allowed_BC, understood_BC)

    def _fits_words(self, words_BW):
        """Marks the candidates before which users say such words, bool `(B, C)`."""
        weight_BW = ops.take(self.weight_V, words_BW)
        said_BWL = ops.take(self.said_VL, words_BW, axis=0)
        covered_BL = ops.einsum("bw,bwl->bl", weight_BW, said_BWL)
        total_B1 = ops.sum(weight_BW, axis=1, keepdims=True)
        # The first word counts twice, as it tells a question from a statement.
        first_B1 = weight_BW[:, :1]
        covered_BL += first_B1 * ops.take(self.begins_VL, words_BW[:, 0], axis=0)
        total_B1 += first_B1
        fits_BL = covered_BL >= MIN_COVERAGE * ops.maximum(total_B1, 1e-6)
        fits_BL |= self._names_value(words_BW) & self.takes_values_L
        asks_BL = ops.any(ops.take(self.asks_VL, words_BW, axis=0) > 0, axis=1)
        fits_BL &= asks_BL | ~self.needs_asking_L
        return ops.take(fits_BL, self.template_C, axis=1)

    def _names_value(self, words_BW):
        """Marks sentences that name a value of a slot, bool `(B, 1)`."""
        return ops.any(ops.take(self.is_value_V, words_BW), axis=1, keepdims=True)

    def _is_question(self, words_BW):
        """Marks sentences that begin as a question does, bool `(B,)`."""
        first_B = words_BW[:, 0]
        second_B = words_BW[:, 1]
        is_do_B = ops.take(self.is_do_V, first_B) & ops.take(self.is_person_V, second_B)
        return is_do_B | ops.take(self.is_asking_V, first_B)

    def _offer_stands(self, responses_BM):
        """Marks dialogs whose last offer is neither reserved nor refused, bool `(B,)`."""
        number_BM = ops.maximum(responses_BM - 1, 0)
        is_response_BM = responses_BM > 0
        place_M = ops.arange(1, 1 + ops.shape(responses_BM)[1])

        def last_place(marks_C):
            is_marked_BM = ops.take(marks_C, number_BM) & is_response_BM
            return ops.max(ops.where(is_marked_BM, place_M, 0), axis=1)

        return last_place(self.is_offer_C) > last_place(self.ends_offer_C)


def _weigh(domain, words):
    """Returns the weight of each word, float32 `(V,)`, and marks values of slots, bool `(V,)`.

    Values weigh nothing: the state of the dialog says what follows from them.
    """
    most = words.weights[UNKNOWN]
    weight_V = np.full(1 + len(domain.vocabulary), most, np.float32)
    for word, weight in words.weights.items():
        if word != UNKNOWN:
            weight_V[_id(domain, word)] = weight
    is_value_V = np.zeros(len(weight_V), bool)
    for values in domain.slot_values.values():
        for value in values:
            is_value_V[_id(domain, value)] = True
    is_value_V[domain.vocabulary.unk_id] = False
    weight_V[is_value_V] = 0.0
    weight_V[PADDING_ID] = 0.0
    weight_V[domain.vocabulary.unk_id] = most
    return weight_V, is_value_V


def _id(domain, word):
    [id] = domain.vocabulary.encode([word])
    return id


def _mark_words(domain, words_by_template, templates):
    """Marks the words of each template, float32 `(V, L)`."""
    marks_VL = np.zeros((1 + len(domain.vocabulary), len(templates)), np.float32)
    for number, template in enumerate(templates):
        for word in words_by_template.get(template, ()):
            marks_VL[_id(domain, word), number] = 1.0
    marks_VL[domain.vocabulary.unk_id] = 0.0
    return marks_VL


def _mark_ids(domain, words):
    """Marks words, bool `(V,)`."""
    marks_V = np.zeros(1 + len(domain.vocabulary), bool)
    marks_V[domain.vocabulary.encode(words)] = True
    marks_V[domain.vocabulary.unk_id] = False
    return marks_V


def _mark_takers(domain, said_before, templates):
    """Marks the templates before which users name values of slots, bool `(L,)`."""
    types = {f"{{{slot}}}" for slot in domain.slot_values}
    return np.array([not types.isdisjoint(said_before.get(name, ())) for name in templates])


def _mark_candidates(domain, *beginnings):
    """Marks the candidates that begin with one of these texts, bool `(C,)`."""
    return np.array([text.startswith(beginnings) for text in domain.candidates])
