"""The files of a run, and which of a directory's files a run has written.

config.json        model, recipe, config, training, the dataset's metadata, provenance
vocabulary.txt     if the dataset has one
best.weights.h5    weights with the best validation score
last.npz           weights, optimizer, random state and `TrainState` when training was last saved
checksums.json     SHA-256 of both files, the present ones and some before; of a published run that
                   of every file
history.jsonl      one line per validation
metrics.json       results of evaluate.py, by split
examples.json      examples of dev to try the model on
page.json          of a published run: title and examples for the web pages, see
                   `serving.models.Page`
"""

from colloquy.base.files import CHECKSUMS, unfinished_name
from colloquy.engine.interrupts import LOCK

CONFIG = "config.json"
BEST = "best.weights.h5"
LAST = "last.npz"
HISTORY = "history.jsonl"
METRICS = "metrics.json"
VOCABULARY = "vocabulary.txt"
EXAMPLES = "examples.json"
CARD = "README.md"
PAGE = "page.json"
SCALARS = "tensorboard"
WRITTEN = (
    CONFIG,
    VOCABULARY,
    BEST,
    LAST,
    CHECKSUMS,
    HISTORY,
    METRICS,
    EXAMPLES,
    "action_mask.json",
    "candidates.txt",
    "characters.txt",
    "entities.txt",
    "knowledge.txt",
    "phrases.txt",
)
"""Names of the files that a run writes, those of `engine.task.Task.save_assets` among them.

Nothing else is ever removed from its directory, but for the files of TensorBoard in `tensorboard`.
"""


def is_written(file):
    """True if a file or directory has the name of one that a run writes, and holds nothing else."""
    if file.is_dir() and not file.is_symlink():
        return is_unfinished(file) or (file.name == SCALARS and _holds_only_scalars(file))
    return file.name in (*WRITTEN, LOCK, f".{BEST}", f".{LAST}")


def is_unfinished(directory):
    """True for a directory of `base.files.atomic_file`, for a file of a run."""
    name = unfinished_name(directory)
    if name not in WRITTEN or directory.is_symlink() or not directory.is_dir():
        return False
    return all(file.name == name for file in directory.iterdir())


def _holds_only_scalars(directory):
    return all(file.name.startswith("events.out.tfevents.") for file in directory.iterdir())
