"""The SavedModel of a dialog model, which takes conversations as strings and returns responses.

Letters:  B dialogs   M sentences of the history   F facts   N given candidates   C candidates of
    the bot   W words S all sentences of a batch   E entities   K responses
"""

import keras
import numpy as np
import tensorflow as tf

from colloquy.data.corpora.babi_dialog import SILENCE
from colloquy.data.sequences import stack
from colloquy.data.vocabulary import WordIds
from colloquy.engine.export import build_archive, ensure_shape, require
from colloquy.layers.masking import LOWEST, masked_softmax
from colloquy.tasks.dialog.predictor import BEST, SIGNS
from colloquy.tasks.dialog.prepare import SPEAKERS

SPACE = r"[\x{1C}-\x{1F}\x{85}\p{Z}]+"  # white space of str.split, without ASCII's


class DialogText:
    """The graph's version of `DialogPredictor.read` and `Domain.encode`.

    A surface is a way to write an entity, see `Domain.surface_forms`; they are counted from 1, and 0
    means no surface.
    """

    def __init__(self, domain, max_words):
        self.words, self.unknown = WordIds(domain.vocabulary), domain.vocabulary.unk_id
        self.max_words, self.longest = max_words, min(domain.longest, max_words)
        self.surface_forms = _table(
            {" ".join(words): number for number, words in enumerate(domain.surface_forms, 1)}, 0
        )
        self.lengths = tf.constant([1, *map(len, domain.surface_forms)])
        found = domain.surface_forms.values()
        self.entities = tf.constant(
            stack([[], *([number + 1 for number in numbers] for numbers in found)])
        )
        types = [domain.entities[numbers[0]][1] for numbers in found]
        self.types = tf.constant([0, *(domain.open_types.get(type, 0) for type in types)])

    def split(self, texts, of_user):
        """The words of texts `(S,)`, string `(S, W)`, padded with ""; of a user as
        `DialogPredictor.read` has them.
        """
        texts = tf.strings.regex_replace(texts, SPACE, " ")
        texts = tf.where(of_user & (tf.strings.strip(texts) == ""), SILENCE, texts)
        words = tf.strings.split(texts)[:, : self.max_words]
        plain = words.flat_values
        lower = tf.strings.lower(plain, encoding="utf-8")
        bare = tf.strings.regex_replace(lower, f"^[{SIGNS}]+|[{SIGNS}]+$", "")
        read = tf.where(bare == "", plain, bare)
        for form in (bare, lower, plain):
            read = tf.where(self.words(form) != self.unknown, form, read)
        read = tf.where(tf.repeat(of_user, words.row_lengths()), read, plain)
        return words.with_flat_values(read).to_tensor(shape=(None, self.max_words))

    def encode(self, words):
        """The model's `words` and `typed_words`, int32 `(S, W)`, and entities counted from 1, int32
        `(S, .)`.
        """
        ids = tf.where(words == "", 0, self.words(words))
        begin, cover = self._link(words)
        typed_ids = tf.where(tf.gather(self.types, cover) > 0, tf.gather(self.types, begin), ids)
        return ids, typed_ids, tf.reshape(tf.gather(self.entities, begin), (tf.shape(words)[0], -1))

    def _link(self, words):
        """The longest surface at each word, left to right: where it begins, and on all its words;
        int32 `(S, W)`.
        """
        longest, joined = self.surface_forms.lookup(words), words
        after = tf.pad(words, [[0, 0], [0, self.longest]])
        for n in range(1, self.longest):
            joined = tf.strings.join([joined, after[:, n : n + self.max_words]], " ")
            longer = self.surface_forms.lookup(joined)
            longest = tf.where(longer > 0, longer, longest)
        left = cover = tf.zeros_like(longest[:, 0])
        begins, covers = [], []
        for surface in tf.unstack(longest, self.max_words, axis=1):
            free = left == 0
            cover = tf.where(free, surface, cover)
            left = tf.where(free, tf.gather(self.lengths, surface), left) - 1
            begins.append(tf.where(free, surface, 0))
            covers.append(cover)
        return tf.stack(begins, axis=1), tf.stack(covers, axis=1)


