"""Makes arrays of texts in a TensorFlow graph, as `DialogReader` and `Domain.encode` in Python.

Shape suffixes:
    B dialogs   M sentences of a history   S sentences of a batch   W words   E entities
"""

import re

import tensorflow as tf

from colloquy.data.corpora.babi_dialog import SILENCE
from colloquy.data.graph_tokenizer import GraphTokenizer
from colloquy.data.graph_vocabulary import WordIds
from colloquy.tasks.dialog.graph_names import GraphNames, lookup_table
from colloquy.tasks.dialog.reader import SIGNS

# The white space of `str.split`. `tf.strings.split` splits at that of ASCII alone.
SPACE = r"[\x{1C}-\x{1F}\x{85}\p{Z}]+"
# The signs around a word.
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
