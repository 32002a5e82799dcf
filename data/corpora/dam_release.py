"""Corpora as the release of DAM has them (Zhou et al. 2018): words are ids already.

    data.pkl             (train, dev, test), each {"y": labels, "c": contexts, "r": responses} in
                         lists of ids; the id of `_EOS_` follows each turn of a context
    word2id              words, each followed by its id, separated by white space; may be missing
    word_embedding.pkl   vectors, row i of the word with id i

Pickles are of Python 2, or of any version.
"""

import re

import numpy as np

from colloquy.base.files import PathLike, UserError, in_one_line
from colloquy.data import pickles
from colloquy.data.text_files import read_lines
from colloquy.data.tokenizers import WHITESPACE, words_of
from colloquy.data.vocabulary import PADDING_ID, Vocabulary

TOKENIZER = WHITESPACE
SPLITS = ("train", "dev", "test")


def read(file: PathLike) -> dict[str, tuple]:
    """Reads `data.pkl`: `{split: (contexts, responses, labels)}`, of equal length.

    Values of other types may raise any exception of `data.prepared.checked`.
    """
    data = pickles.load(file)
    if not isinstance(data, tuple | list) or len(data) != len(SPLITS):
        received = type(data).__name__
        raise UserError(f"{file}: expected a tuple (train, dev, test). Received: {received}")
    splits = {}
    for name, split in zip(SPLITS, data, strict=True):
        splits[name] = _read_split(file, name, split)
    return splits


def load_word2id(path: PathLike, eos_id: int) -> Vocabulary:
    """Reads `word2id`: words, each followed by its id.

    Both are separated by ASCII white space, in any order of the ids. An id without a word gets the
    placeholder `_ID_`. The file may lack `_EOS_` or spell it differently.
    """
    words_by_id = {eos_id: "_EOS_"}
    tokens = _numbered_tokens(path)
    for line, word in tokens:
        _, id = next(tokens, (line, ""))
        if not re.fullmatch("[0-9]{1,9}", id):
            raise UserError(
                f"{path}, line {line}: expected an id after {word!r:.60}. Received: {id!r:.60}"
            )
        id = int(id)
        if word == "_EOS_" and id != eos_id:
            expected = f"expected _EOS_ to have the id {eos_id}, by --eos_id or --name"
            raise UserError(f"{path}, line {line}: {expected}. Received: {id}")
        if id in (PADDING_ID, eos_id):
            continue
        known_word = words_by_id.setdefault(id, word)
        if known_word != word:
            raise UserError(f"{path}, line {line}: expected a new id; {id} is {known_word!r:.60}")

    size = max(words_by_id)
    # Ids without a word are filled in: a large id must not make a large vocabulary.
    largest = 2 * len(words_by_id) + eos_id
    if size > largest:
        raise UserError(f"{path}: expected ids up to {largest:,}. Received: {size:,}")
    try:
        return Vocabulary(tuple(words_by_id.get(id, f"_{id}_") for id in range(1, size + 1)))
    except ValueError as error:
        message = re.sub(r"\bline (?=[0-9])", "id ", str(error))
        raise UserError(f"{path}: {message}") from error


def _numbered_tokens(path):
    """Yields the number of the line and the text of each token between white space."""
    for number, line in read_lines(path, "words and ids"):
        for token in words_of(line):
            yield number, token


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
        others = {str(label) for label in labels} - {"0", "1", "0.0", "1.0", "True", "False"}
        received = in_one_line(sorted(others), 60)
        raise UserError(f"{file}: expected labels of {name} of 0 or 1. Received: {received}")
    return _without_padding(contexts), _without_padding(responses), numbers.astype(int).tolist()


def _without_padding(texts):
    """Texts without the zeros at their ends, with which some make them equally long."""
    unpadded = []
    for text in texts:
        is_padded = list(text[-1:]) == [0]
        unpadded.append(np.trim_zeros(text, "b") if is_padded else text)
    return unpadded
