"""Finds names of entities in a TensorFlow graph, as `tasks.dialog.names.Names` does in Python.

Shape suffixes:
    S sentences   W words   F surface forms, numbered from 1; 0 = none
"""

import tensorflow as tf

from colloquy.data.sequences import stack


class GraphNames:
    """Finds the surface forms of a domain's names, see `tasks.dialog.names.Names`.

    Args:
        domain: A `tasks.dialog.domain.Domain`.
        max_words: W.

    Attributes:
        table: The lookup table from a surface form to its number.
        lengths_F: Number of words of each surface form, int32 `(1 + F,)`.
        entities_FE: Its entities, int32 `(1 + F, most entities of one form)`, 0 = padding.
        type_ids_F: The id of its type if that is open, else 0, int32 `(1 + F,)`.
    """

    def __init__(self, domain, max_words):
        self.max_words = max_words
        self.longest = min(domain.names.longest, max_words)
        numbers = {}
        # The first row of each array is for 0, none.
        lengths = [1]
        entities = [[]]
        type_ids = [0]
        for number, (form, entities_of_form) in enumerate(domain.names.surface_forms.items(), 1):
            numbers[" ".join(form)] = number
            lengths.append(len(form))
            entities.append(entities_of_form)
            entity_type = domain.type_of_name(entities_of_form)
            type_ids.append(domain.open_types.get(entity_type, 0))
        self.table = lookup_table(numbers, default=0)
        self.lengths_F = tf.constant(lengths)
        self.entities_FE = tf.constant(stack(entities))
        self.type_ids_F = tf.constant(type_ids)

    def link(self, words_SW):
        """Takes the longest surface form at each word, from left to right.

        Returns the form that begins at each word, and the form that each word is a part of, int32
        `(S, W)`. With the forms 1 `west` and 2 `west end pier`:

            words     in   west   end   pier   west
            begins    0    2      0     0      1
            covers    0    2      2     2      1
        """
        longest_SW = self._longest_forms(words_SW)
        begins = []
        covers = []
        # The form that covers the last word, and how many of the next words it covers too.
        cover_S = tf.zeros_like(longest_SW[:, 0])
        num_next_S = tf.zeros_like(cover_S)
        for longest_S in tf.unstack(longest_SW, self.max_words, axis=1):
            is_covered_S = num_next_S > 0
            begin_S = tf.where(is_covered_S, 0, longest_S)
            cover_S = tf.where(is_covered_S, cover_S, longest_S)
            length_S = tf.gather(self.lengths_F, longest_S)
            num_next_S = tf.where(is_covered_S, num_next_S, length_S) - 1
            begins.append(begin_S)
            covers.append(cover_S)
        return tf.stack(begins, axis=1), tf.stack(covers, axis=1)

    def _longest_forms(self, words_SW):
        """Finds the longest surface form that begins at each word, int32 `(S, W)`."""
        following_SW = tf.pad(words_SW, [[0, 0], [0, self.longest]])
        joined_SW = words_SW
        longest_SW = self.table.lookup(words_SW)
        for distance in range(1, self.longest):
            # Add the word at this distance from each word.
            next_SW = following_SW[:, distance : distance + self.max_words]
            joined_SW = tf.strings.join([joined_SW, next_SW], " ")
            form_SW = self.table.lookup(joined_SW)
            longest_SW = tf.where(form_SW > 0, form_SW, longest_SW)
        return longest_SW


def lookup_table(numbers, default):
    """Makes a table from `{text: number}` that the graph can look up."""
    keys = tf.constant(list(numbers), tf.string)
    values = tf.constant(list(numbers.values()), tf.int32)
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), default)
