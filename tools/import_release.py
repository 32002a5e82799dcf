"""Turns a checkpoint of DAM's original release (TensorFlow 1) into a run of ours.

    python -m tools.import_release --checkpoint=output/model.ckpt.29 --config=conf.json --out=runs/released

The run has the release's weights, optimizer state and step: evaluate.py, export.py and
`train.py --resume` take it. `--config` is the release's `conf` dict (its main.py) as JSON.
"""

import pathlib

from absl import flags

from base import cli
from base.files import UserError, atomic_directory
from data.text_files import read_json

FLAGS = flags.FLAGS

NEEDED = ("max_turn_num", "max_turn_len", "_EOS_", "learning_rate", "batch_size")
"""Keys of the release's conf."""
STEP, BETA_POWERS = "loss/Variable", ("loss/beta1_power", "loss/beta2_power")
"""Variables that are no weights; the step says what the powers of Adam's betas are."""
EMBEDDING, FILTERS = "word_embedding", ("cnn_aggregation/filter_0", "cnn_aggregation/filter_1")
"""Variables that all of the release's networks have, and whose shapes say how large they are."""


def release_names(config):
    """The release's name of each variable of a DAM.

    Args:
        config: A `models.dam.DAMConfig`.

    Returns:
        `{path of our variable: name in the release's checkpoints}`.
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
        for norm, name in (("attention_norm", "attention_layer_norm"), ("ffn_norm", "FFN_layer_norm")):
            names[f"{ours}/{norm}/gamma"] = f"{theirs}/{name}/scale"
            names[f"{ours}/{norm}/beta"] = f"{theirs}/{name}/bias"
    for i, filters in enumerate(FILTERS):
        names[f"aggregation/conv_{i}/kernel"] = filters
        names[f"aggregation/conv_{i}/bias"] = f"cnn_aggregation/bias_{i}"
    return names | {"aggregation/W3": "loss/weights", "aggregation/b3": "loss/bias"}


def read_config(path):
    """The release's conf dict.

    Raises:
        UserError: where the file is missing, no JSON object, or lacks a number that is needed.
    """
    conf = read_json(path)
    if not isinstance(conf, dict):
        raise UserError(f"{path}: expected the release's conf, a JSON object. Received: {type(conf).__name__}")
    missing = [key for key in NEEDED if key not in conf]
    if missing:
        raise UserError(f"{path}: expected the release's conf with {', '.join(missing)}")
    for key in NEEDED:
        kinds = (int, float) if key == "learning_rate" else int
        if isinstance(conf[key], bool) or not isinstance(conf[key], kinds) or conf[key] <= 0:
            kind = "number" if key == "learning_rate" else "whole number"
            raise UserError(f"{path}: expected {key} to be a positive {kind}. Received: {conf[key]!r}")
    return conf


def read_checkpoint(prefix):
    """All variables of a TensorFlow 1 checkpoint, `{name: array}`.

    Raises:
        UserError: where there is none.
    """
    import tensorflow as tf

    if not pathlib.Path(f"{prefix}.index").is_file():
        raise UserError(f"{prefix}: no such checkpoint; expected {prefix}.index beside its data")
    try:
        reader = tf.train.load_checkpoint(str(prefix))
        return {name: reader.get_tensor(name) for name in sorted(reader.get_variable_to_shape_map())}
    except (tf.errors.OpError, RuntimeError, IndexError, ValueError) as error:  # the reader has its own mind
        reason = str(error).splitlines()[0]
        raise UserError(f"{prefix}: the checkpoint cannot be read. {reason}") from error


def model_config(tensors, conf):
    """The `DAMConfig` of a checkpoint: what its variables show, and what only `conf` knows.

    Args:
        tensors: As of `read_checkpoint`.
        conf: As of `read_config`.

    Raises:
        UserError: where the variables are of none of the release's networks.
    """
    from models.dam import DAMConfig, release_settings

    for name, axes in ((EMBEDDING, 2), *((name, 5) for name in FILTERS)):
        if name not in tensors or tensors[name].ndim != axes:
            raise UserError(f"the checkpoint is none of DAM's release: it has no {name} with {axes} axes")
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
        max_turns=conf["max_turn_num"],
        max_words=conf["max_turn_len"],
        levels=levels,
        variant=variant,
        conv_filters=tuple(tensors[name].shape[4] for name in FILTERS),
        positional="positional/lambda" in tensors,
        **release_settings(variant),
    )


def assign(model, tensors, wrong):
    """Sets a compiled model's weights, Adam's two averages of each, and the step.

    Args:
        model: A `models.dam.DAM`; unchanged where the variables do not fit.
        tensors: As of `read_checkpoint`.
        wrong: What a message begins with.

    Returns:
        The step.

    Raises:
        UserError: on variables that are unknown, missing or of another shape, all in one sentence.
    """
    model.optimizer.build(model.trainable_variables)
    slots = {variable.path.split("/")[-1]: variable for variable in model.optimizer.variables}
    names, wanted = release_names(model.config), {}
    for variable in model.trainable_variables:
        name, ours = names[variable.path], variable.path.replace("/", "_")
        wanted[name] = variable
        wanted[f"loss/{name}/Adam"] = slots[f"{ours}_momentum"]
        wanted[f"loss/{name}/Adam_1"] = slots[f"{ours}_velocity"]
    problems = []
    for name, variable in wanted.items():
        expected = tuple(variable.shape)
        if name not in tensors:
            problems.append(f"{name} is missing")
        elif tensors[name].shape != expected:
            problems.append(f"{name} has shape {tensors[name].shape} where {expected} is expected")
    problems += [f"{name} is unknown" for name in tensors if name not in {*wanted, STEP, *BETA_POWERS}]
    if problems:
        raise UserError(f"{wrong}: {'; '.join(problems)}")
    for name, variable in wanted.items():
        variable.assign(tensors[name])
    step = int(tensors.get(STEP, 0))
    model.optimizer.iterations.assign(step)
    return step


def import_checkpoint(checkpoint, config, out, data=None):
    """Makes a run of a checkpoint.

    Args:
        checkpoint: Its path without `.index`.
        config: JSON file of the release's conf dict.
        out: Run directory to make.
        data: Prepared dataset that it belongs to, or `None`.

    Returns:
        The `engine.run.Run`.

    Raises:
        UserError: where an input is at fault; nothing is left behind.
    """
    import keras  # TensorFlow takes seconds to load

    from engine.run import Run, set_precision
    from models.dam import DAM
    from tasks import TASKS

    selection = TASKS["selection"]
    with atomic_directory(out) as directory:  # first, so that one in use is refused at once
        conf = read_config(config)
        tensors = read_checkpoint(checkpoint)
        settings = model_config(tensors, conf)
        training = selection.Training(
            batch_size=conf["batch_size"],
            learning_rate=conf["learning_rate"],
            precision="float32",
            **selection.release_training,
        )
        dataset = selection.load_dataset(data, conf["_EOS_"]) if data else None
        if dataset:
            selection.check_fits(settings, dataset)

        set_precision("float32")
        model = DAM(settings)
        model.compile(optimizer=selection.optimizer(training))
        step = assign(model, tensors, f"{checkpoint} does not fit {config}")
        facts = {"path": None, "name": "release", "eos_id": conf["_EOS_"], "unk_id": None}
        run_config = {
            "model": "dam",
            "recipe": None,
            "config": settings.to_json(),
            "training": training.to_json(),
            "dataset": dataset.facts() if dataset else facts,
            "command": f"python -m tools.import_release --checkpoint={checkpoint} --config={config}",
            "versions": {"keras": keras.__version__, "backend": keras.config.backend()},
        }
        run = Run.create(directory, run_config, dataset.vocabulary if dataset else None)
        run.save_best(model)
        run.save_state(model, {"step": step, "seconds": 0.0, "best": -1.0, "waited": 0})
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
