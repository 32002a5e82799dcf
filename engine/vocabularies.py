"""Vocabularies and weights of trained models and prepared datasets, for other data and other
trainings.
"""

import dataclasses
import pathlib
from collections.abc import Callable

from colloquy.base.files import UserError
from colloquy.data.prepared import METADATA, VECTORS, VOCABULARY, read_embedding, read_metadata
from colloquy.data.vocabulary import Vocabulary


@dataclasses.dataclass(frozen=True)
class Words:
    """The words of a run or a prepared dataset, for other data with the same vocabulary."""

    path: pathlib.Path
    # all of the `dataset.json`; of a run its dataset's metadata, `hashed_words` and `trained_words`
    metadata: dict
    vocabulary: Vocabulary
    # of no arguments: the word vectors, float32 `(words + 1, dimension)`; row 0 is padding
    vectors: Callable

    @classmethod
    def of(cls, path, task):
        """Opens the run or dataset that `--vocabulary_of` names; `task` is the name of the task
        that it must be of.
        """
        path = pathlib.Path(path)
        if (path / METADATA).is_file():
            metadata = read_metadata(path, task)
            hashed = metadata.get("hashed_words", 0)
            if type(hashed) is not int or hashed < 0:
                raise UserError(
                    f"{path / METADATA}: expected hashed_words of at least 0. Received: {hashed!r:.60}"
                )
            vocabulary = Vocabulary.load(path / VOCABULARY, hashed)
            return cls(
                path, metadata, vocabulary, lambda: read_embedding(path / VECTORS, vocabulary)
            )
        run = _run_of(path, task, "vocabulary_of")
        sizes = {name: getattr(run.config, name, 0) for name in ("hashed_words", "trained_words")}

        def vectors():
            [table] = run.load_model().get_layer("word_embedding").get_weights()
            return table

        return cls(path, {**run.dataset, **sizes}, run.vocabulary, vectors)


def start_from(path, model, dataset, task):
    """Gives a fresh model the weights of the run at `path`, with the same words, and prints the
    layers missing there.

    These, such as an extension, keep their fresh weights.
    """
    run = _run_of(path, task.name, "init_from")
    if dataset.vocabulary is None or dataset.vocabulary.words != run.vocabulary.words:
        raise UserError(
            f"--init_from={path}: {dataset.path} has other words; prepare.py --vocabulary_of={path} gives it the run's"
        )
    trained, weights = (
        {weight.path: weight for weight in each.weights} for each in (run.load_model(), model)
    )
    for name, weight in sorted(trained.items()):
        there, here = (
            tuple(weight.shape),
            tuple(weights[name].shape) if name in weights else "a model without it",
        )
        if here != there:
            raise UserError(
                f"--init_from={path}: expected {name} of shape {there}, as in the run. Received: {here}"
            )
    fresh = sorted({name.partition("/")[0] for name in weights.keys() - trained.keys()})
    for name, weight in trained.items():
        if name.partition("/")[0] not in fresh:
            weights[name].assign(weight)
    if fresh:
        print(f"{path} lacks {', '.join(fresh)}: these start from fresh weights")


def _run_of(path, task, flag):
    # TensorFlow takes seconds to load, and most data have words of their own
    from colloquy.engine.run import Run

    run = Run.open(path)
    if run.task != task:
        raise UserError(f"--{flag} expects a run of {task}. Received: {path}, of {run.task}")
    if not (run.path / VOCABULARY).is_file():
        raise UserError(f"--{flag} expects a run with a {VOCABULARY}. Received: {path}")
    return run
