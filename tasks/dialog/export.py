"""The SavedModel of a dialog model: it takes conversations as strings and returns responses.

Who calls it owns the database: looks up an `api_call` and appends the facts to the history.

Shape suffixes:
    B dialogs   M sentences of a history   S sentences of a batch   W words   E entities
    C candidates   K best candidates
"""

import tensorflow as tf

from colloquy.data.corpora.babi_dialog import SILENCE
from colloquy.data.sequences import stack
from colloquy.data.tokenizers import GraphTokenizer, apply_rules
from colloquy.data.vocabulary import WordIds
from colloquy.engine.export import build_archive, ensure_shape, require
from colloquy.layers.masking import LOWEST
from colloquy.tasks.dialog.predictor import BEST, NOTHING_FOUND, REMARK
from colloquy.tasks.dialog.prepare import CALL
from colloquy.tasks.dialog.split import SPEAKERS
from colloquy.tasks.dialog.wording import BEFORE_SPLITTING, BETWEEN, ENDS, NO_WORD

SPACE = r"[\x{1C}-\x{1F}\x{85}\p{Z}]+"  # white space of str.split, without ASCII's
USER = SPEAKERS["user"]


def dialog_archive(predictor):
    """Builds the archive of a `tasks.dialog.predictor.DialogPredictor`.

    Its endpoint `respond`, also `serving_default`:

        history     string (B, M)   sentences, the oldest first; "" of a user is silence
        speakers    string (B, M)   "user", "bot", "fact" (what a search found), or "" for padding
     -> response    string (B,)     the best candidate that the action mask allows; "" if there is
                                    none: the bot did not understand
        api_call    string (B,)     the response if it is a search, otherwise ""
        best        string (B, K)   at most five allowed candidates, the best first, then ""
        scores      float32 (B, K)  their probabilities among all candidates

    If the last sentence is not the user's, the user is silent. Where the bot always speaks first,
    as in task 6, a history begins with the user's silence and the bot's greeting.
    """
    respond = _Responder(predictor)
    tables = [
        respond.text.ids_of_words.table,
        *respond.text.normalizer.tables,
        respond.text.surface_forms,
        respond.numbers,
        respond.speaker_numbers,
    ]
    endpoints = {"respond": (respond, {"history": "BM", "speakers": "BM"})}
    return build_archive(endpoints, [respond.model, *tables])


