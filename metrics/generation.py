"""Metrics of generated replies: perplexity, BLEU (Papineni et al. 2002), distinct-n (Li et al.
2016), length.

Texts are tokens separated by spaces, words or (Chinese) characters, as the dataset's tokenizer
makes them; sacrebleu, which computes BLEU, does not tokenize again. Metrics are from 0 to 1, except
perplexity and `length`, which counts tokens.
"""

import collections
import math
import random
from collections.abc import Iterable, Sequence

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


def perplexity(nll: float, tokens: int) -> float:
    """`exp` of the mean negative log-likelihood, in nats, of all tokens of a corpus, `_EOS_`
    included.

    >>> perplexity(3 * math.log(50), 3)
    50.0
    """
    try:
        return round(math.exp(nll / tokens), 10)
    except OverflowError:
        return math.inf


def bleu(replies: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """Corpus BLEU-1 to BLEU-4: geometric mean of the precisions of n-grams up to that length, with
    brevity penalty.

    Precisions of zero are smoothed as sacrebleu's default does (`exp`). Each reply has one or more
    references.

    >>> {name: round(value, 3) for name, value in bleu(["a b c d e"], [["a b c d f", "g h"]]).items()}
    {'BLEU-1': 0.8, 'BLEU-2': 0.775, 'BLEU-3': 0.737, 'BLEU-4': 0.669}
    """
    import sacrebleu  # takes a tenth of a second, and a chat needs none of it

    most = max(map(len, references))
    columns = [[texts[i] if i < len(texts) else None for texts in references] for i in range(most)]
    scores = {}
    for n in range(1, 5):
        scorer = sacrebleu.metrics.BLEU(tokenize="none", max_ngram_order=n, force=True)
        scores[f"BLEU-{n}"] = scorer.corpus_score(list(replies), columns).score / 100
    return scores


def distinct(replies: Iterable[str], n: int) -> float:
    """Distinct n-grams of all replies divided by all their n-grams; 0 where there are none.

    Differs from the paper: Li et al. 2016 divide by the number of tokens, which gives a smaller
        distinct-2.

    >>> distinct(["a b a", "a b"], 1), distinct(["a b a", "a b"], 2)
    (0.4, 0.6666666666666666)
    """
    grams = [
        tuple(words[i : i + n])
        for words in map(str.split, replies)
        for i in range(len(words) - n + 1)
    ]
    return len(set(grams)) / len(grams) if grams else 0.0


def generation_metrics(
    replies: Sequence[str], references: Sequence[Sequence[str]]
) -> dict[str, float]:
    """BLEU-1 to BLEU-4 of replies, distinct-1, distinct-2, and their mean length in tokens."""
    lengths = [len(reply.split()) for reply in replies]
    return {
        **bleu(replies, references),
        **{f"distinct-{n}": distinct(replies, n) for n in (1, 2)},
        "length": sum(lengths) / len(lengths),
    }


def by_source(sources: Sequence[str], targets: Sequence[str]) -> tuple[list[int], list[list[str]]]:
    """Groups pairs of the same source: the first pair of each distinct source, and all its distinct
    targets.

    >>> by_source(["hi", "why ?", "hi"], ["hello", "so", "good day"])
    ([0, 1], [['hello', 'good day'], ['so']])
    """
    rows, groups = [], collections.defaultdict(dict)
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        if source not in groups:
            rows.append(row)
        groups[source][target] = None
    return rows, [list(group) for group in groups.values()]


def baselines_of(
    train: Sequence[str],
    sources: Sequence[str],
    targets: Sequence[str],
    seed: int = 1,
    several: bool = False,
) -> dict:
    """Metrics of replies that need no model: the most frequent target of train, random ones, and
    those of people.

    `human` takes, for each source that occurs with several targets, the first of them as the reply
    and the others as references. With `several`, a reply is compared with all targets of its source
    at once, else with each by itself.
    """
    groups = by_source(sources, targets)[1]
    references = groups if several else [[target] for target in targets]
    found = {}
    if train:
        most_frequent = min(
            collections.Counter(train).items(), key=lambda item: (-item[1], item[0])
        )[0]
        rng = random.Random(seed)
        found[f"constant, {most_frequent:.60}"] = generation_metrics(
            [most_frequent] * len(references), references
        )
        found["random reply of train"] = generation_metrics(
            [rng.choice(train) for _ in references], references
        )
    with_others = [texts for texts in groups if len(texts) > 1]
    if with_others:
        name = f"human, {len(with_others):,} sources with several targets"
        found[name] = generation_metrics(
            [texts[0] for texts in with_others], [texts[1:] for texts in with_others]
        )
    return found
