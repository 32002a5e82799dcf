"""Examples of dialog as a model sees them."""

from data.vocabulary import UNK_ID
from engine.view import Line, Word
from tasks.dialog.prepare import FACT, USER


def count(split):
    """How many dialogs a split has."""
    return len(split)


def lines_of(dataset, split, number, settings):
    """A dialog, see `engine.view.Line`: the bot's sentences are answers, facts what a search brought."""
    dialogs, words = dataset.splits[split], dataset.world.vocabulary.words
    dialog, lines = dialogs.dialogs[number], []
    limit = settings.get("max_words")
    for sentence, speaker, time in zip(dialog["sentences"], dialog["speakers"], dialog["times"], strict=True):
        ids = [id for id in dialogs.sentences.words[sentence].tolist() if id]
        shown = [
            Word(words[id - 1], id != UNK_ID, not limit or place < limit, speaker not in (USER, FACT))
            for place, id in enumerate(ids)
        ]
        lines.append(Line(f"{time + 1} {NAMES[speaker]}", shown))
    return lines


NAMES = ("", "user", "bot", "fact")
