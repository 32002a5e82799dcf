"""Turns a checkpoint of DAM's original release (TensorFlow 1) into a run.

    python -m colloquy.tools.import_release --checkpoint=output/model.ckpt.29 --config=conf.json
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
from colloquy.data.text_files import read_json

FLAGS = flags.FLAGS

STEP, BETA_POWERS = "loss/Variable", ("loss/beta1_power", "loss/beta2_power")
"""Variables that are not weights; the step determines the powers of Adam's betas."""
EMBEDDING, FILTERS = "word_embedding", ("cnn_aggregation/filter_0", "cnn_aggregation/filter_1")
"""Variables of all of the release's networks; their shapes give the sizes."""


class ReleaseConf(Config, extra="ignore"):
    """The entries of the release's conf that are not visible in its variables."""

    max_turn_num: Positive
    max_turn_len: Positive
    end_of_turn: Annotated[int, Field(ge=1, alias="_EOS_")]
    learning_rate: Annotated[float, Field(gt=0)]
    batch_size: Positive


def read_checkpoint(prefix):
    """The variables of a TensorFlow 1 checkpoint, `{name: array}`."""
    import tensorflow as tf

    if not pathlib.Path(f"{prefix}.index").is_file():
        raise UserError(f"{prefix}: no such checkpoint; expected {prefix}.index beside its data")
    try:
        reader = tf.train.load_checkpoint(str(prefix))
        return {
            name: reader.get_tensor(name) for name in sorted(reader.get_variable_to_shape_map())
        }
    # whatever the reader raises
    except (tf.errors.OpError, RuntimeError, IndexError, ValueError) as error:
        raise UserError(
            f"{prefix}: the checkpoint cannot be read. {str(error).splitlines()[0]}"
        ) from error


def model_config(tensors, conf):
    """The `DAMConfig` of a checkpoint, by its variables and by a `ReleaseConf` where these do not
    show it.
    """
    from colloquy.models.dam import DAMConfig, release_settings

    for name, axes in ((EMBEDDING, 2), *((name, 5) for name in FILTERS)):
        if name not in tensors or tensors[name].ndim != axes:
            raise UserError(
                f"not a checkpoint of the DAM release: {name} with {axes} axes is missing"
            )
    levels = len({name.split("/")[0] for name in tensors if name.startswith("self_stack_")})
    channels = tensors[FILTERS[0]].shape[3]
    if any(name.startswith("u_attentd_r_") for name in tensors):
        variant = "last"
    elif not any(name.startswith("t_attend_r_") for name in tensors):
        variant = "self"
    else:
        variant = "full" if channels == 2 * (levels + 1) else "cross"
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
        **release_settings(variant),
    )


def release_names(config):
    """`{path of a variable of ours: its name in the release's checkpoints}` for a
    `models.dam.DAMConfig`.
    """
    L, names = config.levels, {"word_embedding/embeddings": EMBEDDING}
    if config.positional:
        names["positional/lambda"] = "positional/lambda"
    modules = {f"self_attention_{l}": f"self_stack_{l}" for l in range(L)}
    if config.variant == "last":  # named by the last layer's index, and otherwise than in `net`
        crosses = {L: (f"u_attentd_r_{L - 1}", f"r_attend_u_{L - 1}")}
    elif config.variant == "self":
        crosses = {}
    else:
        crosses = {l: (f"t_attend_r_{l}", f"r_attend_t_{l}") for l in range(L + 1)}
    for l, (utterance, response) in crosses.items():
        modules[f"cross_match_{l}/utterance_attends"] = utterance
        modules[f"cross_match_{l}/response_attends"] = response
    for ours, theirs in modules.items():
        for i in (1, 2):
            names[f"{ours}/W{i}"] = f"{theirs}/FFN_{i}/weights"
            names[f"{ours}/b{i}"] = f"{theirs}/FFN_{i}/bias"
        for norm, name in (
            ("attention_norm", "attention_layer_norm"),
            ("ffn_norm", "FFN_layer_norm"),
        ):
            names[f"{ours}/{norm}/gamma"] = f"{theirs}/{name}/scale"
            names[f"{ours}/{norm}/beta"] = f"{theirs}/{name}/bias"
    for i, filters in enumerate(FILTERS):
        names[f"aggregation/conv_{i}/kernel"] = filters
        names[f"aggregation/conv_{i}/bias"] = f"cnn_aggregation/bias_{i}"
    return names | {"aggregation/W3": "loss/weights", "aggregation/b3": "loss/bias"}


