"""The tables that models need of a domain: sizes, candidates and the entities in them."""

import collections
import functools

import numpy as np

from colloquy.data.sequences import stack

RESTAURANT = "restaurant"  # type of the subjects of facts


class ModelTables:
    """The tables of a `tasks.dialog.domain.Domain`."""

    def __init__(self, domain):
        self.domain = domain

    @functools.cached_property
    def candidate_entities(self):
        """The entities of each candidate, counted from 1, padded with 0, int32 `(C, K)`."""
        return stack(self.domain.encoded_candidates.entities.lists())

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

    @functools.cached_property
    def match_groups(self):
        """The match types of candidates (Bordes et al. 2017, section 4.2).

        A candidate has type `t` in a context that mentions one of its entities of type `t`. These
        entities are a group. Entities and groups count from 1; 0 is padding.

        Returns:
            The entities of each group, int32 `(groups, members)`.
            The type of each group, int32 `(groups,)`.
            The groups of each candidate, int32 `(C, groups per candidate)`.
        """
        group_numbers = {}
        groups_of_candidates = []
        for entities in self.domain.encoded_candidates.entities.lists():
            groups = []
            for group in self._group_by_type(entities):
                number = group_numbers.setdefault(group, len(group_numbers) + 1)
                groups.append(number)
            groups_of_candidates.append(groups)
        types = [type_number for type_number, _ in group_numbers]
        members = [entities for _, entities in group_numbers]
        return stack(members), np.array(types, np.int32), stack(groups_of_candidates)

    def _group_by_type(self, numbers):
        """Groups values of the knowledge base, sorted pairs `(type, entities)`."""
        entities_by_type = collections.defaultdict(list)
        for number in sorted(set(numbers)):
            _, entity_type, source = self.domain.entities[number - 1]
            if source == "knowledge":
                entities_by_type[self.domain.types.index(entity_type)].append(number)
        return [(number, tuple(group)) for number, group in sorted(entities_by_type.items())]

    @functools.cached_property
    def state_tables(self):
        """The weights of `layers.dialog_state.DialogState`, four int32 arrays."""
        is_call = [self.domain.is_call(candidate) for candidate in self.domain.candidates]
        owners_by_value = collections.defaultdict(set)
        for fact in self.domain.knowledge:
            owners_by_value[fact.value].add(fact.subject)
        number_of_owner = {}
        for number, (name, _, source) in enumerate(self.domain.entities, 1):
            if source == "subjects":
                number_of_owner[name] = number

        # The other tables begin with entity 0, the padding.
        slots, restaurants, owners = np.zeros((3, 1 + len(self.domain.entities)), np.int32)
        for number, (name, entity_type, _) in enumerate(self.domain.entities, 1):
            if entity_type in self.domain.slot_values:
                slots[number] = self.domain.types.index(entity_type) + 1
            if entity_type == RESTAURANT:
                restaurants[number] = number
            if len(owners_by_value[name]) == 1:
                [owner] = owners_by_value[name]
                owners[number] = number_of_owner.get(owner, 0)
        return [np.array(is_call, np.int32), slots, restaurants, owners]

    @functools.cached_property
    def required_fields(self):
        """The fields of a model's config that the domain decides."""
        words = self.domain.encoded_candidates.words
        members, _, groups = self.match_groups
        return {
            "vocabulary_size": len(self.domain.vocabulary),
            "candidates": (len(words), int(words.lengths.sum())),
            "entities": len(self.domain.entities),
            "types": len(self.domain.types),
            "candidate_entities": self.candidate_entities.shape,
            "match_groups": members.shape,
            "match_candidates": groups.shape,
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
