"""Dialog with a list of responses: data, training, scoring and use of its models."""

import functools
import shutil

import keras

from colloquy.base.files import UserError, atomic_file
from colloquy.data.batching import batches_by_size
from colloquy.data.samples import DIALOG_BABI
from colloquy.data.sequences import round_up
from colloquy.engine import task
from colloquy.engine.ensembles import mean_of_softmaxes
from colloquy.engine.optimizers import decaying
from colloquy.engine.scoring import Measured
from colloquy.metrics.dialog import METRICS, dialog_metrics
from colloquy.tasks.dialog import scoring as dialog_scoring
from colloquy.tasks.dialog.action_mask import FILE as MASK_FILE
from colloquy.tasks.dialog.action_mask import load_mask
from colloquy.tasks.dialog.baselines import baselines_and_upper_bounds
from colloquy.tasks.dialog.chat import DialogChat
from colloquy.tasks.dialog.data import load_dataset
from colloquy.tasks.dialog.domain import Domain
from colloquy.tasks.dialog.losses import margin_loss, softmax_loss
from colloquy.tasks.dialog.predictor import DialogPredictor
from colloquy.tasks.dialog.rules import learn
from colloquy.tasks.dialog.training import Training
from colloquy.tasks.dialog.users import FILE as USERS_FILE
from colloquy.tasks.dialog.users import learn_users

MAX_WORDS_MULTIPLE = 16
"""`max_words` is rounded up to a multiple of this."""


class DialogTask(task.Task):
    """Dialog with a list of responses."""

    name = "dialog"
    example_unit = "dialog"
    Training = Training
    Options = dialog_scoring.Options
    summary_metrics = METRICS
    export_call = task.ExportCall("respond", outputs=("response", "api_call", "scores"))
    export_instance = {"history": [{"speaker": "user", "text": "hello"}]}
    load_dataset = staticmethod(load_dataset)
    average = staticmethod(mean_of_softmaxes)
    predictor = DialogPredictor
    chat = DialogChat

    def make_sample(self, directory):
        # Imported here: serving imports this file, but prepares nothing.
        from colloquy.tasks.dialog.prepare import Settings, prepare

        prepare("babi-dialog", DIALOG_BABI, directory / "tasks", Settings(name="sample"))
        (directory / "tasks" / "task5").rename(directory / "prepared")

    def save_assets(self, dataset, path):
        """Copies the domain's files, and writes what the mask and the users learn."""
        for name in Domain.FILES:
            shutil.copyfile(dataset.path / name, path / name)
        learnt = {
            MASK_FILE: learn(dataset.domain, dataset.splits["train"]),
            USERS_FILE: learn_users(dataset),
        }
        for name, content in learnt.items():
            with atomic_file(path / name) as file:
                file.write(content.model_dump_json())

    def required_fields(self, dataset):
        return dataset.domain.tables.required_fields

    def check_numbers(self, run, dataset):
        """Candidates and entities have numbers."""
        domain = Domain.load(run.path)
        known = domain.candidates, domain.entities
        if (dataset.domain.candidates, dataset.domain.entities) != known:
            raise UserError(
                f"{dataset.path} has other candidates or entities than {run.path}, or another "
                "order of them: they come from different preparations"
            )

    def optional_fields(self, dataset):
        # All splits share one `Sentences`, so the longest sentence is that of the whole dataset.
        longest_sentence = dataset.splits["train"].sentences.words.lengths.max()
        longest_candidate = dataset.domain.encoded_candidates.words.lengths.max()
        longest = max(int(longest_sentence), int(longest_candidate))
        return {
            "max_words": round_up(longest, MAX_WORDS_MULTIPLE),
            "templates": len(dataset.domain.tables.templates),
        }

    def initialise(self, model, dataset, training):
        dataset.domain.tables.put_into(model)

    def optimizer(self, training, steps):
        return keras.optimizers.Adam(**decaying(training, steps))

    def loss(self, training):
        if training.loss == "softmax":
            return softmax_loss
        return lambda answers, logits: margin_loss(answers, logits, training.margin)

    def loss_counts(self, targets):
        # The loss averages over turns; -1 is padding.
        return (targets >= 0).sum(axis=1)

    def training_batches(self, split, config, training, rng):
        return batches_by_size(split.sizes, training.batch_size, rng)

    def collate(self, split, config, batch, length_multiple):
        return split.collate(batch, config.reads, config.entities, length_multiple)

    def validate(self, model, split, length_multiple=4):
        predicted = dialog_scoring.predict(model, split, length_multiple=length_multiple)
        metrics = dialog_metrics(predicted, split.answers, split.dialog)
        return metrics, metrics["per_response"]

    def measure(self, scoring):
        """See `engine.task.Task.measure`."""
        examples = scoring.examples
        mask = None
        if scoring.options.action_mask:
            mask = load_mask(scoring.run.path, scoring.dataset.domain)
        predicted = dialog_scoring.predict(
            scoring.model,
            examples,
            progress=scoring.progress,
            length_multiple=scoring.length_multiple,
            mask=mask,
        )
        record = {
            "metrics": dialog_metrics(predicted, examples.answers, examples.dialog),
            "counts": {"dialogs": len(examples), "responses": len(examples.answers)},
        }
        if mask is not None:
            record["search"] = "action mask"
        if scoring.baselines:
            record.update(baselines_and_upper_bounds(scoring.dataset, scoring.split))
        return Measured(
            record,
            by_example=functools.partial(dialog_scoring.metrics_by_dialog, examples, predicted),
            answers=_answer_lines(scoring.dataset.domain, examples, predicted),
        )

    def describe(self, record):
        counts = record["counts"]
        return f"{counts['dialogs']:,} dialogs, {counts['responses']:,} responses", None

    def example(self, dataset, split, number):
        """The first sentence of a dialog."""
        dialog = self.read_example(dataset, split, number)["instance"]
        return {"instance": {"history": dialog["history"][:1]}}

    def read_example(self, dataset, split, number):
        """A dialog up to the last sentence of the user."""
        dialog = split.dialogs[number]
        last_of_user = dialog["turns"][-1]
        sentences = dataset.conversation(split, dialog)[: last_of_user + 1]
        correct = dataset.domain.candidates[dialog["answers"][-1]]
        return {
            "instance": {"history": [sentence._asdict() for sentence in sentences]},
            "expected": [correct],
        }

    def export_inputs(self, instance):
        texts = [sentence["text"] for sentence in instance["history"]]
        speakers = [sentence["speaker"] for sentence in instance["history"]]
        return {"history": [texts], "speakers": [speakers]}

    def export_archive(self, run, model, vocabulary):
        # Imported here: it needs TensorFlow, even if Keras has another backend.
        from colloquy.tasks.dialog.export import dialog_archive

        return dialog_archive(DialogPredictor(run, model))


def _answer_lines(domain, split, predicted):
    """Yields `dialog TAB predicted TAB correct`; predicted is empty if the mask allows nothing."""
    # Where the mask allowed no candidate, the prediction is -1, which selects the last text: "".
    texts = [*domain.candidates, ""]
    for number, answer, correct in zip(split.dialog, predicted, split.answers, strict=True):
        yield f"{number + 1}\t{texts[answer]}\t{texts[correct]}"
