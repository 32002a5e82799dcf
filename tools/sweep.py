r"""Trains and scores recipes on several datasets with several seeds; existing runs and scores are
not computed again.

python -m colloquy.tools.sweep --recipe=babi-memma,babi-memn2n --data='build/babi/task*' \
    --seeds=1,2,3 --split=dev,dev-oov
python -m colloquy.tools.sweep --recipe=dam-ubuntu-irc-two-levels --data=build/ubuntu-irc \
    --vary=levels=0,1,2,3,4,5

Runs are OUT/RECIPE-DATASET-SEED; a recipe that is changed is named RECIPE-FIELD-VALUE. Interrupted,
the same call continues. `evaluate.py --run='OUT/*'` shows all of them as a table.
"""

import gc
import glob
import itertools
import pathlib
import shlex

from absl import flags

from colloquy.base import backend, cli
from colloquy.base.config import parse_assignments
from colloquy.base.files import UserError, check_output
from colloquy.metrics.published import scores
from colloquy.tasks import RECIPES
from colloquy.tools.score_rows import VARIANTS

FLAGS = flags.FLAGS
flags.DEFINE_list("recipe", None, "Names of recipes, see tasks/*/recipes.py.", required=True)
flags.DEFINE_string(
    "data", None, "Prepared dataset, or a quoted pattern of several.", required=True
)
flags.DEFINE_multi_string(
    "vary",
    [],
    "field=value,value: trains each recipe with each value, as by --set; may be repeated, for each "
    "pair.",
)
flags.DEFINE_multi_string(
    "set", [], "field=value for all recipes, as --set of train.py; may be repeated."
)
flags.DEFINE_list("seeds", ["1", "2", "3"], "Seeds, integers.")
flags.DEFINE_list("split", ["dev"], "Splits to score; those that a dataset lacks are left out.")
flags.DEFINE_string("out", "runs/sweep", "Directory of the runs.")
flags.DEFINE_string(
    "scores",
    None,
    "File to append rows to, as results/scores.jsonl; runs with all rows are skipped.",
)


def main():
    for name in FLAGS.recipe:
        if name not in RECIPES:
            raise UserError(f"--recipe expects one of {', '.join(RECIPES)}. Received: {name}")
    if not all(seed.isdigit() for seed in FLAGS.seeds):
        raise UserError(f"--seeds expects numbers. Received: {','.join(FLAGS.seeds)}")
    datasets = find_datasets()
    if FLAGS.scores:
        check_output(FLAGS.scores)

    shared = parse_assignments(FLAGS.set)
    variants = []
    for name, changes in itertools.product(FLAGS.recipe, combine_values(FLAGS.vary)):
        variants.append((name, {**shared, **changes}))
    first_variant = (FLAGS.seeds[0], *variants[0])
    for seed in FLAGS.seeds:  # the outer loop, so that every recipe has its first result soon
        for name, changes in variants:
            parts = [name]
            for field, value in changes.items():
                parts.append(f"{field}-{value}")
            settings = {**RECIPES[name].settings(), **changes, "seed": int(seed)}
            command = training_command(name, changes, seed)
            # Baselines depend on the dataset alone, and are scored once.
            with_baselines = (seed, name, changes) == first_variant
            for data in datasets:
                train_and_score(
                    "-".join(parts),
                    RECIPES[name].model,
                    settings,
                    data,
                    f"{command} --data={shlex.quote(str(data))}",
                    with_baselines,
                )


def training_command(recipe, changes, seed):
    """The call of train.py that trains as a sweep does, but for --data.

    >>> training_command("babi-memma", {"epochs": "3", "hops": "1"}, "2")
    'python train.py --recipe=babi-memma --seed=2 --set=epochs=3 --set=hops=1'
    """
    words = ["python", "train.py", f"--recipe={recipe}", f"--seed={seed}"]
    words += [f"--set={field}={value}" for field, value in changes.items()]
    return shlex.join(words)


