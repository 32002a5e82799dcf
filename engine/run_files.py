"""The files of a run, and which of a directory's files a run has written.

config.json        model, recipe, config, training, the dataset's metadata, provenance
vocabulary.txt     if the dataset has one
best.weights.h5    weights with the best validation score
last.npz           weights, optimizer, random state and `TrainState` when training was last saved
checksums.json     SHA-256 of the last ten `best.weights.h5`; in a published run, of all files that
                   answers depend on
history.jsonl      one line per validation
events.out.*       curves for TensorBoard, a file per start of the training
metrics.json       results of evaluate.py for the best weights, by split
examples.json      examples of dev to try the model on
page.json          of a published run: title and examples for the web pages, see
                   `serving.run_facts.Page`
"""

import pathlib

from colloquy.base.files import CHECKSUMS, PathLike, UserError, unfinished_name
from colloquy.engine.interrupts import LOCK

PRETRAINED = pathlib.Path(__file__).resolve().parent.parent / "pretrained"
CONFIG = "config.json"
BEST = "best.weights.h5"
LAST = "last.npz"
HISTORY = "history.jsonl"
METRICS = "metrics.json"
CURVES = "events.out.tfevents."
"""Start of the names of TensorBoard's files."""
VOCABULARY = "vocabulary.txt"
EXAMPLES = "examples.json"
CARD = "README.md"
PAGE = "page.json"
WORD_LISTS = (
    VOCABULARY,
    "action_mask.json",
    "candidates.txt",
    "characters.txt",
    "entities.txt",
    "knowledge.txt",
    "users.json",
)
"""`vocabulary.txt`, and what `engine.task.Task.save_assets` writes."""
WRITTEN = (CONFIG, BEST, LAST, CHECKSUMS, HISTORY, METRICS, EXAMPLES, *WORD_LISTS)
"""Names of the files that a run writes. Nothing else is ever removed from its directory."""
MAX_EXAMPLES = 2**18
MAX_BYTES = {
    CONFIG: 2**20,
    CHECKSUMS: 2**20,
    METRICS: 2**20,
    CARD: 2**20,
    EXAMPLES: MAX_EXAMPLES,
    PAGE: MAX_EXAMPLES,
    HISTORY: 2**26,
    BEST: None,
    LAST: None,
    **dict.fromkeys(WORD_LISTS, 2**28),
}
"""Largest sizes of the files that are read; `None`: see `engine.untrusted_weights`."""
DIRECTORIES = ("pairs", "index")
"""Directories of a run that are read: pairs of conversations, and an index of them."""


def is_written(file: pathlib.Path) -> bool:
    """True for a file that has the name of one that a run writes."""
    name = unfinished_name(file) or file.name
    is_directory = file.is_dir() and not file.is_symlink()
    return not is_directory and (name.startswith(CURVES) or name in (*WRITTEN, LOCK))


# === Names ===


def find_named_runs() -> dict[str, pathlib.Path]:
    """Finds the runs with a name: those in `runs/`, the published ones, and that of `make demo`.

    Returns `{name: path}`, sorted. A published run comes before one in `runs/` of the same name.
    """
    paths = {}
    for directory in (pathlib.Path("runs"), PRETRAINED):
        for config in directory.glob(f"*/{CONFIG}"):
            paths[config.parent.name] = config.parent
    demo = pathlib.Path("build/demo/run")
    if (demo / CONFIG).is_file():
        paths["demo"] = demo
    return dict(sorted(paths.items()))


def find_run(path: PathLike) -> pathlib.Path:
    """Returns the directory of a run, for a directory or a name of `find_named_runs`.

    Raises:
        UserError: There is no such run.
    """
    if not isinstance(path, PathLike):
        raise UserError(
            f"expected a run directory or the name of a published run. Received: {path}"
        )
    directory = pathlib.Path(path)
    if (directory / CONFIG).is_file():
        return directory
    published = PRETRAINED / directory.name
    # The documentation writes `pretrained/NAME`. An installed package has no such path in the
    # current directory, so the name is looked up in the package.
    if directory == pathlib.Path("pretrained", directory.name) and (published / CONFIG).is_file():
        return published
    message = f"{path} is not a run directory: {CONFIG} is missing"
    if len(directory.parts) == 1 and not directory.exists():
        named_runs = find_named_runs()
        if directory.name in named_runs:
            return named_runs[directory.name]
        names = sorted(file.parent.name for file in PRETRAINED.glob(f"*/{CONFIG}"))
        message += f". Published runs are {', '.join(names)}"
    raise UserError(message)
