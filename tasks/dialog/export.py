"""The SavedModel of a dialog model: a conversation and what a search brought in as strings, the bot's responses out.

Letters:
    B dialogs   M sentences of the history   F facts   N candidates that are given   C candidates of the bot   W words
    S all sentences of a batch   E entities   K responses
"""

import keras
import tensorflow as tf

from data.corpora.babi_dialog import SILENCE
from data.sequences import stack
from data.vocabulary import word_table
from engine.export import of_shape, without_cudnn
from layers.masking import LOWEST, masked_softmax
from tasks.dialog.predictor import BEST, SIGNS
from tasks.dialog.prepare import SPEAKERS

SPACE = r"[\x{1C}-\x{1F}\x{85}\p{Z}]+"  # what Python's str.split takes for white space beside ASCII's


class DialogText:
    """Makes a dialog model's ids out of strings, as `tasks.dialog.predictor` and `World.encode` do.

    Args:
        world: A `tasks.dialog.data.World`.
        max_words: Of a sentence.
    """

    def __init__(self, world, max_words):
        self.words, self.max_words = word_table(world.vocabulary), max_words
        self.unknown = world.vocabulary.unk_id
        surfaces = list(world.surfaces)
        self.longest = max(map(len, surfaces), default=1)
        self.surfaces = _table([" ".join(words) for words in surfaces], range(1, len(surfaces) + 1), 0)
        self.lengths = tf.constant([1, *map(len, surfaces)])
        # A matrix of entities, 0 = none, and the id that stands for a word of an open type, 0 = its own id.
        self.entities = tf.constant(stack([[], *([n + 1 for n in world.surfaces[words]] for words in surfaces)]))
        types = [0]
        for words in surfaces:
            type = world.entities[world.surfaces[words][0]][1]
            types.append(world.open_types.get(type, 0))
        self.types = tf.constant(types)

    def split(self, texts, of_user):
        """The words of sentences; those of a user as near to known ones as `DialogPredictor.read` brings them.

        Args:
            texts: string `(S,)`.
            of_user: Boolean `(S,)`.

        Returns:
            string `(S, W)`, "" = padding.
        """
        words = tf.strings.split(tf.strings.regex_replace(texts, SPACE, " "))[:, : self.max_words]
        lower = tf.strings.lower(words.flat_values, encoding="utf-8")
        bare = tf.strings.regex_replace(lower, f"^[{SIGNS}]+|[{SIGNS}]+$", "")
        read = tf.where(bare == "", words.flat_values, bare)
        for form in (bare, lower, words.flat_values):
            read = tf.where(self.words.lookup(form) != self.unknown, form, read)
        user = tf.repeat(of_user, words.row_lengths())
        words = words.with_flat_values(tf.where(user, read, words.flat_values)).to_tensor(shape=(None, self.max_words))
        silent = tf.logical_and(of_user, words[:, 0] == "")[:, None]
        return tf.where(tf.logical_and(silent, tf.range(self.max_words) == 0), SILENCE, words)

    def encode(self, words):
        """Ids and entities of sentences.

        Args:
            words: string `(S, W)`.

        Returns:
            The model's `words` and `typed_words`, int32 `(S, W)`, and entities counted from 1, int32 `(S, .)`.
        """
        ids = tf.where(words == "", 0, self.words.lookup(words))
        surface, inside = self._link(self._longest_at(words))
        type = tf.gather(self.types, surface)
        typed = tf.where(inside, 0, tf.where(type > 0, type, ids))
        return ids, typed, tf.reshape(tf.gather(self.entities, surface), (tf.shape(words)[0], -1))

    def _longest_at(self, words):
        """The longest surface of an entity that could begin at each word, int32 `(S, W)`, 0 = none."""
        W, found, joined = self.max_words, self.surfaces.lookup(words), words
        after = tf.pad(words, [[0, 0], [0, self.longest]])
        for n in range(1, self.longest):
            joined = tf.strings.join([joined, after[:, n : n + W]], " ")
            longer = self.surfaces.lookup(joined)
            found = tf.where(longer > 0, longer, found)
        return found

    def _link(self, longest):
        """From left to right, what begins inside of another is none.

        Returns:
            Surfaces, int32 `(S, W)`, and which words go on with an entity of an open type, boolean `(S, W)`.
        """
        left, opened = tf.zeros_like(longest[:, 0]), tf.zeros_like(longest[:, 0], tf.bool)
        surfaces, inside = [], []
        for surface in tf.unstack(longest, self.max_words, axis=1):
            free = left == 0
            surface = tf.where(free, surface, 0)
            inside.append(tf.logical_and(tf.logical_not(free), opened))
            opened = tf.where(free, tf.gather(self.types, surface) > 0, opened)
            left = tf.where(free, tf.gather(self.lengths, surface), left) - 1
            surfaces.append(surface)
        return tf.stack(surfaces, axis=1), tf.stack(inside, axis=1)