class _Responder:
    """The endpoint `respond`, see `dialog_archive`."""

    def __init__(self, predictor):
        domain, self.config, self.mask = predictor.domain, predictor.config, predictor.mask
        self.text, self.with_attention = (
            DialogText(domain, self.config.max_words),
            predictor.with_attention,
        )
        self.opening = predictor.opening
        self.texts, self.fallback_response = (
            tf.constant(domain.candidates),
            domain.fallback_response,
        )
        self.numbers = _table(domain.numbers, -1)
        self.speakers = _table({"": 0, **SPEAKERS}, -1)
        found = [domain.search(text) for text in domain.candidates]
        fact_number = {
            text: number
            for number, text in enumerate({text: 0 for texts in found for text in texts}, 1)
        }
        self.fact_texts = tf.constant(["", *fact_number])
        self.found = tf.constant(stack([[fact_number[text] for text in texts] for texts in found]))
        self.continues = tf.constant(
            self.mask.continues_C if self.mask else np.zeros(len(found), bool)
        )

    def __call__(self, history, speakers, facts, candidates):
        history, speakers = (
            ensure_shape(history, "history", "BM"),
            ensure_shape(speakers, "speakers", "BM"),
        )
        facts, candidates = (
            ensure_shape(facts, "facts", "BF"),
            ensure_shape(candidates, "candidates", "BN"),
        )
        (B, M), F = tf.unstack(tf.shape(history)), tf.shape(facts)[1]
        rows, same = [tf.shape(facts)[0], tf.shape(candidates)[0]], tf.debugging.assert_equal
        checks = [
            same(tf.shape(history), tf.shape(speakers), "history and speakers must have one shape"),
            same(rows, B, "history, facts and candidates must have equally many rows"),
        ]
        history, speakers, facts = require(checks, history, speakers, facts)
        history, speakers = self.opened(history, speakers)
        inputs, words, ids, place = self.inputs(history, speakers, facts)
        reads = {name: inputs[name] for name in self.config.reads}
        logits, *weights = keras.tree.flatten(self.with_attention(reads, training=False))
        allowed = self.mask(inputs)[:, 0] if self.mask else tf.ones_like(logits[:, 0], tf.bool)
        words, ids = (
            tf.gather(each, inputs["turns"][:, 0], axis=1, batch_dims=1) for each in (words, ids)
        )
        is_word = tf.strings.regex_full_match(words, r".*[\pL\pN].*")
        # specials are the first
        allowed &= tf.reduce_any(is_word & (ids > self.text.unknown), axis=1, keepdims=True)
        attention = [tf.reduce_mean(of_hop[:, :, 0], axis=1) for of_hop in weights]
        attention = (
            tf.stack(attention, axis=1) if attention else tf.zeros((B, 0, tf.shape(place)[1]))
        )
        attention = tf.gather(attention, place, axis=2, batch_dims=1)
        return {
            **self.best(logits[:, 0], candidates, allowed),
            "unknown": tf.where(is_word & (ids == self.text.unknown), words, ""),
            "history_attention": attention[:, :, -M - F - 1 : -F - 1],
            "facts_attention": attention[:, :, -F - 1 : -1],
        }

    def opened(self, history, speakers):
        """The history after `DialogPredictor.opening`, which is padding where the user is silent or
        the bot began.
        """
        if not self.opening:
            return history, speakers
        real = (speakers != "") & (history != self.fallback_response)
        first = real & (tf.cumsum(tf.cast(real, tf.int32), axis=1) == 1) & (speakers == "user")
        said = tf.strings.strip(tf.strings.regex_replace(history, SPACE, " "))
        begins = tf.reduce_any(first & (said != "") & (said != SILENCE), axis=1, keepdims=True)
        who, texts = zip(*self.opening, strict=True)
        both = (texts, history), (who, speakers)
        return (
            tf.concat([tf.where(begins, [opening], ""), each], axis=1) for opening, each in both
        )

    def best(self, logits, candidates, allowed):
        """The best responses and their scores, of logits and allowed candidates `(B, C)`."""
        number, count = self.numbers.lookup(candidates), len(self.texts)
        check = tf.debugging.assert_equal(
            number >= 0, candidates != "", "candidates must be responses that the bot knows"
        )
        (number,) = require([check], number)
        given = tf.reduce_any(tf.one_hot(number, count, on_value=True, off_value=False), axis=1)
        free = ~tf.reduce_any(given, axis=1, keepdims=True)
        allowed = given | (allowed & free)
        _, best = tf.math.top_k(tf.where(allowed, logits, LOWEST), min(BEST, count))
        real = tf.gather(allowed, best, batch_dims=1)
        answered, first = real[:, 0], best[:, 0]
        texts = tf.where(real, tf.gather(self.texts, best), "")
        scores = tf.gather(masked_softmax(logits, given | free), best, batch_dims=1)
        facts = tf.gather(self.fact_texts, tf.gather(self.found, first))
        return {
            "response": tf.where(answered, texts[:, 0], self.fallback_response),
            "best": texts,
            "scores": tf.where(real, scores, 0.0),
            "facts": tf.where(answered[:, None], facts, ""),
            "continues": answered & (tf.gather(self.continues, first) | (facts[:, 0] != "")),
        }

    def inputs(self, history, speakers, facts):
        """The inputs of the model and the mask, of sentences in the order of
        `DialogPredictor._conversation`; their words and ids `(B, M + F + 1, W)`; and the place
        there of each sentence of the history, each fact and a silent user, int32 `(B, M + F +
        1)`."""
        user, (B, M), F = SPEAKERS["user"], tf.unstack(tf.shape(history)), tf.shape(facts)[1]
        who = self.speakers.lookup(speakers)
        check = tf.debugging.assert_non_negative(
            who, "speakers must be user, bot, fact, or empty where filled up"
        )
        (who,) = after([check], who)
        who = tf.where(history == self.fallback_response, 0, who)
        end = tf.reduce_max(tf.where(who > 0, tf.range(M) + 1, 0), axis=1, keepdims=True)
        asks = (tf.range(M) == end - 1) & (who == user)
        silent = tf.where(tf.reduce_any(asks, axis=1, keepdims=True), 0, user)
        who = tf.concat([who, tf.where(facts != "", SPEAKERS["fact"], 0), silent], axis=1)
        # Facts come before the last sentence of the user, padding comes last
        late = tf.where(who == 0, 2, tf.cast(tf.pad(asks, [[0, 0], [0, F + 1]]), tf.int32))
        order = tf.argsort(late, axis=1, stable=True)
        said = tf.concat([history, facts, tf.fill((B, 1), "")], axis=1)
        who, said = (tf.gather(each, order, axis=1, batch_dims=1) for each in (who, said))
        turns = tf.maximum(tf.cumsum(tf.cast(who == user, tf.int32), axis=1), 1)

        words = self.text.split(tf.reshape(said, [-1]), tf.reshape(who == user, [-1]))
        ids, typed_ids, entities = self.text.encode(words)
        texts = tf.strings.strip(tf.strings.reduce_join(words, axis=1, separator=" "))
        size = self.config.entities + 1
        mentions = tf.math.bincount(
            entities, minlength=size, maxlength=size, axis=-1, binary_output=True
        )[:, 1:]

        def by_dialog(values):
            return tf.reshape(values, tf.concat([tf.shape(who), tf.shape(values)[1:]], axis=0))

        inputs = {
            "words": tf.pad(ids, [[1, 0], [0, 0]]),  # number 0 is the empty sentence
            "typed_words": tf.pad(typed_ids, [[1, 0], [0, 0]]),
            "sentences": tf.where(who > 0, by_dialog(tf.range(tf.size(who)) + 1), 0),
            "speakers": who,
            # as in `DialogPredictor`, the last turn counts as turn 0
            "times": turns - turns[:, -1:],
            "turns": tf.math.count_nonzero(who, axis=1, keepdims=True, dtype=tf.int32) - 1,
            "mentions": by_dialog(tf.cast(mentions, tf.uint8)),
            "entities": by_dialog(entities),
            "responses": by_dialog(tf.where(texts == SILENCE, -1, self.numbers.lookup(texts) + 1)),
        }
        return inputs, by_dialog(words), by_dialog(ids), tf.argsort(order, axis=1)


