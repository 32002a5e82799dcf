"""Examples of response selection as a model sees them."""

import numpy as np

from engine.view import Line, Word
from models.dam import DAMConfig

UNKNOWN = "_UNK_"


def count(split):
    """How many contexts a split has."""
    return len(split.context_start)


def lines_of(dataset, split, number, settings):
    """A context with its candidates, see `engine.view.Line`."""
    max_turns, max_words = (settings.get(name, getattr(DAMConfig, name)) for name in ("max_turns", "max_words"))
    examples = dataset.splits[split]
    first, count = examples.context_start[number], examples.context_turns[number]

    def words(sequences, row, read, answer=False):
        start, length = sequences.starts[row], sequences.lengths[row]
        texts = [_text(dataset, id) for id in sequences.ids[start : start + length].tolist()]
        return [
            Word(text, text != UNKNOWN, read and place >= length - max_words, answer)
            for place, text in enumerate(texts)
        ]

    turns = [
        Line(f"turn {turn + 1}", words(examples.turns, first + turn, turn >= count - max_turns))
        for turn in range(count)
    ]
    rows = np.flatnonzero(examples.context == number)
    return turns + [
        Line(f"candidate {place}", words(examples.responses, row, True, bool(examples.label[row])))
        for place, row in enumerate(rows, 1)
    ]


def _text(dataset, id):
    """A word, or its id where the dataset has no vocabulary."""
    if dataset.vocabulary is not None:
        return dataset.vocabulary.word(id)
    return UNKNOWN if id == dataset.unk_id else str(id)
