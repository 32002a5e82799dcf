"""Makes arrays of texts in a TensorFlow graph, as `DialogReader` and `Domain.encode` in Python.

Shape suffixes:
    B dialogs   M sentences of a history   S sentences of a batch   W words   E entities
"""

import tensorflow as tf

from colloquy.data.corpora.babi_dialog import SILENCE
from colloquy.data.graph_tokenizer import GraphTokenizer
from colloquy.data.graph_vocabulary import WordIds
from colloquy.data.sequences import stack
from colloquy.tasks.dialog.reader import ENDS

# White space at which `str.split` splits a text and `tf.strings.split` does not, and spaces.
SPACE = r"[\x{1C}-\x{1F}\x{85}\p{Z}]+"


class DialogText:
    """Reads sentences in a graph, as `DialogReader` and `Domain.encode` do in Python.

    Surface forms (`Domain.surface_forms`) are counted from 1; 0 means none.
    """

    def __init__(self, domain, reader):
        self.ids_of_words = WordIds(domain.vocabulary)
        self.unknown_id = domain.vocabulary.unk_id
        self.max_words = reader.max_words
        # Number of words of the longest surface form.
        self.longest = min(domain.longest_name, self.max_words)
        self.normalizer = GraphTokenizer("space", lower=False)
        # 1 for a word that users say.
        self.users_words = lookup_table(dict.fromkeys(sorted(reader.users_words), 1), default=0)

        # Row 0 of each array is for words without a surface form.
        numbers = {}
        lengths = [1]
        entities = [[]]
        type_ids = [0]
        for number, (words, form_entities) in enumerate(domain.surface_forms.items(), 1):
            numbers[" ".join(words)] = number
            lengths.append(len(words))
            entities.append([entity + 1 for entity in form_entities])
            _, entity_type, _ = domain.entities[form_entities[0]]
            type_ids.append(domain.open_types.get(entity_type, 0))
        self.surface_forms = lookup_table(numbers, default=0)
        self.lengths = tf.constant(lengths)
        self.entities = tf.constant(stack(entities))
        self.type_ids = tf.constant(type_ids)

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
        # Take the plain word if it is known, then the lower one, then the one without signs.
        chosen = tf.where(self._is_known(lower), lower, without_signs)
        chosen = tf.where(self._is_known(plain), plain, chosen)
        texts_S = tf.strings.reduce_join(words.with_flat_values(chosen), axis=1, separator=" ")
        texts_S = tf.strings.strip(texts_S)
        return tf.where(texts_S == "", SILENCE, texts_S)

    def _is_known(self, words):
        # The vocabulary begins with special words, the last of them the unknown one.
        return self.ids_of_words(words) > self.unknown_id

    def split(self, texts_S):
        """Splits texts into words, string `(S, W)`, padded with ""."""
        return tf.strings.split(texts_S).to_tensor(shape=(None, self.max_words))

    def unknown(self, texts_B):
        """Finds the words that `DialogReader.unknown` finds.

        Returns one text per input text, the words with commas between them, string `(B,)`.
        """
        words_BW = self.split(texts_B)
        _, cover_BW = self._link(words_BW)
        is_unknown_BW = (cover_BW == 0) & (self.users_words.lookup(words_BW) == 0)
        is_unknown_BW &= words_BW != ""
        return join_chosen(words_BW, is_unknown_BW)

    def encode(self, words_SW):
        """Encodes words as `Domain.encode` does.

        Returns:
            The model's `words`, int32 `(S, W)`.
            The model's `typed_words`, int32 `(S, W)`.
            The entities of each sentence, counted from 1, int32 `(S, n)`, 0 = padding.
        """
        ids_SW = tf.where(words_SW == "", 0, self.ids_of_words(words_SW))
        begin_SW, cover_SW = self._link(words_SW)
        # An entity of an open type is the type's id and zeros for its other words.
        is_typed_SW = tf.gather(self.type_ids, cover_SW) > 0
        typed_ids_SW = tf.where(is_typed_SW, tf.gather(self.type_ids, begin_SW), ids_SW)
        entities_SWE = tf.gather(self.entities, begin_SW)
        return ids_SW, typed_ids_SW, tf.reshape(entities_SWE, (tf.shape(words_SW)[0], -1))

    def _link(self, words_SW):
        """Links the longest surface form at each word, left to right, as `Domain.link` does.

        Returns:
            The surface form that begins at each word, int32 `(S, W)`, 0 = none.
            The surface form that each word is part of, int32 `(S, W)`, 0 = none.
        """
        longest_SW = self._longest_forms(words_SW)
        # Words of the current surface form that are still to come; 0: another one may begin.
        remaining_S = tf.zeros_like(longest_SW[:, 0])
        cover_S = remaining_S
        begins = []
        covers = []
        for form_S in tf.unstack(longest_SW, self.max_words, axis=1):
            is_free_S = remaining_S == 0
            cover_S = tf.where(is_free_S, form_S, cover_S)
            remaining_S = tf.where(is_free_S, tf.gather(self.lengths, form_S), remaining_S)
            remaining_S -= 1
            begins.append(tf.where(is_free_S, form_S, 0))
            covers.append(cover_S)
        return tf.stack(begins, axis=1), tf.stack(covers, axis=1)

    def _longest_forms(self, words_SW):
        """Finds the longest surface form that begins at each word, int32 `(S, W)`."""
        following_SW = tf.pad(words_SW, [[0, 0], [0, self.longest]])
        joined_SW = words_SW
        longest_SW = self.surface_forms.lookup(words_SW)
        for distance in range(1, self.longest):
            next_SW = following_SW[:, distance : distance + self.max_words]
            joined_SW = tf.strings.join([joined_SW, next_SW], " ")
            form_SW = self.surface_forms.lookup(joined_SW)
            longest_SW = tf.where(form_SW > 0, form_SW, longest_SW)
        return longest_SW


def lookup_table(numbers, default):
    """Makes a table from `{text: number}` that the graph can look up."""
    keys = tf.constant(list(numbers), tf.string)
    values = tf.constant(list(numbers.values()), tf.int32)
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), default)


def join_chosen(words, is_chosen_BW):
    """Joins the chosen of some words in each row, with commas between them, string `(B,)`."""
    words_BW = tf.broadcast_to(words, tf.shape(is_chosen_BW))
    chosen = tf.ragged.boolean_mask(words_BW, is_chosen_BW)
    return tf.strings.reduce_join(chosen, axis=1, separator=", ")