def dialog_archive(predictor):
    """The endpoint `respond`, also `serving_default`, of a
    `tasks.dialog.predictor.DialogPredictor`.

        history     string (B, M)   sentences, the oldest first, padded with ""; "" of a user is
                                    silence; if the last sentence is not the user's, the user is
                                    silent
        speakers    string (B, M)   "user", "bot", "fact" (found by a search), or "" for padding
        facts       string (B, F)   facts found before the last sentence of the user, padded with ""
        candidates  string (B, N)   candidates to choose from, padded with ""; without any, all of
        the bot's
     -> response    string (B,)     the best allowed candidate, or that the bot did not understand
        best        string (B, K)   at most five, the best first, padded with ""
        scores      float32 (B, K)  their probabilities among all candidates, or the given ones
        facts       string (B, F)   facts found by a response that is an `api_call`, padded with ""
        continues   bool (B,)       the bot speaks again if the user is silent, with the facts in
        the history unknown     string (B, W)   the user's last words that the model does not know,
        "" between them history_attention float32 (B, H, M), facts_attention (B, H, F)
                                    weights of each hop, mean over heads; H is 0 for a model without
                                    attention

    These are the fields of its `Answer`, which also has the further responses.
    """
    respond, inputs = (
        _Responder(predictor),
        {"history": "BM", "speakers": "BM", "facts": "BF", "candidates": "BN"},
    )
    tables = respond.text.words.table, respond.text.surface_forms, respond.numbers, respond.speakers
    return archive_of({"respond": (respond, inputs)}, [respond.with_attention, *tables])


def _table(numbers, default):
    keys, values = tf.constant([*numbers], tf.string), tf.constant([*numbers.values()], tf.int32)
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), default)
