"""What export.py does: a trained run becomes a TensorFlow SavedModel that takes raw strings.

Letters: B batch   N candidates of a context   T turns   K words
"""

import pathlib

import keras
import tensorflow as tf

from cli import UserError, atomic_directory
from data.prepare_reading import CHARACTERS
from data.vocabulary import EOS_ID, UNK_ID, Vocabulary
from exporting_generation import generation_archive
from exporting_reading import reading_archive
from runs import VOCABULARY, Run, set_precision
from tasks.generation import parse_decoding

NO_SCORE = -1.0  # of a missing candidate: no sigmoid is negative
NO_LOGIT = tf.float32.min  # finite, because JSON knows no infinity


def export(run_path, out, version=1, decode=None):
    """Writes a run's best weights as the SavedModel `out/version`, which needs TensorFlow alone.

    It computes in float32 whatever the run was trained in. Text is words parted by ASCII white
    space, written as in the run's corpus (case, punctuation); its bytes need not be UTF-8. A word
    that the vocabulary lacks is `_UNK_`, and so is a literal `_EOS_`. A reading model has the endpoint of
    `exporting_reading.reading_archive`, a generation model that of `exporting_generation.generation_archive`, a
    selection model two:

        score (also `serving_default`)
            turns       string (B, T)   the context, oldest turn first, rows filled up with "" at
                                        the end; an empty turn is " ", or "" before another
            response    string (B,)     "" is a response without words
         -> logit       float32 (B,)
            score       float32 (B,)    its sigmoid
        rank, which encodes a context once for all its candidates
            turns       string (B, T)   as above
            candidates  string (B, N)   "" is no candidate; " " is a response without words
         -> logits      float32 (B, N)  the lowest float32 where there is no candidate
            scores      float32 (B, N)  -1 where there is no candidate
            order       int32 (B, N)    the candidates' places in their row, best first; equal ones
                                        in the order given, missing ones last

    Args:
        run_path: Run directory.
        out: Directory of the model and its versions.
        version: Number of this version.
        decode: Generation: how replies are looked for, see `tasks.generation.parse_decoding`.

    Returns:
        The directory written, `out/version`.

    Raises:
        UserError: where the run is of another task, has no vocabulary or cannot be loaded, or the version exists.
    """
    path = _free(pathlib.Path(out), version)
    run = Run.open(run_path)
    if keras.config.backend() != "tensorflow":
        backend = keras.config.backend()
        raise UserError(f"export needs KERAS_BACKEND=tensorflow. Received: {backend}")
    if run.entry.task not in EXAMPLES:
        raise UserError(f"{run.path}: models of {run.entry.task} cannot be exported yet; chat.py talks to them")
    if not (run.path / VOCABULARY).is_file():
        raise UserError(
            f"{run.path} cannot be exported: strings need a {VOCABULARY} in the run, and its dataset had none"
        )
    vocabulary = Vocabulary.load(run.path / VOCABULARY)
    set_precision("float32")
    model = run.load_model()
    if len(vocabulary) != model.config.vocabulary_size:
        raise UserError(
            f"{run.path / VOCABULARY}: expected {model.config.vocabulary_size} words, as the model "
            f"has. Received: {len(vocabulary)}"
        )
    if decode is not None and run.entry.task != "generation":
        raise UserError(f"--decode is for models that write replies. Received: --decode={decode} with {run.entry.task}")
    if run.entry.task == "generation":
        archive = generation_archive(model, vocabulary, run.config["dataset"]["text"], parse_decoding(decode))
    elif run.entry.task == "reading":
        archive = reading_archive(model, vocabulary, Vocabulary.load(run.path / CHARACTERS))
    else:
        archive = selection_archive(model, vocabulary)
    with atomic_directory(path) as directory:
        archive.write_out(directory, verbose=False)
    return path


def _free(out, version):
    """The directory of a version, which must be unused."""
    path = out / str(version)
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is no directory")
    if path.exists():
        used = [int(p.name) for p in out.iterdir() if p.name.isascii() and p.name.isdigit()]
        raise UserError(f"{path} exists: --version={max(used) + 1} is free")
    return path


EXAMPLES = {
    "generation": """\
found = model.reply(turns=tf.constant([["hello there"]]))
print([text.decode() for text in found["replies"][0].numpy()], found["scores"])
""",
    "selection": """\
ranked = model.rank(
    turns=tf.constant([["hi", "how do i mount a usb stick ?"]]),
    candidates=tf.constant([["thanks", "plug it in and look at dmesg"]]),
)
print(ranked["order"], ranked["scores"])
""",
    "reading": """\
found = model.answer(
    passage=tf.constant(["Ann lives in Rome. Bob lives in Paris."]),
    question=tf.constant(["Where does Bob live?"]),
)
print(found["answers"], found["starts"], found["scores"])
""",
}


