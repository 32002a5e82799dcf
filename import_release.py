"""Turns a checkpoint of DAM's original release (TensorFlow 1) into a run of ours.

    python import_release.py --checkpoint=output/model.ckpt.29 --config=conf.json --out=runs/released

The run has the release's weights, optimizer state and step: evaluate.py, export.py and
`train.py --resume` take it. `--config` is the release's `conf` dict (its main.py) as JSON.
"""

import dataclasses
import json
import pathlib

from absl import flags

import cli

FLAGS = flags.FLAGS
flags.DEFINE_string("checkpoint", None, "Path of the checkpoint without .index.", required=True)
flags.DEFINE_string("config", None, "JSON file of the release's conf dict.", required=True)
flags.DEFINE_string("out", None, "Run directory to make.", required=True)
flags.DEFINE_string("data", None, "Prepared dataset that it belongs to, for its vocabulary.")

NEEDED = ("max_turn_num", "max_turn_len", "_EOS_", "learning_rate", "batch_size")
NOT_WEIGHTS = ("loss/Variable", "loss/beta1_power", "loss/beta2_power")


def release_names(config):
    """The release's name of each variable of a DAM.

    Args:
        config: A `models.dam.DAMConfig`.

    Returns:
        `{path of our variable: name in the release's checkpoints}`.
    """

    def module(ours, theirs):
        names = {}
        for i in (1, 2):
            names[f"{ours}/W{i}"] = f"{theirs}/FFN_{i}/weights"
            names[f"{ours}/b{i}"] = f"{theirs}/FFN_{i}/bias"
        for norm, name in (
            ("attention_norm", "attention_layer_norm"),
            ("ffn_norm", "FFN_layer_norm"),
        ):
            names[f"{ours}/{norm}/gamma"] = f"{theirs}/{name}/scale"
            names[f"{ours}/{norm}/beta"] = f"{theirs}/{name}/bias"
        return names

    names = {"word_embedding/embeddings": "word_embedding"}
    if config.positional:
        names["positional/lambda"] = "positional/lambda"
    for level in range(config.levels):
        names |= module(f"self_attention_{level}", f"self_stack_{level}")
    if config.variant == "last":  # named by the last layer's index, and otherwise than in `net`
        crosses = {config.levels: (f"u_attentd_r_{config.levels - 1}", f"r_attend_u_{config.levels - 1}")}
    elif config.variant == "self":
        crosses = {}
    else:
        crosses = {l: (f"t_attend_r_{l}", f"r_attend_t_{l}") for l in range(config.levels + 1)}
    for level, (utterance, response) in crosses.items():
        names |= module(f"cross_match_{level}/utterance_attends", utterance)
        names |= module(f"cross_match_{level}/response_attends", response)
    for i in (0, 1):
        names[f"aggregation/conv_{i}/kernel"] = f"cnn_aggregation/filter_{i}"
        names[f"aggregation/conv_{i}/bias"] = f"cnn_aggregation/bias_{i}"
    return names | {"aggregation/W3": "loss/weights", "aggregation/b3": "loss/bias"}


def read_config(path):
    """The release's conf dict.

    Raises:
        UserError: where the file is missing, no JSON object, or lacks a key that is needed.
    """
    path = pathlib.Path(path)
    try:
        conf = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise cli.UserError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise cli.UserError(f"{path}: expected JSON. {error}") from error
    missing = [key for key in NEEDED if not isinstance(conf, dict) or key not in conf]
    if missing:
        raise cli.UserError(f"{path}: expected the release's conf with {', '.join(missing)}")
    return conf


