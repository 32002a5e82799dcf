"""Conversations as lists of texts, out of a prepared dataset or a corpus's files: what an index is made of."""

import pathlib

from base.files import UserError
from data.corpora import CORPORA
from tasks.selection.data import load_dataset
from tasks.selection.retrieval.index import vocabulary_hash


def of_dataset(path, vocabulary, split="train"):
    """The conversations of a prepared response-selection dataset: its contexts with their positive responses.

    Args:
        path: The directory.
        vocabulary: The `data.vocabulary.Vocabulary` that it must have.
        split: Which of its splits.

    Yields:
        Lists of texts, words with a space between them.

    Raises:
        UserError: where it cannot be read or has another vocabulary.
    """
    dataset = load_dataset(path)
    if dataset.vocabulary is None or vocabulary_hash(dataset.vocabulary) != vocabulary_hash(vocabulary):
        raise UserError(f"{path}: expected a dataset with the vocabulary of the run. Received: another, or none")
    word = dataset.vocabulary.word
    found = dataset.splits[split]

    def texts(sequences, first, count):
        return [" ".join(map(word, ids)) for ids in sequences.lists(slice(first, first + count))]

    for line in (found.label == 1).nonzero()[0]:
        context = found.context[line]
        turns = texts(found.turns, found.context_start[context], found.context_turns[context])
        yield [*turns, *texts(found.responses, line, 1)]


def of_corpus(corpus, source, split="train"):
    """The conversations of a corpus: of response selection its contexts with their positive responses.

    Args:
        corpus: Key of `data.corpora.CORPORA`.
        source: Directory of its files.
        split: `"train"` or `"dev"`.

    Yields:
        Lists of texts.

    Raises:
        UserError: where a file is missing or at fault.
    """
    task, reader = CORPORA[corpus]
    if task == "selection":
        for line in reader.read(reader.find_split(source, split)):
            if line.label == 1:
                yield [*line.turns, line.response]
    else:
        yield from reader.read(reader.find_splits(pathlib.Path(source))[split], split)
