"""Checkpoints of DAM's original release (TensorFlow 1): their variables, sizes and names."""

import pathlib
from typing import Annotated

from pydantic import Field

from colloquy.base.config import Config, Positive
from colloquy.base.files import UserError

STEP = "loss/Variable"
BETA_POWERS = ("loss/beta1_power", "loss/beta2_power")
"""Variables that are not weights. The powers of Adam's betas follow from the step."""
EMBEDDING = "word_embedding"
FILTERS = ("cnn_aggregation/filter_0", "cnn_aggregation/filter_1")
"""Variables of each of the release's networks. Their shapes give the sizes of the model."""
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
"""The variables of an attentive module: our name, and the release's."""
LONGEST = 1_000
"""Most turns, and most words of a turn. A model of larger sizes would fill the memory."""
Length = Annotated[int, Field(ge=1, le=LONGEST)]


class ReleaseConf(Config, extra="ignore"):
    """The entries of the release's conf that are not visible in its variables."""

    max_turn_num: Length
    max_turn_len: Length
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
    # The reader raises all of these for damaged files.
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
    levels = len({name.split("/")[0] for name in tensors if name.startswith("self_stack_")})
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
    """Tells the variant by its modules of cross-attention, see `_release_modules`."""
    if any(name.startswith("u_attentd_r_") for name in tensors):
        return "last"
    if not any(name.startswith("t_attend_r_") for name in tensors):
        return "self"
    # A matrix of matches is an input channel of the first filter. The full model has two for each
    # level: of self-attention and of cross-attention.
    return "full" if tensors[FILTERS[0]].shape[3] == 2 * (levels + 1) else "cross"


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
        # The release spells these modules in another way, and counts them from the last layer.
        cross = f"cross_match_{config.levels}"
        modules[f"{cross}/utterance_attends"] = f"u_attentd_r_{config.levels - 1}"
        modules[f"{cross}/response_attends"] = f"r_attend_u_{config.levels - 1}"
        return modules
    for level in range(config.levels + 1):
        modules[f"cross_match_{level}/utterance_attends"] = f"t_attend_r_{level}"
        modules[f"cross_match_{level}/response_attends"] = f"r_attend_t_{level}"
    return modules
