"""Response generation: which words answer what was said?"""

import pathlib
from typing import Annotated

import numpy as np
from pydantic import Field

from base.config import Positive
from base.files import atomic_file
from data.batching import batches_by_size
from data.samples.__main__ import write_conversations
from data.vocabulary import PADDING_ID
from engine import task
from engine.optimizers import TwoRateAdam, linear_decay
from engine.vocabularies import vocabulary_of
from metrics.generation import METRICS, baselines_of, by_source, generation_metrics, perplexity
from tasks.generation.data import (
    MAX_SOURCE,
    MAX_TARGET,
    GenerationDataset,
    TextSettings,
    load_dataset,
    read_references,
)
from tasks.generation.predictor import GenerationPredictor
from tasks.generation.prepare import Settings, prepare
from tasks.generation.scoring import likelihood, word_loss
from tasks.generation.search import load_reverse, parse_decoding, reply, rerank, search_of, words_of

SAMPLES = 12  # pairs whose replies a record shows


class Training(task.Training):
    """How a generation model is trained."""

    epochs: Annotated[float, Field(gt=0)] = 10.0
    """Passes over the training pairs."""
    batch_size: Positive = 64
    """Pairs per step."""
    label_smoothing: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Fraction of a word's probability that is to be spread over all words (Szegedy et al. 2016)."""
    decoder_rate: Annotated[float, Field(gt=0)] = 1.0
    """The decoder's learning rate as a multiple of that of the rest."""
    decay: Annotated[float, Field(ge=0, le=1)] = 0.1
    """The learning rate decays linearly to this fraction of the initial one over the epochs; 1: not at all."""


