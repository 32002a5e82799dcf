"""Recipes of the memory networks on dialog bAbI, by name; see `engine.task.Recipe`."""

from colloquy.engine.task import Recipe
from colloquy.tasks.dialog.training import Training

CORPUS = "dialog bAbI, each task"
# All models but the article's own train with the same settings, so that scores can be compared.
BABI = Training(epochs=8.0, batch_size=8, learning_rate=0.005)

RECIPES = {
    "babi-memma": Recipe(
        title="MEMMA",
        model="memma",
        corpus=CORPUS,
        config={"positions": "halves"},
        training=BABI,
    ),
    # With word vectors as they are it learns the tasks in part (docs/experiments.md).
    "babi-memma-article": Recipe(
        title="MEMMA, the article's positions, scaled words, 16 epochs",
        model="memma",
        corpus=CORPUS,
        config={"scale_words": True},
        training=BABI.replace(learning_rate=0.001, epochs=16.0),
    ),
    "babi-memn2n": Recipe(
        title="MemN2N",
        model="memn2n",
        corpus=CORPUS,
        config={},
        training=BABI,
    ),
    "babi-gmemn2n": Recipe(
        title="Gated MemN2N",
        model="memn2n",
        corpus=CORPUS,
        config={"gated": True},
        training=BABI,
    ),
    "babi-memr": Recipe(
        title="MEMR",
        model="memr",
        corpus=CORPUS,
        config={},
        training=BABI,
    ),
    "babi-embeddings": Recipe(
        title="Supervised embeddings",
        model="supervised-embeddings",
        corpus=CORPUS,
        config={},
        training=BABI,
    ),
    # Ours: the best on dialogs of a dialog manager that train lacks (task 6).
    "babi-entity-memma": Recipe(
        title="Entity MEMMA",
        model="entity-memma",
        corpus=CORPUS,
        config={"dropout": 0.3},
        training=BABI,
    ),
}
