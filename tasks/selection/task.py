"""Response selection: data, training, scoring and use of its models.

Letters: B batch   N candidates of a context
"""

import functools
import itertools

import keras
import numpy as np

from colloquy.base.files import UserError
from colloquy.data.word_vectors import scale_to_norm
from colloquy.engine import task
from colloquy.engine.ensembles import mean_of_logits
from colloquy.engine.limits import Limit
from colloquy.engine.optimizers import averaging
from colloquy.engine.scoring import Measured
from colloquy.tasks.selection import scoring as selection
from colloquy.tasks.selection import split as batches
from colloquy.tasks.selection.baselines import NAMED, baseline_scores, outside_scores
from colloquy.tasks.selection.chat import SelectionChat, read_candidates
from colloquy.tasks.selection.data import as_texts, load_dataset, read_tokenizer_config
from colloquy.tasks.selection.doubt import measure_doubt
from colloquy.tasks.selection.echoes import echo_rows
from colloquy.tasks.selection.lexical import document_weights, equal_stems
from colloquy.tasks.selection.predictor import SelectionPredictor
from colloquy.tasks.selection.retrieval.answers import AnsweringPredictor, add_responses
from colloquy.tasks.selection.training import Training


class SelectionTask(task.Task):
    """Response selection."""

    name = "selection"
    named_systems = tuple(NAMED)
    example_unit = "context"
    Training = Training
    release_training = {"loss_clip": 10.0}
    """Settings of a training of the release; the other defaults are the release's already."""
    max_score = 2.0
    Options = selection.Options
    breakdowns = (*selection.BREAKDOWNS, "echo")
    summary_metrics = ("R10@1", "MAP")
    load_dataset = staticmethod(load_dataset)
    training_batches = staticmethod(batches.training_batches)
    average = staticmethod(mean_of_logits)
    predictor = SelectionPredictor
    chat_options = ("index", "candidates")
    export_call = task.ExportCall("rank", result="ranked", outputs=("order", "scores"))
    export_instance = {
        "turns": ["hi", "how do i mount a usb stick?"],
        "candidates": ["thanks", "plug it in and look at dmesg"],
    }

    def make_sample(self, directory):
        # Imported here: serving imports this file, but prepares nothing.
        from colloquy.tasks.selection.prepare import Settings, prepare

        # As `make demo` prepares it.
        settings = Settings(dimension=64)
        prepare("chitchat", None, directory / "prepared", settings)

    def save_assets(self, dataset, path):
        if dataset.vocabulary is None:
            print(
                f"{dataset.path} has no words, only ids: export.py, chat.py and serve.py will need "
                "them. Put word2id beside data.pkl of the release, and prepare it again"
            )

    def required_fields(self, dataset):
        rows, dimension = dataset.vectors.shape
        return {
            "vocabulary_size": rows - 1,
            "embedding_dim": dimension,
            "hashed_words": dataset.hashed_words,
        }

    def optional_fields(self, dataset):
        return {"unknown_id": dataset.unk_id or 0}

    def split_settings(self, spec, settings):
        """Splits settings as every task does; `compatibility=release` stands for several."""
        settings = dict(settings)
        compatibility = settings.pop("compatibility", "paper")
        if compatibility == "release" and spec.release_settings:
            variant = settings.get("variant", spec.config.model_fields["variant"].default)
            settings = {**spec.release_settings(variant), **self.release_training, **settings}
        elif compatibility != "paper":
            raise UserError(
                f"compatibility: expected paper, or release for DAM. Received: {compatibility!r}"
            )
        return super().split_settings(spec, settings)

    def initialise(self, model, dataset, training):
        vectors = dataset.vectors
        if training.vector_center:
            vectors = vectors - vectors[1:].mean(axis=0)
            # Padding has no vector, and that of an unknown word was the mean already.
            vectors[[0, dataset.eos_id, dataset.unk_id or 0]] = 0.0
        if training.vector_norm:
            vectors = scale_to_norm(vectors, training.vector_norm)
        model.set_word_vectors(vectors)
        if getattr(model.config, "lexical", None):
            self._set_document_weights(model, dataset)

    def _set_document_weights(self, model, dataset):
        """Sets the tables of the layer `LexicalMatch` of a model."""
        layer = model.get_layer("lexical_match")
        num_ids = len(dataset.vectors) + dataset.hashed_words
        stems = None
        if layer.stems:
            if dataset.vocabulary is None:
                raise UserError(
                    f"lexical.stems expects words, not ids alone. {dataset.path} has no vocabulary"
                )
            stems = equal_stems(dataset.vocabulary, num_ids)
            layer.stem.assign(stems)
        layer.idf.assign(document_weights(dataset.splits["train"], num_ids, stems))

    def optimizer(self, training, steps=None):
        """Adam with the release's staircase schedule and `epsilon` 1e-8 as in TensorFlow 1."""
        schedule = keras.optimizers.schedules.ExponentialDecay(
            training.learning_rate, training.decay_steps, training.decay_rate, staircase=True
        )
        return keras.optimizers.Adam(
            schedule,
            epsilon=1e-8,
            clipvalue=training.gradient_clip or None,
            **averaging(training.ema),
        )

    def loss(self, training):
        if training.loss == "softmax":
            return selection.softmax_loss
        return functools.partial(selection.pointwise_loss, clip=training.loss_clip)

    def limits(self, split, config, training):
        """Contexts, turns and responses that are cut, and contexts that are left out."""
        limits = [
            Limit(
                unit="contexts",
                is_exceeded=split.context_turns > config.max_turns,
                effect=f"have over {config.max_turns} turns, of which the last are read",
                remedy="--set max_turns=N reads more",
            ),
            Limit(
                unit="turns",
                is_exceeded=split.turns.lengths > config.max_words,
                effect=f"have over {config.max_words} words, of which the last are read",
                remedy="--set max_words=N reads more",
            ),
            Limit(
                unit="responses",
                is_exceeded=split.responses.lengths > config.max_words,
                effect=f"have over {config.max_words} words, of which the last are read",
                remedy="--set max_words=N reads more",
            ),
        ]
        if training.negatives == "file" and training.loss == "softmax":
            has_both_labels = split.contexts_with(1) & split.contexts_with(0)
            limits.append(
                Limit(
                    unit="contexts",
                    is_exceeded=~has_both_labels,
                    effect="lack a correct or a wrong response and are left out",
                    remedy="--set loss=pointwise reads them",
                )
            )
        return limits

    def collate(self, split, config, batch, length_multiple):
        contexts, responses, labels = batch
        inputs = batches.inputs_of(split, config, contexts, responses, length_multiple)
        return inputs, labels.astype(np.float32)

    def num_examples(self, split):
        return len(split.context_turns)

    def validate(self, model, split, length_multiple=4):
        """Chooses by R10@1 + R10@2."""
        scores = selection.score(model, split, model.config, length_multiple=length_multiple)
        metrics = selection.rank("dev cannot be scored", scores, split).metrics
        return metrics, metrics["R10@1"] + metrics["R10@2"]

    def measure(self, scoring):
        """Scores a split; see `engine.task.Task.measure` and `tasks.selection.scoring.Options`.

        An answer is `score TAB label` of a line, as DAM's release has them.
        """
        lines = scoring.examples
        options = scoring.options
        scores = self._scores(scoring, lines)
        if options.partial_batches == "drop":
            batch_size = scoring.run.training.batch_size
            scores = scores[: selection.whole_batches(lines.context, batch_size)]
            if not len(scores):
                raise UserError(
                    f"{scoring.split}: partial_batches=drop leaves none of {len(lines):,} lines, "
                    f"since a batch has {batch_size:,}"
                )

        where = f"{scoring.dataset.path}, {scoring.split}"
        result = selection.rank(where, scores, lines, ties=options.ties)
        metrics_by_baseline = {}
        if scoring.baselines:
            for name, others in baseline_scores(scoring.dataset, scoring.split).items():
                ranked = selection.rank(where, others[: len(scores)], lines, ties=options.ties)
                metrics_by_baseline[name] = ranked.metrics
        record = {
            "metrics": result.metrics,
            "counts": {**result.counts, "lines": len(scores)},
            "ties": options.ties,
            "partial_batches": options.partial_batches,
            "baselines": metrics_by_baseline,
            "doubt": measure_doubt(lines, scores) if len(scores) == len(lines) else None,
        }
        return Measured(
            record,
            by_example=functools.partial(selection.metrics_by_context, result),
            answers=map("{}\t{}".format, scores, lines.label),
        )

    def measure_outside(self, scoring, source):
        _refuse_dropped_batches(scoring, "a baseline or file has no batches")
        lines = scoring.examples
        scores = outside_scores(scoring.dataset, scoring.split, source)
        result = selection.rank(source, scores, lines, ties=scoring.options.ties)
        return Measured(
            record={"counts": {**result.counts, "lines": len(scores)}},
            by_example=functools.partial(selection.metrics_by_context, result),
        )

    def metrics_by_group(self, scoring, breakdowns):
        _refuse_dropped_batches(scoring, "groups of contexts have no batches")
        lines = scoring.examples
        scores = self._scores(scoring, lines)
        # Refuses scores that are not finite.
        selection.rank(f"{scoring.dataset.path}, {scoring.split}", scores, lines)
        groups = {}
        for name in breakdowns:
            if name == "echo":
                if scoring.options.ties != "loss":
                    raise UserError("ties is not for --by=echo, where equal scores are a loss")
                groups[name] = echo_rows(lines, scores, functools.partial(self._scores, scoring))
            else:
                ties = scoring.options.ties
                groups[name] = selection.metrics_by_group(lines, scores, name, ties)
        return groups

    def _scores(self, scoring, lines):
        return selection.score(
            scoring.model,
            lines,
            scoring.model.config,
            scoring.progress,
            scoring.length_multiple,
        )

    def describe(self, record):
        counts = record["counts"]
        caption = f"ties: {record['ties']}"
        without_positive = counts["without_positive"]
        without_negative = counts["without_negative"]
        if without_positive or without_negative:
            caption += (
                f"; contexts left out: {without_positive} without a positive, "
                f"{without_negative} without a negative"
            )
        return f"{counts['contexts']:,} contexts, {counts['lines']:,} lines", caption

    def example(self, dataset, split, number):
        of_context = np.flatnonzero(split.context == number)
        turns = as_texts(split.turns, split.turns_of(number), dataset.vocabulary)
        candidates = as_texts(split.responses, of_context, dataset.vocabulary)
        expected = list(itertools.compress(candidates, split.label[of_context]))
        return {"instance": {"turns": turns, "candidates": candidates}, "expected": expected}

    def read_example(self, dataset, split, number):
        example = self.example(dataset, split, number)
        # Not checked: a scored context may have turns without words.
        instance = SelectionPredictor.Instance.model_construct(**example["instance"])
        return {**example, "instance": instance}

    def chat(self, run, options):
        """Answers come from an index or from a file of candidates; default: the run's own index."""
        candidates = options.get("candidates")
        if candidates is not None:
            candidates = read_candidates(candidates)
        predictor = add_responses(self.predictor(run), run, options.get("index"), candidates)
        if not isinstance(predictor, AnsweringPredictor):
            raise UserError(
                f"{run.path} ranks answers: give index=DIR (tools.build_index) or candidates=FILE"
            )
        return SelectionChat(predictor)

    def export_archive(self, run, model, vocabulary):
        # needs TensorFlow, whatever Keras's backend
        from colloquy.tasks.selection.export import selection_archive

        return selection_archive(model, vocabulary, read_tokenizer_config(run))


def _refuse_dropped_batches(scoring, reason):
    if scoring.options.partial_batches == "drop":
        raise UserError(f"partial_batches=drop is for the scores of whole splits: {reason}")
