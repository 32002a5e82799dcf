"""What other data and trainings take from a trained model: its words, its weights."""

from base.files import UserError
from data.prepared import VOCABULARY
from data.vocabulary import Vocabulary


def run_of(path, task, flag="vocabulary_of"):
    """Opens a run whose vocabulary other data shall have.

    Args:
        path: Its directory.
        task: The name of the `engine.task.Task` that it must be of.
        flag: What the user gave it by.

    Raises:
        UserError: where it is of another task, or has no vocabulary.
    """
    from engine.runs import Run  # TensorFlow takes seconds to load, and most data have words of their own

    run = Run.open(path)
    if run.entry.task != task:
        raise UserError(f"--{flag} expects a run of {task}. Received: {path}, of {run.entry.task}")
    if not (run.path / VOCABULARY).is_file():
        raise UserError(f"--{flag} expects a run with a {VOCABULARY}. Received: {path}")
    return run


def vocabulary_of(run):
    """The `data.vocabulary.Vocabulary` of a run, hashed ids included."""
    return Vocabulary.load(run.path / VOCABULARY, run.config["settings"].get("hashed_words", 0))


def word_vectors_of(run):
    """The word vectors of a run's model, float32 `(words + 1, dimension)`; row 0 is padding."""
    [vectors] = run.load_model().get_layer("word_embedding").get_weights()
    return vectors


def start_from(path, model, dataset, task):
    """Gives a fresh model the weights of a trained one.

    A layer that the trained one has not, such as an extension, keeps its fresh weights, and a line says so.

    Args:
        path: The run of the trained one.
        model: The fresh one.
        dataset: What it is to be trained on.
        task: The `engine.task.Task` of both.

    Raises:
        UserError: where the two differ in their words or in the shape of a weight, or the fresh one lacks a layer.
    """
    run = run_of(path, task.name, "init_from")
    if dataset.vocabulary is None or dataset.vocabulary.words != vocabulary_of(run).words:
        raise UserError(
            f"--init_from={path}: {dataset.path} has other words; prepare.py --vocabulary_of={path} gives it the run's"
        )
    trained = {weight.path: weight for weight in run.load_model().weights}
    weights = {weight.path: weight for weight in model.weights}
    for name in sorted(trained.keys() & weights.keys()):
        here, there = tuple(weights[name].shape), tuple(trained[name].shape)
        if here != there:
            raise UserError(f"--init_from={path}: expected {name} of shape {there}, as in the run. Received: {here}")
    for name in sorted(trained.keys() - weights.keys()):
        raise UserError(f"--init_from={path}: expected {name}, as in the run. Received: a model without it")
    for name, weight in trained.items():
        weights[name].assign(weight)
    fresh = sorted({name.partition("/")[0] for name in weights.keys() - trained.keys()})
    if fresh:
        print(f"{path} has no {', '.join(fresh)}: trained from fresh weights")
