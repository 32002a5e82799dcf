"""What export.py does: a trained run becomes a TensorFlow SavedModel that takes raw strings.

Letters: B batch   N candidates of a context   T turns   K words
"""

import pathlib

import keras

from base.files import UserError, atomic_directory
from data.vocabulary import Vocabulary
from engine.runs import VOCABULARY, Run, set_precision
from tasks.generation.export import generation_archive
from tasks.generation.search import parse_decoding
from tasks.reading_comprehension.export import reading_archive
from tasks.reading_comprehension.prepare import CHARACTERS
from tasks.selection.export import selection_archive


def export(run_path, out, version=1, decode=None):
    """Writes a run's best weights as the SavedModel `out/version`, which needs TensorFlow alone.

    It computes in float32 whatever the run was trained in. Text is words parted by ASCII white
    space, written as in the run's corpus (case, punctuation); its bytes need not be UTF-8. A word
    that the vocabulary lacks is `_UNK_`, and so is a literal `_EOS_`. The endpoints of a reading model are
    those of `tasks.reading_comprehension.export.reading_archive`, of a generation model those of
    `tasks.generation.export.generation_archive`. A selection model has two:

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
        decode: Generation: how replies are looked for, see `tasks.generation.search.parse_decoding`.

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
