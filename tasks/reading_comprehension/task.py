"""Reading comprehension: data, training, scoring and use of its models."""

import functools
import json
import shutil
import sys

import keras
import numpy as np

from colloquy.base.files import UserError
from colloquy.data.batching import batches_by_size
from colloquy.data.samples import SQUAD
from colloquy.data.text_files import read_json
from colloquy.data.vocabulary import Vocabulary
from colloquy.engine import task
from colloquy.engine.ensembles import mean_of_logits
from colloquy.engine.optimizers import averaging, linear_decay
from colloquy.metrics.reading_comprehension import METRICS
from colloquy.tasks.reading_comprehension.baselines import spans_of_first_words
from colloquy.tasks.reading_comprehension.chat import ReadingComprehensionChat
from colloquy.tasks.reading_comprehension.confidence import load_scale, measure_confidence
from colloquy.tasks.reading_comprehension.data import CHARACTERS, load_dataset
from colloquy.tasks.reading_comprehension.predictor import ReadingComprehensionPredictor
from colloquy.tasks.reading_comprehension.prepare import Settings, prepare
from colloquy.tasks.reading_comprehension.scoring import (
    answers,
    by_added_sentence,
    by_first_word,
    metrics_by_question,
    metrics_with_no_answer,
    predict,
    record_of,
    score_split,
    span_loss,
)
from colloquy.tasks.reading_comprehension.second_contexts import NONE
from colloquy.tasks.reading_comprehension.shared_norm import (
    TwoContexts,
    ask_twice,
    shared_norm_batches,
    shared_norm_loss,
)
from colloquy.tasks.reading_comprehension.training import Training
from colloquy.tasks.reading_comprehension.windows import overlap_of