class _Responder:
    """The endpoint `respond`, see `dialog_archive`."""

    def __init__(self, model, world):
        self.config, self.text = model.config, DialogText(world, model.config.max_words)
        self.look = keras.Model(model.input, [model.output, *model.attention_weights])
        self.count = len(world.candidates)
        self.texts = tf.constant([*world.candidates, ""])
        self.places = _table(world.candidates, range(self.count), -1)

    def __call__(self, history, speakers, facts, candidates):
        history, speakers = of_shape(history, "history", "BM"), of_shape(speakers, "speakers", "BM")
        facts, candidates = of_shape(facts, "facts", "BF"), of_shape(candidates, "candidates", "BN")
        B, F = tf.unstack(tf.shape(facts))
        checks = [
            tf.debugging.assert_equal(
                tf.shape(history), tf.shape(speakers), "history and speakers must have one shape"
            ),
            tf.debugging.assert_equal(tf.shape(history)[0], B, "history and facts must have equally many rows"),
            tf.debugging.assert_equal(tf.shape(candidates)[0], B, "history and candidates must have equally many rows"),
        ]
        with tf.control_dependencies([check for check in checks if check is not None]):  # None: checked already
            history, speakers, facts = map(tf.identity, (history, speakers, facts))
        inputs = self.inputs(history, speakers, facts)
        logits, *weights = keras.tree.flatten(self.look(inputs, training=False))
        attention = [tf.reduce_mean(of_hop[:, :, 0], axis=1) for of_hop in weights]
        attention = tf.stack(attention, axis=1) if attention else tf.zeros((B, 0, tf.shape(inputs["speakers"])[1]))
        return {
            **self.best(logits[:, 0], candidates),
            "history_attention": attention[:, :, F:-1],
            "facts_attention": attention[:, :, :F],
        }

    def best(self, logits, candidates):
        """The best responses and their scores, of logits `(B, C)`."""
        number = self.places.lookup(candidates)
        tf.debugging.assert_equal(number >= 0, candidates != "", "candidates must be responses that the bot knows")
        given = tf.reduce_any(tf.one_hot(number, self.count, on_value=True, off_value=False), axis=1)
        allowed = tf.logical_or(given, tf.logical_not(tf.reduce_any(given, axis=1, keepdims=True)))
        probabilities = tf.pad(masked_softmax(logits, allowed), [[0, 0], [0, 1]])
        _, best = tf.math.top_k(tf.where(allowed, logits, LOWEST), min(BEST, self.count))
        best = tf.where(tf.gather(allowed, best, batch_dims=1), best, self.count)  # "", after the others
        return {"responses": tf.gather(self.texts, best), "scores": tf.gather(probabilities, best, batch_dims=1)}

    def inputs(self, history, speakers, facts):
        """What the model reads: the facts, the history, and where a user has to be silent, that."""
        who = sum(tf.cast(speakers == name, tf.int32) * number for name, number in SPEAKERS.items())
        tf.debugging.assert_equal(who > 0, speakers != "", "speakers must be user, bot, fact, or empty where filled up")
        who, times, turn = _order(who, facts)
        said = tf.reshape(tf.concat([facts, history, tf.fill((tf.shape(facts)[0], 1), "")], axis=1), [-1])
        ids, typed, entities = self.text.encode(self.text.split(said, tf.reshape(who == SPEAKERS["user"], [-1])))
        none = tf.zeros((1, self.config.max_words), tf.int32)  # number 0 is the empty sentence
        number = tf.reshape(tf.range(tf.size(who)) + 1, tf.shape(who))
        made = {
            "words": tf.concat([none, ids], axis=0),
            "typed_words": tf.concat([none, typed], axis=0),
            "sentences": tf.where(who > 0, number, 0),
            "speakers": who,
            "times": times,
            "turns": turn,
            "mentions": self.mentions(entities, tf.shape(who)),
        }
        return {name: made[name] for name in self.config.reads}

    def mentions(self, entities, shape):
        """Which of the sentences `(B, M)` mentions which entity, uint8 `(B, M, E)`; entities are int32 `(S, .)`."""
        S, K = tf.unstack(tf.shape(entities))
        place = tf.stack([tf.repeat(tf.range(S)[:, None], K, axis=1), entities], axis=2)
        found = tf.zeros((S, self.config.entities + 1), tf.uint8)
        found = tf.tensor_scatter_nd_update(found, place, tf.ones((S, K), tf.uint8))
        return tf.reshape(found[:, 1:], tf.concat([shape, [self.config.entities]], axis=0))


