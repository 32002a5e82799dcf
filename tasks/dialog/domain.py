"""The domain of a dialog bot: its words, responses, knowledge base and entities."""

import collections
import dataclasses
import functools
import pathlib
from typing import NamedTuple

import numpy as np

from colloquy.base.files import UserError
from colloquy.data.corpora.babi_dialog import SILENCE, Fact
from colloquy.data.prepared import VOCABULARY, checked, read_vocabulary
from colloquy.data.report import shorten
from colloquy.data.sequences import Sequences
from colloquy.data.text_files import read_lines
from colloquy.data.vocabulary import Vocabulary
from colloquy.tasks.dialog.split import Sentences
from colloquy.tasks.dialog.tables import ModelTables

DIALOGS = "dialogs.pkl"
CANDIDATES = "candidates.txt"
KNOWLEDGE = "knowledge.txt"
ENTITIES = "entities.txt"
SPLITS = ("train", "dev", "dev-oov", "test", "test-oov")
CALL = "api_call "
"""The beginning of a response that searches the knowledge base: `api_call thai west R_price`."""
NO_RESULT = "api_call no result"
"""The fact of a search that found nothing, as the corpus writes it. No call searches for it."""

SHOWN_VALUES = 24
"""The bot lists this many values of a slot, and gives the number of the others."""
MAX_CLOSED_VALUES = 8
"""A type of entities with more values is open, see `Domain`. The training dialogs are assumed to
mention all values of the other types.
"""
MAX_NAME_PARTS = 100
"""The most parts of a name, joined by `_`. At each word of a sentence, `Domain.link` tries all
lengths up to that of the longest name, so long names would make it slow.
"""


class Entity(NamedTuple):
    """A line of `entities.txt`, see `tasks.dialog.prepare.find_entities`."""

    name: str
    """A word, with `_` between its parts: `north_american`."""
    type: str
    """Such as `cuisine`."""
    source: str
    """Where `find_entities` has found it: `knowledge`, `subjects` or `calls`."""


class LinkedWords(NamedTuple):
    """Consecutive words of a sentence: a name of entities, or one word that begins no such name."""

    words: list[str]
    entities: list[int]
    """The numbers, from 0, of the entities with this name; empty for a word without a name."""


