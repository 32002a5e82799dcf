"""Recipes of BiDAF, by name; see `engine.task.Recipe`."""

from engine.task import Recipe

PAPER = {"epochs": 12.0, "batch_size": 60, "learning_rate": 1e-3}
"""Section 4.1, with Adam's usual learning rate."""
FEW_EPOCHS = {"batch_size": 60, "precision": "bfloat16", "decay": 0.02, "validations_per_epoch": 2}
MATCH = {"exact_match": True, "similarity_start": "dot"}
SELF_ATTENTIVE = {**MATCH, "self_attention": True, "length_penalty": 0.05}
SHORT = {"epochs": 0.75, "batch_size": 60, "learning_rate": 2e-3, "ema": 0.995, "validations_per_epoch": 4 / 3}
"""Compares ablations at a small equal budget: three quarters of an epoch, one validation, at the end. `ema` is small
enough that the averaged weights forget the initial ones."""


def _short(title, training=SHORT, **config):
    """Half the paper's width. The similarity starts as a dot product: otherwise so few steps hardly train attention."""
    small = {"hidden": 50, "character_filters": 50, "similarity_start": "dot"}
    return Recipe(f"BiDAF, 50 units, 50-d vectors, {title}", "bidaf", "squad", {**small, **config}, training)


RECIPES = {
    "bidaf-sample": Recipe(
        title="BiDAF, 40 units, 50-d vectors, similarity starts as a dot product",
        model="bidaf",
        corpus="the embedded sample",
        config={"hidden": 40, "character_filters": 40, "dropout": 0.1, "similarity_start": "dot"},
        training={"epochs": 5.0, "batch_size": 60, "learning_rate": 5e-3, "ema": 0.99},
    ),
    "bidaf-squad": Recipe(
        title="BiDAF, 50-d vectors",
        model="bidaf",
        corpus="squad",
        config={},
        training={**PAPER, "validations_per_epoch": 2},
    ),
    "bidaf-squad-match": Recipe(  # ours, past the paper: a feature, and a start and a decay that suit few epochs
        title="BiDAF, 50-d vectors, similarity starts as a dot product, exact match, linear decay",
        model="bidaf",
        corpus="squad",
        config=MATCH,
        training={**FEW_EPOCHS, "epochs": 6.0, "learning_rate": 2e-3},
    ),
    "bidaf-squad-self": Recipe(  # ours: self-attention put into bidaf-squad-match, by --init_from
        title="BiDAF, 50-d vectors, similarity starts as a dot product, self-attention, exact match, linear decay, "
        "length penalty 0.05, pre-trained",
        model="bidaf",
        corpus="squad",
        config=SELF_ATTENTIVE,
        training={**FEW_EPOCHS, "epochs": 4.0, "learning_rate": 1e-3},
    ),
    "bidaf-squad-match-longer": Recipe(  # continues bidaf-squad-match, by --init_from: without self-attention
        title="BiDAF, 50-d vectors, similarity starts as a dot product, exact match, linear decay, length penalty "
        "0.05, pre-trained",
        model="bidaf",
        corpus="squad",
        config={**MATCH, "length_penalty": 0.05},
        training={**FEW_EPOCHS, "epochs": 4.0, "learning_rate": 1e-3},
    ),
    "bidaf-squad-self-once": Recipe(  # ours: the same network, trained in one go
        title="BiDAF, 50-d vectors, similarity starts as a dot product, self-attention, exact match, linear decay, "
        "length penalty 0.05",
        model="bidaf",
        corpus="squad",
        config=SELF_ATTENTIVE,
        training={**FEW_EPOCHS, "epochs": 4.5, "learning_rate": 2e-3},
    ),
    "bidaf-paper": Recipe(  # as published (section 4.1), on 100-d vectors where the prepared dataset has them
        title="BiDAF, AdaDelta",
        model="bidaf",
        corpus="squad",
        config={},
        training={**PAPER, "learning_rate": 0.5, "optimizer": "adadelta", "gradient_clip": 0.0},
    ),
    "bidaf-short": _short("similarity starts as a dot product"),
    "bidaf-short-official": _short("official end pointer, similarity starts as a dot product", end_pointer="official"),
    "bidaf-short-glorot": _short("similarity starts by Glorot", similarity_start="glorot"),
    "bidaf-short-no-characters": _short("no characters, similarity starts as a dot product", use_characters=False),
    "bidaf-short-no-words": _short("no words, similarity starts as a dot product", use_words=False),
    "bidaf-short-no-c2q": _short("no C2Q, similarity starts as a dot product", c2q=False),
    "bidaf-short-no-q2c": _short("no Q2C, similarity starts as a dot product", q2c=False),
    "bidaf-short-match": _short("similarity starts as a dot product, exact match", exact_match=True),
    "bidaf-short-self": _short("similarity starts as a dot product, self-attention", self_attention=True),
    "bidaf-short-tuned": _short("similarity starts as a dot product, 1,000 words tuned", tuned_words=1000),
    "bidaf-short-unknown": _short(  # prepared with --trained_words=10
        "similarity starts as a dot product, trained unknown words", train_unknown=True
    ),
    "bidaf-short-adadelta": _short(
        "similarity starts as a dot product, AdaDelta",
        {**SHORT, "learning_rate": 0.5, "optimizer": "adadelta", "gradient_clip": 0.0},
    ),
    "bidaf-short-decay": _short("similarity starts as a dot product, linear decay", {**SHORT, "decay": 0.02}),
    "bidaf-short-dynamic": _short("similarity starts as a dot product, dynamic attention", attention="dynamic"),
    "bidaf-short-mlp-similarity": _short("similarity starts as a dot product, similarity by MLP", similarity="mlp"),
    "bidaf-short-mlp-fusion": _short("similarity starts as a dot product, fusion by MLP", fusion="mlp"),
}
