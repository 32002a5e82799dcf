"""Attention models for conversation and reading, from Python.

>>> import colloquy
>>> reader = colloquy.load("bidaf-squad")
>>> instance = {"passage": "Ann lives in Rome.", "question": "Where does Ann live?"}
>>> [answer] = reader.predict([instance])
>>> answer["answer"]
'Rome'

The road from a corpus to scores; each step is also a command:

    colloquy.prepare("conversations", "texts/", "build/mine")
    run = colloquy.train("seq2seq", data="build/mine", workdir="runs/mine", epochs=6)
    [record] = colloquy.evaluate(run, split="dev")

A wrong input is a `colloquy.UserError` of one sentence.
"""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# `colloquy.layers` and the other subpackages are folders inside of this one in a wheel. In a clone
# they are beside it, so Python searches its parent, too.
_FOLDER = pathlib.Path(__file__).resolve().parent
if not (_FOLDER / "layers").is_dir():
    __path__.append(str(_FOLDER.parent))

from colloquy.base.files import PathLike, UserError  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import keras

    from colloquy.engine.predictor import Predictor
    from colloquy.engine.run import Run

__all__ = [
    "UserError",
    "compare",
    "evaluate",
    "export",
    "load",
    "prepare",
    "pretrained",
    "resume",
    "train",
]


def pretrained() -> dict[str, str]:
    """Lists the trained models.

    Returns:
        `{name: title}`, sorted by name. `help(load(name).Instance)` describes what a model takes.

    >>> import colloquy
    >>> colloquy.pretrained()["bidaf-squad"]
    'bidaf on squad'
    """
    from colloquy.engine.run import Run
    from colloquy.engine.run_files import PRETRAINED

    titles = {}
    for path in sorted(PRETRAINED.glob("*/config.json")):
        run = Run.open(path.parent)
        titles[run.path.name] = f"{run.model} on {run.dataset['name']}"
    return titles


def load(
    run: PathLike | Run, index: PathLike | None = None, candidates: list[str] | None = None
) -> Predictor:
    """Loads a trained model.

    Args:
        run: A name of `pretrained()`, a run directory, or a `Run` of `train`.
        index: Only for response selection: a directory of `colloquy.tools.build_index`. The model
            ranks its best responses for instances without `candidates`. Default: the run's own
            index, if it has one.
        candidates: Only for response selection, in place of an index: the responses to rank for
            instances without `candidates`.

    Returns:
        `predict(instances)` answers a list of dicts, `explain(instance)` adds attention maps.

    Raises:
        UserError: The run is missing or damaged, or it has no use for an index or candidates.

    >>> import colloquy
    >>> dam = colloquy.load("dam-ubuntu-irc", candidates=["try apt-get install vlc", "thanks !"])
    >>> [answer] = dam.predict([{"turns": ["how do i install vlc ?"]}])
    >>> answer["candidates"]
    ['try apt-get install vlc', 'thanks !']
    """
    _start_keras()

    from colloquy.engine.devices import set_precision
    from colloquy.engine.run import Run
    from colloquy.tasks import load_predictor

    set_precision("float32")  # a training before may have chosen another
    opened = Run.open(run)
    predictor = load_predictor(opened, index=index, candidates=candidates)
    predictor.run = str(opened.path)
    return predictor


