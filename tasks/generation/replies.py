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
from colloquy.tasks.generation.search import load_reverse, reply, rerank, words_of


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


def metrics_of(pairs, replies):
    """Compares replies with all references of their source, or pair by pair."""
    if not pairs.several:
        return metrics_of_pairs(pairs, replies, range(len(pairs)))
    _, references = by_source(pairs.source_texts, pairs.target_texts)
    return generation_metrics(list(replies.values()), references)


def metrics_of_pairs(pairs, replies, rows):
    """Compares the replies to the sources of some pairs with the targets of these pairs."""
    replies_of_rows = [replies[pairs.source_texts[row]] for row in rows]
    references = [[pairs.target_texts[row]] for row in rows]
    return generation_metrics(replies_of_rows, references)


def metrics_by_example(pairs, nll, replies):
    """`{metric: Additive}` over the pairs, or, where a split has several references, the sources.

    distinct-1 and distinct-2 are missing: they count over all replies together.
    """
    words = np.asarray(pairs.target.lengths, np.float64)
    terms = np.stack([nll, words], axis=1)
    if pairs.several:
        row_of_source = {source: row for row, source in enumerate(replies)}
        rows = [row_of_source[source] for source in pairs.source_texts]
        terms_of_sources = np.zeros((len(replies), 2))
        np.add.at(terms_of_sources, rows, terms)
        terms = terms_of_sources
        texts = list(replies.values())
        _, references = by_source(pairs.source_texts, pairs.target_texts)
    else:
        texts = [replies[source] for source in pairs.source_texts]
        references = [[target] for target in pairs.target_texts]
    arguments_of_replies = []
    for text, references_of_text in zip(texts, references, strict=True):
        arguments_of_replies.append(([text], [references_of_text]))
    return {
        "perplexity": Additive(terms, perplexity_of_sums),
        **bleu_by_reply(texts, references),
        "length": Additive.mean([len(text.split()) for text in texts]),
        **means_of(ADDED, (texts, references), arguments_of_replies),
    }
