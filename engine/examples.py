"""Examples of a split, for people to read and to try a model on."""

from typing import Any

from colloquy.base.files import UserError, printable
from colloquy.data.batching import evenly_spaced
from colloquy.engine.run import Run


def take_examples(
    task: Any, dataset: Any, count: int = 3, split: str = "dev", as_scored: bool = False
) -> list[dict]:
    """At most `count` examples of a split, with a `title`.

    A dataset without texts has none. They are those of `engine.task.Task.example`, to try a model
    on; with `as_scored`, those of `read_example`.
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


def check_vocabulary(dataset: Any) -> None:
    """Refuses, as a `UserError`, to show examples of a dataset without words."""
    if not dataset.vocabulary:
        raise UserError(
            f"{dataset.path} has no vocabulary.txt, so its examples cannot be shown in words"
        )


def show_examples(task: Any, run: Run, dataset: Any, split: str, count: int) -> None:
    """Prints examples of a split as the model of a run reads and answers them.

    An asterisk marks a correct answer.
    """
    examples = take_examples(task, dataset, count, split, as_scored=True)
    predictor = task.predictor(run).for_scored_examples()
    for example in examples:
        print(printable(_describe_example(predictor, example)))


def _describe_example(predictor, example):
    """Returns lines with an example as the model reads it, its answers and the expected ones."""
    expected = example["expected"]
    instance = predictor.make_instance(example["instance"], example["title"])
    read, answers = predictor.show(instance)
    lines = ["", example["title"]]
    for label, text in read:
        lines.append(f"    {label:10}{text}")
    for score, text in answers:
        mark = "*" if text in expected else " "
        lines.append(f"{score:12.2f} {mark} {text}")
    has_correct_answer = any(text in expected for _, text in answers)
    if expected and not has_correct_answer:
        lines.append(f"    expected: {' / '.join(expected)}")
    return "\n".join(lines)
