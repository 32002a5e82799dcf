"""Contexts to look at: what a model makes of each candidate, in words."""

import numpy as np

from base.files import UserError


def ranked_examples(dataset, split, scores, count):
    """Some contexts of a split, at equal distances, with their candidates from the best score to the worst.

    Args:
        dataset: A `tasks.selection.data.SelectionDataset` with a vocabulary.
        split: Name of a split.
        scores: A score for each of its lines `(lines,)`, or for the first of them.
        count: How many contexts; fewer where the split has no more.

    Returns:
        List of `{"context": number from 1, "contexts": how many there are, "turns": [text, ...],
        "candidates": [{"score", "label", "text"}, ...]}`. Equal scores stand in file order, negatives first.

    Raises:
        UserError: where the dataset has no vocabulary, as the release's published files.
    """
    if dataset.vocabulary is None:
        raise UserError(f"{dataset.path} has no vocabulary.txt, so its examples cannot be shown in words")
    scores = np.asarray(scores)
    label, context = dataset.splits[split].label[: len(scores)], dataset.splits[split].context[: len(scores)]
    contexts = int(context[-1]) + 1
    found = []
    for number in spread(contexts, count):
        turns, texts = in_words(dataset, split, number)
        lines = np.flatnonzero(context == number)
        candidates = [
            {"score": float(score), "label": int(label), "text": text}
            for score, label, text in zip(scores[lines], label[lines], texts, strict=False)
        ]
        candidates.sort(key=lambda candidate: (-candidate["score"], candidate["label"]))
        found.append({"context": number + 1, "contexts": contexts, "turns": turns, "candidates": candidates})
    return found


def spread(contexts, count):
    """At most `count` of the numbers from 0 to `contexts - 1`, at equal distances.

    >>> spread(150, 3), spread(2, 3)
    ([25, 75, 125], [0, 1])
    """
    count = min(count, contexts)
    return [(2 * i + 1) * contexts // (2 * count) for i in range(count)]


def in_words(dataset, split, number):
    """The texts of the turns and of the candidates of one context, oldest turn first, candidates in file order."""
    examples, word = dataset.splits[split], dataset.vocabulary.word

    def texts(sequences, indices):
        return [" ".join(map(word, ids)) for ids in sequences.lists(indices)]

    first = examples.context_start[number]
    turns = texts(examples.turns, range(first, first + examples.context_turns[number]))
    return turns, texts(examples.responses, np.flatnonzero(examples.context == number))


def render(examples):
    """The examples as plain text; an asterisk marks a correct candidate.

    >>> turns, wrong = ["hello .", "hi , you ?"], {"score": -0.5, "label": 0, "text": "a table ."}
    >>> right = {"score": 1.25, "label": 1, "text": "fine ."}
    >>> print(render([{"context": 2, "contexts": 7, "turns": turns, "candidates": [right, wrong]}]))
    Context 2 of 7: the correct candidate is number 1 of 2
        hello .
        hi , you ?
     1.   1.25 * fine .
     2.  -0.50   a table .
    """
    blocks = []
    for example in examples:
        candidates = example["candidates"]
        places = [str(place) for place, candidate in enumerate(candidates, 1) if candidate["label"]]
        one = "the correct candidate is" if len(places) == 1 else "the correct candidates are"
        found = f"{one} number {', '.join(places)} of {len(candidates)}" if places else "no candidate is correct"
        rows = [
            f"{place:2}. {candidate['score']:6.2f} {' *'[candidate['label']]} {candidate['text']}"
            for place, candidate in enumerate(candidates, 1)
        ]
        turns = [f"    {turn}" for turn in example["turns"]]
        title = f"Context {example['context']} of {example['contexts']}: {found}"
        blocks.append("\n".join([title, *turns, *rows]))
    return "\n\n".join(blocks)
