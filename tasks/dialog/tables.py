"""The tables that models need of a domain: sizes, candidates and the entities in them."""

import collections
import functools
from typing import NamedTuple

import numpy as np

from colloquy.data.sequences import stack
from colloquy.tasks.dialog.entities import RESTAURANT
from colloquy.tasks.dialog.knowledge import is_call


class MatchGroup(NamedTuple):
    """The entities of one type in a candidate: `(paris)` is one of `api_call french paris`."""

    type_number: int
    """Index into `Domain.types`."""
    entities: tuple[int, ...]
    """Numbers of the entities, sorted."""


class MatchGroups(NamedTuple):
    """The distinct `MatchGroup`s of all candidates, numbered from 1; 0 is padding."""

    members: np.ndarray
    """The entities of each group, int32 `(groups, members)`."""
    types: np.ndarray
    """The type of each group, int32 `(groups,)`."""
    groups_of_candidates: np.ndarray
    """The groups of each candidate, int32 `(C, groups per candidate)`."""


class ModelTables:
    """The tables of a `tasks.dialog.domain.Domain`."""

    def __init__(self, domain):
        self.domain = domain

    # === Entities of candidates ===

    @functools.cached_property
    def candidate_entities(self):
        """The entities of each candidate, int32 `(C, K)`, 0 = padding."""
        return stack(self.domain.encoded_candidates.entities.lists())

    @functools.cached_property
    def match_groups(self):
        """The `MatchGroups`, for match types (Bordes et al. 2017, section 4.2).

        A candidate matches a context by the type of a group if the context mentions one of the
        group's entities.
        """
        numbers = {}
        groups_of_candidates = []
        for entities in self.domain.encoded_candidates.entities.lists():
            groups = []
            for group in self._group_by_type(entities):
                if group not in numbers:
                    numbers[group] = len(numbers) + 1
                groups.append(numbers[group])
            groups_of_candidates.append(groups)
        return MatchGroups(
            members=stack([group.entities for group in numbers]),
            types=np.array([group.type_number for group in numbers], np.int32),
            groups_of_candidates=stack(groups_of_candidates),
        )

    def _group_by_type(self, entities):
        """Groups the entities of a candidate that are values of the knowledge base."""
        entities_by_type = collections.defaultdict(list)
        for number in sorted(set(entities)):
            entity = self.domain.entity(number)
            if entity.source == "knowledge":
                entities_by_type[self.domain.types.index(entity.type)].append(number)
        groups = []
        for type_number in sorted(entities_by_type):
            groups.append(MatchGroup(type_number, tuple(entities_by_type[type_number])))
        return groups

    def check_widths(self):
        """Raises a `ValueError` if one candidate has far more entities than the others.

        `candidate_entities` and `match_groups` are as wide as the candidate with most entities, and
        `stack` refuses to make a large array of padding.
        """
        _ = self.candidate_entities
        _ = self.match_groups

    # === Templates of candidates ===

    @functools.cached_property
    def candidate_templates(self):
        """The template of each candidate, a list of texts."""
        return [self.domain.template(text) for text in self.domain.candidates]

    @functools.cached_property
    def templates(self):
        """The distinct templates of candidates, sorted."""
        return sorted(set(self.candidate_templates))

    @functools.cached_property
    def template_numbers(self):
        """The template of each candidate as an index into `templates`, int32 `(C,)`."""
        number_of_template = {text: number for number, text in enumerate(self.templates)}
        numbers = [number_of_template[text] for text in self.candidate_templates]
        return np.array(numbers, np.int32)

    # === The state of a conversation ===

    @functools.cached_property
    def state_tables(self):
        """The weights of `layers.dialog_state.DialogState`, in its order."""
        is_call_C = [is_call(candidate) for candidate in self.domain.candidates]
        return [np.array(is_call_C, np.int32), self._slots(), self._restaurants(), self._owners()]

    def _slots(self):
        """For each entity its type, from 1, if calls have values of this type, int32 `(1 + E,)`."""
        slots = [0]  # entity 0 is padding
        for entity in self.domain.entities:
            is_slot = entity.type in self.domain.slot_values
            slots.append(1 + self.domain.types.index(entity.type) if is_slot else 0)
        return np.array(slots, np.int32)

    def _restaurants(self):
        """For each entity its own number if it is a restaurant, int32 `(1 + E,)`."""
        restaurants = [0]
        for number, entity in enumerate(self.domain.entities, 1):
            restaurants.append(number if entity.type == RESTAURANT else 0)
        return np.array(restaurants, np.int32)

    def _owners(self):
        """For each value that only one restaurant has, such as a phone number, this restaurant.

        Int32 `(1 + E,)`; 0 for other entities.
        """
        restaurants_by_value = collections.defaultdict(set)
        for fact in self.domain.knowledge:
            restaurants_by_value[fact.value].add(fact.subject)
        number_of_restaurant = {}
        for number, entity in enumerate(self.domain.entities, 1):
            if entity.source == "subjects":
                number_of_restaurant[entity.name] = number

        owners = [0]
        for entity in self.domain.entities:
            owner = 0
            if len(restaurants_by_value[entity.name]) == 1:
                [restaurant] = restaurants_by_value[entity.name]
                owner = number_of_restaurant.get(restaurant, 0)
            owners.append(owner)
        return np.array(owners, np.int32)

    # === Models ===

    @functools.cached_property
    def required_fields(self):
        """The fields of a model's config that the domain decides."""
        words = self.domain.encoded_candidates.words
        num_candidate_words = int(words.lengths.sum())
        return {
            "vocabulary_size": len(self.domain.vocabulary),
            "candidates": (len(words), num_candidate_words),
            "entities": len(self.domain.entities),
            "types": len(self.domain.types),
            "candidate_entities": self.candidate_entities.shape,
            "match_groups": self.match_groups.members.shape,
            "match_candidates": self.match_groups.groups_of_candidates.shape,
        }

    def put_into(self, model):
        """Sets the candidates of a model and the entities in them; its trained variables stay."""
        words = self.domain.encoded_candidates.words
        tables = {
            "candidate_words": [words.flat()],
            "candidate_rows": [words.owners()],
            "match_types": self.match_groups,
            "entity_pointer": [self.candidate_entities],
            "dialog_state": self.state_tables,
            "candidate_templates": [self.template_numbers],
        }
        model.set_tables(tables)
