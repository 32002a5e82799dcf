"""Vocabularies and weights of trained models and prepared datasets, for other trainings."""

import dataclasses
import pathlib
from typing import Any, Self

from colloquy.base.files import PathLike, UserError
from colloquy.data.prepared import METADATA, VECTORS, VOCABULARY, read_embedding, read_metadata
from colloquy.data.vocabulary import Vocabulary


@dataclasses.dataclass(frozen=True)
class Words:
    """The words of a run or a prepared dataset, for other data with the same vocabulary."""

    path: pathlib.Path
    metadata: dict
    """All of `dataset.json`; of a run its dataset's, with `hashed_words` and `trained_words`."""
    vocabulary: Vocabulary
    run: Any = None
    """The `engine.run.Run`; `None` for a dataset."""

    @classmethod
    def of(cls, path: PathLike, task: str) -> Self:
        """Opens the run or dataset that `--vocabulary_of` names.

        Raises:
            UserError: It is not of the task with the name `task`.
        """
        path = pathlib.Path(path)
        if not (path / METADATA).is_file():
            run = _open_run(path, task, "vocabulary_of")
            metadata = dict(run.dataset)
            for name in ("hashed_words", "trained_words"):
                metadata[name] = getattr(run.config, name, 0)
            return cls(run.path, metadata, run.vocabulary, run)

        metadata = read_metadata(path, task)
        hashed = metadata.get("hashed_words", 0)
        if type(hashed) is not int or hashed < 0:
            raise UserError(
                f"{path / METADATA}: expected hashed_words of at least 0. Received: {hashed!r:.60}"
            )
        return cls(path, metadata, Vocabulary.load(path / VOCABULARY, hashed))

    def vectors(self) -> Any:
        """Reads the word vectors, float32 `(words + 1, dimension)`; row 0 is padding."""
        if self.run:
            return self.run.load_model().word_vectors()
        return read_embedding(self.path / VECTORS, self.vocabulary)


def start_from(path: Any, model: Any, dataset: Any, task: Any) -> None:
    """Gives a fresh model the weights of the run at `path`, which has the same words.

    Layers missing there, such as an extension, keep their fresh weights; they are printed.
    """
    run = _open_run(path, task.name, "init_from")
    if dataset.vocabulary is None or dataset.vocabulary.words != run.vocabulary.words:
        raise UserError(
            f"init_from={path}: {dataset.path} has other words; "
            f"prepare.py --vocabulary_of={path} gives it the run's"
        )
    trained = {weight.path: weight for weight in run.load_model().weights}
    weights = {weight.path: weight for weight in model.weights}
    for name in sorted(trained):
        expected = tuple(trained[name].shape)
        received = tuple(weights[name].shape) if name in weights else "a model without it"
        if received != expected:
            raise UserError(
                f"init_from={path}: expected {name} of shape {expected}, as in the run. "
                f"Received: {received}"
            )

    fresh_layers = {_layer(name) for name in weights if name not in trained}
    for name, weight in trained.items():
        if _layer(name) not in fresh_layers:
            weights[name].assign(weight)
    if fresh_layers:
        names = ", ".join(sorted(fresh_layers))
        print(f"{path} lacks {names}: these start from fresh weights")


def _layer(weight_path):
    return weight_path.partition("/")[0]


def _open_run(path, task, flag):
    # TensorFlow takes seconds to load, and most data have words of their own.
    from colloquy.engine.run import Run

    run = Run.open(path)
    if run.task != task:
        raise UserError(f"--{flag} expects a run of {task}. Received: {path}, of {run.task}")
    if not (run.path / VOCABULARY).is_file():
        raise UserError(f"--{flag} expects a run with a {VOCABULARY}. Received: {path}")
    return run
