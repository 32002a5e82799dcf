"""Exported models: a run of a tiny model to export, and a client that has nothing of this
project.
"""

import os
import pickle
import subprocess
import sys

from helpers import ROOT, randomised

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


# === Clients ===

CLIENT = """
import sys
sys.modules["keras"] = None  # from here on, importing it fails
import pickle
import tensorflow as tf

models, calls, example = pickle.load(open("calls.pkl", "rb"))
models = {name: tf.saved_model.load(path) for name, path in models.items()}
answers = {"modules": set(sys.modules)}
for name, (model, endpoint, inputs) in calls.items():
    inputs = {key: tf.constant(value, tf.string) for key, value in inputs.items()}
    try:
        answer = models[model].signatures[endpoint](**inputs)
        answers[name] = {key: value.numpy() for key, value in answer.items()}
    except tf.errors.InvalidArgumentError as error:
        answers[name] = str(error)
scope = {}
exec(example, scope)
found = scope.get("ranked", scope.get("answer"))
answers["example"] = {key: value.numpy() for key, value in found.items()}
with open("answers.pkl", "wb") as file:
    pickle.dump(answers, file)
"""


def answers_to_a_client(directory, models, calls, printed):
    """The answers, by name, in a process of its own in `directory`, which has TensorFlow alone.

    Args:
        directory: Where the process runs.
        models: `{name: path}` of SavedModels.
        calls: `{name: (model, endpoint, inputs)}`.
        printed: What export.py printed. Its code runs too, and gives the answer `"example"`.
    """
    example = printed.partition("\n\n")[2]
    (directory / "calls.pkl").write_bytes(pickle.dumps((models, calls, example)))
    environment = dict(os.environ)
    environment.pop("PYTHONPATH", None)
    subprocess.run([sys.executable, "-I", "-c", CLIENT], cwd=directory, check=True, env=environment)
    answers = pickle.loads((directory / "answers.pkl").read_bytes())

    own_modules = set()
    for path in ROOT.iterdir():
        if path.suffix == ".py" or (path / "__init__.py").exists():
            own_modules.add(path.stem)
    assert {"layers", "models", "engine", "tasks"} <= own_modules
    assert not own_modules & answers["modules"]
    return answers
