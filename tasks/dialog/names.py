"""Names of entities among the words of a sentence."""

from typing import NamedTuple


class LinkedWords(NamedTuple):
    """A part of a sentence: a name of entities, or one word at which no name begins."""

    words: list[str]
    entities: list[int]
    """The numbers, from 1, of the entities with this name; empty for a word without a name."""


class Names:
    """The names of a domain's entities.

    A name is found in a sentence by its *surface forms*, tuples of words. A name with `_` has two:
    one word, `("the_cow",)`, and its parts, `("the", "cow")`.

    Args:
        entities: A list of `tasks.dialog.knowledge.Entity`.

    Attributes:
        surface_forms: `{surface form: numbers, from 1, of the entities with this name}`.
        longest: Number of words of the longest surface form.
    """

    def __init__(self, entities):
        self.surface_forms = {}
        for number, entity in enumerate(entities, 1):
            parts = tuple(entity.name.split("_"))
            for form in dict.fromkeys([(entity.name,), parts]):  # once, if they are equal
                self.surface_forms.setdefault(form, []).append(number)
        self.longest = max((len(form) for form in self.surface_forms), default=1)

    def link(self, words):
        """Splits a list of words into a list of `LinkedWords`.

        From left to right, the longest name that begins at a word is taken.

        >>> from colloquy.tasks.dialog.knowledge import Entity
        >>> names = Names([Entity("the_cow", "restaurant", "subjects")])
        >>> for part in names.link("to the cow".split()):
        ...     print(part.words, part.entities)
        ['to'] []
        ['the', 'cow'] [1]
        """
        parts = []
        start = 0
        while start < len(words):
            end = self._end_of_part(words, start)
            part = words[start:end]
            entities = self.surface_forms.get(tuple(part), [])
            parts.append(LinkedWords(part, entities))
            start = end
        return parts

    def _end_of_part(self, words, start):
        """Finds the end of the longest name at `start`; without a name, of the word at `start`."""
        last = min(start + self.longest, len(words))
        for end in range(last, start + 1, -1):
            if tuple(words[start:end]) in self.surface_forms:
                return end
        return start + 1
