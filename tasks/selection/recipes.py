"""Recipes of DAM, by name"""

from engine.recipe import Recipe

PUBLISHED_CORPORA = {"ubuntu-v1": 28270, "douban": 1, "ecommerce": None}
"""The corpora that DAM has published scores on, with the id of `_EOS_` in its release's `data.pkl`; the release has no
E-commerce. `train.py --name` says that a directory holds one of them."""

DAM_RELEASE = {"epochs": 2.0, "batch_size": 256, "learning_rate": 1e-3}
"""The DAM release's configuration; the paper's section 4.3."""
DAM_SMALL = {"loss": "softmax", "decay_steps": 300, "vector_center": True, "vector_norm": 3.5}
"""What suits corpora that are smaller than those."""
DAM_UBUNTU_IRC = {
    "levels": 2,
    "max_turns": 6,
    "max_words": 24,
    "negatives": "fresh",
    "embedding_dropout": 0.2,
    "validations_per_epoch": 4,
    **DAM_SMALL,
}

RECIPES = {
    "dam-ubuntu-v1": Recipe("dam", "ubuntu-v1", DAM_RELEASE, {}),  # all else is the default
    "dam-douban": Recipe("dam", "douban", DAM_RELEASE, {"conv_filters": (16, 16)}),
    "dam-ecommerce": Recipe(  # as in fuzhenxin/ResponseSelectionModels, the source of its published score
        model="dam",
        corpus="ecommerce",
        flags={"epochs": 20.0, "batch_size": 100, "learning_rate": 1e-3},
        settings={"max_turns": 10, "decay_rate": 0.8, "decay_steps": 10_000, "gradient_clip": 5.0}
        | {"validations_per_epoch": 1, "patience": 3},
    ),
    "dam-ubuntu-irc-article": Recipe(  # the articles' own network: 5 levels, 9 x 50 words, pointwise, the file's pairs
        model="dam",
        corpus="ubuntu-irc",
        flags={**DAM_RELEASE, "epochs": 20.0, "precision": "bfloat16"},
        settings={"validations_per_epoch": 4, "patience": 4},  # until dev stops rising; all else is the default
        results="dam-ubuntu-irc-article.json",
        score="dev R10@1 .539 after 2.01 of 20 epochs; seed 1, 57 minutes, 1 core, Intel(R) Xeon(R) Processor",
    ),
    "dam-ubuntu-irc": Recipe(
        model="dam",
        corpus="ubuntu-irc",
        flags={"epochs": 2.0, "batch_size": 32, "learning_rate": 1e-3, "precision": "float32"},
        settings=DAM_UBUNTU_IRC,
        results="dam-ubuntu-irc-full.json",
        score="dev R10@1 .567; seed 1, 33 minutes, 2 cores, AMD EPYC",
    ),
    "dam-ubuntu-irc-lexical": Recipe(  # an extension, see docs/dam.md
        model="dam",
        corpus="ubuntu-irc, prepared with --tokenizer=terms --hashed_words=50000",
        flags={"epochs": 3.0, "batch_size": 32, "learning_rate": 1e-3, "precision": "bfloat16"},
        settings={**DAM_UBUNTU_IRC, "lexical.gain": 16.0, "ema": 0.998},
        results="dam-ubuntu-irc-lexical.json",
        score="dev R10@1 .606; seed 1, 111 minutes, 1 core, Intel(R) Xeon(R) Processor",
    ),
    "dam-ubuntu-irc-candidates": Recipe(  # goes on from the one above with four negatives at a time, see docs/dam.md
        model="dam",
        corpus="ubuntu-irc, prepared with --tokenizer=terms --hashed_words=50000",
        flags={"epochs": 0.5, "batch_size": 16, "learning_rate": 3e-4, "precision": "bfloat16"},
        settings={**DAM_UBUNTU_IRC, "lexical.gain": 18.0, "lexical.power": 1.5, "ema": 0.998}
        | {"negatives_per_positive": 4, "validations_per_epoch": 8},
        results="dam-ubuntu-irc-candidates.json",
        score="dev R10@1 .632; seed 1, 129 minutes, 1 core, Intel(R) Xeon(R) Processor",
    ),
    "dam-ubuntu-irc-vectors": Recipe(  # all at once, vectors of whole conversations and general ones: docs/dam.md
        model="dam",
        corpus="ubuntu-irc, prepared with --tokenizer=terms --hashed_words=50000 --word2vec_text=conversations "
        "--window=30 --general_vectors=GLOVE",
        flags={"epochs": 2.0, "batch_size": 16, "learning_rate": 1e-3, "precision": "bfloat16"},
        settings={**DAM_UBUNTU_IRC, "max_turns": 9, "max_words": 27, "decay_steps": 400, "negatives_per_positive": 4}
        | {"lexical.gain": 18.0, "lexical.power": 1.5, "ema": 0.998},
        results="dam-ubuntu-irc-vectors.json",
        score="dev R10@1 .636; seed 1, 55 minutes, 1 core, Intel(R) Xeon(R) Processor",
    ),
    "dam-ubuntu-irc-stems": Recipe(  # the same, for half an epoch; the cosine is of sets of stems
        model="dam",
        corpus="ubuntu-irc, prepared as for the one above",
        flags={"epochs": 0.5, "batch_size": 16, "learning_rate": 1e-3, "precision": "bfloat16"},
        settings={**DAM_UBUNTU_IRC, "max_turns": 9, "max_words": 27, "decay_steps": 400, "negatives_per_positive": 4}
        | {"lexical.gain": 30.0, "lexical.power": 1.5, "lexical.stems": True, "ema": 0.998},
        results="dam-ubuntu-irc-stems-?.json",
        score="dev R10@1 .626; seeds 1, 2, 3, 34 minutes, 1 core, Intel(R) Xeon(R) Processor",
    ),
    "dam-sample": Recipe(
        model="dam",
        corpus="the embedded sample",
        flags={"epochs": 2.5, "batch_size": 16, "learning_rate": 3e-3, "precision": "float32"},
        settings={"levels": 1, "max_words": 20, "embedding_dropout": 0.1, "validations_per_epoch": 2, **DAM_SMALL},
        results="dam-sample.json",
        score="test R10@1 .680; seed 1, 3 minutes, 2 cores, Intel(R) Xeon(R) Processor",
    ),
}
