"""The models. Each names its task (see `tasks`); its file has its config and its paper."""

import dataclasses
import importlib

from colloquy.base.backend import check_backend


@dataclasses.dataclass(frozen=True)
class ModelEntry:
    """One row of `MODELS`.

    Its file is imported when it is needed: a wrong flag need not wait for TensorFlow.
    """

    module: str
    """The model's file, as a module."""
    name: str
    """The `keras.Model` in it, which takes a config and returns logits."""
    task: str
    """Key of `tasks.TASKS`."""
    gains_in_bfloat16: bool = False
    """True if it trains faster in bfloat16 on a GPU or a CPU with AMX, so that
    `--precision=auto` takes it there; measured:
    results/benchmarks/training_speed.json/precision."""

    @property
    def build(self):
        """Takes a config, gives a `keras.Model` that returns logits."""
        return getattr(self._load_module(), self.name)

    @property
    def config(self):
        """The config class; `--set field=value` reaches its fields."""
        return getattr(self._load_module(), f"{self.name}Config")

    @property
    def release_settings(self):
        """Function from a variant to the settings of `--set compatibility=release`.

        `None` for most models.
        """
        return getattr(self.config, "release_settings", None)

    def _load_module(self):
        check_backend()
        return importlib.import_module(self.module)


MODELS = {
    "bidaf": ModelEntry("colloquy.models.bidaf", "BiDAF", task="reading_comprehension"),
    "dam": ModelEntry("colloquy.models.dam", "DAM", task="selection", gains_in_bfloat16=True),
    "memma": ModelEntry("colloquy.models.memma", "MEMMA", task="dialog"),
    "entity-memma": ModelEntry("colloquy.models.entity_memma", "EntityMEMMA", task="dialog"),
    "memn2n": ModelEntry("colloquy.models.memn2n", "MemN2N", task="dialog"),
    "memr": ModelEntry("colloquy.models.memn2n", "MEMR", task="dialog"),
    "seq2seq": ModelEntry(
        "colloquy.models.seq2seq", "Seq2Seq", task="generation", gains_in_bfloat16=True
    ),
    "supervised-embeddings": ModelEntry(
        "colloquy.models.memn2n", "SupervisedEmbeddings", task="dialog"
    ),
}