class ReadingComprehensionTask(task.Task):
    """Reading comprehension."""

    name = "reading_comprehension"
    example_unit = "question"
    Training = Training
    breakdowns = ("question", "confidence", "added")
    summary_metrics = METRICS
    export_call = ("found = model.answer", ("answer", "start", "score"))
    export_instance = {
        "passage": "Ann lives in Rome. Bob lives in Paris.",
        "question": "Where does Bob live?",
    }
    load_dataset = staticmethod(load_dataset)
    average = staticmethod(mean_of_logits)
    predictor = ReadingComprehensionPredictor

    def make_sample(self, directory):
        shutil.copytree(SQUAD, directory / "raw")
        prepare("squad", directory / "raw", directory / "prepared", Settings(name="squad-excerpt"))

    def save_assets(self, dataset, path):
        dataset.characters.save(path / CHARACTERS)

    def required_fields(self, dataset):
        rows, dimension = dataset.vectors.shape
        return {
            "vocabulary_size": rows - 1,
            "embedding_dim": dimension,
            "characters": len(dataset.characters),
        }

    def optional_fields(self, dataset):
        return {"trained_words": dataset.trained_words}

    def initialise(self, model, dataset, training):
        if model.config.no_answer != training.shared_norm:
            raise UserError(
                "no_answer, of the model, and shared_norm, of its training, need each other. "
                f"Received: no_answer={model.config.no_answer}, shared_norm={training.shared_norm}"
            )
        if model.config.use_words:
            model.set_word_vectors(dataset.vectors)

    def optimizer(self, training, steps=None, config=None):
        schedule = training.learning_rate
        if training.decay != 1:
            schedule = linear_decay(training.learning_rate, steps, training.decay)
        clip = training.gradient_clip or None
        options = {"global_clipnorm": clip, **averaging(training.ema)}
        if training.optimizer == "adam":
            return keras.optimizers.Adam(schedule, **options)
        # 1e-8 is TensorFlow 1's default, which the authors used; Keras's is 1e-7.
        return keras.optimizers.Adadelta(schedule, epsilon=1e-8, **options)

    def loss(self, training):
        return shared_norm_loss if training.shared_norm else span_loss

    def training_batches(self, split, config, training, rng):
        """Batches are indices of questions of similar size, the words that are read of each, and
        with `shared_norm` second contexts, drawn from `ReadingSplit.second_contexts`.

        A question is left out if no window has its whole answer, or without a second context.
        """
        rows = np.flatnonzero(~split.answers_longer_than(overlap_of(training.max_context)))
        if training.shared_norm:
            return shared_norm_batches(split, rows, training, rng)
        batches = []
        sizes = np.minimum(split.sizes[rows], [training.max_context, training.max_question])
        for batch in batches_by_size(sizes, training.batch_size, rng):
            batches.append((rows[batch], training.max_context, training.max_question))
        return batches

    def limits(self, split, config, training):
        """Contexts and questions that are cut, questions that are left out, and long answers."""
        context_words, question_words = split.sizes.T
        reasons = [
            (
                context_words > training.max_context,
                f"have a context of over {training.max_context} words, of which a window is read",
                "max_context=N reads more",
            ),
            (
                question_words > training.max_question,
                f"have over {training.max_question} words, of which the first are read",
                "max_question=N reads more",
            ),
            (
                split.answers_longer_than(overlap_of(training.max_context)),
                f"are left out, since no window of {training.max_context} words has their whole "
                "answer",
                "max_context=N reads more",
            ),
            (
                split.answers_longer_than(config.max_answer_words),
                f"have an answer of over {config.max_answer_words} words, which the model does not "
                "give",
                "max_answer_words=N gives longer ones",
            ),
        ]
        if training.shared_norm:
            reasons.append(
                (
                    split.second_contexts[:, 0] == NONE,
                    "are left out, since no other context of their article lacks their answers",
                    "shared_norm=false keeps them",
                )
            )
        sentences = []
        for is_concerned, reason, setting in reasons:
            count = int(is_concerned.sum())
            if count:
                sentences.append(
                    f"{count:,} of {len(split):,} questions {reason} (--set {setting})"
                )
        return sentences

    def collate(self, split, config, batch, length_multiple):
        if isinstance(batch, TwoContexts):
            split = ask_twice(split, batch)
            training = batch.training
            batch = np.arange(len(split)), training.max_context, training.max_question
        rows, max_context, max_question = batch
        return split.collate(rows, max_context, max_question, 2 * length_multiple)

    def validate(self, model, split, length_multiple=4):
        """Chooses by F1; with `no_answer` by the mean of F1, `F1_and_none` and `F1_misled`."""
        if model.config.no_answer:
            metrics = metrics_with_no_answer(model, split, length_multiple)
            return metrics, (metrics["F1"] + metrics["F1_and_none"] + metrics["F1_misled"]) / 3
        metrics = score_split(model, split, length_multiple=length_multiple)
        return metrics, metrics["F1"]

    def measure(self, scoring):
        """Scores a split for evaluate.py, see `engine.task.Task.measure`.

        The baseline is the first words of the context, the median length of an answer. On dev,
        `confidence` is the scale of a predictor's scores, see
        `tasks.reading_comprehension.confidence`. The answers are one line, `{question id: text}` as
        the official script reads it.
        """
        questions = scoring.examples
        predictions = answers(questions, self._spans(scoring))
        record = record_of(questions, predictions)
        record["answers"] = [json.dumps(predictions, ensure_ascii=False)]
        record["by_example"] = functools.partial(metrics_by_question, questions, predictions)
        if scoring.baselines:
            first_words = answers(questions, spans_of_first_words(questions))
            record["baselines"] = {"first words": record_of(questions, first_words)["metrics"]}
        if scoring.split == "dev":
            record["confidence"], _ = measure_confidence(
                scoring.model, questions, scoring.length_multiple
            )
        return record

    def measure_outside(self, scoring, source):
        questions = scoring.examples
        predictions = _read_predictions(source)
        missing = sum(id not in predictions for id in questions.ids)
        if missing:
            of_all = f"{missing:,} of {len(questions):,} questions"
            print(f"{source}: {of_all} have no answer and count 0", file=sys.stderr)
        return {
            "counts": record_of(questions, predictions)["counts"],
            "by_example": functools.partial(metrics_by_question, questions, predictions),
        }

    def metrics_by_group(self, scoring, breakdowns):
        """By the first word of the question, by confidence, or by what is added to passages.

        The first is the paper's figure of question types, the second a reliability diagram: see
        `tasks.reading_comprehension.confidence.measure_confidence`. The third compares passages as
        they are with those of `tasks.reading_comprehension.added_sentences`.
        """
        model, questions = scoring.model, scoring.examples
        groups = {}
        if "added" in breakdowns:
            groups["added"] = by_added_sentence(
                model, questions, scoring.progress, scoring.length_multiple
            )
        if "question" in breakdowns:
            groups["question"] = by_first_word(questions, answers(questions, self._spans(scoring)))
        if "confidence" in breakdowns:
            _, groups["confidence"] = measure_confidence(model, questions, scoring.length_multiple)
            if not groups["confidence"]:
                raise UserError(
                    f"{scoring.dataset.path}: expected higher scores of correct answers in the "
                    f"split {scoring.split}"
                )
        return groups

    def _spans(self, scoring):
        spans, _ = predict(
            scoring.model,
            scoring.examples,
            progress=scoring.progress,
            length_multiple=scoring.length_multiple,
        )
        return spans

    def describe(self, record):
        counts = record["counts"]
        return f"{counts['questions']:,} questions on {counts['contexts']:,} contexts", None

    def example(self, dataset, split, number):
        instance = {
            "passage": split.texts[split.context[number]],
            "question": split.question_texts[number],
        }
        return {"instance": instance, "expected": split.answers[number]}

    def chat(self, run, options):
        return ReadingComprehensionChat(self.predictor(run))

    def export_archive(self, run, model, vocabulary):
        # This needs TensorFlow, whatever Keras's backend.
        from colloquy.tasks.reading_comprehension.export import reading_archive

        characters = Vocabulary.load(run.path / CHARACTERS)
        return reading_archive(model, vocabulary, characters, load_scale(run))


def _read_predictions(path):
    predictions = read_json(path)
    is_object = isinstance(predictions, dict)
    if not is_object or not all(isinstance(text, str) for text in predictions.values()):
        raise UserError(f"{path}: expected an object {{question id: answer}} of texts")
    return predictions
