"""Recipes of the memory networks on dialog bAbI, by name; see `engine.task.Recipe`."""

from engine.task import Recipe

BABI = {"epochs": 8.0, "batch_size": 8, "learning_rate": 5e-3}
"""The same for all models of dialog bAbI, so that their scores compare."""


def _babi(title, model, training=BABI, **config):
    return Recipe(title, model, "dialog bAbI, each task", config, training)


def _plain(change, **config):
    """MEMMA without features and with one change: what its distance from MEMR comes from."""
    return _babi(f"MEMMA, no features, {change}", "memma", speaker=False, time=False, **config)


RECIPES = {
    "babi-memma": _babi("MEMMA", "memma"),
    "babi-memma-plain": _babi("MEMMA, no features", "memma", speaker=False, time=False),
    "babi-memma-plain-fixed": _plain("fixed word vectors", train_embedding=False),
    "babi-memma-plain-head": _plain("1 head", heads=1),
    "babi-memma-plain-identity": _plain("identity shortcut", shortcut="identity"),
    "babi-memma-plain-latest": _plain("latest memory", memory="latest"),
    "babi-memma-plain-sigmoid": _plain("sigmoid gate", gate="sigmoid"),
    "babi-memma-speaker": _babi("MEMMA, speaker", "memma", time=False),
    "babi-memma-time": _babi("MEMMA, time", "memma", speaker=False),
    "babi-memma-match": _babi("MEMMA, speaker + time + match types", "memma", match_types=True),
    "babi-memma-fixed": _babi("MEMMA, fixed word vectors", "memma", train_embedding=False),
    "babi-memma-identity": _babi("MEMMA, identity shortcut", "memma", shortcut="identity"),
    "babi-memma-position": _babi("MEMMA, weighted by position", "memma", encoding="position"),
    "babi-memma-attention": _babi("MEMMA, attention between words", "memma", encoding="attention"),
    "babi-memma-regularised": _babi(  # ours: the best on task 6
        "MEMMA, identity shortcut, divisor root, dropout 0.3, averaged weights",
        "memma",
        {**BABI, "epochs": 20.0, "ema": 0.99, "validations_per_epoch": 1.0},
        shortcut="identity",
        divisor="root",
        dropout=0.3,
    ),
    "babi-memn2n": _babi("MemN2N", "memn2n"),
    "babi-memn2n-match": _babi("MemN2N, speaker + time + match types", "memn2n", match_types=True),
    "babi-gmemn2n": _babi("Gated MemN2N", "memn2n", gated=True),
    "babi-gmemn2n-match": _babi("Gated MemN2N, speaker + time + match types", "memn2n", gated=True, match_types=True),
    "babi-memr": _babi("MEMR", "memr"),
    "babi-memr-plain": _babi("MEMR, no features", "memr", speaker=False, time=False),
    "babi-memr-match": _babi("MEMR, speaker + time + match types", "memr", match_types=True),
    "babi-embeddings": _babi("Supervised embeddings", "supervised-embeddings"),
    "babi-entity-memma": _babi("Entity MEMMA", "entity-memma", {**BABI, "epochs": 16.0}),
    "babi-entity-memma-augmented": _babi(  # the bot that people talk to; its dataset is prepared with --augment=1
        "Entity MEMMA, augmented dialogs", "entity-memma", {**BABI, "epochs": 8.0, "validations_per_epoch": 1.0}
    ),
}
