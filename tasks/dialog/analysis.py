"""Which responses does a model get right, and what is wrong with the others: the wording, or the entities in it?"""

import collections

import numpy as np

from metrics.dialog import reachable_by_seen
from tasks.dialog.response_filter import CALL

TURNS = (2, 4, 6, 8, 10, 15, 20)  # upper ends of the groups by turns
TEMPLATES = 12  # commonest templates with a group of their own


class Responses:
    """The candidates of a dataset, taken apart into a template and the entities in it.

    Args:
        world: A `tasks.dialog.dataset.World`.

    Attributes:
        templates: Of each candidate its words, with `{type}` in place of an entity; a list of texts.
        entities: Of each candidate the entities it names, a list of tuples of numbers.
        calls: Of each candidate whether it asks the knowledge base, boolean `(C,)`.
    """

    def __init__(self, world):
        self.templates, self.entities, calls = [], [], []
        for candidate in world.candidates:
            parts = world.link(candidate.split())
            words = [[f"{{{world.entities[numbers[0]][1]}}}"] if numbers else part for part, numbers in parts]
            self.templates.append(" ".join(word for part in words for word in part))
            self.entities.append(tuple(sorted(tuple(numbers) for _, numbers in parts if numbers)))
            calls.append(candidate.startswith(CALL))
        self.calls = np.array(calls)


def by_kind(responses, dataset, split):
    """The group of each response, int `(responses,)`, and what the groups are called: what the correct one does."""
    named = np.array([bool(entities) for entities in responses.entities])
    kinds = np.where(responses.calls, 0, np.where(named, 1, 2))
    return kinds[split.answers], ["asks the knowledge base", "names an entity", "other"]


def by_template(responses, dataset, split):
    """Likewise, by the template of the correct response: the commonest have a group of their own."""
    templates = [responses.templates[answer] for answer in split.answers]
    common = [template for template, _ in collections.Counter(templates).most_common(TEMPLATES)]
    numbers = {template: number for number, template in enumerate(common)}
    return np.array([numbers.get(template, len(common)) for template in templates]), [*common, "the rest"]


def by_seen(responses, dataset, split):
    """Likewise, by whether the correct response is one of a training dialog."""
    return reachable_by_seen(dataset.splits["train"].answers, split.answers).astype(int), ["not in train", "in train"]


def by_turns(responses, dataset, split):
    """Likewise, by how many turns of the dialog there were, its own among them."""
    first = np.searchsorted(split.dialog, split.dialog)
    return np.searchsorted(TURNS, np.arange(len(split.dialog)) - first + 1), _ranges()


GROUPINGS = {"kind": by_kind, "template": by_template, "seen": by_seen, "turns": by_turns}


def _ranges():
    """
    >>> _ranges()
    ['1-2', '3-4', '5-6', '7-8', '9-10', '11-15', '16-20', '21+']
    """
    begins = [1, *(end + 1 for end in TURNS)]
    return [*(f"{begin}-{end}" for begin, end in zip(begins, TURNS, strict=False)), f"{begins[-1]}+"]


def metrics_by(dataset, split, predicted, groupings):
    """The metrics of groups of responses, see `engine.task.Task.metrics_by`.

    Args:
        dataset: A `tasks.dialog.dataset.DialogDataset`.
        split: A `tasks.dialog.data.DialogSplit`.
        predicted: The candidate given as each response, int `(responses,)`.
        groupings: Keys of `GROUPINGS`.

    Returns:
        As there. `per_response` is the fraction of correct responses, `template` and `entities` the fractions of
        those whose words apart from entities, and whose entities, are the correct one's.
    """
    responses = Responses(dataset.world)
    correct = {"per_response": predicted == split.answers}
    for name, parts in {"template": responses.templates, "entities": responses.entities}.items():
        pairs = zip(predicted, split.answers, strict=True)
        correct[name] = np.array([parts[given] == parts[answer] for given, answer in pairs])
    found = {}
    for name in groupings:
        group, names = GROUPINGS[name](responses, dataset, split)
        found[name] = [
            {
                "group": names[number],
                "examples": int((group == number).sum()),
                "metrics": {metric: float(right[group == number].mean()) for metric, right in correct.items()},
            }
            for number in np.unique(group)
        ]
    return found
