"""Turns a checkpoint of DAM's original release (TensorFlow 1) into a run.

    python -m colloquy.tools.import_release --checkpoint=output/model.ckpt.29 --config=conf.json \\
        --out=runs/released

The run has the release's weights, optimizer state and step: evaluate.py, export.py and `train.py
--resume` take it. `--config` is the release's `conf` dict (its main.py) as JSON.
"""

from absl import flags

from colloquy.base import backend, cli
from colloquy.base.files import UserError, atomic_directory
from colloquy.data.json_files import read_json
from colloquy.tools.release_checkpoint import (
    BETA_POWERS,
    STEP,
    ReleaseConf,
    model_config,
    read_checkpoint,
    release_names,
)

FLAGS = flags.FLAGS


def import_checkpoint(checkpoint, config, out, data=None):
    """Makes the `engine.run.Run` of a checkpoint; after an error nothing is left behind.

    Args:
        checkpoint: Path of the checkpoint without `.index`.
        config: JSON file of the release's conf dict.
        out: Run directory to make.
        data: Prepared dataset that it belongs to, for its vocabulary.
    """
    backend.import_keras()

    import keras

    from colloquy.engine.devices import set_precision
    from colloquy.engine.records import TrainState
    from colloquy.engine.run import Run
    from colloquy.engine.workdir import create_run
    from colloquy.models.dam import DAM
    from colloquy.tasks import TASKS

    selection = TASKS["selection"]
    # A directory that is in use is refused before anything is read.
    with atomic_directory(out) as directory:
        conf = read_json(config, ReleaseConf)
        tensors = read_checkpoint(checkpoint)
        dam_config = model_config(tensors, conf)
        training = selection.Training(
            batch_size=conf.batch_size,
            learning_rate=conf.learning_rate,
            precision="float32",
            **selection.release_training,
        )
        metadata, vocabulary = describe_dataset(selection, conf, dam_config, data)

        set_precision("float32")
        model = DAM(dam_config)
        model.compile(optimizer=selection.optimizer(training))
        step = assign(model, tensors, f"{checkpoint} does not fit {config}")
        record = {
            "model": "dam",
            "recipe": None,
            "config": dam_config.to_json(),
            "training": training.to_json(),
            "dataset": metadata,
            "command": "python -m colloquy.tools.import_release "
            f"--checkpoint={checkpoint} --config={config}",
            "versions": {"keras": keras.__version__, "backend": keras.config.backend()},
        }
        run = create_run(directory, record, vocabulary)
        run.save_best(model)
        run.save(model, TrainState(step=step, validated_step=step))
    return Run.open(out)


def describe_dataset(selection, conf, dam_config, data):
    """Returns the metadata and the vocabulary of the run.

    They are those of the dataset `data`. Without one, the metadata has what the conf says, and the
    vocabulary is `None`.
    """
    from colloquy.engine.settings import check_fields

    if not data:
        return {"path": None, "name": "release", "eos_id": conf.end_of_turn, "unk_id": None}, None
    dataset = selection.load_dataset(data)
    if dataset.eos_id != conf.end_of_turn:
        raise UserError(
            f"{dataset.path}: expected the checkpoint's id of _EOS_, {conf.end_of_turn}. "
            f"Received: {dataset.eos_id}"
        )
    check_fields(dam_config, selection.required_fields(dataset), dataset.path)
    return dataset.metadata(), dataset.vocabulary


def assign(model, tensors, title):
    """Sets the weights of a compiled DAM, Adam's two averages of each, and the step.

    Args:
        model: The model, which stays as it is after an error.
        tensors: Variables of a checkpoint, `{name: array}`.
        title: Beginning of the message of an error.

    Returns:
        The step.

    Raises:
        UserError: Variables are unknown, missing or of another shape; all are listed.
    """
    variables = _variables_by_release_name(model)
    problems = [f"{name} is missing" for name in variables if name not in tensors]
    for name, tensor in tensors.items():
        if name in (STEP, *BETA_POWERS):
            continue
        if name not in variables:
            problems.append(f"{name} is unknown")
            continue
        expected = tuple(variables[name].shape)
        if tensor.shape != expected:
            problems.append(f"{name} has shape {tensor.shape} where {expected} is expected")
    if problems:
        raise UserError(f"{title}: {'; '.join(problems)}")

    for name, variable in variables.items():
        variable.assign(tensors[name])
    step = int(tensors.get(STEP, 0))
    model.optimizer.iterations.assign(step)
    return step


def _variables_by_release_name(model):
    """Returns weights and Adam's averages, `{name in the release: variable}`."""
    optimizer = model.optimizer
    optimizer.build(model.trainable_variables)
    optimizer_variables = {variable.name: variable for variable in optimizer.variables}
    names = release_names(model.config)
    variables = {}
    for weight in model.trainable_variables:
        release_name = names[weight.path]
        variables[release_name] = weight
        # Keras names the averages of the weight `a/b` `a_b_momentum` and `a_b_velocity`.
        own_name = weight.path.replace("/", "_")
        variables[f"loss/{release_name}/Adam"] = optimizer_variables[f"{own_name}_momentum"]
        variables[f"loss/{release_name}/Adam_1"] = optimizer_variables[f"{own_name}_velocity"]
    return variables


def main():
    run = import_checkpoint(FLAGS.checkpoint, FLAGS.config, FLAGS.out, FLAGS.data)
    print(f"{run.path}: the release's checkpoint as a run")


if __name__ == "__main__":
    flags.DEFINE_string("checkpoint", None, "Path of the checkpoint without .index.", required=True)
    flags.DEFINE_string("config", None, "JSON file of the release's conf dict.", required=True)
    flags.DEFINE_string("out", None, "Run directory to make.", required=True)
    flags.DEFINE_string("data", None, "Prepared dataset that it belongs to, for its vocabulary.")
    cli.run(main)
