"""Response generation: data, training, scoring and use of its models."""

import functools

import numpy as np

from colloquy.data.batching import batches_by_size
from colloquy.data.vocabulary import PADDING_ID
from colloquy.engine import task
from colloquy.engine.optimizers import TwoRateAdam, linear_decay
from colloquy.metrics.bootstrap import Additive
from colloquy.metrics.generation import (
    METRICS,
    baselines_of,
    bleu_by_reply,
    by_source,
    generation_metrics,
    perplexity,
    perplexity_of_sums,
)
from colloquy.tasks.generation import data
from colloquy.tasks.generation.chat import GenerationChat
from colloquy.tasks.generation.predictor import GenerationPredictor
from colloquy.tasks.generation.prepare import Settings, prepare
from colloquy.tasks.generation.scoring import likelihood, word_loss
from colloquy.tasks.generation.search import (
    Options,
    decoding_of,
    decoding_text,
    load_reverse,
    parse_decoding,
    reply,
    rerank,
    words_of,
)
from colloquy.tasks.generation.training import Training


class GenerationTask(task.Task):
    """Response generation."""

    name = "generation"
    example_unit = "pair"
    Training = Training
    Options = Options
    summary_metrics = METRICS
    export_options = ("decode",)
    chat_options = ("reverse_run", "reverse_weight")
    export_call = ("found = model.reply", ("replies", "scores"))
    export_instance = {"turns": ["hello there"]}
    load_dataset = staticmethod(data.load_dataset)
    predictor = GenerationPredictor

    def make_sample(self, directory):
        settings = Settings(tokenizer="words", turns=2)
        prepare("chitchat", None, directory / "prepared", settings)

    def required_fields(self, dataset):
        return {"vocabulary_size": len(dataset.vocabulary)}

    def optimizer(self, training, steps, config=None):
        return TwoRateAdam(
            linear_decay(training.learning_rate, steps, training.decay),
            global_clipnorm=training.gradient_clip or None,
            decoder_rate=training.decoder_rate,
        )

    def loss(self, training):
        return word_loss

    def loss_counts(self, targets):
        return (targets != PADDING_ID).sum(axis=1)

    def training_batches(self, split, config, training, rng):
        """Batches are numbers of pairs of like size: of targets first, whose length costs most."""
        sizes = split.in_direction_of(config).sizes
        return batches_by_size(sizes, training.batch_size, rng)

    def limits(self, split, config, training):
        """Sources and targets that are cut; no example is left out."""
        pairs = split.in_direction_of(config)
        sentences = []
        for name, texts, most in (
            ("sources", pairs.source, data.MAX_SOURCE),
            ("targets", pairs.target, data.MAX_TARGET),
        ):
            long = int((texts.lengths > most).sum())
            if long:
                sentences.append(
                    f"{long:,} of {len(pairs):,} {name} have more than {most} words and are cut "
                    "(prepare.py --max_words=N leaves long turns out)"
                )
        return sentences

    def collate(self, split, config, batch, length_multiple):
        pairs = split.in_direction_of(config)
        return pairs.collate(batch, length_multiple, data.MAX_SOURCE, data.MAX_TARGET)

    def validate(self, model, split, length_multiple=4):
        """Chooses by 1 / perplexity."""
        pairs = split.in_direction_of(model.config)
        nll = likelihood(model, pairs, length_multiple=length_multiple)
        value = _perplexity(nll, pairs)
        return {"perplexity": value}, 1.0 / value

    def measure(self, scoring):
        """Scores a split for evaluate.py, see `engine.task.Task.measure`.

        Perplexity is that of all pairs. The other metrics compare the reply to each pair's source
        with its target, and once more without the pairs that are in train, which a model may know
        by heart. The answers are those of `_answer_lines`.

        Without the option `decode` the search is greedy, as in articles. If the chat of the run
        searches otherwise, a further part has the metrics of that search.
        """
        model, dataset = scoring.model, scoring.dataset
        pairs = scoring.examples.in_direction_of(model.config)
        nll = likelihood(model, pairs, length_multiple=scoring.length_multiple)
        decoding = parse_decoding(scoring.options.decode)
        replies = _search_replies(scoring, pairs, decoding)
        all_rows = range(len(pairs))
        unseen = np.flatnonzero(~pairs.seen)
        record = {
            "metrics": {
                "perplexity": _perplexity(nll, pairs),
                **_metrics_of_pairs(pairs, replies, all_rows),
            },
            "parts": {},
            "counts": {
                "pairs": len(pairs),
                "sources": len(set(pairs.source_texts)),
                "words": int(pairs.target.lengths.sum()),
                "unseen": len(unseen),
            },
            "unit": dataset.text.tokenizer,
            "answers": _answer_lines(pairs, replies),
            "by_example": functools.partial(metrics_by_pair, pairs, nll, replies),
        }
        if 0 < len(unseen) < len(pairs):
            record["parts"]["without the pairs of train"] = {
                "perplexity": _perplexity(nll, pairs, unseen),
                **_metrics_of_pairs(pairs, replies, unseen),
            }
        search = _search_text(scoring.options)
        if search:
            record["search"] = search
        elif (chat_decoding := decoding_of(scoring.run)) != decoding:
            chat_replies = _search_replies(scoring, pairs, chat_decoding)
            part = f"as its chat searches: {decoding_text(chat_decoding)}"
            record["parts"][part] = _metrics_of_pairs(pairs, chat_replies, all_rows)
        if scoring.baselines:
            train = dataset.splits["train"].in_direction_of(model.config)
            record["baselines"] = baselines_of(
                train.target_texts, pairs.source_texts, pairs.target_texts
            )
        return record

    def describe(self, record):
        counts = record["counts"]
        counted = f"{counts['pairs']:,} pairs, {counts['unseen']:,} of them not in train"
        search = record.get("search", "greedy search")
        caption = (
            f"Perplexity is per token of the tokenizer {record['unit']}, the end of a target "
            f"included; BLEU by sacrebleu on these tokens, one reference per pair."
        )
        return f"{counted}; {search}", caption

    def example(self, dataset, split, number):
        texts = [*split.source_texts[number].split("\t"), split.target_texts[number]]
        *turns, target = [dataset.text.join(text.split(" ")) for text in texts]
        return {"instance": {"turns": turns}, "expected": [target]}

    def read_example(self, dataset, split, number):
        turns = split.source_texts[number].split("\t")
        return {"instance": {"turns": turns}, "expected": [split.target_texts[number]]}

    def chat(self, run, options):
        return GenerationChat(self.predictor(run), **options)

    def export_archive(self, run, model, vocabulary, decode=None):
        # It needs TensorFlow, whatever Keras's backend.
        from colloquy.tasks.generation.export import generation_archive

        text = data.read_source_config(run.dataset.get("text"), run.path)
        decoding = parse_decoding(decode) if decode else decoding_of(run)
        return generation_archive(model, vocabulary, text, decoding)


