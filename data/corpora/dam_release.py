"""Corpora as the release of DAM has them (Zhou et al. 2018): words are ids already.

    data.pkl             (train, dev, test), each {"y": labels, "c": contexts, "r": responses} in
                         lists of ids; the id of `_EOS_` follows each turn of a context
    word2id              words, each followed by its id, separated by white space; may be missing
    word_embedding.pkl   vectors, row i of the word with id i

Pickles are of Python 2, or of any version.
"""

import numpy as np

from colloquy.base.files import PathLike, UserError, in_one_line
from colloquy.data import pickles
from colloquy.data.text_files import existing_directory
from colloquy.data.tokenizers import WHITESPACE
from colloquy.data.vocabulary import Vocabulary

TOKENIZER = WHITESPACE
SPLITS = ("train", "dev", "test")


def read(directory: PathLike) -> dict[str, tuple]:
    """Reads `data.pkl`: `{split: (contexts, responses, labels)}`, of equal length.

    Values of other types may raise any exception of `data.prepared.checked`.
    """
    file = existing_directory(directory) / "data.pkl"
    data = pickles.load(file)
    if not isinstance(data, tuple | list) or len(data) != len(SPLITS):
        received = type(data).__name__
        raise UserError(f"{file}: expected a tuple (train, dev, test). Received: {received}")
    splits = {}
    for name, split in zip(SPLITS, data, strict=True):
        splits[name] = _read_split(file, name, split)
    return splits


def read_vocabulary(directory: PathLike, eos_id: int) -> Vocabulary | None:
    """Reads the words of `word2id`; `None` if the release lacks it."""
    file = existing_directory(directory) / "word2id"
    return Vocabulary.load_word2id(file, eos_id) if file.is_file() else None


def _read_split(file, name, split):
    if not isinstance(split, dict) or not {"y", "c", "r"} <= split.keys():
        raise UserError(f"{file}: expected {name} to be a dict with y, c and r")
    labels, contexts, responses = split["y"], split["c"], split["r"]
    lengths = [len(labels), len(contexts), len(responses)]
    if len(set(lengths)) > 1:
        raise UserError(f"{file}: y, c and r must be equally long. Received: {lengths}")
    # Some files have the labels as texts.
    numbers = np.array(labels).astype(float)
    if numbers.ndim != 1 or not np.isin(numbers, (0, 1)).all():
        received = in_one_line(sorted({str(label) for label in labels}), 60)
        raise UserError(f"{file}: expected labels of {name} of 0 or 1. Received: {received}")
    return _without_padding(contexts), _without_padding(responses), numbers.astype(int).tolist()


def _without_padding(texts):
    """Texts without the zeros at their ends, with which some make them equally long."""
    unpadded = []
    for text in texts:
        is_padded = list(text[-1:]) == [0]
        unpadded.append(np.trim_zeros(text, "b") if is_padded else text)
    return unpadded
