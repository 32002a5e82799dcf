"""Recipes of the memory networks on dialog bAbI, by name; see `engine.task.Recipe`."""

from colloquy.engine.task import Recipe

# for all models, so that scores compare
BABI = {"epochs": 8.0, "batch_size": 8, "learning_rate": 5e-3}


def _babi(title, model, training=BABI, **config):
    return Recipe(title, model, "dialog bAbI, each task", config, training)


def _memma(title, training=BABI, **config):
    """MEMMA with our positions."""
    return _babi(title, "memma", training, positions="halves", **config)


def _plain(change, **config):
    """MEMMA without features and with one change each, to explain its distance from MEMR."""
    return _memma(f"MEMMA, no features, {change}", speaker=False, time=False, **config)


RECIPES = {
    "babi-memma": _memma("MEMMA"),
    "babi-memma-article": _babi("MEMMA, the article's positions", "memma"),
    "babi-memma-article-plain": _babi(  # the network of the article's figure 5, left
        "MEMMA, the article's positions, no features", "memma", speaker=False, time=False
    ),
    "babi-memma-plain": _memma("MEMMA, no features", speaker=False, time=False),
    "babi-memma-plain-fixed": _plain("fixed word vectors", train_embedding=False),
    "babi-memma-plain-head": _plain("1 head", heads=1),
    "babi-memma-plain-identity": _plain("identity shortcut", shortcut="identity"),
    "babi-memma-plain-latest": _plain("latest memory", memory="latest"),
    "babi-memma-plain-sigmoid": _plain("sigmoid gate", gate="sigmoid"),
    "babi-memma-speaker": _memma("MEMMA, speaker", time=False),
    "babi-memma-time": _memma("MEMMA, time", speaker=False),
    "babi-memma-match": _memma("MEMMA, speaker + time + match types", match_types=True),
    "babi-memma-fixed": _memma("MEMMA, fixed word vectors", train_embedding=False),
    "babi-memma-identity": _memma("MEMMA, identity shortcut", shortcut="identity"),
    "babi-memma-position": _memma("MEMMA, weighted by position", encoding="position"),
    "babi-memma-attention": _memma("MEMMA, attention between words", encoding="attention"),
    "babi-memma-regularised": _memma(  # ours: the best on task 6
        "MEMMA, identity shortcut, divisor root, dropout 0.3, averaged weights",
        {**BABI, "epochs": 20.0, "ema": 0.99, "validations_per_epoch": 1.0},
        **{"shortcut": "identity", "divisor": "root", "dropout": 0.3},
    ),
    "babi-memn2n": _babi("MemN2N", "memn2n"),
    "babi-memn2n-match": _babi("MemN2N, speaker + time + match types", "memn2n", match_types=True),
    "babi-gmemn2n": _babi("Gated MemN2N", "memn2n", gated=True),
    "babi-gmemn2n-match": _babi(
        "Gated MemN2N, speaker + time + match types", "memn2n", gated=True, match_types=True
    ),
    "babi-memr": _babi("MEMR", "memr"),
    "babi-memr-plain": _babi("MEMR, no features", "memr", speaker=False, time=False),
    "babi-memr-match": _babi("MEMR, speaker + time + match types", "memr", match_types=True),
    "babi-embeddings": _babi("Supervised embeddings", "supervised-embeddings"),
    "babi-entity-memma": _babi("Entity MEMMA", "entity-memma", {**BABI, "epochs": 16.0}),
    "babi-entity-memma-short": _babi("Entity MEMMA, 8 epochs", "entity-memma"),
    "babi-entity-memma-state": _babi(  # ours: the best with a dialog manager that train lacks
        "Entity MEMMA, state of the conversation, dropout 0.3, 8 epochs",
        "entity-memma",
        dialog_state=True,
        dropout=0.3,
    ),
    # the bot that people talk to; its dataset is prepared with --augment=1
    "babi-entity-memma-augmented": _babi(
        "Entity MEMMA, augmented dialogs",
        "entity-memma",
        {**BABI, "epochs": 8.0, "validations_per_epoch": 1.0},
    ),
}
