"""The models. Each names its config, its task (see `tasks`) and its paper."""

import dataclasses
from collections.abc import Callable

from models.bidaf import BiDAF, BiDAFConfig
from models.dam import DAM, DAMConfig, release_settings
from models.entity_memma import EntityMEMMA, EntityMEMMAConfig
from models.memma import MEMMA, MEMMAConfig
from models.memn2n import MemN2N, MemN2NConfig
from models.memr import MEMR, MEMRConfig
from models.seq2seq import Seq2Seq, Seq2SeqConfig
from models.supervised_embeddings import SupervisedEmbeddings, SupervisedEmbeddingsConfig


@dataclasses.dataclass(frozen=True)
class ModelEntry:
    """One row of `MODELS`."""

    build: Callable
    """Takes a config, gives a `keras.Model` that returns logits."""
    config: type
    """Frozen dataclass; `--set field=value` reaches its fields."""
    task: str
    """Key of `tasks.TASKS`."""
    release_settings: Callable | None = None
    """What `--set compatibility=release` stands for: takes a variant, returns settings."""
    gains_in_bfloat16: bool = False
    """Whether it trains faster in bfloat16 where the CPU or GPU computes it, so that `--precision=auto` takes it there;
    measured: results/benchmarks/precision.json."""


MODELS = {
    "bidaf": ModelEntry(BiDAF, BiDAFConfig, task="reading_comprehension"),
    "dam": ModelEntry(DAM, DAMConfig, task="selection", release_settings=release_settings, gains_in_bfloat16=True),
    "memma": ModelEntry(MEMMA, MEMMAConfig, task="dialog"),
    "entity-memma": ModelEntry(EntityMEMMA, EntityMEMMAConfig, task="dialog"),
    "memn2n": ModelEntry(MemN2N, MemN2NConfig, task="dialog"),
    "memr": ModelEntry(MEMR, MEMRConfig, task="dialog"),
    "seq2seq": ModelEntry(Seq2Seq, Seq2SeqConfig, task="generation"),
    "supervised-embeddings": ModelEntry(SupervisedEmbeddings, SupervisedEmbeddingsConfig, task="dialog"),
}