class _Responder:
    """The endpoint `respond`, see `dialog_archive`."""

    def __init__(self, predictor):
        domain = predictor.domain
        self.model = predictor.model
        self.mask = predictor.mask
        self.understanding = predictor.understanding
        self.config = predictor.config
        self.text = DialogText(domain, predictor.reader)
        self.candidates = tf.constant(domain.candidates)
        self.numbers = _lookup_table(domain.candidate_numbers, default=-1)
        self.speaker_numbers = _lookup_table({"": 0, **SPEAKERS}, default=-1)

    def __call__(self, history, speakers):
        history_BM, speakers_BM = self._checked(history, speakers)
        history_BM, speakers_BM = _drop_remarks(history_BM, speakers_BM)
        history_BM, speakers_BM, turn_B1 = _append_silence(history_BM, speakers_BM)
        words_SW = self.text.split(
            tf.reshape(history_BM, [-1]), tf.reshape(speakers_BM == USER, [-1])
        )
        inputs = self._encode(words_SW, speakers_BM, turn_B1)

        reads = {name: inputs[name] for name in self.config.reads}
        logits_BC = self.model(reads, training=False)[:, 0]
        # A user's words that are all unknown ask for nothing.
        is_known_SW = self.text.is_known(words_SW)
        is_known_BM = tf.reshape(tf.reduce_any(is_known_SW, axis=1), tf.shape(history_BM))
        allowed_BC = tf.gather(is_known_BM, turn_B1, axis=1, batch_dims=1)
        if self.understanding:
            ids_BMW = tf.reshape(inputs["words"][1:], tf.concat([tf.shape(history_BM), [-1]], 0))
            asked_BW = tf.gather(ids_BMW, turn_B1[:, 0], axis=1, batch_dims=1)
            heard = {**inputs, "words": asked_BW, "logits": logits_BC}
            allowed_BC &= self.understanding(heard)
        elif self.mask:
            allowed_BC &= self.mask(inputs)[:, 0]
        return self._best(logits_BC, allowed_BC)

    def _checked(self, history, speakers):
        """Returns the history and the numbers of its speakers, both `(B, M)`."""
        history_BM = ensure_shape(history, "history", "BM")
        speakers_BM = ensure_shape(speakers, "speakers", "BM")
        same_shape = tf.debugging.assert_equal(
            tf.shape(history_BM),
            tf.shape(speakers_BM),
            "history and speakers must have one shape",
        )
        history_BM, speakers_BM = require([same_shape], history_BM, speakers_BM)

        speakers_BM = self.speaker_numbers.lookup(speakers_BM)
        known_speakers = tf.debugging.assert_non_negative(
            speakers_BM, "speakers must be user, bot, fact, or empty for padding"
        )
        return require([known_speakers], history_BM, speakers_BM)

    def _encode(self, words_SW, speakers_BM, turn_B1):
        """Makes the inputs of the model and of the mask, as `DialogSplit.collate` does."""
        ids_SW, typed_ids_SW, entities_SE = self.text.encode(words_SW)
        texts_S = tf.strings.strip(tf.strings.reduce_join(words_SW, axis=1, separator=" "))
        responses_S = tf.where(texts_S == SILENCE, -1, self.numbers.lookup(texts_S) + 1)
        mentions_SE = tf.math.bincount(
            entities_SE,
            minlength=1 + self.config.entities,
            maxlength=1 + self.config.entities,
            axis=-1,
            binary_output=True,
        )[:, 1:]
        numbers_BM = tf.reshape(tf.range(tf.size(speakers_BM)), tf.shape(speakers_BM))
        turns_BM = tf.cumsum(tf.cast(speakers_BM == USER, tf.int32), axis=1)
        turns_BM = tf.maximum(turns_BM, 1)
        asking_turn_B1 = tf.gather(turns_BM, turn_B1, axis=1, batch_dims=1)

        def by_dialog(values_S):
            shape = tf.concat([tf.shape(speakers_BM), tf.shape(values_S)[1:]], axis=0)
            return tf.reshape(values_S, shape)

        return {
            # Sentence 0 is empty.
            "words": tf.pad(ids_SW, [[1, 0], [0, 0]]),
            "typed_words": tf.pad(typed_ids_SW, [[1, 0], [0, 0]]),
            "sentences": tf.where(speakers_BM > 0, numbers_BM + 1, 0),
            "speakers": speakers_BM,
            # The turn that asks is the only one of the batch, so it counts as turn 0.
            "times": turns_BM - asking_turn_B1,
            "turns": turn_B1,
            "mentions": by_dialog(tf.cast(mentions_SE, tf.uint8)),
            "entities": by_dialog(entities_SE),
            "responses": by_dialog(responses_S),
        }

    def _best(self, logits_BC, allowed_BC):
        """Returns the outputs of the endpoint."""
        K = min(BEST, len(self.candidates))
        _, best_BK = tf.math.top_k(tf.where(allowed_BC, logits_BC, LOWEST), K)
        is_allowed_BK = tf.gather(allowed_BC, best_BK, batch_dims=1)
        texts_BK = tf.where(is_allowed_BK, tf.gather(self.candidates, best_BK), "")
        scores_BK = tf.gather(tf.nn.softmax(logits_BC), best_BK, batch_dims=1)
        response_B = texts_BK[:, 0]
        is_call_B = tf.strings.regex_full_match(response_B, f"{CALL}.*")
        return {
            "response": response_B,
            "api_call": tf.where(is_call_B, response_B, ""),
            "best": texts_BK,
            "scores": tf.where(is_allowed_BK, scores_BK, 0.0),
        }


def _drop_remarks(history_BM, speakers_BM):
    """Makes padding of the bot's remarks (`is_remark`), and of silences before some of them."""
    is_bot_BM = speakers_BM == SPEAKERS["bot"]
    is_remark_BM = is_bot_BM & tf.strings.regex_full_match(history_BM, REMARK)
    found_nothing_BM = is_bot_BM & tf.strings.regex_full_match(history_BM, f"(?s){NOTHING_FOUND}.*")
    is_before_BM = tf.pad(found_nothing_BM[:, 1:], [[0, 0], [0, 1]])[:, : tf.shape(history_BM)[1]]
    is_silence_BM = (speakers_BM == USER) & (history_BM == "")
    is_dropped_BM = is_remark_BM | (is_silence_BM & is_before_BM)
    return tf.where(is_dropped_BM, "", history_BM), tf.where(is_dropped_BM, 0, speakers_BM)


def _append_silence(history_BM, speakers_BM):
    """Appends a silent user where the last sentence is not the user's, and padding elsewhere.

    Returns:
        The sentences and their speakers, `(B, M + 1)`.
        The place of the user's last sentence, int32 `(B, 1)`.
    """
    M = tf.shape(speakers_BM)[1]
    place_BM = tf.where(speakers_BM > 0, tf.range(M), -1)
    last_B1 = tf.reduce_max(place_BM, axis=1, keepdims=True)
    is_last_BM = tf.range(M) == last_B1
    is_asked_B1 = tf.reduce_any(is_last_BM & (speakers_BM == USER), axis=1, keepdims=True)
    silent_B1 = tf.where(is_asked_B1, 0, USER)
    turn_B1 = tf.where(is_asked_B1, last_B1, M)
    return (
        tf.pad(history_BM, [[0, 0], [0, 1]], constant_values=""),
        tf.concat([speakers_BM, silent_B1], axis=1),
        turn_B1,
    )