def find_datasets():
    """Returns the paths of the datasets of --data, whose names must differ."""
    paths = [pathlib.Path(path) for path in sorted(glob.glob(FLAGS.data))]
    datasets = [path for path in paths if path.is_dir()]
    if not datasets:
        raise UserError(f"--data expects directories that prepare.py made. Received: {FLAGS.data}")
    names = [data.name for data in datasets]
    if len(set(names)) < len(names):
        raise UserError(
            f"--data expects datasets with different names. Received: {', '.join(names)}"
        )
    return datasets


def combine_values(assignments):
    """Combines the values of some fields, given as `field=value,value`.

    >>> combine_values(["levels=0,1", "variant=self"])
    [{'levels': '0', 'variant': 'self'}, {'levels': '1', 'variant': 'self'}]
    """
    fields = []
    for assignment in assignments:
        field, _, values = assignment.partition("=")
        if not field or not all(values.split(",")):
            raise UserError(f"--vary expects field=value,value. Received: {assignment!r}")
        fields.append([(field, value) for value in values.split(",")])
    return [dict(chosen) for chosen in itertools.product(*fields)]


def train_and_score(label, model, settings, data, command, baselines):
    """Trains a model on a dataset, unless its run is finished, and scores the splits without a row.

    Args:
        label: Name of the recipe.
        model: Key of `models.MODELS`.
        settings: `{field: value}`, with the seed.
        data: Path of the dataset.
        command: The call of train.py that trains the same.
        baselines: Scores baselines, too.
    """
    backend.import_keras()

    import keras

    from colloquy.engine.evaluation import Evaluation
    from colloquy.engine.score_rows import append_scores
    from colloquy.engine.score_tables import print_records
    from colloquy.models import MODELS
    from colloquy.tasks import TASKS

    task = TASKS[MODELS[model].task]
    dataset = task.load_dataset(data)
    splits = find_missing_splits(label, dataset, settings["seed"])
    if not splits:
        return
    run = train(task, label, model, settings, data, command)
    evaluation = Evaluation(task, [run], dataset)
    for split in splits:
        record = evaluation.score(split, baselines=baselines)
        print_records([(evaluation.label(), record)], task, dataset.name, split)
        if FLAGS.scores:
            record["evaluation"]["command"] = f"python evaluate.py --run=RUN --split={split}"
            append_scores(FLAGS.scores, {**record, "recipe": label})
    keras.utils.clear_session()
    gc.collect()


def find_missing_splits(label, dataset, seed):
    """Returns those of --split that have examples and no row in --scores yet."""
    scored_splits = set()
    for row in scores(FLAGS.scores) if FLAGS.scores else []:
        is_own = (row["recipe"], row["corpus"], row.get("seed")) == (label, dataset.name, seed)
        # An ensemble of the recipe, or another search, has a row of its own.
        if is_own and not VARIANTS & row.keys():
            scored_splits.add(row["split"])
    missing = []
    for split in FLAGS.split:
        if split not in dataset.splits:
            raise UserError(
                f"split: expected some of {', '.join(dataset.splits)}. Received: {split}"
            )
        if len(dataset.splits[split]) and split not in scored_splits:
            missing.append(split)
    return missing


def train(task, label, model, settings, data, command):
    """Returns the finished run of a recipe, started or resumed if necessary."""
    from colloquy.engine.run import LAST, Run
    from colloquy.engine.train import resume, start

    path = pathlib.Path(FLAGS.out) / f"{label}-{data.name}-{settings['seed']}"
    if (path / LAST).exists():
        run = Run.open(path)
        if pathlib.Path(run.dataset["path"]) != data.resolve():
            raise UserError(
                f"{path} was trained on {run.dataset['path']}, not on {data}: give another --out"
            )
        return run if run.finished() else resume(task, path)
    return start(task, model, data, path, settings, recipe=label, command=command)


if __name__ == "__main__":
    cli.run(main)
