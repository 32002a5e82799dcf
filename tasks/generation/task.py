"""Response generation: data, training, scoring and use of its models."""

import functools
import pathlib

import numpy as np

from colloquy.data.batching import batches_by_size
from colloquy.data.vocabulary import PADDING_ID
from colloquy.engine import task
from colloquy.engine.limits import Limit
from colloquy.engine.optimizers import TwoRateAdam, decaying
from colloquy.engine.scoring import Measured
from colloquy.metrics.generation import METRICS
from colloquy.tasks.generation import data
from colloquy.tasks.generation.baselines import baselines_for
from colloquy.tasks.generation.chat import GenerationChat
from colloquy.tasks.generation.decoding_settings import (
    Options,
    decoding_of,
    decoding_text,
    parse_decoding,
)
from colloquy.tasks.generation.predictor import GenerationPredictor
from colloquy.tasks.generation.replies import (
    examples_of,
    metrics_by_example,
    metrics_of,
    perplexity_of,
    search_replies,
)
from colloquy.tasks.generation.scoring import likelihood, word_loss
from colloquy.tasks.generation.training import Training


class GenerationTask(task.Task):
    """Response generation."""

    name = "generation"
    example_unit = "pair"
    Training = Training
    Options = Options
    summary_metrics = METRICS
    export_options = ("decode",)
    export_call = task.ExportCall("reply", result="found", outputs=("replies", "scores"))
    export_instance = {"turns": ["hello there"]}
    load_dataset = staticmethod(data.load_dataset)
    predictor = GenerationPredictor

    def make_sample(self, directory):
        # Imported here: serving imports this file, but prepares nothing.
        from colloquy.tasks.generation.prepare import Settings, prepare

        settings = Settings(tokenizer="words", turns=2)
        prepare("chitchat", None, directory / "prepared", settings)

    def dataset_of(self, run, path=None):
        """Opens a dataset as `engine.task.Task` does.

        If `path` is a file of references, the dataset has the split `references`, encoded with the
        vocabulary and the tokenizer of the run, and the `train` of the run if that still exists.
        """
        if not path or not pathlib.Path(path).is_file():
            return super().dataset_of(run, path)
        metadata = run.dataset
        text = data.read_source_config(metadata.get("text"), run.path)
        splits = {"references": data.read_references(path, run.vocabulary, text)}
        if metadata["path"] and pathlib.Path(metadata["path"]).is_dir():
            splits["train"] = super().dataset_of(run).splits["train"]
        return data.GenerationDataset(
            path=pathlib.Path(path),
            name=metadata["name"],
            splits=splits,
            vocabulary=run.vocabulary,
            text=text,
        )

    def required_fields(self, dataset):
        return {"vocabulary_size": len(dataset.vocabulary)}

    def optimizer(self, training, steps):
        return TwoRateAdam(decoder_rate=training.decoder_rate, **decaying(training, steps))

    def loss(self, training):
        return word_loss

    def loss_counts(self, targets):
        return (targets != PADDING_ID).sum(axis=1)

    def training_batches(self, split, config, training, rng):
        """A batch is an int array of numbers of pairs. They are of similar size, first of all in
        their targets, whose length costs most.
        """
        sizes = split.in_direction_of(config).sizes
        return batches_by_size(sizes, training.batch_size, rng)

    def limits(self, split, config, training):
        """Sources and targets that are cut; no example is left out."""
        pairs = split.in_direction_of(config)
        return [
            Limit(
                unit="sources",
                is_exceeded=pairs.source.lengths > data.MAX_SOURCE,
                effect=f"have over {data.MAX_SOURCE} ids, of which the last are read",
                remedy="prepare.py with fewer --turns or --max_words=N shortens them",
            ),
            Limit(
                unit="targets",
                is_exceeded=pairs.target.lengths > data.MAX_TARGET,
                effect=f"have over {data.MAX_TARGET} ids, of which the first are learned",
                remedy="prepare.py --max_words=N leaves pairs with longer turns out",
            ),
        ]

    def collate(self, split, config, batch, length_multiple):
        pairs = split.in_direction_of(config)
        return pairs.collate(batch, length_multiple, data.MAX_SOURCE, data.MAX_TARGET)

    def validate(self, model, split, length_multiple=4):
        """Keeps the weights with the highest 1 / perplexity."""
        pairs = split.in_direction_of(model.config)
        nll = likelihood(model, pairs, length_multiple=length_multiple)
        perplexity = perplexity_of(pairs, nll)
        return {"perplexity": perplexity}, 1.0 / perplexity

    def measure(self, scoring):
        """Scores a split for evaluate.py, see `engine.task.Task.measure`.

        Perplexity is that of all pairs. The other metrics compare replies with targets:

        - Usually the reply to the source of each pair with its target. The part `without the pairs
          of train` leaves out pairs that a model may know by heart.
        - Where the split has `several` references, the reply to each source with all its targets.

        Without the option `decode` the search is greedy, as in articles. If the chat of the run
        searches otherwise, another part has the metrics of that search. An answer is source, target
        and reply of a pair, separated by tabs, turns by ` / `.
        """
        model, dataset = scoring.model, scoring.dataset
        pairs = scoring.examples.in_direction_of(model.config)
        decoding = parse_decoding(scoring.options.decode)
        replies = search_replies(scoring, pairs, decoding)
        nll = likelihood(model, pairs, length_multiple=scoring.length_multiple)
        examples = examples_of(pairs)
        record = {
            "metrics": {
                "perplexity": perplexity_of(pairs, nll),
                **metrics_of(pairs, replies, examples),
            },
            "parts": {},
            "counts": {
                "pairs": len(pairs),
                "sources": len(replies),
                "words": int(pairs.target.lengths.sum()),
            },
            "unit": dataset.text.tokenizer,
        }
        if not pairs.several:
            unseen = np.flatnonzero(~pairs.seen)
            record["counts"]["unseen"] = len(unseen)
            if 0 < len(unseen) < len(pairs):
                record["parts"]["without the pairs of train"] = {
                    "perplexity": perplexity_of(pairs, nll, unseen),
                    **metrics_of(pairs, replies, [[row] for row in unseen]),
                }
        search = _describe_search(scoring.options)
        if search:
            record["search"] = search
        else:
            chat_decoding = decoding_of(scoring.run)
            if chat_decoding != decoding:
                part = f"as its chat searches: {decoding_text(chat_decoding)}"
                chat_replies = search_replies(scoring, pairs, chat_decoding)
                record["parts"][part] = metrics_of(pairs, chat_replies, examples)
        if scoring.baselines:
            record["baselines"] = baselines_for(dataset, pairs, model.config)
        return Measured(
            record,
            by_example=functools.partial(metrics_by_example, pairs, nll, replies, examples),
            answers=_answer_lines(pairs, replies),
        )

    def describe(self, record):
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

    def example(self, dataset, split, number):
        texts = [*split.source_texts[number].split("\t"), split.target_texts[number]]
        *turns, target = [dataset.text.join(text.split(" ")) for text in texts]
        return {"instance": {"turns": turns}, "expected": [target]}

    def read_example(self, dataset, split, number):
        turns = split.source_texts[number].split("\t")
        return {"instance": {"turns": turns}, "expected": [split.target_texts[number]]}

    def chat(self, run, options):
        return GenerationChat(self.predictor(run))

    def export_archive(self, run, model, vocabulary, decode=None):
        # It needs TensorFlow, whatever Keras's backend.
        from colloquy.tasks.generation.export import generation_archive

        text = data.read_source_config(run.dataset.get("text"), run.path)
        decoding = parse_decoding(decode) if decode else decoding_of(run)
        return generation_archive(model, vocabulary, text, decoding)


def _describe_search(options):
    """Lists the settings in which a search differs from greedy search; empty for greedy search."""
    parts = []
    decoding = decoding_text(parse_decoding(options.decode))
    if decoding:
        parts.append(decoding)
    if options.reverse_run:
        parts.append(f"reranked by {options.reverse_weight:g}")
    return ", ".join(parts)


def _answer_lines(pairs, replies):
    """Yields source, target and reply of each pair, separated by tabs, turns by ` / `."""
    for source, target in zip(pairs.source_texts, pairs.target_texts, strict=True):
        texts = [source, target, replies[source]]
        yield "\t".join(text.replace("\t", " / ") for text in texts)
