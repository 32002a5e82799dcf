"""Trains a model on a prepared dataset into a run directory.

python train.py --model=dam --data=build/ubuntu-irc --workdir=runs/dam
python train.py --recipe=dam-ubuntu-irc-two-levels --data=build/ubuntu-irc --workdir=runs/dam
python train.py --model=dam --show_settings
"""

import difflib

from absl import flags

from colloquy.base import cli, runtime
from colloquy.base.config import describe_fields, parse_assignments, parse_value
from colloquy.base.files import UserError
from colloquy.engine.task import Training
from colloquy.models import MODELS
from colloquy.tasks import RECIPES


def list_recipes():
    """Returns a line per model, with the names of its recipes."""
    names_by_model = {model: [] for model in MODELS}
    for name, recipe in RECIPES.items():
        names_by_model[recipe.model].append(name)
    return "\n".join(f"{model}: {', '.join(names)}" for model, names in names_by_model.items())


FLAGS = flags.FLAGS
flags.DEFINE_enum("model", "dam", list(MODELS), "Model to train.")
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
TRAINING = ("epochs", "batch_size", "learning_rate", "precision", "jit", "seed")
cli.define_settings(Training, TRAINING)
flags.DEFINE_multi_string(
    "set", [], "field=value of the model's config or of the task's Training; may be repeated."
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


def main():
    if FLAGS.resume:
        others = (*TRAINING[1:], "model", "recipe", "set", "init_from")
        cli.refuse_flags(others, "--resume, which keeps to the run's own settings")
    recipe_name = choose_recipe()
    model = RECIPES[recipe_name].model if recipe_name else FLAGS.model
    workdir = FLAGS.workdir or f"runs/{model}"
    settings, changes = merge_settings(recipe_name)

    # TensorFlow takes seconds to load; a wrong flag need not wait.
    runtime.import_keras()

    from colloquy.engine.cluster import train_on_cluster
    from colloquy.engine.run import Run
    from colloquy.engine.train import resume, start
    from colloquy.tasks import TASKS

    if FLAGS.show_settings:
        show_settings(MODELS[model], TASKS)
        return

    if FLAGS.resume:
        arguments = {"task": TASKS[Run.open(workdir).task], "epochs": FLAGS.epochs}
    else:
        arguments = {
            "task": TASKS[MODELS[model].task],
            "model": model,
            "settings": settings,
            "recipe": describe_recipe(recipe_name, changes),
            "init_from": FLAGS.init_from,
        }
    arguments.update(workdir=workdir, data=FLAGS.data, save_minutes=FLAGS.save_minutes)

    if FLAGS.ray_hosts:
        cli.refuse_flags(["devices"], "--ray_hosts, which takes all")
        train_on_cluster(FLAGS.ray_hosts, resume=FLAGS.resume, **arguments)
    elif FLAGS.resume:
        resume(devices=FLAGS.devices, **arguments)
    else:
        start(devices=FLAGS.devices, **arguments)


def choose_recipe():
    """Returns the name of the recipe to train, or `None` for the defaults of --model."""
    has_model = FLAGS["model"].present
    if FLAGS.recipe is None:
        if FLAGS.data or FLAGS.resume:
            return None
        for corpus in ("chitchat", "sample"):
            if f"{FLAGS.model}-{corpus}" in RECIPES:
                return f"{FLAGS.model}-{corpus}"
        return None

    if FLAGS.recipe not in RECIPES:
        similar = difflib.get_close_matches(FLAGS.recipe, RECIPES)
        hint = ", ".join(similar) or "--help lists them"
        raise UserError(f"--recipe={FLAGS.recipe} is not a recipe. Did you mean: {hint}?")
    model = RECIPES[FLAGS.recipe].model
    if has_model and FLAGS.model != model:
        raise UserError(f"--recipe={FLAGS.recipe} trains {model}. Received: --model={FLAGS.model}")
    return FLAGS.recipe


def merge_settings(recipe_name):
    """Merges the settings of a recipe with those of the flags, which win, and of --set, the last.

    Returns:
        `{field: value}` of all settings.
        `{field: value}` of the flags that differ from the recipe.
    """
    settings = RECIPES[recipe_name].settings() if recipe_name else {}
    flag_settings = {**cli.given_settings(Training, TRAINING), **parse_assignments(FLAGS.set)}
    changes = {}
    for name, value in flag_settings.items():
        parsed = parse_value(value) if isinstance(value, str) else value
        if name not in settings or settings[name] != parsed:
            changes[name] = value
    return {**settings, **flag_settings}, changes


def describe_recipe(name, changes):
    """Returns the name of a recipe with its changes, but for the seed; `None` without a recipe."""
    shown = [f"{field}={value}" for field, value in changes.items() if field != "seed"]
    if name and shown:
        return f"{name} with {', '.join(shown)}"
    return name


def show_settings(spec, tasks):
    """Prints every field of --set, with its default and its meaning."""
    show_fields("The model", spec.config)
    show_fields("Its training", tasks[spec.task].Training)


def show_fields(title, config):
    print(f"{title}, {config.__module__}.{config.__qualname__}\n")
    for name, kind, default, meaning in describe_fields(config):
        if default:
            print(f"  --set {name}={default}  ({kind})")
        else:
            print(f"  {name}  ({kind}, the dataset decides)")
        print(f"      {meaning}\n" if meaning else "")


if __name__ == "__main__":
    cli.run(main)
