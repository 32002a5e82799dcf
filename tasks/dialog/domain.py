"""The domain of a dialog bot: its words, responses, knowledge base and entities.

Entities are numbered from 1, since 0 is padding, and candidate responses from 0.
"""

import collections
import dataclasses
import functools
import pathlib

import numpy as np

from colloquy.base.files import UserError
from colloquy.data.corpora.babi_dialog import SILENCE, Fact
from colloquy.data.prepared import VOCABULARY, checked, read_vocabulary
from colloquy.data.report import shorten
from colloquy.data.sequences import Sequences
from colloquy.data.text_files import read_lines
from colloquy.data.vocabulary import Vocabulary
from colloquy.tasks.dialog.knowledge import Entity, find_facts, group_values, is_call
from colloquy.tasks.dialog.names import Names
from colloquy.tasks.dialog.split import NO_CANDIDATE, SILENT, Sentences
from colloquy.tasks.dialog.tables import ModelTables

DIALOGS = "dialogs.pkl"
CANDIDATES = "candidates.txt"
KNOWLEDGE = "knowledge.txt"
ENTITIES = "entities.txt"
SPLITS = ("train", "dev", "dev-oov", "test", "test-oov")

SHOWN_VALUES = 24
"""The bot lists this many values of a slot, and gives the number of the others."""
MAX_CLOSED_VALUES = 8
"""A type of entities with more values is open, see `Domain.open_types`."""
MAX_NAME_PARTS = 100
"""The most parts of a name, joined by `_`. At each word of a sentence, `Names.link` tries all
lengths up to that of the longest name, so long names would make it slow.
"""


@dataclasses.dataclass(frozen=True)
class Domain:
    """Words, responses, facts and entities that a bot knows."""

    vocabulary: Vocabulary
    candidates: list[str]
    """All responses that the bot may give."""
    knowledge: list[Fact]
    entities: list[Entity]

    # Its files, in a prepared dataset and in each run.
    FILES = (VOCABULARY, CANDIDATES, KNOWLEDGE, ENTITIES)

    @classmethod
    def load(cls, path):
        """Reads a prepared dataset or a run; a missing or malformed file is a `UserError`."""
        path = pathlib.Path(path)
        domain = cls(
            entities=_read_records(path / ENTITIES, Entity),
            vocabulary=read_vocabulary(path / VOCABULARY),
            candidates=[line for _, line in read_lines(path / CANDIDATES, "candidates")],
            knowledge=_read_records(path / KNOWLEDGE, Fact),
        )
        if domain.names.longest > MAX_NAME_PARTS:
            raise UserError(f"{path / ENTITIES}: expected names of at most {MAX_NAME_PARTS} parts")
        with checked(path / CANDIDATES, "candidates with similar numbers of entities"):
            # The tables are as wide as the candidate with most entities. `stack`, which makes them,
            # refuses those that are mostly padding.
            _ = domain.tables.required_fields
        return domain

    # === Entities ===

    def entity(self, number):
        """Returns the `Entity` with a number, which is at least 1."""
        return self.entities[number - 1]

    @functools.cached_property
    def names(self):
        return Names(self.entities)

    @functools.cached_property
    def types(self):
        """The types of entities, sorted; those of the knowledge base's values first."""
        of_knowledge = {entity.type for entity in self.entities if entity.source == "knowledge"}
        others = {entity.type for entity in self.entities} - of_knowledge
        return sorted(of_knowledge) + sorted(others)

    @functools.cached_property
    def open_types(self):
        """`{type: id}` of the open types, those with more than `MAX_CLOSED_VALUES` values.

        The bot will meet new values of an open type, such as cuisine or restaurant. So all its
        values share one id in `Sentences.typed_words`. The training dialogs are assumed to mention
        all values of the other types.

        The ids follow those of the words, in the order of `types`: of 500 words and the types
        cuisine (open), price (closed) and restaurant (open), cuisine has 501 and restaurant 503.
        """
        counts = collections.Counter(entity.type for entity in self.entities)
        ids = {}
        for type_id, entity_type in enumerate(self.types, len(self.vocabulary) + 1):
            if counts[entity_type] > MAX_CLOSED_VALUES:
                ids[entity_type] = type_id
        return ids

    def type_of_name(self, numbers):
        """Returns the type of the entities with one name, the first one's if they differ."""
        return self.entity(numbers[0]).type

    def template(self, text):
        """Returns a sentence with `{type}` in place of each name: `how about {restaurant}`."""
        words = []
        for part in self.names.link(text.split()):
            if part.entities:
                words.append(f"{{{self.type_of_name(part.entities)}}}")
            else:
                words += part.words
        return " ".join(words)

    # === Encoding ===

    def encode(self, sentences):
        """Encodes lists of words as `Sentences`."""
        words = []
        typed_words = []
        entities = []
        responses = []
        for sentence in sentences:
            typed_ids = []
            numbers = []
            for part in self.names.link(sentence):
                typed_ids += self._encode_typed(part)
                numbers += part.entities
            words.append(self.vocabulary.encode(sentence))
            typed_words.append(typed_ids)
            entities.append(numbers)
            responses.append(self._encode_response(" ".join(sentence)))
        return Sentences(
            words=Sequences.of(words),
            typed_words=Sequences.of(typed_words),
            entities=Sequences.of(entities),
            responses=np.array(responses, np.int32),
        )

    def _encode_typed(self, part):
        """Returns the `Sentences.typed_words` of `LinkedWords`, as many ids as words."""
        if part.entities:
            entity_type = self.type_of_name(part.entities)
            if entity_type in self.open_types:
                padding = [0] * (len(part.words) - 1)
                return [self.open_types[entity_type], *padding]
        return self.vocabulary.encode(part.words)

    def _encode_response(self, text):
        """Returns the number in `Sentences.responses` of a sentence."""
        if text in self.candidate_numbers:
            return 1 + self.candidate_numbers[text]
        return SILENT if text == SILENCE else NO_CANDIDATE

    # === Candidates and searches ===

    @functools.cached_property
    def candidate_numbers(self):
        """`{candidate: its number, from 0}`."""
        return {text: number for number, text in enumerate(self.candidates)}

    @functools.cached_property
    def encoded_candidates(self):
        return self.encode([text.split() for text in self.candidates])

    def search(self, response):
        """Finds the facts that a response searches for, as `find_facts` does.

        A response that is no call, or no candidate, searches for nothing: an empty list.
        """
        if is_call(response) and response in self.candidate_numbers:
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
            if is_call(candidate):
                for number in numbers:
                    entity = self.entity(number)
                    values_by_type[entity.type].add(entity.name)
        return {name: sorted(values) for name, values in sorted(values_by_type.items())}

    @functools.cached_property
    def slot_values_text(self):
        """The bot's sentence about `slot_values`: `i know cuisine: french, thai; price: cheap`.

        It is empty for a bot without calls.
        """
        slots = [
            f"{slot}: {shorten(values, most=SHOWN_VALUES)}"
            for slot, values in self.slot_values.items()
        ]
        return f"i know {'; '.join(slots)}" if slots else ""

    tables = functools.cached_property(ModelTables)


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
