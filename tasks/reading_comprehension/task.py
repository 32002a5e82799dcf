"""Reading comprehension: data, training, scoring and use of its models."""

import functools
import json
import shutil
import sys
from typing import NamedTuple

import keras
import numpy as np

from colloquy.base.files import UserError
from colloquy.data.batching import batches_by_size
from colloquy.data.json_files import read_json
from colloquy.data.samples import SQUAD
from colloquy.data.vocabulary import Vocabulary
from colloquy.engine import task
from colloquy.engine.ensembles import mean_of_logits
from colloquy.engine.optimizers import decaying
from colloquy.engine.scoring import Measured
from colloquy.metrics.reading_comprehension import METRICS, squad_metrics
from colloquy.tasks.reading_comprehension.baselines import spans_of_first_words
from colloquy.tasks.reading_comprehension.calibration import measure_confidence
from colloquy.tasks.reading_comprehension.chat import ReadingComprehensionChat
from colloquy.tasks.reading_comprehension.confidence import load_scale
from colloquy.tasks.reading_comprehension.data import CHARACTERS, load_dataset
from colloquy.tasks.reading_comprehension.limits import limits_of
from colloquy.tasks.reading_comprehension.predictor import ReadingComprehensionPredictor
from colloquy.tasks.reading_comprehension.scoring import (
    answer_texts,
    by_added_sentence,
    by_first_word,
    count_questions,
    metrics_by_question,
    metrics_with_no_answer,
    predict,
    score_split,
    span_loss,
)
from colloquy.tasks.reading_comprehension.shared_norm import (
    TwoContexts,
    ask_twice,
    shared_norm_batches,
    shared_norm_loss,
)
from colloquy.tasks.reading_comprehension.training import Training
from colloquy.tasks.reading_comprehension.windows import overlap_of


class QuestionBatch(NamedTuple):
    """A batch of questions, each asked of its own context."""

    rows: np.ndarray
    """Indices of the questions, int `(B,)`."""
    max_context: int
    """The most words of a context that are read: a longer one is cut to a window with an answer."""
    max_question: int
    """The most words of a question that are read, the first ones."""


