"""Recipes of BiDAF, by name; see `engine.task.Recipe`."""

from colloquy.engine.task import Recipe

# Section 4.1, with Adam's usual learning rate
PAPER = {"epochs": 12.0, "batch_size": 60, "learning_rate": 1e-3}
THREE_EPOCHS = {
    "epochs": 3.0,
    "batch_size": 60,
    "learning_rate": 1e-3,
    "decay": 0.02,
    "validations_per_epoch": 2,
}
FEW_EPOCHS = {**THREE_EPOCHS, "learning_rate": 2e-3, "precision": "bfloat16"}
FOUR_EPOCHS = {**FEW_EPOCHS, "epochs": 4.0, "learning_rate": 1e-3}
MATCH = {"exact_match": True, "similarity_start": "dot"}
SELF_ATTENTIVE = {"self_attention": True, "length_penalty": 0.05}
SHORT = {
    "epochs": 0.75,
    "batch_size": 60,
    "learning_rate": 2e-3,
    "ema": 0.995,
    "validations_per_epoch": 4 / 3,
}
"""Compares ablations at a small equal budget: three quarters of an epoch, one validation, at the
end. `ema` is small enough that the averaged weights forget the initial ones."""
ADADELTA = {"learning_rate": 0.5, "optimizer": "adadelta", "gradient_clip": 0.0}
SMALL = {"hidden": 40, "character_filters": 40, "dropout": 0.1, "similarity_start": "dot"}
SAMPLE = {"epochs": 5.0, "batch_size": 60, "learning_rate": 5e-3, "ema": 0.99}
DOT, PENALTY = "similarity starts as a dot product", "linear decay, length penalty 0.05"


def _squad(title, config, training):
    return Recipe(f"BiDAF, 50-d vectors{title}", "bidaf", "squad", config, training)


def _short(title, training=SHORT, **config):
    """Half the paper's width. The similarity starts as a dot product: otherwise so few steps hardly
    train attention.
    """
    small = {"hidden": 50, "character_filters": 50, "similarity_start": "dot"}
    return Recipe(
        f"BiDAF, 50 units, 50-d vectors, {title}", "bidaf", "squad", {**small, **config}, training
    )


RECIPES = {
    "bidaf-sample": Recipe(
        f"BiDAF, 40 units, 50-d vectors, {DOT}", "bidaf", "the embedded sample", SMALL, SAMPLE
    ),
    "bidaf-squad-adam": _squad("", {}, {**PAPER, "validations_per_epoch": 2}),
    # Ours, past the paper: a feature, and a start and a decay that suit few epochs.
    "bidaf-squad-match": _squad(
        f", {DOT}, exact match, linear decay", MATCH, {**FEW_EPOCHS, "epochs": 6.0}
    ),
    # Ours: self-attention put into bidaf-squad-match, by --init_from.
    "bidaf-squad-self": _squad(
        f", {DOT}, self-attention, exact match, {PENALTY}, pre-trained",
        {**MATCH, **SELF_ATTENTIVE},
        FOUR_EPOCHS,
    ),
    # Ours: self-attention put into bidaf-squad-adam, by --init_from.
    "bidaf-squad-adam-self": _squad(
        f", self-attention, {PENALTY}, pre-trained", SELF_ATTENTIVE, THREE_EPOCHS
    ),
    # Continues bidaf-squad-match, by --init_from: without self-attention.
    "bidaf-squad-match-longer": _squad(
        f", {DOT}, exact match, {PENALTY}, pre-trained",
        {**MATCH, "length_penalty": 0.05},
        FOUR_EPOCHS,
    ),
    # Ours: the network of bidaf-squad-self, trained in one go.
    "bidaf-squad-self-once": _squad(
        f", {DOT}, self-attention, exact match, {PENALTY}",
        {**MATCH, **SELF_ATTENTIVE},
        {**FEW_EPOCHS, "epochs": 4.5},
    ),
    # As published (section 4.1), on 100-d vectors where the prepared dataset has them.
    "bidaf-paper": Recipe("BiDAF, AdaDelta", "bidaf", "squad", {}, {**PAPER, **ADADELTA}),
    "bidaf-short": _short(DOT),
    "bidaf-short-official": _short(f"official end pointer, {DOT}", end_pointer="official"),
    "bidaf-short-no-characters": _short(f"no characters, {DOT}", use_characters=False),
    "bidaf-short-no-words": _short(f"no words, {DOT}", use_words=False),
    "bidaf-short-no-c2q": _short(f"no C2Q, {DOT}", c2q=False),
    "bidaf-short-no-q2c": _short(f"no Q2C, {DOT}", q2c=False),
    "bidaf-short-match": _short(f"{DOT}, exact match", exact_match=True),
    "bidaf-short-self": _short(f"{DOT}, self-attention", self_attention=True),
    "bidaf-short-tuned": _short(f"{DOT}, 1,000 words tuned", tuned_words=1000),
    # --trained_words=10
    "bidaf-short-unknown": _short(f"{DOT}, trained unknown words", train_unknown=True),
    "bidaf-short-adadelta": _short(f"{DOT}, AdaDelta", {**SHORT, **ADADELTA}),
    "bidaf-short-dynamic": _short(f"{DOT}, dynamic attention", attention="dynamic"),
    "bidaf-short-mlp-fusion": _short(f"{DOT}, fusion by MLP", fusion="mlp"),
}