def prepare(
    corpus: str,
    source: PathLike | Sequence | Mapping | None,
    out: PathLike,
    *,
    task: str | None = None,
    **settings: object,
) -> pathlib.Path:
    """Turns the raw files of a corpus into a dataset.

    Args:
        corpus: A key of `colloquy.data.corpora.CORPORA`, the format of the files.
        source: Directory of the files; `None` for `chitchat`, which needs none. Two corpora may
            be in memory. `conversations`: a list of conversations, each a list of texts, or
            `{"train": list, "dev": list}`. `squad`: `{"train": list, "dev": list}` of dicts with
            `id`, `context`, `question` and `answers`, as Hugging Face has them.
        out: Directory to write; missing or empty.
        task: Task to prepare for, if the corpus has several; default: its first.
        settings: Fields of `Settings` in `colloquy/tasks/TASK/prepare.py`.

    Returns:
        The directory.

    Raises:
        UserError: A file or a setting is wrong. Nothing is written.

    >>> import colloquy
    >>> colloquy.prepare("chitchat", None, "build/x", dimension=0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    colloquy.base.files.UserError: dimension: input should be greater than or equal to 1. ...
    """
    import importlib

    from colloquy.base.config import make_config
    from colloquy.data.corpora import CORPORA
    from colloquy.data.in_memory import as_files
    from colloquy.data.prepared import VOCABULARY_SETTINGS

    if corpus not in CORPORA:
        raise UserError(f"corpus: expected one of {', '.join(CORPORA)}. Received: {corpus}")
    row = CORPORA[corpus]
    task = task or row.task
    if task not in row.tasks:
        raise UserError(f"corpus {corpus} is for {', '.join(row.tasks)}. Received: task={task}")
    if not source and corpus != "chitchat":
        raise UserError(f"source: expected the directory of the files of {corpus}")
    preparation = importlib.import_module(f"colloquy.tasks.{task}.prepare")
    checked = make_config(preparation.Settings, settings)
    if checked.vocabulary_of:
        for name in VOCABULARY_SETTINGS:
            if settings.get(name) is not None:
                raise UserError(
                    f"{name} is not for vocabulary_of, which takes it from the run or dataset"
                )

    if source is None or isinstance(source, PathLike):
        preparation.prepare(corpus, source, out, checked)
    elif corpus in ("conversations", "squad"):
        with as_files(source, corpus) as directory:
            preparation.prepare(corpus, directory, out, checked)
    else:
        raise UserError(
            f"source: expected the directory of the files of {corpus}. Received: a list"
        )
    return pathlib.Path(out)


def train(
    model: str | None = None,
    data: PathLike | None = None,
    workdir: PathLike | None = None,
    recipe: str | None = None,
    *,
    init_from: PathLike | Run | None = None,
    devices: str = "one",
    ray_hosts: int | None = None,
    save_minutes: float = 10.0,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    **settings: object,
) -> Run:
    """Trains a model into a new run directory.

    Args:
        model: A key of `colloquy.models.MODELS`. Default: that of the recipe, or `dam`.
        data: Directory of `prepare`. Default: chitchat, or the embedded sample of the task, with
            the recipe MODEL-chitchat or MODEL-sample.
        workdir: Directory to make. Default: `runs/MODEL`.
        recipe: A key of `colloquy.tasks.RECIPES`: settings by name.
        init_from: A run whose weights the model starts with.
        devices: "one", or with JAX "all".
        ray_hosts: Trains with JAX on all devices of this many hosts of a Ray cluster.
        save_minutes: Minutes between saves of the state between two validations.
        callbacks: Callbacks of Keras. A validation is an epoch for them, with dev's metrics in its
            logs; see `colloquy.engine.callbacks`.
        settings: Fields of the model's config and of the task's `Training`, which win over those
            of the recipe, such as `epochs=3.0, levels=2`.

    Returns:
        The run, which `load`, `evaluate` and `export` take.

    Raises:
        UserError: A name or a setting is wrong, or training failed.

    >>> import colloquy
    >>> colloquy.train("dam", epoch=3.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    colloquy.base.files.UserError: there is no setting 'epoch'. The model has vocabulary_size, ...
    """
    from colloquy.recipes import choose_recipe, merge_settings

    if data == "":
        raise UserError("data: expected a directory. Received: an empty text")
    model, recipe = choose_recipe(model, recipe, has_data=data is not None)
    merged, label = merge_settings(recipe, settings)
    workdir = workdir or f"runs/{model}"
    _start_keras(devices)

    from colloquy.engine.cluster import train_on_cluster
    from colloquy.engine.run import Run
    from colloquy.engine.train import start
    from colloquy.models import MODELS
    from colloquy.tasks import TASKS

    arguments: dict[str, Any] = {
        "task": TASKS[MODELS[model].task],
        "model": model,
        "data": data,
        "workdir": workdir,
        "settings": merged,
        "recipe": label,
        "init_from": init_from,
        "save_minutes": save_minutes,
    }
    if ray_hosts:
        if callbacks:
            raise UserError("callbacks: expected none with ray_hosts")
        train_on_cluster(ray_hosts, **arguments)
        return Run.open(workdir)
    return start(devices=devices, callbacks=callbacks, **arguments)


def resume(
    workdir: PathLike | Run,
    data: PathLike | None = None,
    epochs: float | None = None,
    *,
    devices: str = "one",
    ray_hosts: int | None = None,
    save_minutes: float = 10.0,
) -> Run:
    """Continues the training of a run from its last save, under its own settings.

    Args:
        workdir: The run.
        data: Directory of its dataset, if it has moved.
        epochs: Epochs of the whole training, if changed.
        devices, ray_hosts, save_minutes: See `train`.

    Raises:
        UserError: There is nothing to continue, or the dataset has changed.
    """
    _start_keras(devices)

    from colloquy.engine import train as training
    from colloquy.engine.cluster import train_on_cluster
    from colloquy.engine.run import Run
    from colloquy.tasks import TASKS

    run = Run.open(workdir)
    arguments: dict[str, Any] = {
        "task": TASKS[run.task],
        "workdir": run.path,
        "data": data,
        "epochs": epochs,
        "save_minutes": save_minutes,
    }
    if ray_hosts:
        train_on_cluster(ray_hosts, resume=True, **arguments)
        return Run.open(run.path)
    return training.resume(devices=devices, **arguments)


