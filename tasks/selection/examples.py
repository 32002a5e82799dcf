"""Contexts to look at: what a model makes of each candidate, in words."""

import numpy as np

from base.files import UserError


def ranked_examples(dataset, split, scores, count):
    """Some contexts of a split, at equal distances, with their candidates from the best score to the worst.

    Args:
        dataset: A `tasks.selection.dataset.SelectionDataset` with a vocabulary.
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
    examples, scores = dataset.splits[split], np.asarray(scores)
    context, label = examples.context[: len(scores)], examples.label[: len(scores)]
    contexts = int(context[-1]) + 1

    def text(sequences, index):
        ids = sequences.ids[sequences.starts[index] :][: sequences.lengths[index]]
        return " ".join(dataset.vocabulary.words[id - 1] for id in ids)

    found = []
    count = min(count, contexts)
    for number in (2 * np.arange(count) + 1) * contexts // (2 * count):
        lines = np.flatnonzero(context == number)
        first = examples.context_start[number]
        turns = range(first, first + examples.context_turns[number])
        candidates = [
            {"score": float(scores[i]), "label": int(label[i]), "text": text(examples.responses, i)}
            for i in lines[np.lexsort([label[lines], -scores[lines]])]
        ]
        found.append(
            {
                "context": int(number) + 1,
                "contexts": contexts,
                "turns": [text(examples.turns, turn) for turn in turns],
                "candidates": candidates,
            }
        )
    return found


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
