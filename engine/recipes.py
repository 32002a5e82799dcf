"""Recipes: settings by name, with what they reached. `train.py --recipe=NAME` runs one.

A flag given beside `--recipe` wins over the recipe's, and `--set` over its `settings`. How to prepare each corpus:
docs/data.md. All scores of a system, with baselines and published ones: its page in docs/.
"""

from engine.dialog_recipes import DIALOG
from engine.recipe import Recipe

PUBLISHED_CORPORA = {"ubuntu-v1": 28270, "douban": 1, "ecommerce": None}
"""The corpora that DAM has published scores on, with the id of `_EOS_` in its release's `data.pkl`; the release has no
E-commerce. `train.py --name` says that a directory holds one of them."""

DAM_RELEASE = {"epochs": 2.0, "batch_size": 256, "learning_rate": 1e-3}
"""The DAM release's configuration; the paper's section 4.3."""
DAM_SMALL = {"loss": "softmax", "decay_steps": 300, "vector_center": True, "vector_norm": 3.5}
"""What suits corpora that are smaller than those."""


def _chat(attention, *, results="", score=Recipe.score, **settings):
    """A GRU chatbot on DailyDialog; the rows differ in attention and output alone."""
    return Recipe(
        model="seq2seq",
        corpus="dailydialog",
        flags={"epochs": 8.0, "batch_size": 64, "learning_rate": 1e-3},
        settings={"attention": attention, "tied_output": True, "dropout": 0.3, **settings},
        results=results,
        score=score,
    )


def _bidaf_short(*, results="", score=Recipe.score, **settings):
    """Three quarters of an epoch of SQuAD at half the paper's width: for comparing ablations at a small equal budget.

    `ema` is small enough that the averaged weights forget the initial ones, and the similarity starts as a dot product;
    otherwise the attention hardly trains in so few steps.
    """
    flags = {"epochs": 0.75, "batch_size": 60, "learning_rate": 2e-3}
    small = {"hidden": 50, "character_filters": 50, "similarity_start": "dot", "ema": 0.995}
    small["validations_per_epoch"] = 4 / 3  # one, at the end
    return Recipe("bidaf", "squad", flags, {**small, **settings}, results, score)


