"""Reading comprehension: from SQuAD files to a prepared dataset.

    reading.pkl          {"tokens": distinct tokens as texts,
                          "contexts": [{"text", "tokens", "offsets", "article"}],
                          "splits": {split: [{"id", "context", "question", "tokens", "answers",
                          "spans"}]}} characters.txt       line n is the character with id n

and the files of `data.prepared`; words are in lower case.

`tokens` of contexts and questions are indices of distinct tokens, counted from 1; `offsets` is the
flat list of their starts and ends in the text; `answers` are the reference texts, `spans` their
first and last tokens.
"""

import collections
import pathlib
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from colloquy.base.config import NonNegative, Positive
from colloquy.base.files import UserError, atomic_directory
from colloquy.data.corpora import CORPORA
from colloquy.data.prepared import VECTORS, VOCABULARY, CommonSettings, print_summary, write
from colloquy.data.vocabulary import Vocabulary
from colloquy.data.word_vectors import complete, read_vectors
from colloquy.engine.vocabularies import Words
from colloquy.tasks.reading_comprehension.data import CHARACTERS, READING


class Settings(CommonSettings):
    """Settings of preparing a corpus."""

    vectors: str | None = None
    """File of word vectors, text or .npz; default: the first `*.npz` or `glove*.txt` beside the
    data.
    """
    words_of: Literal["all", "train"] = "all"
    """Words of the vocabulary: all that have a vector, for texts of any user, or those of the
    corpus alone.
    """
    min_count: Positive = 2
    """Characters that occur less often in the training files are unknown."""
    trained_words: NonNegative = 0
    """Words of train without a vector that occur this often get one, which --set train_unknown=true
    trains; 0: none.
    """
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 1
    """Seed of the vectors of words that the file lacks."""


def prepare(corpus, source, out, settings):
    """Prepares a corpus for reading comprehension, see `data.prepared`."""
    reader, source = CORPORA[corpus].reader, pathlib.Path(source)
    files = reader.find_splits(source)
    given = (
        Words.of(settings.vocabulary_of, "reading_comprehension")
        if settings.vocabulary_of
        else None
    )
    vectors = None if given else read_vectors(settings.vectors or _vectors_beside(source))
    with atomic_directory(out) as directory:
        tokens, contexts, numbers, splits, statistics = {}, [], {}, {}, {}
        for split, (file, other_starts) in files.items():
            questions = reader.read(file, other_starts)
            splits[split] = [
                _encode(reader, question, tokens, contexts, numbers) for question in questions
            ]
            statistics[split] = {"file": file.name, **_statistics(splits[split], contexts)}
            if split == "train":
                lower, texts = [token.lower() for token in tokens], (*contexts, *splits[split])
                words = collections.Counter(
                    lower[number - 1] for text in texts for number in text["tokens"]
                )
                letters = collections.Counter(
                    "".join("".join(each["text"].split()) for each in contexts)
                )
        if given:
            vocabulary, characters = given.vocabulary, Vocabulary.load(given.path / CHARACTERS)
            table, trained = given.vectors(), given.metadata.get("trained_words", 0)
        else:
            vocabulary, table, trained = _vocabulary(source, words, tokens, vectors, settings)
            characters = Vocabulary.of(
                char for char, n in letters.most_common() if n >= settings.min_count
            )
        files = {
            READING: {"tokens": list(tokens), "contexts": contexts, "splits": splits},
            VECTORS: table,
            VOCABULARY: vocabulary,
            CHARACTERS: characters,
        }
        sizes = {"vocabulary": len(vocabulary), "characters": len(characters)}
        write(
            directory,
            files,
            corpus,
            source,
            settings,
            {**sizes, **statistics},
            trained_words=trained,
        )
    print_summary(statistics)
    print(f"{out}: {len(vocabulary):,} words, {len(characters):,} characters")


def _vocabulary(source, words, tokens, vectors, settings):
    in_corpus = {token.lower() for token in tokens}
    known = [word for word in vectors if settings.words_of == "all" or word in in_corpus]
    if not known:
        raise UserError(f"{source}: expected word vectors of the corpus's words. Received: none")
    frequent = [
        word
        for word, n in words.most_common()
        if 0 < settings.trained_words <= n and word not in vectors
    ]
    vocabulary = Vocabulary.of([*known, *frequent])
    table = complete(vectors, vocabulary, len(next(iter(vectors.values()))), settings.seed)
    return vocabulary, table, len(vocabulary) - len(Vocabulary.of(known))


def _vectors_beside(source):
    found = [*sorted(source.glob("*.npz")), *sorted(source.glob("glove*.txt"))]
    if not found:
        raise UserError(
            f"{source}: expected a file of word vectors, *.npz or glove*.txt, or --vectors=FILE"
        )
    return found[0]


def _encode(reader, question, tokens, contexts, numbers):
    """Encodes a question for `reading.pkl`; adds its tokens and context to the distinct ones."""

    def encode(text, offsets):
        return [tokens.setdefault(text[start:end], len(tokens) + 1) for start, end in offsets]

    number = numbers.get(question.context)
    if number is None:
        number = numbers[question.context] = len(contexts)
        offsets = reader.tokenize(question.context)
        flat = [place for span in offsets for place in span]
        if not flat:
            wrong = f"expected words in its context. Received: {question.context!r:.60}"
            raise UserError(f"question {question.id}: {wrong}")
        tokens_of = encode(question.context, offsets)
        contexts.append(
            {
                "text": question.context,
                "tokens": tokens_of,
                "offsets": flat,
                "article": question.article,
            }
        )
    flat = contexts[number]["offsets"]
    offsets = list(zip(flat[::2], flat[1::2], strict=True))
    spans = dict.fromkeys(
        filter(None, (reader.align(offsets, answer) for answer in question.answers))
    )
    return {
        "id": question.id,
        "context": number,
        "question": question.text,
        "tokens": encode(question.text, reader.tokenize(question.text)),
        "answers": list(dict.fromkeys(question.context[a.start : a.end] for a in question.answers)),
        "spans": [list(span) for span in spans],
    }


def _statistics(questions, contexts):
    lengths = [
        len(contexts[number]["tokens"])
        for number in {question["context"] for question in questions}
    ]
    return {
        "questions": len(questions),
        "contexts": len(lengths),
        "context_tokens_median": float(np.median(lengths)),
        "context_tokens_95": float(np.percentile(lengths, 95)),
        "context_tokens_most": max(lengths),
        "question_tokens_95": float(
            np.percentile([len(question["tokens"]) for question in questions], 95)
        ),
        "several_spans": sum(len(question["spans"]) > 1 for question in questions),
    }
