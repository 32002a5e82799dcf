"""Examples of response generation as a model sees them."""

from data.vocabulary import UNK_ID
from engine.view import Line, Word
from tasks.generation.batches import LENGTHS


def count(split):
    """How many pairs a split has."""
    return len(split)


def lines_of(dataset, split, number, settings):
    """A source and its target, see `engine.view.Line`."""
    pairs = dataset.splits[split]
    turns = [text.split() for text in pairs.source_texts[number].split("\t")]
    words = [word for turn in turns for word in (*turn, "_EOS_")]
    ids = _ids(pairs.source, number)
    cut = len(ids) - LENGTHS["max_source"]
    source = [Word(word, id != UNK_ID, place >= cut) for place, (word, id) in enumerate(zip(words, ids, strict=True))]
    lines = []
    for place, turn in enumerate(turns, 1):
        lines.append(Line(f"turn {place}", source[: len(turn) + 1]))
        source = source[len(turn) + 1 :]
    words, ids = [*pairs.target_texts[number].split(), "_EOS_"], _ids(pairs.target, number)
    target = [
        Word(word, id != UNK_ID, place < LENGTHS["max_target"], answer=True)
        for place, (word, id) in enumerate(zip(words, ids, strict=True))
    ]
    return [*lines, Line("target", target)]


def _ids(sequences, row):
    start = sequences.starts[row]
    return sequences.ids[start : start + sequences.lengths[row]].tolist()
