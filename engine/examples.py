"""Examples of a split, for people to read and to try a model on."""

from typing import Any

from colloquy.data.batching import evenly_spaced


def take_examples(
    task: Any, dataset: Any, count: int = 3, split: str = "dev", as_scored: bool = False
) -> list[dict]:
    """At most `count` examples of a split, `{"title", "instance", "expected"}`.

    A dataset without texts has none. With `as_scored`, they have the words that are scored: see
    `engine.task.Task.read_example`.
    """
    if not dataset.vocabulary:
        return []
    make_example = task.read_example if as_scored else task.example
    examples = []
    for number in evenly_spaced(task.num_examples(dataset.splits[split]), count):
        title = f"{split}, {task.example_unit} {number + 1}"
        example = make_example(dataset, dataset.splits[split], number)
        examples.append({"title": title, **example})
    return examples