class GenerationTask(task.Task):
    """Response generation."""

    name = "generation"
    Training = Training
    best_score = 1.0  # of 1 / perplexity
    options = ("scores_out", "decode", "reverse_run", "reverse_weight")
    headline = METRICS
    export_options = ("decode",)
    export_call = ("found = model.reply", ("replies", "scores"))
    export_instance = {"turns": ["hello there"]}

    # === Data ===

    def make_sample(self, directory):
        write_conversations(directory / "raw")
        prepare(
            "conversations",
            directory / "raw",
            directory / "prepared",
            Settings(name="sample-chat", tokenizer="words", turns=2),
        )

    def load_dataset(self, path):
        return load_dataset(path)

    def dataset_of(self, run, path=None):
        """As of `engine.task.Task`; a file is one of references, read by the run's words and tokenizer.

        Its dataset has the split `references` and, where the run's own is still there, that one's `train`.
        """
        if not path or not pathlib.Path(path).is_file():
            return super().dataset_of(run, path)
        facts, vocabulary = run.dataset, vocabulary_of(run)
        text = TextSettings.of(facts["text"])
        splits = {"references": read_references(path, vocabulary, text)}
        if facts["path"] and pathlib.Path(facts["path"]).is_dir():
            splits["train"] = super().dataset_of(run).splits["train"]
        return GenerationDataset(pathlib.Path(path), facts["name"], splits, vocabulary, None, text)

    def sizes(self, dataset):
        return {"vocabulary_size": len(dataset.vocabulary)}

    def decided(self, dataset):
        vectors = {} if dataset.vectors is None else {"embedding_dim": dataset.vectors.shape[1]}
        return {**self.sizes(dataset), **vectors}

    # === Training ===

    def initialise(self, model, dataset, training):
        """Puts the dataset's word vectors, where it has some, into a fresh model."""
        if dataset.vectors is None:
            return
        for name in {"word_embedding", "word_embedding" if model.config.shared_embedding else "source_embedding"}:
            [table] = model.get_layer(name).get_weights()
            model.get_layer(name).set_weights([np.concatenate([dataset.vectors, table[len(dataset.vectors) :]])])

    def optimizer(self, training, steps, config=None):
        """Adam with a linear decay, the decoder at its own rate."""
        schedule = linear_decay(training.learning_rate, steps, training.decay)
        clip = training.gradient_clip or None
        return TwoRateAdam(schedule, global_clipnorm=clip, decoder_rate=training.decoder_rate)

    def loss(self, training):
        return word_loss(training.label_smoothing)

    def loss_counts(self, targets):
        return (targets != PADDING_ID).sum(axis=1)

    def training_batches(self, split, config, training, rng):
        """Batches are numbers of pairs of like size, like targets first, whose length costs most."""
        return batches_by_size(split.in_direction_of(config).sizes, training.batch_size, rng)

    def collate(self, split, config, batch, length_multiple):
        return split.in_direction_of(config).collate(batch, length_multiple, MAX_SOURCE, MAX_TARGET)

    # === Scoring ===

    def validate(self, model, split, length_multiple=4):
        """Chooses by 1 / perplexity."""
        nll, words = likelihood(model, split, model.config, length_multiple=length_multiple)
        found = perplexity(float(nll.sum(dtype=np.float64)), int(words.sum()))
        return {"perplexity": found}, 1.0 / found

    def measure(
        self,
        model,
        dataset,
        split,
        run,
        baselines=True,
        progress=iter,
        length_multiple=4,
        scores_out=None,
        decode=None,
        reverse_run=None,
        reverse_weight=0.5,
    ):
        """Scores a split as a record has it.

        Perplexity is that of all pairs. The other metrics compare the reply to each pair's source with its target, and
        once more without the pairs that stand in train (`unseen`), where memory does not help; or, where the split has
        `several` references, the reply to each source with all of them.

        Args:
            model, dataset, split, run, baselines, progress, length_multiple: As of `engine.task.Task.measure`.
            scores_out: File for the replies: source, target and reply in each line, separated by tabs, turns of a
                source by ` / `.
            decode: How replies are searched for, see `tasks.generation.search.parse_decoding`.
            reverse_run: Run directory of a reverse model, which chooses among the replies found: see
                `tasks.generation.search.rerank`.
            reverse_weight: As of `rerank`.

        Returns:
            The record; its `samples` are the replies to some pairs: the first, the last and those at equal distances
            between.

        Raises:
            UserError: where `reverse_run` is not one.
        """
        decoding, reverse = parse_decoding(decode), reverse_run and load_reverse(reverse_run, dataset.vocabulary)
        examples = dataset.splits[split].in_direction_of(model.config)
        nll, words = likelihood(model, dataset.splits[split], model.config, length_multiple=length_multiple)
        rows, references = by_source(examples.source_texts, examples.target_texts)
        ids, scores = reply(model, examples, rows, decoding, progress=progress, length_multiple=length_multiple)
        if reverse:
            sources = examples.source.lists()
            ids, _ = rerank(reverse, [sources[row] for row in rows], ids, scores, reverse_weight)
        replies = _texts_of(ids, rows, examples, dataset.vocabulary)
        texts = list(zip(examples.source_texts, examples.target_texts, replies, strict=True))
        if scores_out:
            _write(scores_out, texts)

        def metrics_of(chosen):
            found = perplexity(float(nll[chosen].sum(dtype=np.float64)), int(words[chosen].sum()))
            if examples.several:
                said = [replies[row] for row in rows], references
            else:
                said = [replies[i] for i in chosen], [[examples.target_texts[i]] for i in chosen]
            return {"perplexity": found, **generation_metrics(*said)}

        whole, unseen = np.arange(len(examples)), np.flatnonzero(~examples.seen)
        shown = [texts[i] for i in np.unique(np.linspace(0, len(examples) - 1, SAMPLES).astype(int))]
        record = {
            "metrics": metrics_of(whole),
            "parts": {"without the pairs of train": metrics_of(unseen)} if 0 < len(unseen) < len(whole) else {},
            "counts": {"pairs": len(whole), "unseen": len(unseen), "sources": len(rows), "words": int(words.sum())},
            "decoding": decoding.to_json() | ({"reverse_weight": reverse_weight} if reverse_run else {}),
            "search": search_of(decoding) + (", reranked" if reverse else ""),
            "unit": dataset.text.tokenizer,
            "samples": [dict(zip(("source", "target", "reply"), of_pair, strict=True)) for of_pair in shown],
        }
        if examples.several:
            del record["counts"]["unseen"]  # nobody looked
        if baselines:
            train = dataset.splits.get("train")
            train = train.in_direction_of(model.config).target_texts if train else []
            given = train, examples.source_texts, examples.target_texts
            record["baselines"] = baselines_of(*given, several=examples.several)
        return record

    def describe(self, record):
        c = record["counts"]
        if "unseen" in c:
            counted = f"{c['pairs']:,} pairs, {c['unseen']:,} of them not in train"
        else:
            counted = f"{c['pairs']:,} references of {c['sources']:,} sources"
        compared = "one reference per pair" if "unseen" in c else "all references of a source at once"
        return (
            f"{counted}; {record['search']}",
            f"Perplexity is per token of the tokenizer {record['unit']}, the end of a target included; "
            f"BLEU by sacrebleu on these tokens, {compared}.",
        )

    # === Use ===

    def examples(self, dataset, count=3, split="dev"):
        texts = dataset.splits[split].source_texts
        rows = np.unique(np.linspace(0, len(texts) - 1, count).astype(int)) if texts else ()
        found = {row: [dataset.text.join(turn.split(" ")) for turn in texts[row].split("\t")] for row in rows}
        return [{"title": f"{split}, pair {row + 1}", "instance": {"turns": found[row]}} for row in rows]

    def predictor(self, run):
        return GenerationPredictor(run)

    def export_archive(self, run, model, vocabulary, decode=None):
        from tasks.generation.export import generation_archive  # needs TensorFlow, whatever Keras's backend

        return generation_archive(model, vocabulary, run.dataset["text"], parse_decoding(decode))


def _texts_of(ids, rows, examples, vocabulary):
    """The best reply to the source of each pair, as text; `rows` has a pair of each source."""
    texts = [" ".join(words_of(best, vocabulary)) for best in ids[:, 0]]
    reply_to = {examples.source_texts[row]: text for row, text in zip(rows, texts, strict=True)}
    return [reply_to[source] for source in examples.source_texts]


def _write(path, rows):
    """Writes rows of texts, separated by tabs; a tab in a text becomes ` / `."""
    with atomic_file(path) as file:
        for row in rows:
            file.write("\t".join(text.replace("\t", " / ") for text in row) + "\n")
