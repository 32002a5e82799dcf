"""Colloquy from Python: trained models by name.

>>> import colloquy
>>> reader = colloquy.load("bidaf-squad")
>>> [answer] = reader.predict([{"passage": "Ann lives in Rome.", "question": "Where does Ann live?"}])
>>> answer["answer"]
'Rome'
"""

import pathlib

from base import runtime

runtime.prepare()  # before anything loads TensorFlow

from engine.run import BEST, CONFIG, Run  # noqa: E402
from tasks import TASKS  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent


def models():
    """`{name: title}` of the trained models in `pretrained/` of this clone, sorted by name.

    `help(load(name).Instance)` says what a model takes.
    """
    runs = [Run.open(path.parent) for path in sorted((ROOT / "pretrained").glob(f"*/{CONFIG}"))]
    return {run.path.name: f"{run.model} on {run.dataset['name']}" for run in runs if (run.path / BEST).is_file()}


def load(model):
    """Loads a trained model: a name of `models()`, or the path of a run directory.

    The result is an `engine.predictor.Predictor`: `predict(instances)` answers a list of dicts, `explain(instance)`
    adds attention maps. A run that is missing or damaged is a `base.files.UserError`.
    """
    path = ROOT / "pretrained" / model
    run = Run.open(path if path.is_dir() else model)
    return TASKS[run.task].predictor(run)
