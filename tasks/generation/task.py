"""Response generation: data, training, scoring and use of its models."""

import pathlib

from colloquy.data.batching import batches_by_size
from colloquy.data.vocabulary import PADDING_ID
from colloquy.engine import task
from colloquy.engine.limits import Limit
from colloquy.engine.optimizers import TwoRateAdam, decaying
from colloquy.metrics.generation import METRICS
from colloquy.tasks.generation import data, measuring
from colloquy.tasks.generation.chat import GenerationChat
from colloquy.tasks.generation.decoding_settings import Options, decoding_of, parse_decoding
from colloquy.tasks.generation.loss import word_loss
from colloquy.tasks.generation.predictor import GenerationPredictor
from colloquy.tasks.generation.scoring import negative_log_likelihood
from colloquy.tasks.generation.training import Training


class GenerationTask(task.Task):
    """Response generation."""

    name = "generation"
    example_unit = "pair"
    Training = Training
    Options = Options
    summary_metrics = METRICS
    export_options = ("decode",)
    export_call = task.ExportCall("reply", outputs=("replies", "scores"))
    export_instance = {"turns": ["hello there"]}
    load_dataset = staticmethod(data.load_dataset)
    measure = staticmethod(measuring.measure)
    describe = staticmethod(measuring.describe)
    predictor = GenerationPredictor
    chat = GenerationChat

    def make_sample(self, directory):
        # Imported here: serving imports this file, but prepares nothing.
        from colloquy.tasks.generation.prepare import Settings, prepare

        prepare("chitchat", None, directory / "prepared", Settings(tokenizer="words", turns=2))

    def dataset_of(self, run, path=None):
        """Opens a dataset as `engine.task.Task` does.

        If `path` is a file of references, the dataset has the split `references`, encoded with the
        vocabulary and the tokenizer of the run, and the `train` of the run if that still exists.
        """
        if not path or not pathlib.Path(path).is_file():
            return super().dataset_of(run, path)
        metadata = run.dataset
        source_config = data.read_source_config(metadata.get("text"), run.path)
        splits = {"references": data.read_references(path, run.vocabulary, source_config)}
        if metadata["path"] and pathlib.Path(metadata["path"]).is_dir():
            splits["train"] = super().dataset_of(run).splits["train"]
        return data.GenerationDataset(
            path=pathlib.Path(path),
            name=metadata["name"],
            splits=splits,
            vocabulary=run.vocabulary,
            source_config=source_config,
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
        """A batch is an int array: the numbers of pairs of similar size."""
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
        nll = negative_log_likelihood(model, pairs, length_multiple=length_multiple)
        perplexity = measuring.perplexity_of(pairs, nll)
        return {"perplexity": perplexity}, 1.0 / perplexity

    def example(self, dataset, split, number):
        """Texts as people write them, which a predictor splits into words itself."""
        *turns, target = _texts_of_pair(split, number)
        join = dataset.source_config.join
        instance = {"turns": [join(turn.split(" ")) for turn in turns]}
        return {"instance": instance, "expected": [join(target.split(" "))]}

    def read_example(self, dataset, split, number):
        """Texts as the words that were scored, separated by spaces."""
        *turns, target = _texts_of_pair(split, number)
        return {"instance": {"turns": turns}, "expected": [target]}

    def export_archive(self, run, model, vocabulary, decode=None):
        # It needs TensorFlow, whatever Keras's backend.
        from colloquy.tasks.generation.export import generation_archive

        source_config = data.read_source_config(run.dataset.get("text"), run.path)
        decoding = parse_decoding(decode) if decode else decoding_of(run)
        return generation_archive(model, vocabulary, source_config, decoding)


def _texts_of_pair(split, number):
    """The turns of a pair's source, and its target."""
    return [*split.source_texts[number].split("\t"), split.target_texts[number]]