def _search_replies(scoring, pairs, decoding):
    """Returns the best reply to each pair's source, as a text; equal sources are searched once."""
    first_rows, _ = by_source(pairs.source_texts, pairs.target_texts)
    sources = pairs.source.take(first_rows)
    options = scoring.options
    vocabulary = scoring.dataset.vocabulary
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
    reply_by_source = {}
    for row, best in zip(first_rows, ids[:, 0], strict=True):
        reply_by_source[pairs.source_texts[row]] = " ".join(words_of(best, vocabulary))
    return [reply_by_source[source] for source in pairs.source_texts]


def _search_text(options):
    """Describes a search by what differs from greedy search; empty: nothing does."""
    parts = []
    decoding = decoding_text(parse_decoding(options.decode))
    if decoding:
        parts.append(decoding)
    if options.reverse_run:
        parts.append(f"reranked by {options.reverse_weight:g}")
    return ", ".join(parts)


def _metrics_of_pairs(pairs, replies, rows):
    """Compares the replies of some pairs with their targets."""
    references = [[pairs.target_texts[row]] for row in rows]
    return generation_metrics([replies[row] for row in rows], references)


def metrics_by_pair(pairs, nll, replies):
    """`{metric: Additive}` over the pairs.

    distinct-1 and distinct-2 are missing: they count over all replies together.
    """
    words = np.asarray(pairs.target.lengths, np.float64)
    references = [[target] for target in pairs.target_texts]
    return {
        "perplexity": Additive(np.stack([nll, words], axis=1), perplexity_of_sums),
        **bleu_by_reply(replies, references),
        "length": Additive.mean([len(reply.split()) for reply in replies]),
    }


def _perplexity(nll, split, rows=slice(None)):
    total = float(nll[rows].sum(dtype=np.float64))
    words = int(split.target.lengths[rows].sum())
    return perplexity(total, words)


def _answer_lines(pairs, replies):
    """Yields source, target and reply of each pair, separated by tabs, turns by ` / `."""
    for texts in zip(pairs.source_texts, pairs.target_texts, replies, strict=True):
        yield "\t".join(text.replace("\t", " / ") for text in texts)
