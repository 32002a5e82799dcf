"""Recipes of the memory networks on dialog bAbI, by name"""

from engine.recipe import Recipe

BABI = {"epochs": 8.0, "batch_size": 8, "learning_rate": 5e-3}
"""The budget of all models of dialog bAbI, so that their scores compare."""


def _babi(model, *, results="", score=Recipe.score, epochs=BABI["epochs"], **settings):
    return Recipe(model, "dialog bAbI, each task", {**BABI, "epochs": epochs}, settings, results, score)


RECIPES = {
    "babi-memma": _babi(
        "memma",
        results="babi/babi-memma-task?-?-dev.json",
        score="dev per_response .812, the mean of 6 tasks; seeds 1, 2, 3, 54 seconds per task, 2 cores, AMD EPYC",
    ),
    "babi-memma-plain": _babi(
        "memma",
        speaker=False,
        time=False,
        results="babi/babi-memma-plain-task?-?-dev.json",
        score="dev per_response .806, the mean of 6 tasks; seeds 1, 2, 3, 76 seconds per task, 2 cores, AMD EPYC",
    ),
    "babi-memma-speaker": _babi(
        "memma",
        time=False,
        results="babi/babi-memma-speaker-task?-?-dev.json",
        score="dev per_response .809, the mean of 6 tasks; seeds 1, 2, 3, 60 seconds per task, 2 cores, AMD EPYC",
    ),
    "babi-memma-time": _babi(
        "memma",
        speaker=False,
        results="babi/babi-memma-time-task?-?-dev.json",
        score="dev per_response .813, the mean of 6 tasks; seeds 1, 2, 3, 69 seconds per task, 2 cores, AMD EPYC",
    ),
    "babi-memma-match": _babi(
        "memma",
        match_types=True,
        results="babi/babi-memma-match-task?-?-dev.json",
        score="dev per_response .879, the mean of 6 tasks; seeds 1, 2, 3, 58 seconds per task, 2 cores, AMD EPYC",
    ),
    "babi-memma-fixed": _babi(
        "memma",
        train_embedding=False,
        results="babi/babi-memma-fixed-task?-?-dev.json",
        score="dev per_response .790, the mean of 6 tasks; "
        "seeds 1, 2, 3, 84 seconds per task, 1 core, Intel(R) Xeon(R) Processor, 2 cores, AMD EPYC",
    ),
    "babi-memma-identity": _babi(
        "memma",
        shortcut="identity",
        results="babi/babi-memma-identity-task?-?-dev.json",
        score="dev per_response .817, the mean of 6 tasks; "
        "seed 1, 77 seconds per task, 1 core, Intel(R) Xeon(R) Processor, 2 cores, AMD EPYC",
    ),
    "babi-memma-position": _babi(
        "memma",
        encoding="position",
        results="babi/babi-memma-position-task?-?-dev.json",
        score="dev per_response .805, the mean of 6 tasks; "
        "seed 1, 3 minutes per task, 1 core, Intel(R) Xeon(R) Processor",
    ),
    "babi-memma-attention": _babi(
        "memma",
        encoding="attention",
        results="babi/babi-memma-attention-task?-?-dev.json",
        score="dev per_response .814, the mean of 6 tasks; "
        "seed 1, 5 minutes per task, 1 core, Intel(R) Xeon(R) Processor",
    ),
    "babi-memma-regularised": _babi(  # ours: what does best on task 6
        "memma",
        **{"shortcut": "identity", "divisor": "root", "dropout": 0.3, "ema": 0.99},
        **{"epochs": 20.0, "validations_per_epoch": 1.0},
        results="babi/babi-memma-regularised-task?-?-dev.json",
        score="dev per_response .630; seeds 1, 2, 3, 6 minutes, 1 core, Intel(R) Xeon(R) Processor",
    ),
    "babi-memn2n": _babi(
        "memn2n",
        results="babi/babi-memn2n-task?-?-dev.json",
        score="dev per_response .813, the mean of 6 tasks; seeds 1, 2, 3, 45 seconds per task, 2 cores, AMD EPYC",
    ),
    "babi-memn2n-match": _babi(
        "memn2n",
        match_types=True,
        results="babi/babi-memn2n-match-task?-?-dev.json",
        score="dev per_response .888, the mean of 6 tasks; "
        "seed 1, 36 seconds per task, 1 core, Intel(R) Xeon(R) Processor",
    ),
    "babi-gmemn2n": _babi(
        "memn2n",
        gated=True,
        results="babi/babi-gmemn2n-task?-?-dev.json",
        score="dev per_response .813, the mean of 6 tasks; seeds 1, 2, 3, 37 seconds per task, 2 cores, AMD EPYC",
    ),
    "babi-gmemn2n-match": _babi(
        "memn2n",
        gated=True,
        match_types=True,
        results="babi/babi-gmemn2n-match-task?-?-dev.json",
        score="dev per_response .874, the mean of 6 tasks; "
        "seed 1, 65 seconds per task, 1 core, Intel(R) Xeon(R) Processor",
    ),
    "babi-memr": _babi(
        "memr",
        results="babi/babi-memr-task?-?-dev.json",
        score="dev per_response .812, the mean of 6 tasks; seeds 1, 2, 3, 2 minutes per task, 2 cores, AMD EPYC",
    ),
    "babi-memr-plain": _babi(
        "memr",
        speaker=False,
        time=False,
        results="babi/babi-memr-plain-task?-?-dev.json",
        score="dev per_response .808, the mean of 6 tasks; seeds 1, 2, 3, 2 minutes per task, "
        "1 core, Intel(R) Xeon(R) Processor, 2 cores, AMD EPYC",
    ),
    "babi-memr-match": _babi(
        "memr",
        match_types=True,
        results="babi/babi-memr-match-task?-?-dev.json",
        score="dev per_response .887, the mean of 6 tasks; "
        "seed 1, 2 minutes per task, 1 core, Intel(R) Xeon(R) Processor",
    ),
    "babi-embeddings": _babi(
        "supervised-embeddings",
        results="babi/babi-embeddings-task?-?-dev.json",
        score="dev per_response .746, the mean of 6 tasks; seeds 1, 2, 3, 32 seconds per task, 2 cores, AMD EPYC",
    ),
    "babi-entity-memma": _babi(
        "entity-memma",
        epochs=16.0,
        results="babi/babi-entity-memma-task?-?-dev.json",
        score="dev per_response .932, the mean of 6 tasks; seeds 1, 2, 3, 60 seconds per task, 2 cores, AMD EPYC",
    ),
}
