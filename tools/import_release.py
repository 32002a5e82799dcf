"""Turns a checkpoint of DAM's original release (TensorFlow 1) into a run.

    python -m colloquy.tools.import_release --checkpoint=output/model.ckpt.29 --config=conf.json \\
        --out=runs/released

The run has the release's weights, optimizer state and step: evaluate.py, export.py and `train.py
--resume` take it. `--config` is the release's `conf` dict (its main.py) as JSON.
"""

import pathlib
from typing import Annotated

from absl import flags
from pydantic import Field

from colloquy.base import cli, runtime
from colloquy.base.config import Config, Positive
from colloquy.base.files import UserError, atomic_directory
from colloquy.data.json_files import read_json

FLAGS = flags.FLAGS

STEP = "loss/Variable"
BETA_POWERS = ("loss/beta1_power", "loss/beta2_power")
"""Variables that are not weights; the step determines the powers of Adam's betas."""
EMBEDDING = "word_embedding"
FILTERS = ("cnn_aggregation/filter_0", "cnn_aggregation/filter_1")
"""Variables of all of the release's networks; their shapes give the sizes."""
PARTS = {
    "W1": "FFN_1/weights",
    "b1": "FFN_1/bias",
    "W2": "FFN_2/weights",
    "b2": "FFN_2/bias",
    "attention_norm/gamma": "attention_layer_norm/scale",
    "attention_norm/beta": "attention_layer_norm/bias",
    "ffn_norm/gamma": "FFN_layer_norm/scale",
    "ffn_norm/beta": "FFN_layer_norm/bias",
}
"""Names of the variables in one of our attentive modules, and in one of the release's."""
LONGEST = 1_000
"""Most turns, and most words of a turn. Larger sizes would fill the memory before the shape of a
variable is compared."""


class ReleaseConf(Config, extra="ignore"):
    """The entries of the release's conf that are not visible in its variables."""

    max_turn_num: Annotated[int, Field(ge=1, le=LONGEST)]
    max_turn_len: Annotated[int, Field(ge=1, le=LONGEST)]
    end_of_turn: Annotated[int, Field(ge=1, alias="_EOS_")]
    learning_rate: Annotated[float, Field(gt=0)]
    batch_size: Positive


