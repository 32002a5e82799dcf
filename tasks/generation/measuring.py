"""Scores of a generation model for evaluate.py: perplexity, and metrics of its replies.

An example is a reply and its references: `rows`, numbers of pairs with the same source. Where the
split has several references, they are all pairs of a source; otherwise each pair is an example.
"""

import functools

import numpy as np

from colloquy.engine.scoring import Measured
from colloquy.metrics.bootstrap import Additive, means_of
from colloquy.metrics.generation import (
    ADDED,
    baselines_of,
    bleu_by_reply,
    generation_metrics,
    perplexity,
    perplexity_of_sums,
)
from colloquy.tasks.generation.decoding_settings import decoding_of, decoding_text, parse_decoding
from colloquy.tasks.generation.replies import rows_by_source, search_replies
from colloquy.tasks.generation.scoring import negative_log_likelihood


def measure(scoring):
    """Scores a split, see `engine.task.Task.measure`.

    Without the option `decode` the search is greedy, as in articles. An answer is source, target
    and reply of a pair, separated by tabs, turns by ` / `.
    """
    model = scoring.model
    pairs = scoring.examples.in_direction_of(model.config)
    replies = search_replies(scoring, pairs, parse_decoding(scoring.options.decode))
    nll = negative_log_likelihood(model, pairs, length_multiple=scoring.length_multiple)
    if pairs.has_several_references:
        examples = rows_by_source(pairs)
    else:
        examples = [[row] for row in range(len(pairs))]

    record = {
        "metrics": {
            "perplexity": perplexity_of(pairs, nll),
            **_reply_metrics(pairs, replies, examples),
        },
        "parts": _measure_unseen(pairs, nll, replies),
        "counts": {
            "pairs": len(pairs),
            "sources": len(replies),
            "words": int(pairs.target.lengths.sum()),
        },
        "unit": scoring.dataset.source_config.tokenizer,
    }
    if not pairs.has_several_references:
        record["counts"]["unseen"] = int(np.sum(~pairs.seen))
    search = _describe_search(scoring.options)
    if search:
        record["search"] = search
    else:
        record["parts"].update(_measure_chat(scoring, pairs, examples))
    if scoring.baselines:
        record["baselines"] = _score_baselines(scoring, pairs)
    return Measured(
        record,
        by_example=functools.partial(_metrics_by_example, pairs, nll, replies, examples),
        answers=_answer_lines(pairs, replies),
    )


def describe(record):
    """What a record of `measure` counts, and a caption; see `engine.task.Task.describe`."""
    counts = record["counts"]
    pairs = f"{counts['pairs']:,}"
    if "unseen" in counts:
        counted = f"{pairs} pairs, {counts['unseen']:,} of them not in train"
        compared = "one reference per pair"
    else:
        counted = f"{pairs} references of {counts['sources']:,} sources"
        compared = "all references of a source at once"
    search = record.get("search", "greedy search")
    caption = (
        f"Perplexity is per token of the tokenizer {record['unit']}, the end of a target "
        f"included; BLEU by sacrebleu on these tokens, {compared}."
    )
    return f"{counted}; {search}", caption


# === The record ===


def perplexity_of(pairs, nll, rows=slice(None)):
    """The perplexity of the targets of some rows; `nll` is that of each pair, in nats."""
    total = float(nll[rows].sum(dtype=np.float64))
    words = int(pairs.target.lengths[rows].sum())
    return perplexity(total, words)


def _reply_metrics(pairs, replies, examples):
    return generation_metrics(*_replies_and_references(pairs, replies, examples))


def _replies_and_references(pairs, replies, examples):
    """Returns the reply to each example, and the distinct targets of each example's pairs."""
    reply_of_each = []
    references_of_each = []
    for rows in examples:
        source = pairs.source_texts[rows[0]]
        targets = [pairs.target_texts[row] for row in rows]
        reply_of_each.append(replies[source])
        references_of_each.append(list(dict.fromkeys(targets)))
    return reply_of_each, references_of_each


def _measure_unseen(pairs, nll, replies):
    """Scores the pairs that are not in train; a model may know the others by heart."""
    unseen = np.flatnonzero(~pairs.seen)
    if len(unseen) in (0, len(pairs)):
        return {}
    metrics = {
        "perplexity": perplexity_of(pairs, nll, unseen),
        **_reply_metrics(pairs, replies, [[row] for row in unseen]),
    }
    return {"without the pairs of train": metrics}


def _measure_chat(scoring, pairs, examples):
    """Scores the search of the run's chat, if it is not greedy."""
    decoding = decoding_of(scoring.run)
    text = decoding_text(decoding)
    if not text:
        return {}
    replies = search_replies(scoring, pairs, decoding)
    return {f"as its chat searches: {text}": _reply_metrics(pairs, replies, examples)}


def _describe_search(options):
    """Lists the settings in which a search differs from greedy search; empty for greedy search."""
    parts = []
    decoding = decoding_text(parse_decoding(options.decode))
    if decoding:
        parts.append(decoding)
    if options.reverse_run:
        parts.append(f"reranked by {options.reverse_weight:g}")
    return ", ".join(parts)


def _score_baselines(scoring, pairs):
    """Scores of the baselines, which know the targets of train if the dataset has them."""
    train_targets = []
    splits = scoring.dataset.splits
    if "train" in splits:
        train_targets = splits["train"].in_direction_of(scoring.model.config).target_texts
    return baselines_of(
        train_targets,
        pairs.source_texts,
        pairs.target_texts,
        several=pairs.has_several_references,
    )


# === Beside the record ===


def _metrics_by_example(pairs, nll, replies, examples):
    """Returns `{metric: Additive}`: what each example adds to a metric, for intervals.

    distinct-1 and distinct-2 are missing: they count over all replies together.
    """
    texts, references = _replies_and_references(pairs, replies, examples)
    nll_and_words = np.stack([nll, pairs.target.lengths], axis=1, dtype=np.float64)
    perplexity_terms = np.array([nll_and_words[rows].sum(axis=0) for rows in examples])
    # A user's own metric takes replies and their references: here those of one example.
    single_examples = [([text], [own]) for text, own in zip(texts, references, strict=True)]
    return {
        "perplexity": Additive(perplexity_terms, perplexity_of_sums),
        **bleu_by_reply(texts, references),
        "length": Additive.mean([len(text.split()) for text in texts]),
        **means_of(ADDED, (texts, references), single_examples),
    }


def _answer_lines(pairs, replies):
    """Yields source, target and reply of each pair, separated by tabs, turns by ` / `."""
    for source, target in zip(pairs.source_texts, pairs.target_texts, strict=True):
        texts = [source, target, replies[source]]
        yield "\t".join(text.replace("\t", " / ") for text in texts)
