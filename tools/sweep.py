"""Trains and measures a recipe on several datasets with several seeds; what exists already is not computed again.

python -m tools.sweep --recipe=babi-memma,babi-memn2n --data='build/babi/task*' --seeds=1,2,3 --split=dev,dev-oov
python -m tools.sweep --recipe=dam-ubuntu-irc --data=build/ubuntu-irc --vary=levels=0,1,2,3,4,5

Runs stand in OUT as RECIPE-DATASET-SEED, records in MEASURED_OUT as RECIPE-DATASET-SEED-SPLIT.json. Interrupted, it
goes on where it stood when it is called again; `evaluate.py --run='OUT/*'` shows the whole as a table.
"""

import glob
import itertools
import pathlib

from absl import flags

from base import cli
from base.files import UserError
from tasks import RECIPES

FLAGS = flags.FLAGS
flags.DEFINE_list("recipe", None, "Names of recipes, see tasks/*/recipes.py.", required=True)
flags.DEFINE_string("data", None, "Prepared dataset, or a quoted pattern of several.", required=True)
flags.DEFINE_multi_string(
    "vary", [], "field=value,value: trains each recipe with each value, as by --set; may be repeated, for each pair."
)
flags.DEFINE_list("seeds", ["1", "2", "3"], "Seeds, integers.")
flags.DEFINE_list("split", ["dev"], "Splits to measure; those that a dataset lacks are left out.")
flags.DEFINE_string("out", "runs/sweep", "Directory of the runs.")
flags.DEFINE_string("measured_out", None, "Directory of results/measured records; default: none are written.")


def main():
    for name in FLAGS.recipe:
        if name not in RECIPES:
            raise UserError(f"--recipe expects one of {', '.join(RECIPES)}. Received: {name}")
    if not all(seed.isdigit() for seed in FLAGS.seeds):
        raise UserError(f"--seeds expects numbers. Received: {','.join(FLAGS.seeds)}")
    variations = varied(FLAGS.vary)
    datasets = [pathlib.Path(path) for path in sorted(glob.glob(FLAGS.data)) if pathlib.Path(path).is_dir()]
    if not datasets:
        raise UserError(f"--data expects directories that prepare.py made. Received: {FLAGS.data}")
    from engine.sweep import sweep  # TensorFlow takes seconds to load
    from tasks import TASKS

    measured_out = FLAGS.measured_out and pathlib.Path(FLAGS.measured_out)
    seeds = [int(seed) for seed in FLAGS.seeds]
    recipes = {name: RECIPES[name] for name in FLAGS.recipe}
    sweep(TASKS, recipes, datasets, seeds, FLAGS.split, pathlib.Path(FLAGS.out), measured_out, variations)


def varied(assignments):
    """Every combination of the values of some fields.

    Args:
        assignments: List of `field=value,value`.

    Returns:
        List of `{field: value}`, values as texts.

    >>> varied(["levels=0,1", "variant=self"])
    [{'levels': '0', 'variant': 'self'}, {'levels': '1', 'variant': 'self'}]
    """
    fields = []
    for assignment in assignments:
        field, _, values = assignment.partition("=")
        if not field or not all(values.split(",")):
            raise UserError(f"--vary expects field=value,value. Received: {assignment!r}")
        fields.append([(field, value) for value in values.split(",")])
    return [dict(chosen) for chosen in itertools.product(*fields)]


if __name__ == "__main__":
    cli.run(main)