def assign(model, tensors, wrong):
    """Sets the weights of a compiled DAM, Adam's two averages of each, and the step, which is
    returned.

    Variables that are unknown, missing or of another shape are a `UserError`, which begins with
    `wrong` and lists them all; the model is then unchanged.
    """
    model.optimizer.build(model.trainable_variables)
    slots = {variable.path.split("/")[-1]: variable for variable in model.optimizer.variables}
    names, wanted = release_names(model.config), {}
    for variable in model.trainable_variables:
        name, ours = names[variable.path], variable.path.replace("/", "_")
        wanted[name] = variable
        wanted[f"loss/{name}/Adam"] = slots[f"{ours}_momentum"]
        wanted[f"loss/{name}/Adam_1"] = slots[f"{ours}_velocity"]
    problems = [f"{name} is missing" for name in wanted if name not in tensors]
    for name in tensors:
        if name not in {*wanted, STEP, *BETA_POWERS}:
            problems.append(f"{name} is unknown")
        elif name in wanted and tensors[name].shape != tuple(wanted[name].shape):
            expected = tuple(wanted[name].shape)
            problems.append(f"{name} has shape {tensors[name].shape} where {expected} is expected")
    if problems:
        raise UserError(f"{wrong}: {'; '.join(problems)}")
    for name, variable in wanted.items():
        variable.assign(tensors[name])
    step = int(tensors.get(STEP, 0))
    model.optimizer.iterations.assign(step)
    return step


def import_checkpoint(checkpoint, config, out, data=None):
    """Makes the `engine.run.Run` of a checkpoint by the script's arguments; after an error nothing
    is left behind.
    """
    runtime.import_keras()

    import keras

    from colloquy.engine.devices import set_precision
    from colloquy.engine.records import TrainState
    from colloquy.engine.run import Run
    from colloquy.engine.task import check_fields
    from colloquy.models.dam import DAM
    from colloquy.tasks import TASKS

    selection = TASKS["selection"]
    with atomic_directory(out) as directory:  # first, so that one in use is refused at once
        conf, tensors = read_json(config, ReleaseConf), read_checkpoint(checkpoint)
        settings = model_config(tensors, conf)
        given = {
            "batch_size": conf.batch_size,
            "learning_rate": conf.learning_rate,
            "precision": "float32",
        }
        training = selection.Training(**given, **selection.release_training)
        dataset = selection.load_dataset(data, conf.end_of_turn) if data else None
        if dataset:
            check_fields(settings, selection.required_fields(dataset), dataset.path)

        set_precision("float32")
        model = DAM(settings)
        model.compile(optimizer=selection.optimizer(training))
        step = assign(model, tensors, f"{checkpoint} does not fit {config}")
        facts = {"path": None, "name": "release", "eos_id": conf.end_of_turn, "unk_id": None}
        record = {
            "model": "dam",
            "recipe": None,
            "config": settings.to_json(),
            "training": training.to_json(),
            "dataset": dataset.metadata() if dataset else facts,
            "command": f"python -m colloquy.tools.import_release --checkpoint={checkpoint} --config={config}",
            "versions": {"keras": keras.__version__, "backend": keras.config.backend()},
        }
        run = Run.create(directory, record, dataset.vocabulary if dataset else None)
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