# === Text ===


class DialogText:
    """Reads sentences in a graph, as `wording.Reader` and `Domain.encode` do in Python.

    Surface forms (`Domain.surface_forms`) are counted from 1; 0 means none.
    """

    def __init__(self, domain, reader):
        self.ids_of_words = WordIds(domain.vocabulary)
        self.unknown_id = domain.vocabulary.unk_id
        self.max_words = reader.max_words
        self.longest = min(domain.longest_name, self.max_words)
        self.normalizer = GraphTokenizer("space", lower=False)
        self.rules = reader.rules
        self.spelling = GraphSpelling(reader.limits)

        # The tables begin with surface form 0.
        numbers = {}
        lengths = [1]
        entities = [[]]
        type_ids = [0]
        for number, (words, forms) in enumerate(domain.surface_forms.items(), 1):
            numbers[" ".join(words)] = number
            lengths.append(len(words))
            entities.append([entity + 1 for entity in forms])
            _, entity_type, _ = domain.entities[forms[0]]
            type_ids.append(domain.open_types.get(entity_type, 0))
        self.surface_forms = _lookup_table(numbers, default=0)
        self.lengths = tf.constant(lengths)
        self.entities = tf.constant(stack(entities))
        self.type_ids = tf.constant(type_ids)

    def split(self, texts_S, is_user_S):
        """Splits texts into words, string `(S, W)`, padded with ""; a user's as `Reader` does."""
        texts_S = tf.where(is_user_S, self._read(texts_S), texts_S)
        texts_S = tf.strings.regex_replace(texts_S, SPACE, " ")
        return tf.strings.split(texts_S).to_tensor(shape=(None, self.max_words))

    def _read(self, texts_S):
        """What `Reader` makes of the texts of users, words with spaces between them."""
        texts_S = apply_rules(self.normalizer.normalize(texts_S), BEFORE_SPLITTING)
        is_silent_S = texts_S == ""
        words = tf.strings.split(texts_S)[:, : 2 * self.max_words]
        texts_S = apply_rules(self._split(words), self.rules)

        words = tf.strings.split(texts_S)[:, : self.max_words]
        flat = words.flat_values
        is_known = self._has_id(flat)
        nearest = tf.where(is_known, flat, self.spelling(flat, ~is_known))
        read_S = tf.strings.reduce_join(words.with_flat_values(nearest), axis=1, separator=" ")
        read_S = tf.where(read_S == "", NO_WORD, read_S)
        return tf.where(is_silent_S, SILENCE, read_S)

    def _split(self, words):
        """Splits words at signs, unless they are known as they are or without capitals.

        Returns texts `(S,)`, words with spaces between them.
        """
        plain = words.flat_values
        lower = tf.strings.lower(plain, encoding="utf-8")
        parts = tf.strings.split(tf.strings.regex_replace(lower, BETWEEN, " "))
        bare = tf.strings.regex_replace(parts.flat_values, ENDS, "")
        bare = tf.where(self._has_id(parts.flat_values), parts.flat_values, bare)
        parted = tf.strings.reduce_join(parts.with_flat_values(bare), axis=1, separator=" ")
        read = parted
        # The last one that is known wins.
        for form in (lower, plain):
            read = tf.where(self._has_id(form), form, read)
        return tf.strings.reduce_join(words.with_flat_values(read), axis=1, separator=" ")

    def _has_id(self, words):
        return self.ids_of_words(words) > self.unknown_id

    def is_known(self, words_SW):
        """Marks words that the model knows, without punctuation and padding, bool `(S, W)`."""
        is_word_SW = tf.strings.regex_full_match(words_SW, r".*[\pL\pN].*")
        # The vocabulary begins with special words, the last of them the unknown one.
        return is_word_SW & (self.ids_of_words(words_SW) > self.unknown_id)

    def encode(self, words_SW):
        """Encodes words as `Domain.encode` does.

        Returns:
            The model's `words`, int32 `(S, W)`.
            The model's `typed_words`, int32 `(S, W)`.
            The entities of each sentence, counted from 1, int32 `(S, .)`, 0 = padding.
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
            Each surface form at its first word, int32 `(S, W)`.
            Each surface form at all its words, int32 `(S, W)`.
        """
        longest_SW = self._longest_forms(words_SW)
        remaining_S = tf.zeros_like(longest_SW[:, 0])  # words of the form that are still to come
        cover_S = remaining_S
        begins = []
        covers = []
        for form_S in tf.unstack(longest_SW, self.max_words, axis=1):
            is_free_S = remaining_S == 0
            cover_S = tf.where(is_free_S, form_S, cover_S)
            length_S = tf.where(is_free_S, tf.gather(self.lengths, form_S), remaining_S)
            remaining_S = length_S - 1
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