def example(run_path, path):
    """Python lines that call the SavedModel at `path`, made of a run."""
    lines = EXAMPLES[Run.open(run_path).entry.task]
    return f"import tensorflow as tf\n\nmodel = tf.saved_model.load({str(path)!r})\n{lines}"


class SelectionText:
    """Makes a selection model's ids out of strings, as prepare.py and `SelectionSplit.collate` do.

    Args:
        vocabulary: A `data.vocabulary.Vocabulary`.
        config: The model's config: what it reads of a context.
    """

    def __init__(self, vocabulary, config):
        words = {word: i for i, word in enumerate(vocabulary.words, 1) if i != EOS_ID}
        entries = tf.lookup.KeyValueTensorInitializer(
            tf.constant(list(words)), tf.constant(list(words.values()), tf.int32)
        )
        self.table = tf.lookup.StaticHashTable(entries, default_value=UNK_ID)
        self.max_turns = config.max_turns
        self.max_words = config.max_words
        self.full_size = config.masking == "release"  # where padding counts, it must all be there

    def context(self, turns):
        """The last turns of each context.

        Args:
            turns: string `(B, T)`.

        Returns:
            int32 `(B, turns read, words read)`, 0 = padding.
        """
        T = tf.shape(turns)[1]
        ends = tf.where(tf.not_equal(turns, ""), tf.range(T) + 1, 0)
        count = tf.reduce_max(ends, axis=1, keepdims=True)  # negative where T is 0: none is kept
        kept = tf.minimum(count, self.max_turns)
        longest = self.max_turns if self.full_size else tf.maximum(tf.reduce_max(kept), 1)
        turn = tf.range(longest)
        index = tf.where(turn < kept, count - kept + turn, T)
        turns = tf.concat([turns, tf.fill([tf.shape(turns)[0], 1], "")], axis=1)  # "" at place T
        return self.words(tf.gather(turns, index, batch_dims=1))

    def words(self, texts):
        """The last words of each text.

        Args:
            texts: string of any shape.

        Returns:
            int32 of that shape, then the words read, 0 = padding.
        """
        words = tf.strings.split(tf.reshape(texts, [-1]))[:, -self.max_words :]
        ids = tf.ragged.map_flat_values(self.table.lookup, words).to_tensor(shape=(None, self.max_words))
        if not self.full_size:
            ids = ids[:, : tf.maximum(tf.reduce_max(words.row_lengths()), 1)]
        return tf.reshape(ids, tf.concat([tf.shape(texts), tf.shape(ids)[1:]], axis=0))


def selection_archive(model, vocabulary):
    """The endpoints of `export` for a response-selection model.

    Args:
        model: Takes `{"turns", "responses"}`, returns logits `(B, N)`; has a `config`.
        vocabulary: The `data.vocabulary.Vocabulary` that its ids come from.

    Returns:
        A `keras.export.ExportArchive`.
    """
    text = SelectionText(vocabulary, model.config)

    def logits_of(turns, candidates):
        B, N = tf.unstack(tf.shape(candidates))
        tf.debugging.assert_equal(tf.shape(turns)[0], B, "turns and candidates or response must have equally many rows")
        # Convolutions refuse to work on nothing: where B or N is 0, a padded one comes and goes.
        rows, columns = [0, tf.maximum(1 - B, 0)], [0, tf.maximum(1 - N, 0)]
        inputs = {
            "turns": tf.pad(text.context(turns), [rows, [0, 0], [0, 0]]),
            "responses": tf.pad(text.words(candidates), [rows, columns, [0, 0]]),
        }
        return model(inputs, training=False)[:B, :N]

    def score(turns, response):
        logit = logits_of(turns, response[:, None])[:, 0]
        return {"score": tf.sigmoid(logit), "logit": logit}

    def rank(turns, candidates):
        logits = logits_of(turns, candidates)
        real = tf.not_equal(candidates, "")
        ranked = tf.where(real, logits, NO_LOGIT)
        return {
            "scores": tf.where(real, tf.sigmoid(logits), NO_SCORE),
            "logits": ranked,
            "order": tf.argsort(ranked, direction="DESCENDING", stable=True),
        }

    archive = keras.export.ExportArchive()
    archive.track(text.table)
    turns = tf.TensorSpec((None, None), tf.string, name="turns")
    response = tf.TensorSpec((None,), tf.string, name="response")
    candidates = tf.TensorSpec((None, None), tf.string, name="candidates")
    archive.add_endpoint("score", score, [turns, response])  # the first is serving_default too
    archive.add_endpoint("rank", rank, [turns, candidates])
    return archive
