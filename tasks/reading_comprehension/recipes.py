"""Recipes of BiDAF, by name; see `engine.task.Recipe`."""

from colloquy.engine.task import Recipe
from colloquy.tasks.reading_comprehension.training import Training

# Half the paper's width. The similarity starts as a dot product, because a short training hardly
# trains attention from random weights.
HALF_WIDTH = {"hidden": 50, "character_filters": 50, "similarity_start": "dot"}
# The paper's settings (section 4.1), but with Adam and its usual learning rate.
PAPER = Training(epochs=12.0, batch_size=60, learning_rate=1e-3)
FEW_EPOCHS = PAPER.replace(epochs=3.0, decay=0.02, validations_per_epoch=2.0)
# A small budget for ablations: three quarters of an epoch and one validation, at the end. `ema` is
# so small that the averages forget the initial weights.
SHORT = Training(
    epochs=0.75, batch_size=60, learning_rate=2e-3, ema=0.995, validations_per_epoch=4 / 3
)

RECIPES = {
    "bidaf-sample": Recipe(
        title="BiDAF, 40 units, 50-d vectors, similarity starts as a dot product",
        model="bidaf",
        corpus="an excerpt of SQuAD",
        config={"hidden": 40, "character_filters": 40, "dropout": 0.1, "similarity_start": "dot"},
        training=PAPER.replace(epochs=15.0, batch_size=20, learning_rate=0.003, ema=0.98),
    ),
    "bidaf-squad-adam": Recipe(
        title="BiDAF, 50-d vectors",
        model="bidaf",
        corpus="squad",
        config={},
        training=PAPER.replace(validations_per_epoch=2.0),
    ),
    # Ours: starts from a run of `bidaf-squad-adam-self` and adds a no-answer option.
    "bidaf-squad-no-answer": Recipe(
        title="BiDAF, 50-d vectors, self-attention, no-answer option, shared norm, linear decay, "
        "length penalty 0.05, pre-trained",
        model="bidaf",
        corpus="squad",
        config={"self_attention": True, "length_penalty": 0.05, "no_answer": True},
        training=FEW_EPOCHS.replace(
            epochs=0.18,
            batch_size=30,
            learning_rate=5e-4,
            validations_per_epoch=16.7,
            ema=0.99,
            shared_norm=True,
            added_sentences=0.3,
        ),
    ),
    # Ours: starts from a run of `bidaf-squad-no-answer` and learns from misleading sentences.
    "bidaf-squad-misleading": Recipe(
        title="BiDAF, 50-d vectors, self-attention, no-answer option, shared norm, misleading "
        "sentences, linear decay, length penalty 0.05, pre-trained",
        model="bidaf",
        corpus="squad",
        config={"self_attention": True, "length_penalty": 0.05, "no_answer": True},
        training=FEW_EPOCHS.replace(
            epochs=0.15,
            batch_size=30,
            learning_rate=5e-4,
            validations_per_epoch=20.0,
            ema=0.99,
            shared_norm=True,
            added_sentences=0.5,
            question_words=0.9,
            removed_answers=0.35,
        ),
    ),
    # Ours: starts from a run of `bidaf-squad-adam` and adds self-attention.
    "bidaf-squad-adam-self": Recipe(
        title="BiDAF, 50-d vectors, self-attention, linear decay, length penalty 0.05, pre-trained",
        model="bidaf",
        corpus="squad",
        config={"self_attention": True, "length_penalty": 0.05},
        training=FEW_EPOCHS,
    ),
    # Ours: self-attention and exact match from the first step.
    "bidaf-squad-self-once": Recipe(
        title="BiDAF, 50-d vectors, similarity starts as a dot product, self-attention, "
        "exact match, linear decay, length penalty 0.05",
        model="bidaf",
        corpus="squad",
        config={
            "exact_match": True,
            "similarity_start": "dot",
            "self_attention": True,
            "length_penalty": 0.05,
        },
        training=FEW_EPOCHS.replace(epochs=4.5, learning_rate=2e-3, precision="bfloat16"),
    ),
    # As published (section 4.1). The paper's vectors have 100 features: the dataset decides.
    "bidaf-paper": Recipe(
        title="BiDAF, AdaDelta",
        model="bidaf",
        corpus="squad",
        config={},
        training=PAPER.replace(learning_rate=0.5, optimizer="adadelta", gradient_clip=0.0),
    ),
    "bidaf-short": Recipe(
        title="BiDAF, 50 units, 50-d vectors, similarity starts as a dot product",
        model="bidaf",
        corpus="squad",
        config=HALF_WIDTH,
        training=SHORT,
    ),
}
