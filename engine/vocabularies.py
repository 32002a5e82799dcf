"""Reuses a run: its words and vectors for a new dataset, its weights for a new training."""

import dataclasses
import pathlib
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from colloquy.base import backend
from colloquy.base.files import PathLike, UserError
from colloquy.data.prepared import (
    METADATA,
    VECTORS,
    VOCABULARY,
    read_embedding,
    read_metadata,
)
from colloquy.data.vocabulary import Vocabulary
from colloquy.engine.run import Run
from colloquy.engine.run_files import CONFIG

if TYPE_CHECKING:
    import keras


@dataclasses.dataclass(frozen=True)
class Words:
    """The words of a run or a prepared dataset, for other data with the same vocabulary."""

    path: pathlib.Path
    metadata: dict
    """Contents of `dataset.json`. Of a run: the metadata of its dataset, and `trained_words` of its
    config.
    """
    vocabulary: Vocabulary
    run: Run | None = None
    """The run; `None` for a dataset."""

    @classmethod
    def open(cls, path: PathLike, task: str) -> Self:
        """Opens the run or dataset that `--vocabulary_of` names.

        Raises:
            UserError: It is neither, or not of the task with the name `task`.
        """
        path = pathlib.Path(path)
        if not (path / METADATA).is_file():
            if path.is_dir() and not (path / CONFIG).is_file():
                raise UserError(
                    f"--vocabulary_of expects a run or a prepared dataset. Received: {path}"
                )
            run = _open_run(path, task, "vocabulary_of")
            metadata = dict(run.dataset)
            metadata["trained_words"] = getattr(run.config, "trained_words", 0)
            return cls(run.path, metadata, run.vocabulary, run)

        metadata = read_metadata(path, task)
        hashed = metadata.get("hashed_words", 0)
        if type(hashed) is not int or hashed < 0:
            raise UserError(
                f"{path / METADATA}: expected hashed_words of at least 0. Received: {hashed!r:.60}"
            )
        return cls(path, metadata, Vocabulary.load(path / VOCABULARY, hashed))

    def read_vectors(self) -> np.ndarray:
        """Reads the word vectors, float32 `(words + 1, dimension)`; row 0 is padding."""
        if self.run:
            backend.import_keras()
            return self.run.load_model().word_vectors()
        return read_embedding(self.path / VECTORS, self.vocabulary)


def start_from(source: PathLike | Run, model: "keras.Model", dataset: Any, task_name: str) -> None:
    """Gives a fresh model the weights of a run, which has the same words.

    Tables of ids, such as the words of a bot's candidates, stay those of the dataset. A layer with
    a weight that the run lacks, such as an extension, keeps all of its fresh weights; its name is
    printed.
    """
    run = _open_run(source, task_name, "init_from")
    if dataset.vocabulary is None or dataset.vocabulary.words != run.vocabulary.words:
        raise UserError(
            f"init_from={run.path}: {dataset.path} does not have the vocabulary of the run; "
            f"prepare.py --vocabulary_of={run.path} makes a dataset that has it"
        )
    trained_weights = {weight.path: weight for weight in run.load_model().weights}
    fresh_weights = {weight.path: weight for weight in model.weights}
    for path in sorted(trained_weights):
        expected = tuple(trained_weights[path].shape)
        received: object = "a model without it"
        if path in fresh_weights:
            received = tuple(fresh_weights[path].shape)
        if received != expected:
            raise UserError(
                f"init_from={run.path}: expected {path} of shape {expected}, as in the run. "
                f"Received: {received}"
            )

    fresh_layers = {_layer(path) for path in fresh_weights if path not in trained_weights}
    for path, weight in trained_weights.items():
        if _layer(path) not in fresh_layers and weight.dtype != "int32":
            fresh_weights[path].assign(weight)
    if fresh_layers:
        names = ", ".join(sorted(fresh_layers))
        print(f"{run.path} lacks weights of {names}: these start from fresh weights")


def _layer(weight_path):
    return weight_path.partition("/")[0]


def _open_run(source, task_name, flag):
    run = Run.open(source)
    if run.task != task_name:
        raise UserError(
            f"--{flag} expects a run of {task_name}. Received: {run.path}, of {run.task}"
        )
    if not (run.path / VOCABULARY).is_file():
        raise UserError(f"--{flag} expects a run with a {VOCABULARY}. Received: {run.path}")
    return run
