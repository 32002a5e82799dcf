"""Recipes of BiDAF, by name"""

from engine.recipe import Recipe


def _bidaf_short(*, learning_rate=2e-3, results="", score=Recipe.score, **settings):
    """Three quarters of an epoch of SQuAD at half the paper's width: for comparing ablations at a small equal budget.

    `ema` is small enough that the averaged weights forget the initial ones, and the similarity starts as a dot product;
    otherwise the attention hardly trains in so few steps.
    """
    flags = {"epochs": 0.75, "batch_size": 60, "learning_rate": learning_rate}
    small = {"hidden": 50, "character_filters": 50, "similarity_start": "dot", "ema": 0.995}
    small["validations_per_epoch"] = 4 / 3  # one, at the end
    return Recipe("bidaf", "squad", flags, {**small, **settings}, results, score)


MATCH = {"exact_match": True, "similarity_start": "dot", "decay": 0.02, "validations_per_epoch": 2}
SELF_ATTENTIVE = {**MATCH, "self_attention": True, "length_penalty": 0.05}

RECIPES = {
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
    "bidaf-squad-match": Recipe(  # ours, past the paper: a feature, and a start and a decay that suit few epochs
        model="bidaf",
        corpus="squad",
        flags={"epochs": 6.0, "batch_size": 60, "learning_rate": 2e-3, "precision": "bfloat16"},
        settings=MATCH,
        results="bidaf/bidaf-squad-match-squad-?-dev.json",
        score="dev EM .645, F1 .753; seed 1, 262 minutes, 1 core, Intel(R) Xeon(R) Processor",
    ),
    "bidaf-squad-self": Recipe(  # ours: self-attention put into bidaf-squad-match, by --init_from
        model="bidaf",
        corpus="squad",
        flags={"epochs": 4.0, "batch_size": 60, "learning_rate": 1e-3, "precision": "bfloat16"},
        settings=SELF_ATTENTIVE,
        results="bidaf/bidaf-squad-self-squad-?-dev.json",
        score="dev EM .670, F1 .766; seed 1, 372 minutes, 1 core, AMD EPYC",
    ),
    "bidaf-squad-self-once": Recipe(  # ours: the same network, trained in one go
        model="bidaf",
        corpus="squad",
        flags={"epochs": 4.5, "batch_size": 60, "learning_rate": 2e-3, "precision": "bfloat16"},
        settings=SELF_ATTENTIVE,
        results="bidaf/bidaf-squad-self-once-squad-?-dev.json",
        score="dev EM .668, F1 .760; seeds 2, 3, 126 minutes, 1 core, AMD EPYC",
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
    "bidaf-short-match": _bidaf_short(
        exact_match=True,
        results="bidaf/bidaf-short-match-squad-?-dev.json",
        score="dev EM .451, F1 .584; seed 1, 16 minutes, 1 core, Intel(R) Xeon(R) Processor",
    ),
    "bidaf-short-self": _bidaf_short(
        self_attention=True,
        results="bidaf/bidaf-short-self-squad-?-dev.json",
        score="dev EM .389, F1 .517; seed 1, 10 minutes, 1 core, AMD EPYC",
    ),
    "bidaf-short-tuned": _bidaf_short(
        tuned_words=1000,
        results="bidaf/bidaf-short-tuned-squad-?-dev.json",
        score="dev EM .411, F1 .544; seed 1, 9 minutes, 1 core, AMD EPYC",
    ),
    "bidaf-short-unknown": _bidaf_short(  # prepared with --trained_words=10
        train_unknown=True,
        results="bidaf/bidaf-short-unknown-squad-trained-?-dev.json",
        score="dev EM .412, F1 .548; seed 1, 20 minutes, 1 core, AMD EPYC",
    ),
    "bidaf-short-adadelta": _bidaf_short(
        learning_rate=0.5,
        optimizer="adadelta",
        gradient_clip=0.0,
        results="bidaf/bidaf-short-adadelta-squad-?-dev.json",
        score="dev EM .080, F1 .159; seed 1, 9 minutes, 1 core, AMD EPYC",
    ),
    "bidaf-short-decay": _bidaf_short(decay=0.02),
    "bidaf-short-dynamic": _bidaf_short(
        attention="dynamic",
        results="bidaf/bidaf-short-dynamic-squad-?-dev.json",
        score="dev EM .382, F1 .516; seed 1, 11 minutes, 1 core, AMD EPYC",
    ),
    "bidaf-short-mlp-similarity": _bidaf_short(similarity="mlp"),
    "bidaf-short-mlp-fusion": _bidaf_short(
        fusion="mlp",
        results="bidaf/bidaf-short-mlp-fusion-squad-?-dev.json",
        score="dev EM .449, F1 .583; seed 1, 23 minutes, 1 core, Intel(R) Xeon(R) Processor",
    ),
}