RECIPES = {
    **DIALOG,
    # === Reading comprehension: BiDAF ===
    "bidaf-sample": Recipe(
        model="bidaf",
        corpus="the embedded sample",
        flags={"epochs": 5.0, "batch_size": 60, "learning_rate": 5e-3},
        settings={"hidden": 40, "character_filters": 40, "dropout": 0.1, "similarity_start": "dot", "ema": 0.99},
        results="bidaf-sample.json",
        score="dev EM .963, F1 .966; seed 1, 2 minutes, 2 cores, AMD EPYC",
    ),
    "bidaf-squad": Recipe(
        model="bidaf",
        corpus="squad",
        flags={"epochs": 12.0, "batch_size": 60, "learning_rate": 1e-3},
        settings={"validations_per_epoch": 2},
        results="bidaf/bidaf-squad-1-dev.json",
        score="dev EM .645, F1 .748 after 5 of 12 epochs; seed 1, 393 minutes, 2 cores, AMD EPYC",
    ),
    "bidaf-paper": Recipe(  # as published (section 4.1), on 100-d vectors where the prepared dataset has them
        model="bidaf",
        corpus="squad",
        flags={"epochs": 12.0, "batch_size": 60, "learning_rate": 0.5},
        settings={"optimizer": "adadelta", "gradient_clip": 0.0},
    ),
    "bidaf-short": _bidaf_short(
        results="bidaf/bidaf-short-squad-?-dev.json",
        score="dev EM .418, F1 .554; seed 1, 13 minutes, 2 cores, AMD EPYC",
    ),
    "bidaf-short-official": _bidaf_short(
        end_pointer="official",
        results="bidaf/bidaf-short-official-squad-?-dev.json",
        score="dev EM .433, F1 .565; seed 1, 28 minutes, 2 cores, AMD EPYC",
    ),
    "bidaf-short-glorot": _bidaf_short(similarity_start="glorot"),
    "bidaf-short-no-characters": _bidaf_short(
        use_characters=False,
        results="bidaf/bidaf-short-no-characters-squad-?-dev.json",
        score="dev EM .380, F1 .512; seed 1, 29 minutes, 2 cores, AMD EPYC",
    ),
    "bidaf-short-no-words": _bidaf_short(
        use_words=False,
        results="bidaf/bidaf-short-no-words-squad-?-dev.json",
        score="dev EM .118, F1 .190; seed 1, 21 minutes, 2 cores, AMD EPYC",
    ),
    "bidaf-short-no-c2q": _bidaf_short(
        c2q=False,
        results="bidaf/bidaf-short-no-c2q-squad-?-dev.json",
        score="dev EM .245, F1 .356; seed 1, 20 minutes, 2 cores, AMD EPYC",
    ),
    "bidaf-short-no-q2c": _bidaf_short(
        q2c=False,
        results="bidaf/bidaf-short-no-q2c-squad-?-dev.json",
        score="dev EM .436, F1 .568; seed 1, 23 minutes, 2 cores, AMD EPYC",
    ),
    "bidaf-short-dynamic": _bidaf_short(attention="dynamic"),
    "bidaf-short-mlp-similarity": _bidaf_short(similarity="mlp"),
    "bidaf-short-mlp-fusion": _bidaf_short(fusion="mlp"),
    # === Response selection: DAM ===
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
        flags={**DAM_RELEASE, "epochs": 20.0},
        settings={"validations_per_epoch": 2, "patience": 4},  # until dev stops rising; all else is the default
    ),
    "dam-ubuntu-irc": Recipe(
        model="dam",
        corpus="ubuntu-irc",
        flags={"epochs": 2.0, "batch_size": 32, "learning_rate": 1e-3, "precision": "float32"},
        settings={
            "levels": 2,
            "max_turns": 6,
            "max_words": 24,
            "negatives": "fresh",
            "embedding_dropout": 0.2,
            "validations_per_epoch": 4,
            **DAM_SMALL,
        },
        results="dam-ubuntu-irc-full.json",
        score="dev R10@1 .567; seed 1, 33 minutes, 2 cores, AMD EPYC",
    ),
    "dam-sample": Recipe(
        model="dam",
        corpus="the embedded sample",
        flags={"epochs": 2.5, "batch_size": 16, "learning_rate": 3e-3, "precision": "float32"},
        settings={"levels": 1, "max_words": 20, "embedding_dropout": 0.1, "validations_per_epoch": 2, **DAM_SMALL},
        results="dam-sample.json",
        score="test R10@1 .680; seed 1, 3 minutes, 2 cores, Intel(R) Xeon(R) Processor",
    ),
    # === Generation: seq2seq ===
    "chat-additive": _chat(
        "additive",
        results="chat/chat-additive-dailydialog-?-dev.json",
        score="dev perplexity 34.97; seed 1, 119 minutes, 2 cores, AMD EPYC",
    ),
    "chat-dot": _chat(  # Luong's; the article's own is the next
        "luong_dot",
        results="chat/chat-dot-dailydialog-?-dev.json",
        score="dev perplexity 34.28; seed 1, 77 minutes, 2 cores, AMD EPYC",
    ),
    "chat-dot-before": _chat("dot"),
    "chat-dot-before-all": _chat("dot", output="all"),
    "chat-none": _chat(
        "none",
        results="chat/chat-none-dailydialog-?-dev.json",
        score="dev perplexity 35.54; seed 1, 88 minutes, 2 cores, AMD EPYC",
    ),
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
            "attention": "luong_dot",
            "dropout": 0.1,
            "decoder_rate": 5.0,
            "decay": 1.0,
            "gradient_clip": 50.0,
            "validations_per_epoch": 6.05,
        },
        results="chat/chat-cornell-cornell-?-dev.json",
        score="dev perplexity 30.55; seed 1, 52 minutes, 2 cores, AMD EPYC",
    ),
    "chat-subtitles": Recipe(
        model="seq2seq",
        corpus="subtitles",
        flags={"epochs": 2.0, "batch_size": 64, "learning_rate": 1e-3},
        settings={"attention": "luong_dot", "tied_output": True, "dropout": 0.2, "validations_per_epoch": 2},
        results="chat/chat-subtitles-subtitles-?-dev.json",
        score="dev perplexity 52.08; seed 1, 34 minutes, 2 cores, AMD EPYC",
    ),
    "seq2seq-sample": Recipe(
        model="seq2seq",
        corpus="the embedded sample",
        flags={"epochs": 6.0, "batch_size": 64, "learning_rate": 3e-3},
        settings={"embedding_dim": 128, "hidden": 128},
        results="seq2seq-sample.json",
        score="dev perplexity 1.92; seed 1, 3 minutes, 2 cores, AMD EPYC",
    ),
}