def evaluate(
    run: PathLike | Run | list[PathLike | Run],
    data: PathLike | None = None,
    split: str | list[str] = "dev",
    *,
    baselines: bool = True,
    precision: str = "auto",
    scores: PathLike | None = None,
    examples: int = 0,
    out: PathLike | None = None,
    **settings: object,
) -> list[dict]:
    """Scores splits with trained models, and prints the metrics beside the papers'.

    Args:
        run: A run as `load` takes it, a pattern of several such as "runs/babi/*", "A,B,C" for an
            ensemble, or a list of these.
        data: Prepared dataset. Default: the one that a run was trained on. For generation it may
            also be a JSON file of references, with `split="references"`.
        split: A split, or several.
        baselines: Scores baselines, too.
        precision: `auto` is bfloat16 if the training was, on a GPU or a CPU with AMX; else
            float32.
        scores: A file to append rows to, as results/scores.jsonl.
        examples: Number of examples to print as the model reads and answers them.
        out: A new file for the model's answers, line by line.
        settings: Fields of the task's `Options`, such as `ties="release"` or `decode="beam=5"`.

    Returns:
        A record for each run and split, ready for JSON: `metrics`, `counts`, `baselines`, ...

    Raises:
        UserError: A run, the dataset or a setting is wrong.
    """
    from colloquy.data.prepared import check_splits

    splits = [split] if isinstance(split, str) else split
    check_splits(splits)
    _start_keras()

    from colloquy.engine.evaluate import evaluate_all
    from colloquy.tasks import TASKS

    return evaluate_all(
        TASKS,
        run,
        splits,
        data=data,
        baselines=baselines,
        precision=precision,
        scores=scores,
        examples=examples,
        out=out,
        settings=settings,
    )


def compare(
    run: PathLike | Run | list[PathLike | Run],
    against: PathLike | Run | list[PathLike | Run],
    data: PathLike | None = None,
    split: str = "dev",
    *,
    precision: str = "auto",
    **settings: object,
) -> dict:
    """Compares two models on the same examples, and prints the differences of their metrics.

    Args:
        run: A model: a run as `evaluate` takes it. Several runs are seeds, which are averaged.
        against: The other model. For selection it may also be "tfidf", "bm25", or a file with a
            score per line; for reading comprehension, a JSON file {question id: answer}.
        data, split, precision, settings: See `evaluate`.

    Returns:
        A dict ready for JSON. Its `metrics` have for each metric `one`, `other`, `difference`, and
        `low` and `high`, the ends of its 95 per cent interval by a paired bootstrap.

    Raises:
        UserError: The models were not scored on the same examples; or see `evaluate`.
    """
    from colloquy.data.prepared import check_splits

    check_splits([split])
    _start_keras()

    from colloquy.engine import compare as comparison
    from colloquy.tasks import TASKS

    return comparison.compare(
        TASKS,
        run,
        against,
        split=split,
        data=data,
        precision=precision,
        settings=settings,
    )


def export(run: PathLike | Run, out: PathLike, version: int = 1, **options: object) -> pathlib.Path:
    """Writes a trained model as a TensorFlow SavedModel that takes raw strings.

    Args:
        run: A run, as `load` takes it.
        out: Directory of the model; the export is its subdirectory `version`.
        version: Unused version number; TensorFlow Serving serves the highest.
        options: `decode`, of models of generation; default: the run's own.

    Returns:
        The directory of the version. `tasks/TASK/export.py` says what its endpoints take.

    Raises:
        UserError: The run cannot be exported, or the version exists.
    """
    _start_keras()

    from colloquy.engine.export import export as write
    from colloquy.engine.run import Run
    from colloquy.tasks import TASKS

    opened = Run.open(run)
    return write(TASKS[opened.task], opened, out, version, **options)


def _start_keras(devices="one"):
    from colloquy.base import backend, runtime

    # Keras takes seconds to load, so wrong devices are refused first.
    backend.check_devices(devices)
    runtime.prepare()
    backend.import_keras()
