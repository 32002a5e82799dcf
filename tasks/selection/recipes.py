"""Recipes of DAM, by name; see `engine.task.Recipe`."""

from colloquy.engine.task import Recipe
from colloquy.tasks.selection.training import Training

HASHED = "ubuntu-irc, prepared with --tokenizer=terms --hashed_words=50000"
LONG_VECTORS = f"{HASHED} --word2vec_text=conversations --window=30 --general_vectors=GLOVE"
TWO_LEVELS = {"levels": 2, "max_turns": 6, "max_words": 24, "embedding_dropout": 0.2}
LONGER = {**TWO_LEVELS, "max_turns": 9, "max_words": 27}
STEMS = {"lexical.gain": 30.0, "lexical.power": 1.5, "lexical.stems": True}
# The settings of DAM's release, which are those of section 4.3 of the paper.
RELEASE = Training(epochs=2.0, batch_size=256, learning_rate=1e-3)
UBUNTU_IRC = RELEASE.replace(
    batch_size=32,
    decay_steps=300,
    loss="softmax",
    negatives="fresh",
    vector_center=True,
    vector_norm=3.5,
    precision="bfloat16",
    validations_per_epoch=4.0,
)
FOUR_NEGATIVES = UBUNTU_IRC.replace(
    batch_size=16, decay_steps=400, negatives_per_positive=4, ema=0.998
)

RECIPES = {
    "dam-ubuntu-v1": Recipe(
        title="DAM, Ubuntu V1",
        model="dam",
        corpus="ubuntu-v1",
        config={},
        training=RELEASE,
    ),
    "dam-douban": Recipe(
        title="DAM, Douban",
        model="dam",
        corpus="douban",
        config={"conv_filters": [16, 16]},
        training=RELEASE,
    ),
    # As in fuzhenxin/ResponseSelectionModels, the source of its published score.
    "dam-ecommerce": Recipe(
        title="DAM, 10 x 50 words",
        model="dam",
        corpus="ecommerce",
        config={"max_turns": 10},
        training=RELEASE.replace(
            epochs=20.0,
            batch_size=100,
            decay_rate=0.8,
            decay_steps=10000,
            gradient_clip=5.0,
            validations_per_epoch=1.0,
            patience=3,
        ),
    ),
    # The articles' own network: 5 levels, 9 x 50 words, pointwise, the file's pairs.
    "dam-ubuntu-irc-article": Recipe(
        title="DAM",
        model="dam",
        corpus="ubuntu-irc",
        config={},
        training=RELEASE.replace(
            epochs=20.0, precision="bfloat16", validations_per_epoch=4.0, patience=4
        ),
    ),
    "dam-ubuntu-irc-two-levels": Recipe(
        title="DAM, 2 levels, 6 x 24 words, fresh negatives, softmax",
        model="dam",
        corpus="ubuntu-irc",
        config=TWO_LEVELS,
        training=UBUNTU_IRC.replace(precision="float32"),
    ),
    "dam-ubuntu-irc-lexical": Recipe(
        title="DAM, 2 levels, 6 x 24 words, fresh negatives, softmax, 16 x TF-IDF, averaged "
        "weights",
        model="dam",
        corpus=HASHED,
        config={**TWO_LEVELS, "lexical.gain": 16.0},
        training=UBUNTU_IRC.replace(epochs=3.0, ema=0.998),
    ),
    # Continues `dam-ubuntu-irc-lexical`, with four negatives for each positive.
    "dam-ubuntu-irc-candidates": Recipe(
        title="DAM, 2 levels, 6 x 24 words, 4 fresh negatives, softmax, 18 x TF-IDF^1.5, "
        "averaged weights, pre-trained",
        model="dam",
        corpus=HASHED,
        config={**TWO_LEVELS, "lexical.gain": 18.0, "lexical.power": 1.5},
        training=FOUR_NEGATIVES.replace(
            decay_steps=300, epochs=0.5, learning_rate=3e-4, validations_per_epoch=8.0
        ),
    ),
    # Continues `dam-ubuntu-irc-candidates` for 34 steps, which hardly change its weights: this
    # makes a run whose lexical match counts stems.
    "dam-ubuntu-irc-candidates-stems": Recipe(
        title="DAM, 2 levels, 6 x 24 words, 4 fresh negatives, softmax, 30 x TF-IDF^1.5 of stems, "
        "averaged weights, pre-trained",
        model="dam",
        corpus=HASHED,
        config={**TWO_LEVELS, **STEMS},
        training=FOUR_NEGATIVES.replace(
            decay_steps=300, epochs=0.01, learning_rate=1e-6, validations_per_epoch=100.0
        ),
    ),
    # Continues `dam-ubuntu-irc-candidates-stems` for 34 steps, with a term against responses that
    # repeat a turn.
    "dam-ubuntu-irc-echoes": Recipe(
        title="DAM, 2 levels, 6 x 24 words, 4 fresh negatives, softmax, 38 x TF-IDF^1.5 of stems, "
        "45 x echoes, averaged weights, pre-trained",
        model="dam",
        corpus=HASHED,
        config={**TWO_LEVELS, **STEMS, "lexical.gain": 38.0, "lexical.echo_gain": 45.0},
        training=FOUR_NEGATIVES.replace(
            decay_steps=300, epochs=0.01, learning_rate=1e-6, validations_per_epoch=100.0
        ),
    ),
    # From fresh weights in half an epoch; its word vectors know whole conversations and GloVe.
    "dam-ubuntu-irc-stems": Recipe(
        title="DAM, 2 levels, 9 x 27 words, 250-d vectors, 4 fresh negatives, softmax, 30 x "
        "TF-IDF^1.5 of stems, averaged weights",
        model="dam",
        corpus=LONG_VECTORS,
        config={**LONGER, **STEMS},
        training=FOUR_NEGATIVES.replace(epochs=0.5),
    ),
    "dam-chitchat": Recipe(
        title="DAM, 1 level, 9 x 20 words, 64-d vectors, softmax, 16 x TF-IDF",
        model="dam",
        corpus="chitchat",
        config={"levels": 1, "max_words": 20, "embedding_dropout": 0.1, "lexical.gain": 16.0},
        training=Training(
            loss="softmax",
            decay_steps=300,
            vector_center=True,
            vector_norm=3.5,
            epochs=1.5,
            batch_size=16,
            learning_rate=3e-3,
            precision="float32",
            validations_per_epoch=2.0,
        ),
    ),
    # Trained on a context for every response of train, longer than `dam-chitchat`.
    "dam-chitchat-long": Recipe(
        title="DAM, 2 levels, 6 x 20 words, 250-d vectors, 4 fresh negatives, softmax, 30 x "
        "TF-IDF^1.5 of stems, averaged weights",
        model="dam",
        corpus="chitchat, prepared with --contexts=0 --hashed_words=50000 "
        "--word2vec_text=conversations --window=30 --general_vectors=GLOVE",
        config={**TWO_LEVELS, "max_words": 20, **STEMS},
        training=FOUR_NEGATIVES.replace(epochs=0.5, validations_per_epoch=16.0),
    ),
}
