"""Metrics of generated replies: perplexity, BLEU, distinct-n and length.

BLEU is that of Papineni et al. 2002, distinct-n after Li et al. 2016. Texts are tokens separated by
spaces, words or (Chinese) characters, as the dataset's tokenizer makes them; sacrebleu, which
counts the n-grams of BLEU, does not tokenize again. Metrics are from 0 to 1, except perplexity and
`length`, which counts tokens.
"""

import collections
import functools
import math
import random
from collections.abc import Iterable, Sequence

import numpy as np

from colloquy.metrics.bootstrap import Additive

METRICS = (
    "perplexity",
    "BLEU-1",
    "BLEU-2",
    "BLEU-3",
    "BLEU-4",
    "distinct-1",
    "distinct-2",
    "length",
)
LONGEST_NGRAM = 4
ADDED = {}
"""`{name: function}`: your own metrics, functions of the arguments of `generation_metrics`."""


# === Perplexity ===


def perplexity(nll: float, tokens: int) -> float:
    """`exp` of the mean negative log-likelihood of all tokens of a corpus, `_EOS_` included.

    `nll` is the sum of the negative log-likelihoods, in nats.

    >>> perplexity(3 * math.log(50), 3)
    50.0
    """
    try:
        return round(math.exp(nll / tokens), 10)
    except OverflowError:
        return math.inf


def perplexity_of_sums(sums: np.ndarray) -> np.ndarray:
    """Perplexity from the sums of negative log-likelihoods and of tokens, `(..., 2)`."""
    return np.exp(sums[..., 0] / sums[..., 1])


# === BLEU ===


def bleu(replies: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """Corpus BLEU-1 to BLEU-4.

    BLEU-n is the geometric mean of the precisions of 1-grams to n-grams, with brevity penalty.
    Precisions of zero are smoothed as sacrebleu's default does (`exp`). Each reply has one or more
    references.

    >>> scores = bleu(["a b c d e"], [["a b c d f", "g h"]])
    >>> {name: round(score, 3) for name, score in scores.items()}
    {'BLEU-1': 0.8, 'BLEU-2': 0.775, 'BLEU-3': 0.737, 'BLEU-4': 0.669}
    """
    scores = {}
    for name, metric in bleu_by_reply(replies, references).items():
        scores[name] = float(metric.of_sums(metric.terms.sum(axis=0)))
    return scores


def bleu_by_reply(
    replies: Sequence[str], references: Sequence[Sequence[str]]
) -> dict[str, Additive]:
    """What each reply adds to the sums that BLEU-1 to BLEU-4 are computed from."""
    # The import takes a tenth of a second, and a chat does not need it.
    import sacrebleu

    counter = sacrebleu.metrics.BLEU(tokenize="none", force=True)
    rows = []
    for reply, texts in zip(replies, references, strict=True):
        # sacrebleu takes lists over replies: of the first references, of the second ones, ...
        counted = counter.corpus_score([reply], [[text] for text in texts])
        rows.append([counted.sys_len, counted.ref_len, *counted.counts, *counted.totals])
    columns = np.array(rows, np.float64).reshape(-1, 2 + 2 * LONGEST_NGRAM)
    lengths, matches, ngrams = np.split(columns, [2, 2 + LONGEST_NGRAM], axis=1)

    metrics = {}
    for n in range(1, LONGEST_NGRAM + 1):
        terms = np.concatenate([lengths, matches[:, :n], ngrams[:, :n]], axis=1)
        metrics[f"BLEU-{n}"] = Additive(terms, functools.partial(_bleu_of_sums, n=n))
    return metrics


def _bleu_of_sums(sums, n):
    """BLEU-n from sums, `(..., 2 + 2n)`.

    They are the lengths of replies and of their closest references, the matching 1-grams to
    n-grams, and all 1-grams to n-grams.
    """
    from sacrebleu.metrics import BLEU

    def score(row):
        length, closest, *counts = row.astype(int).tolist()
        scored = BLEU.compute_bleu(
            counts[:n], counts[n:], length, closest, smooth_method="exp", max_ngram_order=n
        )
        return scored.score / 100

    return np.apply_along_axis(score, -1, sums)


# === Diversity ===


def distinct(replies: Iterable[str], n: int) -> float:
    """Distinct n-grams of all replies divided by all their n-grams; 0 where there are none.

    Differs from the paper: Li et al. 2016 divide by the number of tokens, which gives a smaller
    distinct-2.

    >>> distinct(["a b a", "a b"], 1), distinct(["a b a", "a b"], 2)
    (0.4, 0.6666666666666666)
    """
    ngrams = []
    for reply in replies:
        words = reply.split()
        ngrams += [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
    if not ngrams:
        return 0.0
    return len(set(ngrams)) / len(ngrams)


# === All metrics of replies ===


def generation_metrics(
    replies: Sequence[str], references: Sequence[Sequence[str]]
) -> dict[str, float]:
    """All `METRICS` of replies but perplexity, and those `ADDED`."""
    lengths = [len(reply.split()) for reply in replies]
    metrics = {
        **bleu(replies, references),
        "distinct-1": distinct(replies, 1),
        "distinct-2": distinct(replies, 2),
        "length": sum(lengths) / len(lengths),
    }
    for name, metric in ADDED.items():
        metrics[name] = float(metric(replies, references))
    return metrics


# === Baselines ===


def targets_by_source(sources: Sequence[str], targets: Sequence[str]) -> list[list[str]]:
    """Returns the distinct targets of each distinct source, in order.

    >>> targets_by_source(["hi", "why ?", "hi"], ["hello", "so", "good day"])
    [['hello', 'good day'], ['so']]
    """
    grouped: dict[str, list[str]] = {}
    for source, target in zip(sources, targets, strict=True):
        grouped.setdefault(source, []).append(target)
    # A dict keeps the order and drops repetitions.
    return [list(dict.fromkeys(all_targets)) for all_targets in grouped.values()]


def baselines_of(
    train: Sequence[str],
    sources: Sequence[str],
    targets: Sequence[str],
    several: bool = False,
) -> dict:
    """Metrics of replies that need no model.

    - `constant`: the most frequent target of train.
    - `random reply of train`: a target of train, drawn for each reply.
    - `human`: for each source with several targets, the first is the reply, and the others are its
      references.

    Args:
        train: The targets of train; without any, only `human` is computed.
        sources, targets: The pairs of the split.
        several: One constant or random reply to each source, compared with all its targets at once;
            otherwise one reply to each pair.
    """
    targets_of_sources = targets_by_source(sources, targets)
    baselines = {}
    if train:
        references = targets_of_sources if several else [[target] for target in targets]
        # Of equally frequent ones, the first in alphabetical order.
        counts = collections.Counter(train)
        most_frequent = min(counts, key=lambda target: (-counts[target], target))
        constant = [most_frequent] * len(references)
        baselines[f"constant, {most_frequent:.60}"] = generation_metrics(constant, references)

        rng = random.Random(1)
        drawn = [rng.choice(train) for _ in references]
        baselines["random reply of train"] = generation_metrics(drawn, references)

    several_targets = [texts for texts in targets_of_sources if len(texts) > 1]
    if several_targets:
        replies = [texts[0] for texts in several_targets]
        others = [texts[1:] for texts in several_targets]
        name = f"human, {len(several_targets):,} sources with several targets"
        baselines[name] = generation_metrics(replies, others)
    return baselines
