"""Reading comprehension: data, training, scoring and use of its models."""

import keras

from colloquy.base.files import UserError
from colloquy.data.samples import SQUAD
from colloquy.data.vocabulary import Vocabulary
from colloquy.engine import task
from colloquy.engine.ensembles import mean_of_logits
from colloquy.engine.optimizers import decaying
from colloquy.metrics.reading_comprehension import METRICS
from colloquy.tasks.reading_comprehension import measuring
from colloquy.tasks.reading_comprehension.batches import limits_of, training_batches
from colloquy.tasks.reading_comprehension.chat import ReadingComprehensionChat
from colloquy.tasks.reading_comprehension.confidence import load_scale
from colloquy.tasks.reading_comprehension.data import CHARACTERS, load_dataset
from colloquy.tasks.reading_comprehension.losses import shared_norm_loss, span_loss
from colloquy.tasks.reading_comprehension.predictor import ReadingComprehensionPredictor
from colloquy.tasks.reading_comprehension.questions import multiples_of
from colloquy.tasks.reading_comprehension.training import Training
from colloquy.tasks.reading_comprehension.validation import validate


class ReadingComprehensionTask(task.Task):
    """Answers to questions about a passage, each a span of its words."""

    name = "reading_comprehension"
    example_unit = "question"
    Training = Training
    breakdowns = ("question", "confidence", "added")
    summary_metrics = METRICS
    export_call = task.ExportCall("answer", outputs=("answer", "start", "score"))
    export_instance = {
        "passage": "Ann lives in Rome. Bob lives in Paris.",
        "question": "Where does Bob live?",
    }
    load_dataset = staticmethod(load_dataset)
    average = staticmethod(mean_of_logits)
    predictor = ReadingComprehensionPredictor
    chat = ReadingComprehensionChat

    # === Data ===

    def make_sample(self, directory):
        # Imported here: serving imports this file, but prepares nothing.
        from colloquy.tasks.reading_comprehension.prepare import Settings, prepare

        prepare("squad", SQUAD, directory / "prepared", Settings(name="squad-excerpt"))

    def save_assets(self, dataset, path):
        dataset.characters.save(path / CHARACTERS)

    # === Settings ===

    def required_fields(self, dataset):
        return {
            "vocabulary_size": len(dataset.vocabulary),
            "embedding_dim": dataset.vectors.shape[1],
            "characters": len(dataset.characters),
        }

    def optional_fields(self, dataset):
        return {"trained_words": dataset.trained_words}

    # === Training ===

    def initialise(self, model, dataset, training):
        if model.config.no_answer != training.shared_norm:
            raise UserError(
                "expected no_answer of the model and shared_norm of its training to be equal. "
                f"Received: no_answer={model.config.no_answer}, shared_norm={training.shared_norm}"
            )
        if model.config.use_words:
            model.set_word_vectors(dataset.vectors)

    def optimizer(self, training, steps):
        options = decaying(training, steps)
        if training.decay == 1:
            # A number in place of a schedule that returns it each time: Keras saves a number with
            # the optimizer, and saved trainings with `decay` 1 have it.
            options["learning_rate"] = training.learning_rate
        if training.optimizer == "adam":
            return keras.optimizers.Adam(**options)
        # 1e-8 is TensorFlow 1's default, which the authors used; Keras's is 1e-7.
        return keras.optimizers.Adadelta(epsilon=1e-8, **options)

    def loss(self, training):
        return shared_norm_loss if training.shared_norm else span_loss

    def training_batches(self, split, config, training, rng):
        return training_batches(split, training, rng)

    limits = staticmethod(limits_of)

    def collate(self, split, config, batch, length_multiple):
        return batch.collate(split, multiples_of(length_multiple))

    # === Scoring ===

    validate = staticmethod(validate)
    measure = staticmethod(measuring.measure)
    measure_outside = staticmethod(measuring.measure_outside)
    metrics_by_group = staticmethod(measuring.metrics_by_group)

    def describe(self, record):
        counts = record["counts"]
        return f"{counts['questions']:,} questions on {counts['contexts']:,} contexts", None

    # === Use ===

    def example(self, dataset, split, number):
        instance = {
            "passage": split.texts[split.context_of_question[number]],
            "question": split.question_texts[number],
        }
        return {"instance": instance, "expected": split.answers[number]}

    def export_archive(self, run, model, vocabulary):
        # The module imports TensorFlow, which other uses of the task do not need.
        from colloquy.tasks.reading_comprehension.export import reading_archive

        characters = Vocabulary.load(run.path / CHARACTERS)
        return reading_archive(model, vocabulary, characters, load_scale(run))
