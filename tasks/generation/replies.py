"""The replies to a split, and their metrics.

Each distinct source gets one reply, however many targets it has: `{source text: reply}`, in the
order of the sources' first pairs.
"""

import numpy as np

from colloquy.metrics.bootstrap import Additive, means_of
from colloquy.metrics.generation import (
    ADDED,
    bleu_by_reply,
    by_source,
    generation_metrics,
    perplexity,
    perplexity_of_sums,
)
from colloquy.tasks.generation.mmi import load_reverse, rerank
from colloquy.tasks.generation.search import reply, words_of


def search_replies(scoring, pairs, decoding):
    """Searches the replies to a `GenerationSplit`.

    Args:
        scoring: An `engine.scoring.Scoring`.
        pairs: Its split, in the direction of its model.
        decoding: A `models.decoding.Decoding`.
    """
    options = scoring.options
    vocabulary = scoring.dataset.vocabulary
    first_pairs, _ = by_source(pairs.source_texts, pairs.target_texts)
    sources = pairs.source.take(first_pairs)
    ids, scores = reply(
        scoring.model,
        sources,
        decoding,
        progress=scoring.progress,
        length_multiple=scoring.length_multiple,
    )
    if options.reverse_run:
        reverse = load_reverse(options.reverse_run, vocabulary)
        ids, _ = rerank(reverse, sources, ids, scores, options.reverse_weight)
    replies = {}
    for pair, best in zip(first_pairs, ids[:, 0], strict=True):
        replies[pairs.source_texts[pair]] = " ".join(words_of(best, vocabulary))
    return replies


# === Metrics ===


def perplexity_of(pairs, nll, rows=slice(None)):
    """The perplexity of the targets of all pairs or of some, from `nll` of each pair in nats."""
    total = float(nll[rows].sum(dtype=np.float64))
    words = int(pairs.target.lengths[rows].sum())
    return perplexity(total, words)


def examples_of(pairs):
    """The examples that are compared, lists of pairs: each pair, or all pairs of each source."""
    if not pairs.several:
        return [[row] for row in range(len(pairs))]
    rows_by_source = {}
    for row, source in enumerate(pairs.source_texts):
        rows_by_source.setdefault(source, []).append(row)
    return list(rows_by_source.values())


def texts_of(pairs, replies, examples):
    """The reply to each example, and the distinct targets that it is compared with."""
    texts = []
    references = []
    for rows in examples:
        texts.append(replies[pairs.source_texts[rows[0]]])
        references.append(list(dict.fromkeys(pairs.target_texts[row] for row in rows)))
    return texts, references


def metrics_of(pairs, replies, examples):
    """The metrics of the replies to examples, without perplexity."""
    return generation_metrics(*texts_of(pairs, replies, examples))


def metrics_by_example(pairs, nll, replies):
    """`{metric: Additive}` over `examples_of` pairs.

    distinct-1 and distinct-2 are missing: they count over all replies together.
    """
    examples = examples_of(pairs)
    texts, references = texts_of(pairs, replies, examples)
    nll_and_words = np.stack([nll, pairs.target.lengths], axis=1, dtype=np.float64)
    terms = np.array([nll_and_words[rows].sum(axis=0) for rows in examples])
    arguments_of_each = []
    for text, references_of_text in zip(texts, references, strict=True):
        arguments_of_each.append(([text], [references_of_text]))
    return {
        "perplexity": Additive(terms, perplexity_of_sums),
        **bleu_by_reply(texts, references),
        "length": Additive.mean([len(text.split()) for text in texts]),
        **means_of(ADDED, (texts, references), arguments_of_each),
    }
