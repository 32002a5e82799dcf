"""The tables that models need of a domain: sizes, candidates and the entities in them."""

import collections
import functools

import numpy as np

from colloquy.data.sequences import stack
from colloquy.tasks.dialog.knowledge import RESTAURANT, is_call


class ModelTables:
    """The tables of a `tasks.dialog.domain.Domain`. Entities are numbered from 1; 0 = none."""

    def __init__(self, domain):
        self.domain = domain

    # === Entities of candidates ===

    @functools.cached_property
    def candidate_entities(self):
        """The entities of each candidate, int32 `(C, K)`."""
        return stack(self.domain.encoded_candidates.entities.lists())

    @functools.cached_property
    def match_groups(self):
        """The groups of entities for match types (Bordes et al. 2017, section 4.2).

        A group is the values of one type in a candidate: `api_call french rome` has the groups
        cuisine, `{french}`, and location, `{rome}`. Groups are numbered from 1; candidates share
        equal ones. A group matches a conversation that mentions one of its entities.

        Returns:
            The entities of each group, int32 `(groups, entities of a group)`.
            The type of each group as an index into `Domain.types`, int32 `(groups,)`.
            The groups of each candidate, int32 `(C, groups of a candidate)`; 0 = padding.
        """
        numbers = {}
        groups_of_candidates = []
        for entities in self.domain.encoded_candidates.entities.lists():
            groups = []
            for group in self._group_by_type(entities):
                groups.append(numbers.setdefault(group, len(numbers) + 1))
            groups_of_candidates.append(groups)
        members = stack([entities for _, entities in numbers])
        types = np.array([type_number for type_number, _ in numbers], np.int32)
        return members, types, stack(groups_of_candidates)

    def _group_by_type(self, entities):
        """Groups the values of the knowledge base among the entities of a candidate.

        Returns a sorted list of `(index into Domain.types, sorted entities)`.
        """
        entities_by_type = collections.defaultdict(tuple)
        for number in sorted(set(entities)):
            entity = self.domain.entity(number)
            if entity.source == "knowledge":
                entities_by_type[self.domain.types.index(entity.type)] += (number,)
        return sorted(entities_by_type.items())

    # === Templates of candidates ===

    @functools.cached_property
    def _candidate_templates(self):
        """The template of each candidate, a list of texts."""
        return [self.domain.template(text) for text in self.domain.candidates]

    @functools.cached_property
    def templates(self):
        """The distinct templates of candidates, sorted."""
        return sorted(set(self._candidate_templates))

    @functools.cached_property
    def template_numbers(self):
        """The template of each candidate as an index into `templates`, int32 `(C,)`."""
        numbers = {text: number for number, text in enumerate(self.templates)}
        return np.array([numbers[text] for text in self._candidate_templates], np.int32)

    # === The state of a conversation ===

    @functools.cached_property
    def state_tables(self):
        """The weights of `layers.dialog_state.DialogState`, in its order, int32.

        Returns:
            1 for each candidate that is a call, `(C,)`.
            For each entity its type, from 1, if calls have values of this type, `(1 + E,)`.
            For each entity its own number if it is a restaurant, `(1 + E,)`.
            For each entity that only one restaurant has, such as a phone number, the number of this
            restaurant, `(1 + E,)`.
        """
        entities = self.domain.entities
        restaurants_by_value = collections.defaultdict(set)
        for fact in self.domain.knowledge:
            restaurants_by_value[fact.value].add(fact.subject)
        number_of_restaurant = {
            entity.name: number
            for number, entity in enumerate(entities, 1)
            if entity.source == "subjects"
        }

        slots, restaurants, owners = np.zeros((3, 1 + len(entities)), np.int32)
        for number, entity in enumerate(entities, 1):
            if entity.type in self.domain.slot_values:
                slots[number] = 1 + self.domain.types.index(entity.type)
            if entity.type == RESTAURANT:
                restaurants[number] = number
            names_of_owners = restaurants_by_value[entity.name]
            if len(names_of_owners) == 1:
                [name] = names_of_owners
                owners[number] = number_of_restaurant.get(name, 0)
        is_call_C = np.array([is_call(text) for text in self.domain.candidates], np.int32)
        return [is_call_C, slots, restaurants, owners]

    # === Models ===

    @functools.cached_property
    def required_fields(self):
        """The fields of a model's config that the domain decides."""
        words = self.domain.encoded_candidates.words
        members, _, groups_of_candidates = self.match_groups
        return {
            "vocabulary_size": len(self.domain.vocabulary),
            # A layer holds the words of all candidates in one array, so it needs their number too.
            "candidates": (len(words), int(words.lengths.sum())),
            "entities": len(self.domain.entities),
            "types": len(self.domain.types),
            "candidate_entities": self.candidate_entities.shape,
            "match_groups": members.shape,
            "match_candidates": groups_of_candidates.shape,
        }

    def put_into(self, model):
        """Sets the candidates of a model and the entities in them; its trained variables stay."""
        words = self.domain.encoded_candidates.words
        model.set_tables(
            {
                "candidate_words": [words.flat()],
                "candidate_rows": [words.owners()],
                "match_types": self.match_groups,
                "entity_pointer": [self.candidate_entities],
                "dialog_state": self.state_tables,
                "candidate_templates": [self.template_numbers],
            }
        )
