"""Settings by name, `train.py --recipe=NAME`; most were measured, see results/measured.

A flag given beside `--recipe` wins over the recipe's; so does `--set` over its `settings`.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Recipe:
    """One row of `RECIPES`."""

    model: str
    """Key of `models.MODELS`."""
    corpus: str
    """What it was made for; how to prepare it stands in the README."""
    flags: dict
    """Of train.py: epochs, batch_size, learning_rate, precision."""
    settings: dict
    """Fields of the model's config and of the task's `Training`, as `--set` takes them."""


BABI = {"epochs": 8.0, "batch_size": 8, "learning_rate": 5e-3}
"""What all models of dialog bAbI are trained with, so that they stand side by side."""


def _babi(model, epochs=BABI["epochs"], **settings):
    return Recipe(model, corpus="dialog bAbI, each task", flags={**BABI, "epochs": epochs}, settings=settings)


def _chat(attention):
    return Recipe(
        model="seq2seq",
        corpus="dailydialog",
        flags={"epochs": 8.0, "batch_size": 64, "learning_rate": 1e-3},
        settings={"attention": attention, "tied_output": True, "dropout": 0.3},
    )


def _bidaf_short(**settings):
    """Three quarters of an epoch of SQuAD at half the paper's width: to compare, not to be good.

    The averages are short enough to forget where they began, and the similarity starts as a dot product, without which
    the attention has hardly begun by then.
    """
    flags = {"epochs": 0.75, "batch_size": 60, "learning_rate": 2e-3}
    small = {"hidden": 50, "character_filters": 50, "similarity_start": "dot", "ema": 0.995}
    small["validations_per_epoch"] = 4 / 3  # one, at the end
    return Recipe(model="bidaf", corpus="squad", flags=flags, settings={**small, **settings})


RECIPES = {
    "babi-memma": _babi("memma"),
    "babi-memma-plain": _babi("memma", speaker=False, time=False),
    "babi-memma-speaker": _babi("memma", time=False),
    "babi-memma-time": _babi("memma", speaker=False),
    "babi-memma-match": _babi("memma", match_types=True),
    "babi-memma-fixed": _babi("memma", train_embedding=False),
    "babi-memma-identity": _babi("memma", shortcut="identity"),
    "babi-memn2n": _babi("memn2n"),
    "babi-memn2n-match": _babi("memn2n", match_types=True),
    "babi-gmemn2n": _babi("memn2n", gated=True),
    "babi-gmemn2n-match": _babi("memn2n", gated=True, match_types=True),
    "babi-memr": _babi("memr"),
    "babi-memr-plain": _babi("memr", speaker=False, time=False),
    "babi-memr-match": _babi("memr", match_types=True),
    "babi-embeddings": _babi("supervised-embeddings"),
    "babi-entity-memma": _babi("entity-memma", epochs=16.0),  # on tasks 1 to 5 dev is perfect long before
    "bidaf-sample": Recipe(
        model="bidaf",
        corpus="the embedded sample",
        flags={"epochs": 5.0, "batch_size": 60, "learning_rate": 5e-3},
        settings={"hidden": 40, "character_filters": 40, "dropout": 0.1, "similarity_start": "dot", "ema": 0.99},
    ),
    "bidaf-squad": Recipe(
        model="bidaf",
        corpus="squad",
        flags={"epochs": 12.0, "batch_size": 60, "learning_rate": 1e-3},
        settings={"validations_per_epoch": 2},
    ),
    "bidaf-short": _bidaf_short(),
    "bidaf-short-official": _bidaf_short(end_pointer="official"),
    "bidaf-short-glorot": _bidaf_short(similarity_start="glorot"),
    "bidaf-short-no-characters": _bidaf_short(use_characters=False),
    "bidaf-short-no-words": _bidaf_short(use_words=False),
    "bidaf-short-no-c2q": _bidaf_short(c2q=False),
    "bidaf-short-no-q2c": _bidaf_short(q2c=False),
    "dam-sample": Recipe(
        model="dam",
        corpus="the embedded sample",
        flags={"epochs": 10.0, "batch_size": 16, "learning_rate": 1e-3},
        settings={
            "levels": 1,
            "max_turns": 6,
            "max_words": 20,
            "negatives": "fresh",
            "negatives_per_positive": 3,
            "loss": "softmax",
            "decay_steps": 300,
            "embedding_dropout": 0.1,
            "vector_center": True,
            "vector_norm": 3.5,
            "validations_per_epoch": 1,
        },
    ),
    "chat-additive": _chat("additive"),
    "chat-dot": _chat("dot"),
    "chat-none": _chat("none"),
    "chat-cornell": Recipe(  # the PyTorch chatbot tutorial's, 4,000 steps
        model="seq2seq",
        corpus="cornell, prepared with --max_words=9 --min_count=3 --vocabulary_size=0 --drop_unknown",
        flags={"epochs": 6.61, "batch_size": 64, "learning_rate": 1e-4},
        settings={
            "embedding_dim": 500,
            "embedding_start": "normal",
            "hidden": 500,
            "layers": 2,
            "merge": "sum",
            "attention": "dot",
            "dropout": 0.1,
            "decoder_rate": 5.0,
            "decay": 1.0,
            "gradient_clip": 50.0,
            "validations_per_epoch": 6.05,
        },
    ),
    "chat-subtitles": Recipe(
        model="seq2seq",
        corpus="subtitles",
        flags={"epochs": 2.0, "batch_size": 64, "learning_rate": 1e-3},
        settings={"attention": "dot", "tied_output": True, "dropout": 0.2, "validations_per_epoch": 2},
    ),
    "seq2seq-sample": Recipe(
        model="seq2seq",
        corpus="the embedded sample",
        flags={"epochs": 6.0, "batch_size": 64, "learning_rate": 3e-3},
        settings={"embedding_dim": 128, "hidden": 128},
    ),
    "dam-ubuntu-irc": Recipe(
        model="dam",
        corpus="ubuntu-irc",
        flags={"epochs": 2.0, "batch_size": 32, "learning_rate": 1e-3},
        settings={
            "levels": 2,
            "max_turns": 6,
            "max_words": 24,
            "negatives": "fresh",
            "loss": "softmax",
            "decay_steps": 300,
            "embedding_dropout": 0.2,
            "vector_center": True,
            "vector_norm": 3.5,
            "validations_per_epoch": 4,
        },
    ),
}
