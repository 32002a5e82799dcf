"""The replies to a split: each distinct source gets one, however many targets it has."""

from colloquy.base.files import UserError
from colloquy.tasks.generation.mmi import load_reverse, rerank
from colloquy.tasks.generation.search import reply, words_of


def search_replies(scoring, pairs, decoding):
    """Searches the replies, `{source text: reply}`, in the order of the sources' first pairs.

    Args:
        scoring: An `engine.scoring.Scoring`.
        pairs: Its `GenerationSplit`, as `in_direction_of` returns it.
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

    first_rows = [rows[0] for rows in rows_by_source(pairs)]
    sources = pairs.source.take(first_rows)
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
    for row, best_L in zip(first_rows, ids_RKL[:, 0], strict=True):
        replies[pairs.source_texts[row]] = " ".join(words_of(best_L, vocabulary))
    return replies


def rows_by_source(pairs):
    """Returns the rows of the pairs of each distinct source, in order."""
    rows = {}
    for row, source in enumerate(pairs.source_texts):
        rows.setdefault(source, []).append(row)
    return list(rows.values())
