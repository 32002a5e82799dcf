"""A file of sources with several references each, for comparing replies with all of them at once.

    {"how are you ?": ["fine , thanks", "not so well"], "hello\\tgood morning , how are you ?": ["fine"]}

JSON, `{source: [reference]}`, plain text with a tab between the turns of a source; the run's tokenizer splits it.
"""

import pathlib

import numpy as np

from base.files import UserError
from data.sequences import Sequences
from data.text_files import read_json
from data.tokenizers import TOKENIZERS, normalize
from data.vocabulary import EOS_ID
from tasks.generation.data import GenerationSplit


def read_references(path, vocabulary, tokenizer, lower, turns):
    """Reads a file of references.

    Args:
        path: The file.
        vocabulary: The `data.vocabulary.Vocabulary` of the model that replies.
        tokenizer, lower, turns: As of `tasks.generation.dataset.GenerationDataset`.

    Returns:
        A `GenerationSplit` with a pair per reference, `several` set.

    Raises:
        UserError: where the file is no such JSON, or a text has no words.
    """
    found = read_json(path)
    if not isinstance(found, dict) or not found:
        raise UserError(f"{path}: expected an object {{source: [reference]}}. Received: {type(found).__name__}")
    pairs = []
    for source, references in found.items():
        if not isinstance(references, list) or not references or not all(isinstance(text, str) for text in references):
            raise UserError(f"{path}: expected a list of texts for the source {source[:60]!r}")
        said = [_words(text, tokenizer, lower, path) for text in source.split("\t")][-turns:]
        pairs += [(said, _words(text, tokenizer, lower, path)) for text in references]
    return GenerationSplit(
        source=Sequences.of([[id for words in said for id in _ids(words, vocabulary)] for said, _ in pairs]),
        target=Sequences.of([_ids(words, vocabulary) for _, words in pairs]),
        source_texts=["\t".join(map(" ".join, said)) for said, _ in pairs],
        target_texts=[" ".join(words) for _, words in pairs],
        seen=np.zeros(len(pairs), bool),
        bos=len(vocabulary) + 1,
        several=True,
    )


def _words(text, tokenizer, lower, path):
    words = TOKENIZERS[tokenizer].tokenize(normalize(text, lower))
    if not words:
        raise UserError(f"{pathlib.Path(path)}: expected texts with words. Received: {text[:60]!r}")
    return words


def _ids(words, vocabulary):
    return [*vocabulary.encode(words), EOS_ID]
