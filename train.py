"""Trains a model on a prepared dataset into a run directory.

python train.py --model=dam --data=build/ubuntu-irc --workdir=runs/dam
python train.py --recipe=dam-ubuntu-irc-two-levels --data=build/ubuntu-irc --workdir=runs/dam
python train.py --name=douban --data=DIR --workdir=runs/douban   # the published corpus, as its
release has it python train.py --model=dam --show_settings
"""

import difflib
import functools

from absl import flags

from colloquy.base import cli
from colloquy.base.config import describe_fields, parse_assignments
from colloquy.base.files import UserError
from colloquy.engine.task import Training
from colloquy.models import MODELS
from colloquy.tasks import RECIPES
from colloquy.tasks.selection.recipes import PUBLISHED_CORPORA

FLAGS = flags.FLAGS
flags.DEFINE_enum("model", "dam", list(MODELS), "Model to train.")
flags.DEFINE_string(
    "recipe",
    None,
    "Settings by name; other flags win. By model:\n"
    + "\n".join(
        f"{model}: {', '.join(n for n, r in RECIPES.items() if r.model == model)}"
        for model in MODELS
    ),
)
flags.DEFINE_string(
    "data", None, "Directory of prepare.py; default: the embedded sample, by recipe MODEL-sample."
)
flags.DEFINE_enum(
    "name",
    None,
    list(PUBLISHED_CORPORA),
    "The published corpus in --data, as its release's data.pkl or as prepare.py wrote it: scores are shown beside the "
    "published ones. Without --recipe and --model, dam-NAME is trained.",
)
flags.DEFINE_integer("eos_id", None, "For a published data.pkl: its `_EOS_` id (28270 for Ubuntu).")
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
    "Train with JAX on all devices of this many hosts of the Ray cluster RAY_ADDRESS; see docs/devices.md.",
    lower_bound=1,
)


def main():
    if FLAGS.resume:
        others = (*TRAINING[1:], "model", "recipe", "name", "set", "eos_id", "init_from")
        cli.refuse_flags(others, "--resume, which keeps to the run's own settings")
    settings, recipe = choose_settings()
    workdir = FLAGS.workdir or f"runs/{FLAGS.model}"

    from colloquy.engine.cluster import train_on_cluster
    from colloquy.engine.run import Run

    # TensorFlow takes seconds to load; a wrong flag need not wait
    from colloquy.engine.train import resume, start
    from colloquy.tasks import TASKS

    if FLAGS.show_settings:
        show_settings(MODELS[FLAGS.model], TASKS)
        return
    if FLAGS.ray_hosts:
        cli.refuse_flags(["devices"], "--ray_hosts, which takes all")
        train = functools.partial(train_on_cluster, FLAGS.ray_hosts, resume=FLAGS.resume)
    else:
        train = functools.partial(resume if FLAGS.resume else start, devices=FLAGS.devices)
    if FLAGS.resume:
        given = {"task": TASKS[Run.open(workdir).task], "epochs": FLAGS.epochs}
    else:
        given = {
            "task": TASKS[MODELS[FLAGS.model].task],
            "model": FLAGS.model,
            "settings": settings,
            "recipe": recipe,
        }
        given |= {name: FLAGS[name].value for name in ("name", "eos_id", "init_from")}
    train(**given, workdir=workdir, data=FLAGS.data, save_minutes=FLAGS.save_minutes)


def choose_settings():
    """Chooses recipe, model and name of the corpus by each other.

    Returns `{field: value}` of the recipe, of flags and of --set, the last wins; and the recipe's
    name, with changes.
    """
    if FLAGS.name and not FLAGS.data:
        raise UserError(f"--name={FLAGS.name} needs --data=DIR, which holds that corpus")
    if FLAGS.name and not (FLAGS.recipe or FLAGS["model"].present):
        FLAGS.recipe = f"dam-{FLAGS.name}"
    if not (FLAGS.data or FLAGS.recipe or FLAGS.resume) and f"{FLAGS.model}-sample" in RECIPES:
        FLAGS.recipe = f"{FLAGS.model}-sample"
    settings = {}
    if FLAGS.recipe:
        if FLAGS.recipe not in RECIPES:
            near = (
                ", ".join(difflib.get_close_matches(FLAGS.recipe, RECIPES)) or "--help lists them"
            )
            raise UserError(f"--recipe={FLAGS.recipe} is not a recipe. Did you mean: {near}?")
        recipe = RECIPES[FLAGS.recipe]
        if FLAGS["model"].present and FLAGS.model != recipe.model:
            raise UserError(
                f"--recipe={FLAGS.recipe} trains {recipe.model}. Received: --model={FLAGS.model}"
            )
        FLAGS.model = recipe.model
        settings = {**recipe.config, **recipe.training}
        if recipe.corpus in PUBLISHED_CORPORA and FLAGS.data and not FLAGS.name:
            FLAGS.name = recipe.corpus
    given = cli.given_settings(Training, TRAINING)
    given |= parse_assignments(FLAGS.set)
    differing = {
        name: value for name, value in given.items() if str(settings.get(name)) != str(value)
    }
    changed = [f"{name}={value}" for name, value in differing.items() if name != "seed"]
    recipe = (
        f"{FLAGS.recipe} with {', '.join(changed)}" if FLAGS.recipe and changed else FLAGS.recipe
    )
    return {**settings, **given}, recipe


def show_settings(spec, tasks):
    """Prints every field of --set, with its default and its meaning."""
    for title, config in (("The model", spec.config), ("Its training", tasks[spec.task].Training)):
        print(f"{title}, {config.__module__}.{config.__qualname__}\n")
        for name, kind, default, meaning in describe_fields(config):
            print(
                f"  --set {name}={default}  ({kind})"
                if default
                else f"  {name}  ({kind}, the dataset decides)"
            )
            print(f"      {meaning}\n" if meaning else "")


if __name__ == "__main__":
    cli.run(main)
