"""Makes arrays of texts in a TensorFlow graph, as `DialogReader` and `Domain.encode` in Python.

Shape suffixes:
    B dialogs   M sentences of a history   S sentences of a batch   W words   E entities
    F surface forms, numbered from 1; 0 = none
"""

import re

import tensorflow as tf

from colloquy.data.corpora.babi_dialog import SILENCE
from colloquy.data.graph_tokenizer import GraphTokenizer
from colloquy.data.graph_vocabulary import WordIds
from colloquy.data.sequences import stack
from colloquy.tasks.dialog.reader import SIGNS

# The white space of `str.split`. `tf.strings.split` splits at that of ASCII alone.
SPACE = r"[\x{1C}-\x{1F}\x{85}\p{Z}]+"
# The signs around a word. Python uses `str.strip`: this pattern would take its `re` quadratic time.
ENDS = f"^[{re.escape(SIGNS)}]+|[{re.escape(SIGNS)}]+$"


class DialogText:
    """Reads sentences in a graph, as `DialogReader` and `Domain.encode` do in Python."""

    def __init__(self, domain, reader):
        self.ids_of_words = WordIds(domain.vocabulary)
        self.unknown_id = domain.vocabulary.unk_id
        self.max_words = reader.max_words
        self.names = GraphNames(domain, self.max_words)
        self.normalizer = GraphTokenizer("space", lower=False)
        # 1 for a word that users say.
        self.users_words = lookup_table(dict.fromkeys(sorted(reader.users_words), 1), default=0)
        self.tables = [
            self.ids_of_words.table,
            *self.normalizer.tables,
            self.names.table,
            self.users_words,
        ]

    # === Texts to words ===

    def read(self, texts_BM, is_user_BM):
        """Reads each text as the model does, those of users as `DialogReader.split` does.

        Returns texts of at most `max_words` words with one space between them, string `(B, M)`.
        """
        texts_S = tf.reshape(texts_BM, [-1])
        is_user_S = tf.reshape(is_user_BM, [-1])
        texts_S = tf.where(is_user_S, self._read_user_texts(texts_S), texts_S)
        texts_S = tf.strings.regex_replace(texts_S, SPACE, " ")
        words = tf.strings.split(texts_S)[:, : self.max_words]
        texts_S = tf.strings.reduce_join(words, axis=1, separator=" ")
        return tf.reshape(texts_S, tf.shape(texts_BM))

    def _read_user_texts(self, texts_S):
        words = tf.strings.split(self.normalizer.normalize(texts_S))
        plain = words.flat_values
        lower = tf.strings.lower(plain, encoding="utf-8")
        without_signs = tf.strings.regex_replace(lower, ENDS, "")
        # The plain word if it is known, else the lower one if it is, else the one without signs.
        known_or_without_signs = tf.where(self._is_known(lower), lower, without_signs)
        chosen = tf.where(self._is_known(plain), plain, known_or_without_signs)
        texts_S = tf.strings.reduce_join(words.with_flat_values(chosen), axis=1, separator=" ")
        texts_S = tf.strings.strip(texts_S)
        return tf.where(texts_S == "", SILENCE, texts_S)

    def _is_known(self, words):
        return self.ids_of_words(words) != self.unknown_id

    def split(self, texts_S):
        """Splits texts that `read` returned into words, string `(S, W)`, padded with ""."""
        return tf.strings.split(texts_S).to_tensor(shape=(None, self.max_words))

    # === Words ===

    def unknown(self, texts_B):
        """Finds the words that `DialogReader.unknown` finds.

        Returns one text per input text, the words with commas between them, string `(B,)`.
        """
        words_BW = self.split(texts_B)
        is_word_BW = words_BW != ""
        _, covers_BW = self.names.link(words_BW)
        is_said_BW = self.users_words.lookup(words_BW) > 0
        return join_chosen(words_BW, is_word_BW & (covers_BW == 0) & ~is_said_BW)

    def encode(self, words_SW):
        """Encodes words as `Domain.encode` does.

        Returns:
            The model's `words`, int32 `(S, W)`.
            The model's `typed_words`, int32 `(S, W)`.
            The entities of each sentence, from 1, int32 `(S, E)`; zeros between them are padding.
        """
        ids_SW = tf.where(words_SW == "", 0, self.ids_of_words(words_SW))
        begins_SW, covers_SW = self.names.link(words_SW)
        # A name of an open type has the id of the type in place of its first word, then zeros.
        type_at_begin_SW = tf.gather(self.names.type_ids_F, begins_SW)
        type_of_word_SW = tf.gather(self.names.type_ids_F, covers_SW)
        typed_ids_SW = tf.where(type_of_word_SW > 0, type_at_begin_SW, ids_SW)
        entities_SWE = tf.gather(self.names.entities_FE, begins_SW)
        entities_SE = tf.reshape(entities_SWE, (tf.shape(words_SW)[0], -1))
        return ids_SW, typed_ids_SW, entities_SE


def join_chosen(words_BW, is_chosen_BW):
    """Joins the chosen words of each row, with commas between them, string `(B,)`."""
    chosen = tf.ragged.boolean_mask(words_BW, is_chosen_BW)
    return tf.strings.reduce_join(chosen, axis=1, separator=", ")


# === Names of entities ===


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