class ReadingComprehensionTask(task.Task):
    """Answers to questions about a passage, each a span of its words."""

    name = "reading_comprehension"
    example_unit = "question"
    Training = Training
    breakdowns = ("question", "confidence", "added")
    summary_metrics = METRICS
    export_call = task.ExportCall("answer", result="found", outputs=("answer", "start", "score"))
    export_instance = {
        "passage": "Ann lives in Rome. Bob lives in Paris.",
        "question": "Where does Bob live?",
    }
    load_dataset = staticmethod(load_dataset)
    average = staticmethod(mean_of_logits)
    predictor = ReadingComprehensionPredictor

    # === Data ===

    def make_sample(self, directory):
        # Imported here: serving imports this file, but prepares nothing.
        from colloquy.tasks.reading_comprehension.prepare import Settings, prepare

        shutil.copytree(SQUAD, directory / "raw")
        prepare("squad", directory / "raw", directory / "prepared", Settings(name="squad-excerpt"))

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
            # Saved states of these trainings contain the learning rate: Keras keeps a constant rate
            # as a variable of the optimizer, but not a schedule, so a schedule could not load them.
            options["learning_rate"] = training.learning_rate
        if training.optimizer == "adam":
            return keras.optimizers.Adam(**options)
        # 1e-8 is TensorFlow 1's default, which the authors used; Keras's is 1e-7.
        return keras.optimizers.Adadelta(epsilon=1e-8, **options)

    def loss(self, training):
        return shared_norm_loss if training.shared_norm else span_loss

    def training_batches(self, split, config, training, rng):
        """Batches of questions of similar size: each a `QuestionBatch`, or with `shared_norm` a
        `TwoContexts`.

        A question is left out if all its answers have more words than neighbouring windows share: a
        window may cut such an answer. With `shared_norm` a question without a second context is
        left out too.
        """
        rows = np.flatnonzero(~split.answers_longer_than(overlap_of(training.max_context)))
        if training.shared_norm:
            return shared_norm_batches(split, rows, training, rng)
        batches = []
        sizes = np.minimum(split.sizes[rows], [training.max_context, training.max_question])
        for batch in batches_by_size(sizes, training.batch_size, rng):
            batches.append(QuestionBatch(rows[batch], training.max_context, training.max_question))
        return batches

    limits = staticmethod(limits_of)

    def collate(self, split, config, batch, length_multiple):
        if isinstance(batch, TwoContexts):
            max_context = batch.training.max_context
            max_question = batch.training.max_question
            questions = ask_twice(split, batch)
            rows = np.arange(len(questions))
        else:
            questions = split
            rows, max_context, max_question = batch
        windows = questions.windows_of_answers(rows, max_context)
        return questions.collate(rows, windows, max_question, 2 * length_multiple)

    # === Scoring ===

    def validate(self, model, split, length_multiple=4):
        """The score is F1; with `no_answer` it is the mean of F1, `F1_and_none` and `F1_misled`,
        see `tasks.reading_comprehension.scoring.metrics_with_no_answer`.
        """
        if model.config.no_answer:
            metrics = metrics_with_no_answer(model, split, length_multiple)
            mean = (metrics["F1"] + metrics["F1_and_none"] + metrics["F1_misled"]) / 3
            return metrics, mean
        metrics = score_split(model, split, length_multiple=length_multiple)
        return metrics, metrics["F1"]

    def measure(self, scoring):
        """Scores a split for evaluate.py, see `engine.task.Task.measure`.

        The answers are one line, `{question id: text}`, as SQuAD's official script reads it. The
        record of this task has:

            baselines: metrics of answers that are the first words of the context, as many as the
                median answer has
            confidence: on dev, the scale that turns a score into a confidence, and how well it
                works on the other half of the articles, see
                `tasks.reading_comprehension.calibration.measure_confidence`
        """
        questions = scoring.examples
        predictions = answer_texts(questions, _predict_spans(scoring))
        record = {
            "metrics": squad_metrics(predictions, questions.references),
            "counts": count_questions(questions),
        }
        if scoring.baselines:
            first_words = answer_texts(questions, spans_of_first_words(questions))
            first_words_metrics = squad_metrics(first_words, questions.references)
            record["baselines"] = {"first words": first_words_metrics}
        if scoring.split == "dev":
            record["confidence"], _ = measure_confidence(
                scoring.model, questions, scoring.length_multiple
            )
        return Measured(
            record,
            by_example=functools.partial(metrics_by_question, questions, predictions),
            answers=[json.dumps(predictions, ensure_ascii=False)],
        )

    def measure_outside(self, scoring, source):
        questions = scoring.examples
        predictions = read_json(source, dict[str, str])
        missing = sum(id not in predictions for id in questions.ids)
        if missing:
            print(
                f"{source}: {missing:,} of {len(questions):,} questions have no answer and count 0",
                file=sys.stderr,
            )
        return Measured(
            record={"counts": count_questions(questions)},
            by_example=functools.partial(metrics_by_question, questions, predictions),
        )

    def metrics_by_group(self, scoring, breakdowns):
        """Scores groups of questions by some of the `breakdowns`:

        question: by the first word of the question, as in the paper's figure of question types
        confidence: by the confidence of the answer, for a reliability diagram, see
            `tasks.reading_comprehension.calibration.measure_confidence`
        added: questions about passages as they are, and about passages with a misleading
            sentence, see `tasks.reading_comprehension.scoring.by_added_sentence`
        """
        model, questions = scoring.model, scoring.examples
        groups = {}
        if "added" in breakdowns:
            groups["added"] = by_added_sentence(
                model, questions, scoring.progress, scoring.length_multiple
            )
        if "question" in breakdowns:
            predictions = answer_texts(questions, _predict_spans(scoring))
            groups["question"] = by_first_word(questions, predictions)
        if "confidence" in breakdowns:
            _, groups["confidence"] = measure_confidence(model, questions, scoring.length_multiple)
            if not groups["confidence"]:
                raise UserError(
                    f"{scoring.dataset.path}: --by=confidence expects four questions or more of "
                    "two articles or more, and higher scores of correct answers than of wrong "
                    f"ones, in the split {scoring.split}"
                )
        return groups

    def describe(self, record):
        counts = record["counts"]
        return f"{counts['questions']:,} questions on {counts['contexts']:,} contexts", None

    # === Use ===

    def example(self, dataset, split, number):
        instance = {
            "passage": split.texts[split.context[number]],
            "question": split.question_texts[number],
        }
        return {"instance": instance, "expected": split.answers[number]}

    def chat(self, run, options):
        return ReadingComprehensionChat(self.predictor(run))

    def export_archive(self, run, model, vocabulary):
        # The module imports TensorFlow, which other uses of the task do not need.
        from colloquy.tasks.reading_comprehension.export import reading_archive

        characters = Vocabulary.load(run.path / CHARACTERS)
        return reading_archive(model, vocabulary, characters, load_scale(run))


def _predict_spans(scoring):
    """The model's best spans for the questions of a `Scoring`, int `(questions, 2)`."""
    spans, _ = predict(
        scoring.model,
        scoring.examples,
        progress=scoring.progress,
        length_multiple=scoring.length_multiple,
    )
    return spans