def read_checkpoint(prefix):
    """All variables of a TensorFlow 1 checkpoint, `{name: array}`.

    Raises:
        UserError: where there is none.
    """
    import tensorflow as tf

    if not pathlib.Path(f"{prefix}.index").is_file():
        raise cli.UserError(f"{prefix}: no such checkpoint; expected {prefix}.index beside its data")
    try:
        reader = tf.train.load_checkpoint(str(prefix))
        return {name: reader.get_tensor(name) for name, _ in tf.train.list_variables(str(prefix))}
    except (tf.errors.OpError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise cli.UserError(f"{prefix}: the checkpoint cannot be read. {reason}") from error


def model_config(tensors, conf):
    """The `DAMConfig` of a checkpoint: what its variables show, and what only `conf` knows.

    Args:
        tensors: As of `read_checkpoint`.
        conf: As of `read_config`.

    Raises:
        UserError: where the variables are of none of the release's networks.
    """
    from models.dam import DAMConfig, release_settings

    for name in ("word_embedding", "cnn_aggregation/filter_0", "cnn_aggregation/filter_1"):
        if name not in tensors:
            raise cli.UserError(f"the checkpoint is none of DAM's release: it has no {name}")
    levels = len({n.split("/")[0] for n in tensors if n.startswith("self_stack_")})
    channels = tensors["cnn_aggregation/filter_0"].shape[3]
    if any(name.startswith("u_attentd_r_") for name in tensors):
        variant = "last"
    elif not any(name.startswith("t_attend_r_") for name in tensors):
        variant = "self"
    else:
        variant = "full" if channels == 2 * (levels + 1) else "cross"
    rows, dimension = tensors["word_embedding"].shape
    return DAMConfig(
        vocabulary_size=rows - 1,
        embedding_dim=dimension,
        max_turns=conf["max_turn_num"],
        max_words=conf["max_turn_len"],
        levels=levels,
        variant=variant,
        conv_filters=tuple(tensors[f"cnn_aggregation/filter_{i}"].shape[4] for i in (0, 1)),
        positional="positional/lambda" in tensors,
        **release_settings(variant),
    )


def import_checkpoint(checkpoint, config, out, data=None):
    """Makes a run of a checkpoint.

    Args:
        checkpoint: Its path without `.index`.
        config: JSON file of the release's conf dict.
        out: Run directory to make.
        data: Prepared dataset that it belongs to, or `None`.

    Returns:
        The `runs.Run`.

    Raises:
        UserError: on variables that are unknown, missing or of another shape, all in one sentence.
    """
    import keras
    import numpy as np

    from runs import Run, set_precision
    from tasks import selection
    from training import Fit

    conf = read_config(config)
    tensors = read_checkpoint(checkpoint)
    settings = model_config(tensors, conf)
    set_precision("float32")
    entry_config = dataclasses.asdict(settings)
    names = release_names(settings)
    training = selection.Training(**selection.RELEASE)
    fit = Fit(batch_size=conf["batch_size"], learning_rate=conf["learning_rate"])

    from models.dam import DAM

    model = DAM(settings)
    model.compile(optimizer=selection.optimizer(training, fit.learning_rate))
    model.optimizer.build(model.trainable_variables)
    slots = {variable.path.split("/")[-1]: variable for variable in model.optimizer.variables}
    wanted = {}
    for variable in model.trainable_variables:
        name, ours = names[variable.path], variable.path.replace("/", "_")
        wanted[name] = variable
        wanted[f"loss/{name}/Adam"] = slots[f"{ours}_momentum"]
        wanted[f"loss/{name}/Adam_1"] = slots[f"{ours}_velocity"]
    values, problems = {}, []
    for name, variable in wanted.items():
        if name not in tensors:
            problems.append(f"{name} is missing")
        elif tensors[name].shape != tuple(variable.shape):
            problems.append(f"{name} has shape {tensors[name].shape} where {tuple(variable.shape)} is expected")
        else:
            values[name] = tensors[name]
    problems += [f"{name} is unknown" for name in tensors if name not in {*wanted, *NOT_WEIGHTS}]
    if problems:
        raise cli.UserError(f"{checkpoint} does not fit {config}: {'; '.join(problems)}")
    step = int(np.asarray(tensors.get("loss/Variable", 0)))
    for name, value in values.items():
        wanted[name].assign(value)
    model.optimizer.iterations.assign(step)

    dataset = selection.load_dataset(data, conf["_EOS_"]) if data else None
    if dataset:
        selection.check_fits(settings, dataset)
    facts = {"path": None, "name": "release", "eos_id": conf["_EOS_"], "unk_id": None}
    run = Run.create(
        out,
        {
            "model": "dam",
            "settings": entry_config,
            "training": dataclasses.asdict(training),
            "fit": dataclasses.asdict(fit),
            "dataset": dataset.facts() if dataset else facts,
            "command": f"python import_release.py --checkpoint={checkpoint} --config={config}",
            "versions": {"keras": keras.__version__, "backend": keras.config.backend()},
        },
        dataset.vocabulary if dataset else None,
    )
    run.save_best(model)
    position = {"step": step, "seconds": 0.0, "best": -1.0, "waited": 0}
    run.save_state(model, position)
    return run


def main():
    run = import_checkpoint(FLAGS.checkpoint, FLAGS.config, FLAGS.out, FLAGS.data)
    print(f"{run.path}: the release's checkpoint as a run")


if __name__ == "__main__":
    cli.run(main)
