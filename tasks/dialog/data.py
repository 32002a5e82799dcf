"""Prepared datasets of dialogs."""

import dataclasses
import pathlib

from colloquy.base.files import UserError
from colloquy.data import pickles
from colloquy.data.corpora.babi_dialog import Turn
from colloquy.data.prepared import METADATA, Dataset, checked, read_metadata
from colloquy.data.sequences import Sequences
from colloquy.tasks.dialog.domain import DIALOGS, SPLITS, Domain
from colloquy.tasks.dialog.split import SPEAKERS, DialogSplit


@dataclasses.dataclass(frozen=True)
class DialogDataset(Dataset):
    """A prepared directory with a `DialogSplit` for each of `tasks.dialog.domain.SPLITS`."""

    domain: Domain

    @property
    def vocabulary(self):
        return self.domain.vocabulary

    def conversation(self, split, dialog):
        """The `Turn`s of a split's dialog."""
        names = ["", *SPEAKERS]  # speakers are numbered from 1
        sentences = split.sentences.words.lists(dialog["sentences"])
        conversation = []
        for speaker, ids in zip(dialog["speakers"], sentences, strict=True):
            text = " ".join(self.vocabulary.word(id) for id in ids)
            conversation.append(Turn(names[speaker], text))
        return conversation


def load_dataset(path):
    """Reads a prepared dataset; missing, malformed or contradictory files are a `UserError`."""
    path = pathlib.Path(path)
    tasks = sorted(path.glob(f"*/{METADATA}"))
    if tasks and not (path / METADATA).is_file():
        raise UserError(f"{path} holds datasets: give one of them, such as {tasks[0].parent}")
    metadata = read_metadata(path, "dialog")
    domain = Domain.load(path)
    data = pickles.load(path / DIALOGS)
    with checked(path / DIALOGS, "what prepare.py writes for these words and candidates"):
        sentences = _encode_sentences(data["sentences"], domain)
        splits = {}
        for name in SPLITS:
            dialogs = data["splits"].get(name, [])
            splits[name] = DialogSplit(sentences, dialogs)
            for dialog in dialogs:
                _check(dialog, len(data["sentences"]), len(domain.candidates))
    return DialogDataset(path, metadata["name"], splits, domain)


def _encode_sentences(sentences, domain):
    """Encodes lists of word ids as the `Sentences` of a domain."""
    # Unlike `Vocabulary.word`, the dict refuses an id that is not one of its words.
    word_of_id = dict(enumerate(domain.vocabulary.words, 1))
    lists_of_words = []
    for ids in Sequences.of(sentences).lists():
        lists_of_words.append([word_of_id[id] for id in ids])
    return domain.encode(lists_of_words)


def _check(dialog, num_sentences, num_candidates):
    """Raises a `ValueError` where the lists of a dialog do not fit each other."""
    num_said = len(dialog["sentences"])
    num_turns = len(dialog["turns"])
    if not num_said or not num_turns:
        raise ValueError("a dialog must have sentences and turns")
    # field -> the length of its list, and the largest number that it may have
    limits = {
        "sentences": (num_said, num_sentences - 1),
        "speakers": (num_said, len(SPEAKERS)),
        "times": (num_said, num_said - 1),
        "turns": (num_turns, num_said - 1),
        "answers": (num_turns, num_candidates - 1),
    }
    for name, (length, largest) in limits.items():
        numbers = dialog[name]
        if len(numbers) != length or min(numbers) < 0 or max(numbers) > largest:
            raise ValueError(f"{name} must be {length} numbers from 0 to {largest}")
