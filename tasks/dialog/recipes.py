"""Recipes of the memory networks on dialog bAbI, by name; see `engine.task.Recipe`."""

from colloquy.engine.task import Recipe
from colloquy.tasks.dialog.training import Training

CORPUS = "dialog bAbI, each task"
# The same for all models, so that scores compare.
BABI = Training(epochs=8.0, batch_size=8, learning_rate=0.005)

RECIPES = {
    "babi-memma": Recipe(
        title="MEMMA",
        model="memma",
        corpus=CORPUS,
        config={"positions": "halves"},
        training=BABI,
    ),
    "babi-memma-article": Recipe(
        title="MEMMA, the article's positions",
        model="memma",
        corpus=CORPUS,
        config={},
        training=BABI,
    ),
    # The network of the article's figure 5, left.
    "babi-memma-article-plain": Recipe(
        title="MEMMA, the article's positions, no features",
        model="memma",
        corpus=CORPUS,
        config={"speaker": False, "time": False},
        training=BABI,
    ),
    "babi-memma-plain": Recipe(
        title="MEMMA, no features",
        model="memma",
        corpus=CORPUS,
        config={"positions": "halves", "speaker": False, "time": False},
        training=BABI,
    ),
    # MEMMA without features and with one change each, to explain its distance from MEMR.
    "babi-memma-plain-fixed": Recipe(
        title="MEMMA, no features, fixed word vectors",
        model="memma",
        corpus=CORPUS,
        config={"positions": "halves", "speaker": False, "time": False, "train_embedding": False},
        training=BABI,
    ),
    "babi-memma-plain-head": Recipe(
        title="MEMMA, no features, 1 head",
        model="memma",
        corpus=CORPUS,
        config={"positions": "halves", "speaker": False, "time": False, "heads": 1},
        training=BABI,
    ),
    "babi-memma-plain-identity": Recipe(
        title="MEMMA, no features, identity shortcut",
        model="memma",
        corpus=CORPUS,
        config={"positions": "halves", "speaker": False, "time": False, "shortcut": "identity"},
        training=BABI,
    ),
    "babi-memma-plain-latest": Recipe(
        title="MEMMA, no features, latest memory",
        model="memma",
        corpus=CORPUS,
        config={"positions": "halves", "speaker": False, "time": False, "memory": "latest"},
        training=BABI,
    ),
    "babi-memma-plain-sigmoid": Recipe(
        title="MEMMA, no features, sigmoid gate",
        model="memma",
        corpus=CORPUS,
        config={"positions": "halves", "speaker": False, "time": False, "gate": "sigmoid"},
        training=BABI,
    ),
    "babi-memma-speaker": Recipe(
        title="MEMMA, speaker",
        model="memma",
        corpus=CORPUS,
        config={"positions": "halves", "time": False},
        training=BABI,
    ),
    "babi-memma-time": Recipe(
        title="MEMMA, time",
        model="memma",
        corpus=CORPUS,
        config={"positions": "halves", "speaker": False},
        training=BABI,
    ),
    "babi-memma-match": Recipe(
        title="MEMMA, speaker + time + match types",
        model="memma",
        corpus=CORPUS,
        config={"positions": "halves", "match_types": True},
        training=BABI,
    ),
    "babi-memma-fixed": Recipe(
        title="MEMMA, fixed word vectors",
        model="memma",
        corpus=CORPUS,
        config={"positions": "halves", "train_embedding": False},
        training=BABI,
    ),
    "babi-memma-identity": Recipe(
        title="MEMMA, identity shortcut",
        model="memma",
        corpus=CORPUS,
        config={"positions": "halves", "shortcut": "identity"},
        training=BABI,
    ),
    "babi-memma-position": Recipe(
        title="MEMMA, weighted by position",
        model="memma",
        corpus=CORPUS,
        config={"positions": "halves", "encoding": "position"},
        training=BABI,
    ),
    "babi-memma-attention": Recipe(
        title="MEMMA, attention between words",
        model="memma",
        corpus=CORPUS,
        config={"positions": "halves", "encoding": "attention"},
        training=BABI,
    ),
    # Ours: the best on task 6.
    "babi-memma-regularised": Recipe(
        title="MEMMA, identity shortcut, divisor root, dropout 0.3, averaged weights",
        model="memma",
        corpus=CORPUS,
        config={"positions": "halves", "shortcut": "identity", "divisor": "root", "dropout": 0.3},
        training=BABI.replace(epochs=20.0, ema=0.99, validations_per_epoch=1.0),
    ),
    "babi-memn2n": Recipe(
        title="MemN2N",
        model="memn2n",
        corpus=CORPUS,
        config={},
        training=BABI,
    ),
    "babi-memn2n-match": Recipe(
        title="MemN2N, speaker + time + match types",
        model="memn2n",
        corpus=CORPUS,
        config={"match_types": True},
        training=BABI,
    ),
    "babi-gmemn2n": Recipe(
        title="Gated MemN2N",
        model="memn2n",
        corpus=CORPUS,
        config={"gated": True},
        training=BABI,
    ),
    "babi-gmemn2n-match": Recipe(
        title="Gated MemN2N, speaker + time + match types",
        model="memn2n",
        corpus=CORPUS,
        config={"gated": True, "match_types": True},
        training=BABI,
    ),
    "babi-memr": Recipe(
        title="MEMR",
        model="memr",
        corpus=CORPUS,
        config={},
        training=BABI,
    ),
    "babi-memr-plain": Recipe(
        title="MEMR, no features",
        model="memr",
        corpus=CORPUS,
        config={"speaker": False, "time": False},
        training=BABI,
    ),
    "babi-memr-match": Recipe(
        title="MEMR, speaker + time + match types",
        model="memr",
        corpus=CORPUS,
        config={"match_types": True},
        training=BABI,
    ),
    "babi-embeddings": Recipe(
        title="Supervised embeddings",
        model="supervised-embeddings",
        corpus=CORPUS,
        config={},
        training=BABI,
    ),
    # Ours: the best with a dialog manager that train lacks.
    "babi-entity-memma": Recipe(
        title="Entity MEMMA",
        model="entity-memma",
        corpus=CORPUS,
        config={"dropout": 0.3},
        training=BABI,
    ),
    # The bot that people talk to. Its dataset is prepared with --augment=1.
    "babi-entity-memma-augmented": Recipe(
        title="Entity MEMMA, augmented dialogs",
        model="entity-memma",
        corpus=CORPUS,
        config={"dropout": 0.3},
        training=BABI.replace(validations_per_epoch=1.0),
    ),
}