class GraphSpelling:
    """`Reader.nearest` in a graph.

    Shape suffixes: N words, F forms that are known, L letters of a word, K letters of a form.

    Args:
        limits: Form -> the most typing errors with which a word is still taken for it.
    """

    def __init__(self, limits):
        self.forms = [*limits, ""]
        self.limit_F = tf.constant([*limits.values(), -1])
        letters_FK = tf.strings.unicode_decode(self.forms, "UTF-8").to_tensor()
        self.letters_FK = tf.constant(letters_FK.numpy())
        self.length_F = tf.constant([len(form) for form in self.forms])

    def __call__(self, words, is_misspelt):
        """Takes strings of one dimension; replaces misspelt ones by the form that is nearest."""
        places = tf.where(is_misspelt)
        misspelt_N = tf.gather_nd(words, places)
        letters_NL = tf.strings.unicode_decode(misspelt_N, "UTF-8").to_tensor()
        length_N = tf.strings.length(misspelt_N, unit="UTF8_CHAR")
        most_letters = self.letters_FK.shape[1] + 2
        letters_NL = tf.pad(letters_NL, [[0, 0], [0, most_letters]])[:, :most_letters]
        letters_NL = tf.ensure_shape(letters_NL, [None, most_letters])

        errors_NF = self._count_errors(letters_NL, length_N)
        is_near_NF = errors_NF <= self.limit_F
        is_near_NF &= letters_NL[:, :1] == self.letters_FK[:, 0]
        is_near_NF &= tf.abs(length_N[:, None] - self.length_F) <= self.limit_F
        errors_NF = tf.where(is_near_NF, errors_NF, most_letters)
        nearest_N = tf.gather(self.forms, tf.argmin(errors_NF, axis=1))
        nearest_N = tf.where(tf.reduce_any(is_near_NF, axis=1), nearest_N, misspelt_N)
        return tf.tensor_scatter_nd_update(words, places, nearest_N)

    def _count_errors(self, letters_NL, length_N):
        """`count_typing_errors` of each word and form, int32 `(N, F)`."""
        K = self.letters_FK.shape[1]
        number_K1 = tf.range(K + 1)
        # Errors of a row after further letters of the form that are missing in the word.
        missing_KK = number_K1[None, :] - number_K1[:, None]
        missing_KK = tf.where(missing_KK >= 0, missing_KK, 2 * K)
        N = tf.shape(letters_NL)[0]
        row_NFK = tf.broadcast_to(number_K1, [N, len(self.forms), K + 1])
        rows = [row_NFK]
        was_equal_NFK = None
        for place in range(letters_NL.shape[1]):
            is_equal_NFK = letters_NL[:, place, None, None] == self.letters_FK
            wrong_NFK = rows[-1][..., :-1] + tf.cast(~is_equal_NFK, tf.int32)
            too_many_NFK = rows[-1][..., 1:] + 1
            errors_NFK = tf.minimum(wrong_NFK, too_many_NFK)
            if place > 0:
                # The letter before equals this one of the form, and this letter the one before.
                is_exchanged_NFK = is_equal_NFK[..., :-1] & was_equal_NFK[..., 1:]
                exchanged_NFK = tf.where(is_exchanged_NFK, rows[-2][..., :-2] + 1, 2 * K)
                exchanged_NFK = tf.pad(exchanged_NFK, [[0, 0], [0, 0], [1, 0]], constant_values=99)
                errors_NFK = tf.minimum(errors_NFK, exchanged_NFK)
            first_NF1 = tf.fill([N, len(self.forms), 1], place + 1)
            row_NFK = tf.concat([first_NF1, errors_NFK], axis=2)
            row_NFK = tf.reduce_min(row_NFK[..., :, None] + missing_KK, axis=2)
            rows.append(row_NFK)
            was_equal_NFK = is_equal_NFK
        row_N = tf.minimum(length_N, len(rows) - 1)
        rows_NLFK = tf.stack(rows, axis=1)
        row_NFK = tf.gather(rows_NLFK, row_N, axis=1, batch_dims=1)
        at_end_FK = tf.one_hot(self.length_F, K + 1, dtype=tf.int32)
        return tf.reduce_sum(row_NFK * at_end_FK, axis=2)


def _lookup_table(numbers, default):
    """Makes a table in the graph from `{text: number}`."""
    keys = tf.constant(list(numbers), tf.string)
    values = tf.constant(list(numbers.values()), tf.int32)
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), default)