def read_checkpoint(prefix):
    """Reads the variables of a TensorFlow 1 checkpoint, `{name: array}`."""
    import tensorflow as tf

    if not pathlib.Path(f"{prefix}.index").is_file():
        raise UserError(f"{prefix}: no such checkpoint; expected {prefix}.index beside its data")
    try:
        reader = tf.train.load_checkpoint(str(prefix))
        names = sorted(reader.get_variable_to_shape_map())
        return {name: reader.get_tensor(name) for name in names}
    # All that the reader raises for damaged files.
    except (tf.errors.OpError, RuntimeError, IndexError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{prefix}: the checkpoint cannot be read. {reason}") from error


def model_config(tensors, conf):
    """Returns the `DAMConfig` of a checkpoint.

    Args:
        tensors: Its variables, `{name: array}`.
        conf: A `ReleaseConf`, for what the variables do not show.
    """
    from colloquy.models.dam import DAMConfig

    _require(tensors, EMBEDDING, axes=2)
    for name in FILTERS:
        _require(tensors, name, axes=5)
    stacks = {name.split("/")[0] for name in tensors if name.startswith("self_stack_")}
    levels = len(stacks)
    variant = _find_variant(tensors, levels)
    rows, dimension = tensors[EMBEDDING].shape
    return DAMConfig(
        vocabulary_size=rows - 1,
        embedding_dim=dimension,
        max_turns=conf.max_turn_num,
        max_words=conf.max_turn_len,
        levels=levels,
        variant=variant,
        conv_filters=tuple(tensors[name].shape[4] for name in FILTERS),
        positional="positional/lambda" in tensors,
        **DAMConfig.release_settings(variant),
    )


def _require(tensors, name, axes):
    if name not in tensors or tensors[name].ndim != axes:
        raise UserError(f"not a checkpoint of the DAM release: {name} with {axes} axes is missing")


def _find_variant(tensors, levels):
    if any(name.startswith("u_attentd_r_") for name in tensors):
        return "last"
    if not any(name.startswith("t_attend_r_") for name in tensors):
        return "self"
    # The full model matches each level twice, by self-attention and by cross-attention.
    channels = tensors[FILTERS[0]].shape[3]
    return "full" if channels == 2 * (levels + 1) else "cross"


def release_names(config):
    """Returns `{path of our variable: its name in the release}` for a `models.dam.DAMConfig`."""
    names = {"word_embedding/embeddings": EMBEDDING}
    if config.positional:
        names["positional/lambda"] = "positional/lambda"

    for ours, theirs in _release_modules(config).items():
        for our_part, their_part in PARTS.items():
            names[f"{ours}/{our_part}"] = f"{theirs}/{their_part}"

    for i, filters in enumerate(FILTERS):
        names[f"aggregation/conv_{i}/kernel"] = filters
        names[f"aggregation/conv_{i}/bias"] = f"cnn_aggregation/bias_{i}"
    names["aggregation/W3"] = "loss/weights"
    names["aggregation/b3"] = "loss/bias"
    return names


def _release_modules(config):
    """Returns `{path of our attentive module: its name in the release}`."""
    modules = {}
    for level in range(config.levels):
        modules[f"self_attention_{level}"] = f"self_stack_{level}"
    if config.variant == "self":
        return modules
    if config.variant == "last":
        # Named by the index of the last layer, and otherwise than in the release's `net`.
        cross = f"cross_match_{config.levels}"
        modules[f"{cross}/utterance_attends"] = f"u_attentd_r_{config.levels - 1}"
        modules[f"{cross}/response_attends"] = f"r_attend_u_{config.levels - 1}"
        return modules
    for level in range(config.levels + 1):
        modules[f"cross_match_{level}/utterance_attends"] = f"t_attend_r_{level}"
        modules[f"cross_match_{level}/response_attends"] = f"r_attend_t_{level}"
    return modules


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
    model.optimizer.build(model.trainable_variables)
    averages = {}
    for variable in model.optimizer.variables:
        averages[variable.path.split("/")[-1]] = variable
    names = release_names(model.config)
    variables = {}
    for variable in model.trainable_variables:
        name = names[variable.path]
        path = variable.path.replace("/", "_")
        variables[name] = variable
        variables[f"loss/{name}/Adam"] = averages[f"{path}_momentum"]
        variables[f"loss/{name}/Adam_1"] = averages[f"{path}_velocity"]
    return variables


def import_checkpoint(checkpoint, config, out, data=None):
    """Makes the `engine.run.Run` of a checkpoint; after an error nothing is left behind.

    Args:
        checkpoint: Path of the checkpoint without `.index`.
        config: JSON file of the release's conf dict.
        out: Run directory to make.
        data: Prepared dataset that it belongs to, for its vocabulary.
    """
    runtime.import_keras()

    import keras

    from colloquy.engine.devices import set_precision
    from colloquy.engine.records import TrainState
    from colloquy.engine.run import Run
    from colloquy.engine.settings import check_fields
    from colloquy.engine.workdir import create_run
    from colloquy.models.dam import DAM
    from colloquy.tasks import TASKS

    selection = TASKS["selection"]
    with atomic_directory(out) as directory:  # first, so that one in use is refused at once
        conf = read_json(config, ReleaseConf)
        tensors = read_checkpoint(checkpoint)
        settings = model_config(tensors, conf)
        training = selection.Training(
            batch_size=conf.batch_size,
            learning_rate=conf.learning_rate,
            precision="float32",
            **selection.release_training,
        )
        metadata = {"path": None, "name": "release", "eos_id": conf.end_of_turn, "unk_id": None}
        vocabulary = None
        if data:
            dataset = selection.load_dataset(data)
            if dataset.eos_id != conf.end_of_turn:
                expected = f"expected the checkpoint's id of _EOS_, {conf.end_of_turn}"
                raise UserError(f"{dataset.path}: {expected}. Received: {dataset.eos_id}")
            check_fields(settings, selection.required_fields(dataset), dataset.path)
            metadata = dataset.metadata()
            vocabulary = dataset.vocabulary

        set_precision("float32")
        model = DAM(settings)
        model.compile(optimizer=selection.optimizer(training))
        step = assign(model, tensors, f"{checkpoint} does not fit {config}")
        record = {
            "model": "dam",
            "recipe": None,
            "config": settings.to_json(),
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


def main():
    run = import_checkpoint(FLAGS.checkpoint, FLAGS.config, FLAGS.out, FLAGS.data)
    print(f"{run.path}: the release's checkpoint as a run")


if __name__ == "__main__":
    flags.DEFINE_string("checkpoint", None, "Path of the checkpoint without .index.", required=True)
    flags.DEFINE_string("config", None, "JSON file of the release's conf dict.", required=True)
    flags.DEFINE_string("out", None, "Run directory to make.", required=True)
    flags.DEFINE_string("data", None, "Prepared dataset that it belongs to, for its vocabulary.")
    cli.run(main)
