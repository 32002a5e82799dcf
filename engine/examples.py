"""Examples of a split, for people to read and to try a model on."""

from collections.abc import Callable
from typing import Any

from colloquy.data.batching import evenly_spaced


def take_examples(task: Any, dataset: Any, count: int = 3, split: str = "dev") -> list[dict]:
    """At most `count` examples of a split, `{"title", "instance", "expected"}`.

    A dataset without texts has none.
    """
    return _take(task, task.example, dataset, count, split)


def take_scored_examples(task: Any, dataset: Any, count: int, split: str) -> list[dict]:
    """Like `take_examples`, with the words that are scored: see `engine.task.Task.read_example`."""
    return _take(task, task.read_example, dataset, count, split)


def _take(task: Any, make_example: Callable, dataset: Any, count: int, split: str) -> list[dict]:
    if not dataset.vocabulary:
        return []
    examples = []
    for number in evenly_spaced(task.num_examples(dataset.splits[split]), count):
        title = f"{split}, {task.example_unit} {number + 1}"
        example = make_example(dataset, dataset.splits[split], number)
        examples.append({"title": title, **example})
    return examples
