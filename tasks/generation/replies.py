"""The replies to a split, reranked by mutual information if a reverse model is given.

The reverse model tells which replies fit their source.

Letters: R sources   K replies to a source   L words of a reply
"""

import numpy as np

from colloquy.base.files import UserError
from colloquy.data.sequences import Sequences
from colloquy.data.vocabulary import EOS_ID, PADDING_ID
from colloquy.engine.devices import choose_xla
from colloquy.engine.run import Run
from colloquy.layers.masking import LOWEST
from colloquy.tasks.generation.scoring import negative_log_likelihood
from colloquy.tasks.generation.search import reply, words_of
from colloquy.tasks.generation.split import GenerationSplit


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
        ids_RKL = rerank(reverse, sources, ids_RKL, scores_RK, options.reverse_weight)

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


def rerank(reverse, sources, ids, scores, weight):
    """Sorts replies by `(1 - weight) log p(reply | source) + weight log p(source | reply)`.

    This is eq. 13 of Li et al. 2016, "MMI-bidi": replies that would answer anything come last. The
    first term is the score of `search.reply`.

    Args:
        reverse: A model trained with `reverse=true`.
        sources: Those that the replies were searched for.
        ids: Int32 `(R, K, L)`, as `search.reply` returns them.
        scores: Float32 `(R, K)`, as `search.reply` returns them.
        weight: Weight of the reverse model.

    Returns:
        The ids in the new order.
    """
    R, K, L = ids.shape
    replies = []
    for row in ids.reshape(R * K, L):
        words = row[(row != PADDING_ID) & (row != EOS_ID)]
        replies.append([*words, EOS_ID])
    source_of_reply = np.repeat(np.arange(R), K)
    pairs = GenerationSplit(
        source=Sequences.of(replies),
        target=sources.take(source_of_reply),
        begin_id=reverse.begin_id,
    )
    reverse_nll_RK = negative_log_likelihood(reverse, pairs).reshape(R, K)
    sums_RK = (1 - weight) * scores - weight * reverse_nll_RK
    is_found_RK = scores > LOWEST  # the search may have found fewer than K
    sums_RK = np.where(is_found_RK, sums_RK, LOWEST)

    order_RK = np.argsort(-sums_RK, axis=1, kind="stable")
    return np.take_along_axis(ids, order_RK[..., None], axis=1)


def load_reverse(path, vocabulary):
    """Loads the reverse model of a run; one of another model or vocabulary is a `UserError`."""
    run = Run.open(path)
    if run.model != "seq2seq" or not run.config.reverse:
        raise UserError(
            f"{path}: expected a run trained with --set reverse=true. "
            f"Received: {run.model}, reverse={getattr(run.config, 'reverse', 'none')}"
        )
    if run.vocabulary.words != vocabulary.words:
        raise UserError(
            f"{path}: expected the vocabulary of the model that writes the replies. "
            "Received: another"
        )
    model = run.load_model()
    choose_xla(model, "auto")
    return model
