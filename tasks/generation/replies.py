"""The replies to a split, and their metrics.

Each distinct source gets one reply, however many targets it has: `{source text: reply}`, in the
order of the sources' first pairs.
"""

import numpy as np

from colloquy.base.files import UserError
from colloquy.metrics.bootstrap import Additive, means_of
from colloquy.metrics.generation import (
    ADDED,
    bleu_by_reply,
    generation_metrics,
    perplexity,
    perplexity_of_sums,
)
from colloquy.tasks.generation.mmi import load_reverse, rerank
from colloquy.tasks.generation.search import reply, words_of


def search_replies(scoring, pairs, decoding):
    """Searches the replies to a `GenerationSplit`, `{source text: reply}`.

    Args:
        scoring: An `engine.scoring.Scoring`.
        pairs: Its split, `in_direction_of` its model: a reverse model reads targets.
        decoding: A `models.decoding.Decoding`.
    """
    options = scoring.options
    vocabulary = scoring.dataset.vocabulary
    reverse = None
    if options.reverse_run:
        if decoding.beam == 1:
            raise UserError("reverse_run chooses among several replies: it needs decode=beam=N")
        # It is loaded first: a wrong run is refused before the search.
        reverse = load_reverse(options.reverse_run, vocabulary)
    first_pairs = [rows[0] for rows in _rows_by_source(pairs)]
    sources = pairs.source.take(first_pairs)
    ids_RKL, scores_RK = reply(
        scoring.model,
        sources,
        decoding,
        progress=scoring.progress,
        length_multiple=scoring.length_multiple,
    )
    if reverse is not None:
        ids_RKL, _ = rerank(reverse, sources, ids_RKL, scores_RK, options.reverse_weight)
    replies = {}
    for row, best_L in zip(first_pairs, ids_RKL[:, 0], strict=True):
        replies[pairs.source_texts[row]] = " ".join(words_of(best_L, vocabulary))
    return replies


# === Metrics ===


def perplexity_of(pairs, nll, rows=slice(None)):
    """The perplexity of the targets of `rows` of the pairs; `nll` is that of each pair, in nats."""
    total = float(nll[rows].sum(dtype=np.float64))
    words = int(pairs.target.lengths[rows].sum())
    return perplexity(total, words)


def examples_of(pairs):
    """Returns the examples that are compared, each a list of rows of `pairs`.

    If the pairs have `several` references, an example is all pairs of a source, else one pair.
    """
    if not pairs.several:
        return [[row] for row in range(len(pairs))]
    return _rows_by_source(pairs)


def _rows_by_source(pairs):
    """Returns the rows of the pairs of each distinct source, in order."""
    rows_by_source = {}
    for row, source in enumerate(pairs.source_texts):
        rows_by_source.setdefault(source, []).append(row)
    return list(rows_by_source.values())


def replies_and_references(pairs, replies, examples):
    """Returns the reply to each example, and its references: the distinct targets of its pairs."""
    replies_to_examples = []
    references = []
    for rows in examples:
        replies_to_examples.append(replies[pairs.source_texts[rows[0]]])
        references.append(list(dict.fromkeys(pairs.target_texts[row] for row in rows)))
    return replies_to_examples, references


def metrics_of(pairs, replies, examples):
    """The metrics of the replies to examples, without perplexity."""
    return generation_metrics(*replies_and_references(pairs, replies, examples))


def metrics_by_example(pairs, nll, replies, examples):
    """Returns `{metric: Additive}`: what each example adds to a metric, for intervals.

    distinct-1 and distinct-2 are missing: they count over all replies together.
    """
    texts, references = replies_and_references(pairs, replies, examples)
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
