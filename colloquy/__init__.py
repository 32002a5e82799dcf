"""Colloquy from Python: trained models by name.

>>> import colloquy
>>> reader = colloquy.load("bidaf-squad")
>>> instance = {"passage": "Ann lives in Rome.", "question": "Where does Ann live?"}
>>> [answer] = reader.predict([instance])
>>> answer["answer"]
'Rome'
"""

import pathlib

_FOLDER = pathlib.Path(__file__).resolve().parent
_CLONE = _FOLDER.parent

# In a clone, the folders `layers`, `models`, ... are beside this one; in a wheel, they are in it.
if not (_FOLDER / "layers").is_dir():
    __path__.append(str(_CLONE))


def pretrained():
    """Lists the trained models.

    Returns:
        `{name: title}`, sorted by name. `help(load(name).Instance)` describes what a model takes.
    """
    from colloquy.engine.run import BEST, CONFIG, Run

    titles = {}
    for config in sorted(_pretrained_folder().glob(f"*/{CONFIG}")):
        run = Run.open(config.parent)
        if (run.path / BEST).is_file():
            titles[run.path.name] = f"{run.model} on {run.dataset['name']}"
    return titles


def load(model):
    """Loads a trained model.

    Args:
        model: A name of `pretrained()`, or the path of a run directory.

    Returns:
        A `colloquy.engine.predictor.Predictor`: `predict(instances)` answers a list of dicts,
        `explain(instance)` adds attention maps.

    Raises:
        colloquy.base.files.UserError: The run is missing or damaged.
    """
    from colloquy.base import runtime

    runtime.prepare()
    runtime.import_keras()

    from colloquy.engine.run import Run
    from colloquy.tasks import TASKS

    published = _pretrained_folder() / model
    run = Run.open(published if published.is_dir() else model)
    return TASKS[run.task].predictor(run)


def _pretrained_folder():
    in_wheel = _FOLDER / "pretrained"
    return in_wheel if in_wheel.is_dir() else _CLONE / "pretrained"
