"""A run of a tiny model to export."""

from helpers import randomised

from colloquy.data.vocabulary import Vocabulary
from colloquy.engine.workdir import create_run
from colloquy.models.dam import DAM, DAMConfig

WORDS = ("_EOS_", "_UNK_", "a", "b", "c", "d", "e", "é", "naïve", "日本", "x\u00a0y")
SIZES = {"vocabulary_size": 11, "embedding_dim": 5, "max_turns": 3, "max_words": 7, "levels": 1}


def make_run(path, **settings):
    """A run of a tiny model with random weights, and the model, in float32."""
    config = DAMConfig(**SIZES, conv_filters=(3, 2), positional=True, **settings)
    model = randomised(DAM(config), 1, 1.0)
    written = {"training": {"precision": "float32"}, "dataset": {"path": None, "name": "tiny"}}
    written["model"] = "dam"
    written["config"] = config.to_json()
    run = create_run(path, written, Vocabulary(WORDS))
    run.save_best(model)
    return run, model
