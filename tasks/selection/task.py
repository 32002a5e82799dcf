"""Response selection: data, training, scoring and use of its models."""

import functools
import itertools

import keras
import numpy as np

from colloquy.base.files import UserError
from colloquy.data.word_vectors import scale_to_norm
from colloquy.engine import task
from colloquy.engine.ensembles import mean_of_logits
from colloquy.engine.optimizers import averaging
from colloquy.tasks.selection import measuring
from colloquy.tasks.selection.baselines import NAMED
from colloquy.tasks.selection.batches import training_batches
from colloquy.tasks.selection.chat import SelectionChat
from colloquy.tasks.selection.data import as_texts, load_dataset, read_tokenizer_config
from colloquy.tasks.selection.groups import BREAKDOWNS
from colloquy.tasks.selection.lexical import set_document_weights
from colloquy.tasks.selection.predictor import SelectionPredictor
from colloquy.tasks.selection.scoring import Options, pointwise_loss, rank, score, softmax_loss
from colloquy.tasks.selection.split import inputs_of
from colloquy.tasks.selection.training import Training, limits_of


class SelectionTask(task.Task):
    """Response selection; `engine.task.Task` describes the attributes and methods."""

    name = "selection"
    named_systems = tuple(NAMED)
    example_unit = "context"
    predictor = SelectionPredictor
    chat = SelectionChat

    # === Data and the fields of a config that they decide ===

    load_dataset = staticmethod(load_dataset)

    def make_sample(self, directory):
        # Imported here: serving imports this file, but prepares nothing.
        from colloquy.tasks.selection.prepare import Settings, prepare

        # As `make demo` prepares it.
        prepare("chitchat", None, directory / "prepared", Settings(dimension=64))

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

    # === Training ===

    Training = Training
    release_training = {"loss_clip": 10.0}
    """Settings of a training of the release; the other defaults are the release's already."""
    limits = staticmethod(limits_of)
    training_batches = staticmethod(training_batches)

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
            # Padding stays 0. So do `_EOS_` and `_UNK_`, which had the mean in datasets of texts.
            vectors[[0, dataset.eos_id, dataset.unk_id or 0]] = 0.0
        if training.vector_norm:
            vectors = scale_to_norm(vectors, training.vector_norm)
        model.set_word_vectors(vectors)
        if getattr(model.config, "lexical", None):
            set_document_weights(model, dataset)

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
            return softmax_loss
        return functools.partial(pointwise_loss, clip=training.loss_clip)

    def collate(self, split, config, batch, length_multiple):
        contexts, lines, labels = batch
        inputs = inputs_of(split, config, contexts, lines, length_multiple)
        return inputs, labels.astype(np.float32)

    max_score = 2.0
    """The best score of `validate`: two recalls of 1."""

    def validate(self, model, split, length_multiple=4):
        """Chooses by R10@1 + R10@2."""
        scores = score(model, split, model.config, length_multiple=length_multiple)
        metrics = rank("dev cannot be scored", scores, split).metrics
        return metrics, metrics["R10@1"] + metrics["R10@2"]

    # === Scores for evaluate.py ===

    Options = Options
    breakdowns = (*BREAKDOWNS, "echo")
    summary_metrics = ("R10@1", "MAP")
    measure = staticmethod(measuring.measure)
    measure_outside = staticmethod(measuring.measure_outside)
    metrics_by_group = staticmethod(measuring.metrics_by_group)
    average = staticmethod(mean_of_logits)

    def num_examples(self, split):
        return split.num_contexts

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

    # === Examples of a split, as texts ===

    def example(self, dataset, split, number):
        lines = np.flatnonzero(split.context_of_line == number)
        turns = as_texts(split.turns, split.turns_of(number), dataset.vocabulary)
        candidates = as_texts(split.responses, lines, dataset.vocabulary)
        expected = list(itertools.compress(candidates, split.label[lines]))
        return {"instance": {"turns": turns, "candidates": candidates}, "expected": expected}

    def read_example(self, dataset, split, number):
        example = self.example(dataset, split, number)
        # `model_construct` checks nothing: a scored context may have turns without words.
        instance = SelectionPredictor.Instance.model_construct(**example["instance"])
        return {**example, "instance": instance}

    # === Export ===

    export_call = task.ExportCall("rank", outputs=("order", "scores"))
    export_instance = {
        "turns": ["hi", "how do i mount a usb stick?"],
        "candidates": ["thanks", "plug it in and look at dmesg"],
    }

    def export_archive(self, run, model, vocabulary):
        # needs TensorFlow, whatever Keras's backend
        from colloquy.tasks.selection.export import selection_archive

        return selection_archive(model, vocabulary, read_tokenizer_config(run))
