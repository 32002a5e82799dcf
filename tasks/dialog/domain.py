"""What a bot knows: words, responses, a knowledge base and its entities."""

import collections
import dataclasses
import functools
import pathlib
from typing import NamedTuple

import numpy as np

from colloquy.base.files import UserError
from colloquy.data.corpora.babi_dialog import SILENCE, Fact
from colloquy.data.prepared import VOCABULARY, checked, read_vocabulary
from colloquy.data.sequences import Sequences, stack
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
NO_RESULT = "api_call no result"

MAX_CLOSED_VALUES = 8
"""A type with more values is open, see `Domain`. Any training set has all values of a smaller one.
"""
MAX_NAME_PARTS = 100
"""The most `_` in a name: names are looked up in all sequences of this many words."""


class Entity(NamedTuple):
    """A line of `entities.txt`, see `tasks.dialog.prepare.find_entities`."""

    name: str
    type: str
    source: str


class Restaurant(NamedTuple):
    """A subject of facts."""

    name: str
    values: set[str]
    """The values of its facts."""
    entity: int
    """Its number among the entities, from 1; 0: it is none."""


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

    FILES = (VOCABULARY, CANDIDATES, KNOWLEDGE, ENTITIES)

    @classmethod
    def load(cls, path):
        """Reads a prepared dataset or a run; a missing or malformed file is a `UserError`."""
        path = pathlib.Path(path)
        entities = [Entity(*fields) for fields in _read_triples(path / ENTITIES)]
        for entity in entities:
            if entity.name.count("_") > MAX_NAME_PARTS:
                raise UserError(
                    f"{path / ENTITIES}: expected names of at most {MAX_NAME_PARTS} parts"
                )
        domain = cls(
            vocabulary=read_vocabulary(path / VOCABULARY),
            candidates=[line for _, line in read_lines(path / CANDIDATES, "candidates")],
            knowledge=[Fact(*fields) for fields in _read_triples(path / KNOWLEDGE)],
            entities=entities,
        )
        with checked(path / CANDIDATES, "candidates of similar lengths"):
            _ = domain.tables.required_fields
        return domain

    # === Entities in texts ===

    @functools.cached_property
    def types(self):
        """The types of entities, sorted; those of the knowledge base's values first."""
        from_knowledge = set()
        others = set()
        for _, entity_type, source in self.entities:
            types = from_knowledge if source == "knowledge" else others
            types.add(entity_type)
        return sorted(from_knowledge) + sorted(others - from_knowledge)

    @functools.cached_property
    def open_types(self):
        """`{type: id}` of the open types, with ids after those of the words."""
        counts = collections.Counter(entity_type for _, entity_type, _ in self.entities)
        ids = {}
        for type_id, entity_type in enumerate(self.types, len(self.vocabulary) + 1):
            if counts[entity_type] > MAX_CLOSED_VALUES:
                ids[entity_type] = type_id
        return ids

    @functools.cached_property
    def surface_forms(self):
        """`{words: numbers of entities}`: each name as one word and with spaces for `_`."""
        numbers_by_form = {}
        for number, (name, _, _) in enumerate(self.entities):
            forms = [(name,)]
            if "_" in name:
                forms.append(tuple(name.split("_")))
            for form in forms:
                numbers_by_form.setdefault(form, []).append(number)
        return numbers_by_form

    @functools.cached_property
    def longest_name(self):
        """Number of words of the longest name."""
        return max((len(form) for form in self.surface_forms), default=1)

    def link(self, words):
        """Splits words into pairs `(words, entities)`.

        The longest name at each word is a pair; a word that begins no name is one without entities.
        """
        pairs = []
        start = 0
        while start < len(words):
            end = self._end_of_name(words, start)
            name = words[start:end]
            pairs.append((name, self.surface_forms.get(tuple(name), [])))
            start = end
        return pairs

    def _end_of_name(self, words, start):
        """Finds where the longest name at `start` ends; after one word if there is none."""
        last = min(start + self.longest_name, len(words))
        for end in range(last, start + 1, -1):
            if tuple(words[start:end]) in self.surface_forms:
                return end
        return start + 1

    def template(self, text):
        """A sentence with `{type}` in place of each entity."""
        parts = []
        for words, numbers in self.link(text.split()):
            if numbers:
                _, entity_type, _ = self.entities[numbers[0]]
                parts.append(f"{{{entity_type}}}")
            else:
                parts += words
        return " ".join(parts)

    def encode(self, sentences):
        """Encodes lists of words as `Sentences`."""
        words = []
        typed_words = []
        entities = []
        responses = []
        for sentence in sentences:
            typed_ids = []
            numbers_from_1 = []
            for name, numbers in self.link(sentence):
                typed_ids += self._encode_typed(name, numbers)
                numbers_from_1 += [number + 1 for number in numbers]
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

    def _encode_typed(self, words, numbers):
        if numbers:
            _, entity_type, _ = self.entities[numbers[0]]
            if entity_type in self.open_types:
                return [self.open_types[entity_type]] + [0] * (len(words) - 1)
        return self.vocabulary.encode(words)

    def _encode_response(self, text):
        if text in self.candidate_numbers:
            return self.candidate_numbers[text] + 1
        return -1 if text == SILENCE else 0

    # === Candidates and searches ===

    @functools.cached_property
    def candidate_numbers(self):
        """`{candidate: its number}`."""
        return {text: number for number, text in enumerate(self.candidates)}

    @functools.cached_property
    def encoded_candidates(self):
        return self.encode([text.split() for text in self.candidates])

    def is_call(self, response):
        return response.startswith(CALL)

    def search(self, response):
        """Finds the facts that a response searches for: none unless it is a candidate and a call.

        See `find_facts`.
        """
        if self.is_call(response) and response in self.candidate_numbers:
            return find_facts(self.knowledge, response)
        return []

    @functools.cached_property
    def restaurants(self):
        """The `Restaurant`s of the knowledge base, in its order."""
        numbers = {}
        for number, entity in enumerate(self.entities, 1):
            if entity.source == "subjects":
                numbers[entity.name] = number
        values = {}
        for fact in self.knowledge:
            values.setdefault(fact.subject, set()).add(fact.value)
        return [Restaurant(name, values[name], numbers.get(name, 0)) for name in values]

    @functools.cached_property
    def slot_values(self):
        """`{type: values}` that calls name, sorted."""
        entities_of_candidates = self.encoded_candidates.entities.lists()
        values_by_type = collections.defaultdict(set)
        for candidate, numbers in zip(self.candidates, entities_of_candidates, strict=True):
            if not self.is_call(candidate):
                continue
            for number in numbers:
                name, entity_type, _ = self.entities[number - 1]
                values_by_type[entity_type].add(name)
        sorted_types = sorted(values_by_type)
        return {entity_type: sorted(values_by_type[entity_type]) for entity_type in sorted_types}

    @functools.cached_property
    def search_values(self):
        """A text of the values that calls name."""
        slots = [f"{slot}: {shorten(values)}" for slot, values in self.slot_values.items()]
        return f"i know {'; '.join(slots)}"

    @functools.cached_property
    def candidate_entities(self):
        """The entities of each candidate, counted from 1, padded with 0, int32 `(C, K)`."""
        return stack(self.encoded_candidates.entities.lists())

    @functools.cached_property
    def candidate_templates(self):
        """The template of each candidate, a text."""
        return [self.template(text) for text in self.candidates]

    @functools.cached_property
    def templates(self):
        """The distinct templates of candidates, sorted."""
        return sorted(set(self.candidate_templates))

    @functools.cached_property
    def template_numbers(self):
        """The index into `templates` of each candidate's, int32 `(C,)`."""
        number_of_template = {text: number for number, text in enumerate(self.templates)}
        numbers = [number_of_template[text] for text in self.candidate_templates]
        return np.array(numbers, np.int32)

    @functools.cached_property
    def tables(self):
        """The `ModelTables` of the domain."""
        return ModelTables(self)


def find_facts(knowledge, call):
    """Finds the facts about all subjects with every value that an `api_call` names.

    `R_price` means any price.
    """
    wanted = {word for word in call.split()[1:] if not word.startswith("R_")}
    values_by_subject = collections.defaultdict(set)
    for fact in knowledge:
        values_by_subject[fact.subject].add(fact.value)
    facts = [" ".join(fact) for fact in knowledge if wanted <= values_by_subject[fact.subject]]
    return facts or [NO_RESULT]


def shorten(values, most=24):
    """Lists the first values in a text.

    >>> shorten(["thai", "greek", "basque"], most=2)
    'thai, greek and 1 more'
    """
    text = ", ".join(values[:most])
    if len(values) > most:
        text += f" and {len(values) - most} more"
    return text


def _read_triples(path):
    triples = []
    for number, line in read_lines(path, None):
        fields = tuple(line.split("\t"))
        if len(fields) != 3:
            raise UserError(
                f"{path}, line {number}: expected three fields, separated by tabs. "
                f"Received: {len(fields)}"
            )
        triples.append(fields)
    return triples
