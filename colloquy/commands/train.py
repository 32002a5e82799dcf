"""Trains a model on a prepared dataset into a run directory.

python train.py --model=dam --data=build/ubuntu-irc --workdir=runs/dam
python train.py --recipe=dam-ubuntu-irc-two-levels --data=build/ubuntu-irc --workdir=runs/dam
python train.py --model=dam --show_settings
"""

import inspect
from typing import Any

from absl import flags

import colloquy
from colloquy.base import cli, script_flags
from colloquy.base.config import parse_assignments
from colloquy.base.files import UserError
from colloquy.commands.show_settings import show_settings
from colloquy.engine.training_settings import Training
from colloquy.models import MODELS
from colloquy.tasks import RECIPES
from colloquy.tasks.selection.release_conf import read_release_conf


def list_recipes() -> str:
    """Returns a line per model, with the names of its recipes."""
    lines = []
    for model in MODELS:
        names = [name for name, recipe in RECIPES.items() if recipe.model == model]
        lines.append(f"{model}: {', '.join(names)}")
    return "\n".join(lines)


FLAGS = flags.FLAGS
flags.DEFINE_string(
    "model", None, f"Model to train: {', '.join(MODELS)}; default: the recipe's, or dam."
)
flags.DEFINE_string(
    "recipe", None, "Settings by name; other flags win. By model:\n" + list_recipes()
)
flags.DEFINE_string(
    "data",
    None,
    "Directory of prepare.py; default: chitchat or the embedded sample, by recipe "
    "MODEL-chitchat or MODEL-sample.",
)
flags.DEFINE_string("workdir", None, "Run directory to make; default: runs/MODEL.")
flags.DEFINE_bool(
    "resume", False, "Resume the run in --workdir from its last save. Only --epochs may change."
)
flags.DEFINE_string(
    "init_from", None, "A run, as pretrained/NAME, whose weights the training starts with."
)
TRAINING_FLAGS = ("epochs", "batch_size", "learning_rate", "precision", "jit", "seed")
"""Fields of `Training` that are flags; --set takes the others."""
script_flags.define_settings(Training, TRAINING_FLAGS)
flags.DEFINE_multi_string(
    "set", [], "field=value of the model's config or of the task's Training; may be repeated."
)
flags.DEFINE_string(
    "release_conf",
    None,
    "The conf of DAM's original release as JSON: its settings, which other flags change; see "
    "docs/release.md.",
)
flags.DEFINE_bool(
    "show_settings", False, "Print the fields of --set for --model, with defaults, and exit."
)
flags.DEFINE_float(
    "save_minutes",
    10.0,
    "Minutes between saves of the state between two validations.",
    lower_bound=0.0,
)
flags.DEFINE_enum(
    "devices",
    "one",
    ["one", "all"],
    "all (JAX): all devices share each batch; see docs/devices.md.",
)
flags.DEFINE_integer(
    "ray_hosts",
    None,
    "Train with JAX on all devices of this many hosts of the Ray cluster RAY_ADDRESS; see "
    "docs/devices.md.",
    lower_bound=1,
)


NOT_FOR_RESUME = (
    "batch_size",
    "learning_rate",
    "precision",
    "jit",
    "seed",
    "model",
    "recipe",
    "set",
    "init_from",
    "release_conf",
    "show_settings",
)
"""Flags that a resumed training refuses."""


def main() -> None:
    if FLAGS.ray_hosts:
        script_flags.refuse_flags(["devices"], "--ray_hosts, which takes all")
    # How a training runs, which may change when it is resumed.
    options = {
        "devices": FLAGS.devices,
        "ray_hosts": FLAGS.ray_hosts,
        "save_minutes": FLAGS.save_minutes,
    }
    if FLAGS.resume:
        script_flags.refuse_flags(NOT_FOR_RESUME, "--resume, which keeps to the run's own settings")
        workdir = FLAGS.workdir or "runs/dam"
        colloquy.resume(workdir, data=FLAGS.data, epochs=FLAGS.epochs, **options)
        return

    settings = read_settings()
    if FLAGS.show_settings:
        show_settings(FLAGS.model, FLAGS.recipe, settings)
        return
    colloquy.train(
        FLAGS.model,
        FLAGS.data,
        FLAGS.workdir,
        FLAGS.recipe,
        init_from=FLAGS.init_from,
        **options,
        **settings,
    )


def read_settings() -> dict[str, Any]:
    """Returns `{field: value}` of --release_conf, of the flags and of --set; the last wins."""
    settings = read_conf() if FLAGS.release_conf else {}
    settings.update(script_flags.given_settings(Training, TRAINING_FLAGS))
    settings.update(parse_assignments(FLAGS.set))
    # `colloquy.train` takes settings as keyword arguments, beside its own: `--set=data=DIR` would
    # be taken for --data.
    own_arguments = inspect.signature(colloquy.train).parameters
    script_flags.refuse_flags_as_settings(settings, own_arguments)
    return settings


def read_conf() -> dict:
    """The settings of --release_conf; prints what each of its keys became."""
    script_flags.refuse_flags(["recipe"], "--release_conf")
    if FLAGS.model not in (None, "dam"):
        raise UserError(f"--release_conf is for --model=dam. Received: --model={FLAGS.model}")
    settings, lines = read_release_conf(FLAGS.release_conf)
    print("\n".join(lines))
    return settings


if __name__ == "__main__":
    cli.run(main)
