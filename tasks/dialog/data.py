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
        speaker_names = {number: name for name, number in SPEAKERS.items()}
        sentences = split.sentences.words.lists(dialog["sentences"])
        conversation = []
        for speaker, ids in zip(dialog["speakers"], sentences, strict=True):
            text = " ".join(self.vocabulary.word(id) for id in ids)
            conversation.append(Turn(speaker_names[speaker], text))
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
    word_of_id = dict(enumerate(domain.vocabulary.words, 1))
    texts = []
    for ids in Sequences.of(sentences).lists():
        texts.append([word_of_id[id] for id in ids])
    return domain.encode(texts)


def _check(dialog, num_sentences, num_candidates):
    """Raises a `ValueError` where the lists of a dialog do not fit each other."""
    length = len(dialog["sentences"])
    turns = len(dialog["turns"])
    # field -> the length of its list, the end of its values
    limits = {
        "sentences": (length, num_sentences),
        "speakers": (length, len(SPEAKERS) + 1),
        "times": (length, length),
        "turns": (turns, length),
        "answers": (turns, num_candidates),
    }
    for name, (size, end) in limits.items():
        values = dialog[name]
        fits = len(values) == size and size > 0 and 0 <= min(values) and max(values) < end
        if not fits:
            raise ValueError(f"{name} must be {size or 'some'} numbers from 0 to {end - 1}")