@dataclasses.dataclass(frozen=True)
class Domain:
    """Words, responses and entities that a bot knows.

    A type of entities is *open* if it has more than `MAX_CLOSED_VALUES` values: places, cuisines,
    restaurants, phone numbers. New values of such a type may appear, so all its values share one id
    in `Sentences.typed_words`.
    """

    vocabulary: Vocabulary
    candidates: list[str]
    knowledge: list[Fact]
    entities: list[Entity]

    # Its files, in a prepared dataset and in each run.
    FILES = (VOCABULARY, CANDIDATES, KNOWLEDGE, ENTITIES)

    @classmethod
    def load(cls, path):
        """Reads a prepared dataset or a run; a missing or malformed file is a `UserError`."""
        path = pathlib.Path(path)
        entities = _read_records(path / ENTITIES, Entity)
        for entity in entities:
            if len(entity.name.split("_")) > MAX_NAME_PARTS:
                raise UserError(
                    f"{path / ENTITIES}: expected names of at most {MAX_NAME_PARTS} parts"
                )
        domain = cls(
            vocabulary=read_vocabulary(path / VOCABULARY),
            candidates=[line for _, line in read_lines(path / CANDIDATES, "candidates")],
            knowledge=_read_records(path / KNOWLEDGE, Fact),
            entities=entities,
        )
        # This makes the tables of the candidates' entities, which are padded to the candidate with
        # most entities. It fails if that candidate has far more than the others.
        with checked(path / CANDIDATES, "candidates with similar numbers of entities"):
            _ = domain.tables.required_fields
        return domain

    # === Entities in texts ===

    @functools.cached_property
    def types(self):
        """The types of entities, sorted; those of the knowledge base's values first."""
        all_types = {entity.type for entity in self.entities}
        knowledge_entities = [entity for entity in self.entities if entity.source == "knowledge"]
        from_knowledge = {entity.type for entity in knowledge_entities}
        return sorted(from_knowledge) + sorted(all_types - from_knowledge)

    @functools.cached_property
    def open_types(self):
        """`{type: id}` of the open types.

        All types of `types` have ids, after those of the words; the ids of closed types are unused.
        """
        counts = collections.Counter(entity.type for entity in self.entities)
        ids = {}
        for type_id, entity_type in enumerate(self.types, len(self.vocabulary) + 1):
            if counts[entity_type] > MAX_CLOSED_VALUES:
                ids[entity_type] = type_id
        return ids

    @functools.cached_property
    def surface_forms(self):
        """`{words: numbers of the entities with this name, from 0}`.

        A name with `_` has two forms: one word, `("the_cow",)`, and its parts, `("the", "cow")`.
        """
        numbers_by_form = {}
        for number, entity in enumerate(self.entities):
            forms = [(entity.name,)]
            if "_" in entity.name:
                parts = tuple(entity.name.split("_"))
                forms.append(parts)
            for form in forms:
                numbers_by_form.setdefault(form, []).append(number)
        return numbers_by_form

    @functools.cached_property
    def longest_name(self):
        """Number of words of the longest name."""
        return max((len(form) for form in self.surface_forms), default=1)

    def link(self, words):
        """Splits a list of words into a list of `LinkedWords`.

        From left to right, the longest name that begins at a word is taken.
        """
        parts = []
        start = 0
        while start < len(words):
            end = self._end_of_name(words, start)
            name = words[start:end]
            entities = self.surface_forms.get(tuple(name), [])
            parts.append(LinkedWords(name, entities))
            start = end
        return parts

    def _end_of_name(self, words, start):
        """Finds the end of the longest name at `start`; without a name, of the word at `start`."""
        last = min(start + self.longest_name, len(words))
        for end in range(last, start + 1, -1):
            if tuple(words[start:end]) in self.surface_forms:
                return end
        return start + 1

    def template(self, text):
        """Returns a sentence with `{type}` in place of each name."""
        words = []
        for part in self.link(text.split()):
            if part.entities:
                entity_type = self._type_of_name(part.entities)
                words.append(f"{{{entity_type}}}")
            else:
                words += part.words
        return " ".join(words)

    def _type_of_name(self, entities):
        """The type of entities with one name; if their types differ, that of the first entity."""
        return self.entities[entities[0]].type

    # === Encoding ===

    def encode(self, sentences):
        """Encodes lists of words as `Sentences`."""
        words = []
        typed_words = []
        entities = []
        responses = []
        for sentence in sentences:
            typed_ids = []
            numbers_from_1 = []
            for part in self.link(sentence):
                typed_ids += self._encode_typed(part)
                numbers_from_1 += [number + 1 for number in part.entities]
            words.append(self.vocabulary.encode(sentence))
            typed_words.append(typed_ids)
            entities.append(numbers_from_1)
            responses.append(self._encode_response(" ".join(sentence)))
        return Sentences(
            words=Sequences.of(words),
            typed_words=Sequences.of(typed_words),
            entities=Sequences.of(entities),
            responses=np.array(responses, np.int32),
        )

    def _encode_typed(self, part):
        """Returns the `Sentences.typed_words` of `LinkedWords`, as many as its words."""
        if part.entities:
            entity_type = self._type_of_name(part.entities)
            if entity_type in self.open_types:
                zeros = [0] * (len(part.words) - 1)
                return [self.open_types[entity_type], *zeros]
        return self.vocabulary.encode(part.words)

    def _encode_response(self, text):
        """Returns the number of a candidate, from 1; `SILENCE` has -1, any other text 0."""
        if text in self.candidate_numbers:
            return self.candidate_numbers[text] + 1
        return -1 if text == SILENCE else 0

    # === Candidates and searches ===

    @functools.cached_property
    def candidate_numbers(self):
        """`{candidate: its number, from 0}`."""
        return {text: number for number, text in enumerate(self.candidates)}

    @functools.cached_property
    def encoded_candidates(self):
        return self.encode([text.split() for text in self.candidates])

    def is_call(self, response):
        return response.startswith(CALL)

    def search(self, response):
        """Finds the facts that a response searches for, as `find_facts` does.

        A response that is no call, or no candidate, searches for nothing: an empty list.
        """
        if self.is_call(response) and response in self.candidate_numbers:
            return find_facts(self.knowledge, response)
        return []

    @functools.cached_property
    def values_by_subject(self):
        """`{restaurant: values of its facts}`, in the order of the knowledge base."""
        return group_values(self.knowledge)

    @functools.cached_property
    def slot_values(self):
        """`{type: values}` of the entities in the candidates' calls, sorted."""
        entities_of_candidates = self.encoded_candidates.entities.lists()
        values_by_type = collections.defaultdict(set)
        for candidate, numbers in zip(self.candidates, entities_of_candidates, strict=True):
            if self.is_call(candidate):
                for number in numbers:
                    entity = self.entities[number - 1]  # in `Sentences`, entities count from 1
                    values_by_type[entity.type].add(entity.name)
        return {name: sorted(values) for name, values in sorted(values_by_type.items())}

    @functools.cached_property
    def slot_values_text(self):
        """The bot's sentence about `slot_values`: `i know cuisine: french, thai; price: cheap`.

        It is empty for a bot without calls.
        """
        slots = []
        for slot, values in self.slot_values.items():
            slots.append(f"{slot}: {shorten(values, most=SHOWN_VALUES)}")
        return f"i know {'; '.join(slots)}" if slots else ""

    tables = functools.cached_property(ModelTables)


def find_facts(knowledge, call):
    """Finds all facts about the subjects that have every value of an `api_call`.

    A word `R_price` of the call means any price.

    Returns:
        The facts as texts; `[NO_RESULT]` if there are none.
    """
    wanted = {word for word in call.split()[1:] if not word.startswith("R_")}
    values_by_subject = group_values(knowledge)
    facts = [" ".join(fact) for fact in knowledge if wanted <= values_by_subject[fact.subject]]
    return facts or [NO_RESULT]


def group_values(knowledge):
    """Returns `{subject: values of its facts}`, in the order of the knowledge base."""
    values_by_subject = collections.defaultdict(set)
    for fact in knowledge:
        values_by_subject[fact.subject].add(fact.value)
    return values_by_subject


def _read_records(path, record_type):
    """Reads lines of three fields as `Entity` or `Fact`."""
    records = []
    for number, line in read_lines(path, None):
        fields = line.split("\t")
        if len(fields) != 3:
            raise UserError(
                f"{path}, line {number}: expected three fields, separated by tabs. "
                f"Received: {len(fields)}"
            )
        records.append(record_type(*fields))
    return records
