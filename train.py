"""Trains a model on a prepared dataset into a run directory.

python train.py --model=dam --data=build/ubuntu-irc --workdir=runs/dam
python train.py --recipe=dam-ubuntu-irc --data=build/ubuntu-irc --workdir=runs/dam
"""

from absl import flags

from base import cli
from base.files import UserError
from engine.recipes import RECIPES
from models import MODELS

FLAGS = flags.FLAGS
flags.DEFINE_enum("model", "dam", list(MODELS), "Model to train.")
flags.DEFINE_enum("recipe", None, list(RECIPES), "Settings by name, see engine/recipes.py; flags given beside it win.")
flags.DEFINE_string(
    "data",
    None,
    "Directory that prepare.py wrote. Without it the embedded sample is made, and --recipe is MODEL-sample, if any.",
)
flags.DEFINE_string("workdir", None, "Run directory to make; default: runs/MODEL.")
flags.DEFINE_bool(
    "resume",
    False,
    "Go on with the run in --workdir from its last validation, under its own settings or more --epochs.",
)
flags.DEFINE_float("epochs", None, "Passes over the training examples.", lower_bound=0.0)
flags.DEFINE_integer("batch_size", None, "Contexts, dialogs, pairs or questions per step.", lower_bound=1)
flags.DEFINE_float("learning_rate", None, "Initial learning rate.", lower_bound=0.0)
flags.DEFINE_enum(
    "precision",
    "auto",
    ["auto", "float32", "bfloat16", "float16"],
    "Precision of computation. auto: bfloat16 where this machine computes it and the model gains by it, else float32.",
)
flags.DEFINE_enum("jit", "auto", ["auto", "on", "off"], "XLA. auto: on with a GPU or JAX, else off, where it loses.")
flags.DEFINE_integer("seed", 1, "Seed for every random number generator.", lower_bound=0, upper_bound=2**32 - 1)
flags.DEFINE_multi_string("set", [], "field=value of the model's config or of the task's Training; may be repeated.")
flags.DEFINE_integer("eos_id", None, "For a published data.pkl: its `_EOS_` id (28270 for Ubuntu).")


def main():
    from engine.runs import Run
    from engine.training import Fit, train  # TensorFlow takes seconds to load; a wrong flag need not wait
    from tasks import TASKS

    if FLAGS.epochs == 0:
        raise UserError("--epochs expects a number above 0. Received: 0")
    if FLAGS.resume:
        others = ("model", "recipe", "batch_size", "learning_rate", "precision", "jit", "seed", "set", "eos_id")
        cli.refuse_flags(others, "--resume, which keeps to the run's own settings")
    settings = {}
    if not (FLAGS.data or FLAGS.recipe or FLAGS.resume) and f"{FLAGS.model}-sample" in RECIPES:
        FLAGS.recipe = f"{FLAGS.model}-sample"
    if FLAGS.recipe:
        recipe = RECIPES[FLAGS.recipe]
        settings.update(recipe.settings)
        for name, value in {"model": recipe.model, **recipe.flags}.items():
            if not FLAGS[name].present:
                FLAGS[name].value = value
    for assignment in FLAGS.set:
        field, equals, value = assignment.partition("=")
        if not equals:
            raise UserError(f"--set expects field=value. Received: {assignment!r}")
        settings[field] = value
    given = {
        "epochs": FLAGS.epochs,
        "batch_size": FLAGS.batch_size,
        "learning_rate": FLAGS.learning_rate,
        "precision": FLAGS.precision,
        "jit": FLAGS.jit,
        "seed": FLAGS.seed,
    }
    given = {name: value for name, value in given.items() if value is not None}
    workdir = FLAGS.workdir or f"runs/{FLAGS.model}"
    if FLAGS.resume:
        run = Run.open(workdir)
        task, defaults = TASKS[run.entry.task], run.config["fit"]
    else:
        task = TASKS[MODELS[FLAGS.model].task]
        defaults = task.fit
    train(
        task=task,
        model_name=FLAGS.model,
        data=FLAGS.data,
        workdir=workdir,
        fit=Fit(**{**defaults, **given}),
        settings=settings,
        resume=FLAGS.resume,
        eos_id=FLAGS.eos_id,
    )


if __name__ == "__main__":
    cli.run(main)
