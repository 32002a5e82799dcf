"""A run of a tiny selection model with random weights, to be exported."""

import numpy as np

from data.vocabulary import Vocabulary
from engine.run import Run
from models.dam import DAM, DAMConfig

WORDS = ("_EOS_", "_UNK_", "a", "b", "c", "d", "e", "é", "naïve", "日本", "x\u00a0y")
SIZES = {"vocabulary_size": 11, "embedding_dim": 5, "max_turns": 3, "max_words": 7, "levels": 1}


def make_run(path, **settings):
    """A run of a tiny model with random weights, and the model, in float32."""
    config = DAMConfig(**SIZES, conv_filters=(3, 2), positional=True, **settings)
    model = DAM(config)
    rng = np.random.default_rng(1)
    for weight in model.weights:
        weight.assign(rng.normal(size=weight.shape))
    written = {"training": {"precision": "float32"}, "dataset": {"path": None, "name": "tiny"}}
    config = {"model": "dam", "config": config.to_json(), **written}
    run = Run.create(path, config, Vocabulary(WORDS))
    run.save_best(model)
    return run, model
