"""Recipes of DAM, by name; see `engine.task.Recipe`."""

from colloquy.engine.task import Recipe

PUBLISHED_CORPORA = {"ubuntu-v1": 28270, "douban": 1, "ecommerce": None}
"""The corpora that DAM has published scores on, with the id of `_EOS_` in its release's `data.pkl`;
the release has no E-commerce. `train.py --name` says that a directory holds one of them."""

# of DAM's release; the paper's section 4.3
RELEASE = {"epochs": 2.0, "batch_size": 256, "learning_rate": 1e-3}
ECOMMERCE = {
    "epochs": 20.0,
    "batch_size": 100,
    "learning_rate": 1e-3,
    "decay_rate": 0.8,
    "decay_steps": 10_000,
}
ECOMMERCE |= {"gradient_clip": 5.0, "validations_per_epoch": 1, "patience": 3}
UNTIL_IT_STOPS = RELEASE | {
    "epochs": 20.0,
    "precision": "bfloat16",
    "validations_per_epoch": 4,
    "patience": 4,
}
# for smaller corpora
SMALL = {"loss": "softmax", "decay_steps": 300, "vector_center": True, "vector_norm": 3.5}
TINY = {"levels": 1, "max_words": 20, "embedding_dropout": 0.1}
SAMPLE = SMALL | {"epochs": 2.5, "batch_size": 16, "learning_rate": 3e-3, "precision": "float32"}
SAMPLE |= {"validations_per_epoch": 2}
UBUNTU_IRC = {"levels": 2, "max_turns": 6, "max_words": 24, "embedding_dropout": 0.2}
LONGER = UBUNTU_IRC | {"max_turns": 9, "max_words": 27}
TRAINING = SMALL | {"epochs": 2.0, "batch_size": 32, "learning_rate": 1e-3, "precision": "bfloat16"}
TRAINING |= {"negatives": "fresh", "validations_per_epoch": 4}
FOUR_NEGATIVES = TRAINING | {
    "batch_size": 16,
    "decay_steps": 400,
    "negatives_per_positive": 4,
    "ema": 0.998,
}
HASHED = "ubuntu-irc, prepared with --tokenizer=terms --hashed_words=50000"
SHAPE = "2 levels, 6 x 24 words, fresh negatives, softmax"
LONG_SHAPE = "2 levels, 9 x 27 words, 250-d vectors, 4 fresh negatives, softmax"


def _short(title, epochs=1.0, loss_clip=0.0, **config):
    """`dam-ubuntu-irc-two-levels` for fewer epochs: compares variants at equal budgets."""
    training = TRAINING | {"precision": "float32", "epochs": epochs, "loss_clip": loss_clip}
    return Recipe(title.format(SHAPE), "dam", "ubuntu-irc", UBUNTU_IRC | config, training)


def _lexical(title, config, training, corpus=HASHED, **lexical):
    """With the lexical match, an extension; see docs/dam.md."""
    config = config | {f"lexical.{name}": value for name, value in lexical.items()}
    return Recipe(f"DAM, {title}", "dam", corpus, config, training)


RECIPES = {
    "dam-ubuntu-v1": Recipe("DAM, Ubuntu V1", "dam", "ubuntu-v1", {}, RELEASE),
    "dam-douban": Recipe("DAM, Douban", "dam", "douban", {"conv_filters": [16, 16]}, RELEASE),
    # As in fuzhenxin/ResponseSelectionModels, the source of its published score.
    "dam-ecommerce": Recipe("DAM, 10 x 50 words", "dam", "ecommerce", {"max_turns": 10}, ECOMMERCE),
    # The articles' own network: 5 levels, 9 x 50 words, pointwise, the file's pairs.
    "dam-ubuntu-irc-article": Recipe("DAM", "dam", "ubuntu-irc", {}, UNTIL_IT_STOPS),
    "dam-ubuntu-irc-two-levels": _short("DAM, {}", epochs=2.0),
    "dam-ubuntu-irc-lexical": _lexical(
        f"{SHAPE}, 16 x TF-IDF, averaged weights",
        UBUNTU_IRC,
        TRAINING | {"epochs": 3.0, "ema": 0.998},
        gain=16.0,
    ),
    "dam-ubuntu-irc-candidates": _lexical(  # continues the one above with four negatives at a time
        "2 levels, 6 x 24 words, 4 fresh negatives, softmax, 18 x TF-IDF^1.5, averaged weights, pre-trained",
        UBUNTU_IRC,
        FOUR_NEGATIVES
        | {"epochs": 0.5, "learning_rate": 3e-4, "decay_steps": 300, "validations_per_epoch": 8},
        **{"gain": 18.0, "power": 1.5},
    ),
    # all at once, vectors of whole conversations and general ones
    "dam-ubuntu-irc-vectors": _lexical(
        f"{LONG_SHAPE}, 18 x TF-IDF^1.5, averaged weights",
        LONGER,
        FOUR_NEGATIVES,
        f"{HASHED} --word2vec_text=conversations --window=30 --general_vectors=GLOVE",
        **{"gain": 18.0, "power": 1.5},
    ),
    "dam-ubuntu-irc-stems": _lexical(  # the same, for half an epoch; the cosine is of sets of stems
        f"{LONG_SHAPE}, 30 x TF-IDF^1.5 of stems, averaged weights",
        LONGER,
        FOUR_NEGATIVES | {"epochs": 0.5},
        "ubuntu-irc, prepared as for the one above",
        **{"gain": 30.0, "power": 1.5, "stems": True},
    ),
    **{
        f"dam-ubuntu-irc-{kind}": _short(f"DAM_{kind}, {{}}", variant=kind)
        for kind in ("first", "last", "self", "cross")
    },
    "dam-ubuntu-irc-release": _short(  # `--set compatibility=release`
        "DAM, {}, release mode",
        epochs=0.5,
        loss_clip=10.0,
        masking="release",
        scalar_bias=True,
        match_divisor=200**0.5,
    ),
    "dam-sample": Recipe(
        "DAM, 1 level, 9 x 20 words, 64-d vectors, softmax",
        "dam",
        "the embedded sample",
        TINY,
        SAMPLE,
    ),
}
