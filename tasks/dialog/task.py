"""Dialog with a list of responses: data, training, scoring and use of its models."""

import shutil
from typing import Annotated, Literal

import keras
from pydantic import Field

from base.config import Positive
from base.files import UserError, atomic_file
from data.batching import batches_by_size, evenly_spaced
from data.samples.dialog import write_babi
from data.sequences import round_up
from engine import task
from engine.evaluate import mean_of_softmaxes
from engine.optimizers import averaging, linear_decay
from metrics.dialog import METRICS
from tasks.dialog.action_mask import FILE as MASK
from tasks.dialog.action_mask import learn, load_mask
from tasks.dialog.data import PHRASES, World, load_dataset
from tasks.dialog.predictor import DialogPredictor
from tasks.dialog.prepare import Settings, prepare
from tasks.dialog.scoring import (
    GROUPINGS,
    baselines_and_upper_bounds,
    margin_loss,
    metrics_by,
    metrics_of,
    predict,
    softmax_loss,
)

WORDS = 16  # `max_words` is a multiple of this


class Training(task.Training):
    """Settings of a dialog training."""

    epochs: Annotated[float, Field(gt=0)] = 20.0
    """Passes over the training dialogs."""
    batch_size: Positive = 8
    """Dialogs per step, with all their turns."""
    learning_rate: Annotated[float, Field(ge=0)] = 2e-3
    """Initial learning rate."""
    loss: Literal["softmax", "margin"] = "softmax"
    """`softmax` over all candidates, or the `margin` ranking loss of Bordes et al."""
    margin: Annotated[float, Field(ge=0)] = 0.1
    """Margin of the correct candidate's score over any other, for the margin loss."""
    gradient_clip: Annotated[float, Field(ge=0)] = 10.0
    """Gradients are scaled down to this global norm; 0: not at all."""
    decay: Annotated[float, Field(ge=0, le=1)] = 0.1
    """The learning rate decays linearly to this fraction of the initial one over the epochs; 1: not at all."""
    ema: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Momentum of the moving averages of the weights, which scoring uses; 0: none."""
    validations_per_epoch: Annotated[float, Field(gt=0)] = 0.5
    """Validations on dev per pass over the training dialogs; 0.5 is every other epoch."""


class DialogTask(task.Task):
    """Dialog with a list of responses."""

    name = "dialog"
    Training = Training
    options = ("scores_out", "action_mask")
    groupings = GROUPINGS
    headline = METRICS
    sample_path = "prepared/task1"
    export_call = ("answer = model.respond", ("response", "scores"))
    export_instance = {"history": [{"speaker": "user", "text": "hello"}]}

    # === Data ===

    def make_sample(self, directory):
        write_babi(directory / "raw")
        prepare("babi-dialog", directory / "raw", directory / "prepared", Settings(name="sample"))

    def load_dataset(self, path):
        return load_dataset(path)

    def save_assets(self, dataset, path):
        """The files of its world, the action mask, and the most frequent sentences of users."""
        for name in World.FILES:
            shutil.copyfile(dataset.path / name, path / name)
        rules = learn(dataset.world, dataset.splits["train"])
        with atomic_file(path / MASK) as file:
            file.write(rules.model_dump_json())
        with atomic_file(path / PHRASES) as file:
            file.writelines(f"{phrase}\n" for phrase in dataset.phrases())

    def config_fields(self, dataset):
        return dataset.world.config_fields

    def derived_fields(self, dataset):
        sentences = dataset.splits["train"].sentences, dataset.world.encoded_candidates
        longest = max(each.words.lengths.max() for each in sentences)
        return {"max_words": round_up(int(longest), WORDS)}

    # === Training ===

    def initialise(self, model, dataset, training):
        dataset.world.put_into(model)

    def optimizer(self, training, steps, config=None):
        schedule = linear_decay(training.learning_rate, steps, training.decay)
        clip = training.gradient_clip or None
        return keras.optimizers.Adam(schedule, global_clipnorm=clip, **averaging(training.ema))

    def loss(self, training):
        if training.loss == "softmax":
            return softmax_loss
        return lambda answers, logits: margin_loss(answers, logits, training.margin)

    def loss_counts(self, targets):
        return (targets >= 0).sum(axis=1)

    def training_batches(self, split, config, training, rng):
        return batches_by_size(split.sizes, training.batch_size, rng)

    def collate(self, split, config, batch, length_multiple):
        return split.collate(batch, config.reads, config.entities, length_multiple)

    # === Scoring ===

    def average(self, logits):
        return mean_of_softmaxes(logits)

    def contexts(self, split):
        return len(split.answers)

    def validate(self, model, split, length_multiple=4):
        predicted = predict(model, split, length_multiple=length_multiple)
        metrics = metrics_of(split, predicted)["metrics"]
        return metrics, metrics["per_response"]

    def measure(self, model, dataset, split, run, baselines=True, progress=iter, length_multiple=4, **options):
        """See `engine.task.Task.measure`.

        Args:
            **options: `scores_out`, a file for lines `dialog TAB said TAB correct`, nothing said where the mask allows
                nothing; `action_mask`, True to choose only among the candidates that the run's mask allows.
        """
        examples, scores_out, mask = dataset.splits[split], options.get("scores_out"), None
        if options.get("action_mask") and not (mask := load_mask(run.path, dataset.world)):
            raise UserError(f"{run.path} lacks {MASK}: it was trained by an older version")
        predicted = predict(model, examples, progress=progress, length_multiple=length_multiple, mask=mask)
        record = {
            **metrics_of(examples, predicted),
            "counts": {"dialogs": len(examples), "responses": len(examples.answers)},
        }
        if mask:
            record["search"] = "action mask"
        if baselines:
            record |= baselines_and_upper_bounds(dataset, split)
        if scores_out:
            texts = [*dataset.world.candidates, ""]  # the last, -1: no candidate was allowed
            with atomic_file(scores_out) as file:
                for row in zip(examples.dialog, predicted, examples.answers, strict=True):
                    file.write(f"{row[0] + 1}\t{texts[row[1]]}\t{texts[row[2]]}\n")
        return record

    def metrics_by(self, model, dataset, split, groupings, progress=iter, length_multiple=4):
        examples = dataset.splits[split]
        predicted = predict(model, examples, progress=progress, length_multiple=length_multiple)
        return metrics_by(dataset, examples, predicted, groupings)

    def describe(self, record):
        counts = record["counts"]
        return f"{counts['dialogs']:,} dialogs, {counts['responses']:,} responses", None

    # === Use ===

    def examples(self, dataset, count=3, split="dev"):
        """The first sentences of dialogs."""
        found = self.examples_to_explain(dataset, count, split)
        return [{"title": each["title"], "instance": {"history": each["instance"]["history"][:1]}} for each in found]

    def examples_to_explain(self, dataset, count, split):
        """Dialogs up to the last sentence of the user."""
        examples, found = dataset.splits[split], []
        for number in evenly_spaced(len(examples), count):
            dialog = examples.dialogs[number]
            history = dataset.conversation(examples, dialog)[: dialog["turns"][-1] + 1]
            expected = dataset.world.candidates[dialog["answers"][-1]]
            example = {"title": f"{split}, dialog {number + 1}", "instance": {"history": history}}
            found.append({**example, "expected": [expected]})
        return found

    def predictor(self, run):
        return DialogPredictor(run)

    def export_inputs(self, instance):
        said = instance["history"]
        return {
            "history": [[sentence["text"] for sentence in said]],
            "speakers": [[sentence["speaker"] for sentence in said]],
            "facts": [instance.get("facts") or [""]],
            "candidates": [instance.get("candidates") or [""]],
        }

    def export_archive(self, run, model, vocabulary):
        from tasks.dialog.export import dialog_archive  # needs TensorFlow, whatever Keras's backend

        world = World.load(run.path)
        return dialog_archive(model, world, load_mask(run.path, world))