def _order(who, facts):
    """Puts facts in front of a history, and after it the silence of a user where somebody else spoke last.

    Args:
        who: Speakers of the history, int32 `(B, M)`.
        facts: string `(B, F)`.

    Returns:
        Speakers and times, int32 `(B, F + M + 1)`, and the place of the last sentence, int32 `(B, 1)`. As in
        `DialogPredictor`, its turn counts as turn 0.
    """
    M, F = tf.shape(who)[1], tf.shape(facts)[1]
    user = SPEAKERS["user"]
    end = tf.reduce_max(tf.where(who > 0, tf.range(M) + 1, 0), axis=1, keepdims=True)
    speaks = tf.reduce_any(tf.logical_and(tf.range(M) == end - 1, who == user), axis=1, keepdims=True)
    who = tf.concat([who, tf.where(speaks, 0, user)], axis=1)
    times = tf.maximum(tf.cumsum(tf.cast(who == user, tf.int32), axis=1) - 1, 0)
    last = times[:, -1:]
    times = tf.concat([tf.repeat(tf.maximum(last - 1, 0), F, axis=1), times], axis=1) - last
    who = tf.concat([tf.where(facts != "", SPEAKERS["fact"], 0), who], axis=1)
    return who, times, F + tf.where(speaks, end - 1, M)


def dialog_archive(model, world):
    """The endpoint `respond`, also `serving_default`, of a dialog model.

        history     string (B, M)   what was said, the oldest sentence first, filled up with "" at the end; "" of a user
                                    is silence, and after another than the user's the user is silent
        speakers    string (B, M)   who said it: "user", "bot", or "fact" for what a search brought; "" where filled up
        facts       string (B, F)   what a search brought, known before the last sentence of the user; "" is none
        candidates  string (B, N)   only these of the bot's candidates are chosen from; "" is none, and of none are all
     -> responses   string (B, K)   at most five, the best first; "" where there are not so many
        scores      float32 (B, K)  their probabilities among the candidates
        history_attention float32 (B, H, M), facts_attention (B, H, F)
                                    what each hop attended to, mean over heads; H is 0 for a model without attention

    It chooses as the model scores; the chat and the predictor also leave out what `tasks.dialog.response_filter` says.

    Args:
        model: A `models.dialog_memory.DialogModel`.
        world: Its `tasks.dialog.data.World`.

    Returns:
        A `keras.export.ExportArchive`.
    """
    responder = _Responder(model, world)
    without_cudnn(model)
    archive = keras.export.ExportArchive()
    archive.track(responder.look)
    for table in (responder.text.words, responder.text.surfaces, responder.places):
        archive.track(table)

    def respond(history, speakers, facts, candidates):
        return responder(history, speakers, facts, candidates)

    names = "history", "speakers", "facts", "candidates"
    archive.add_endpoint("respond", respond, [tf.TensorSpec((None, None), tf.string, name=name) for name in names])
    return archive


def _table(keys, values, default):
    initializer = tf.lookup.KeyValueTensorInitializer(tf.constant(list(keys), tf.string), tf.constant([*values]))
    return tf.lookup.StaticHashTable(initializer, default)
