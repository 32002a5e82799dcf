"""A corpus for response selection of any size, its words drawn by Zipf's law: for what depends on size alone."""

import pathlib

import numpy as np

VOCABULARY, EXPONENT = 153_000, 1.0
TURNS, WORDS = 6, 11
DEV_CONTEXTS, DEV_CANDIDATES = 100, 10
BLOCK = 10_000
"""Contexts that are drawn at once."""


def write_corpus(directory, lines, seed=1):
    """Writes `train.txt` and `dev.txt` in the format of `data.corpora.smn`.

    A context has 6 turns of 11 words. In train each has two lines, one with a positive and one with a negative
    response, in dev ten.

    Args:
        directory: Made where needed.
        lines: Lines of train, an even number.
        seed: Of the words.
    """
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    words = np.array([f"w{number}" for number in range(VOCABULARY)], object)
    ends = np.cumsum(1 / np.arange(1, VOCABULARY + 1) ** EXPONENT)
    for name, contexts, candidates in (("train", lines // 2, 2), ("dev", DEV_CONTEXTS, DEV_CANDIDATES)):
        with open(directory / f"{name}.txt", "w", encoding="utf-8", newline="\n") as file:
            for start in range(0, contexts, BLOCK):
                shape = min(BLOCK, contexts - start), TURNS + candidates, WORDS
                drawn = words[np.searchsorted(ends, rng.random(shape) * ends[-1])]
                for texts in ([" ".join(text) for text in context] for context in drawn.tolist()):
                    context = "\t".join(texts[:TURNS])
                    file.writelines(f"{int(i == 0)}\t{context}\t{text}\n" for i, text in enumerate(texts[TURNS:]))
