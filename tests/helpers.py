"""What several test files build, change and call."""

import keras
import numpy as np


def to_numpy(x):
    """A tensor as NumPy; float16 and bfloat16 as float32, which holds them exactly."""
    half = keras.backend.standardize_dtype(x.dtype) in ("float16", "bfloat16")
    return keras.ops.convert_to_numpy(keras.ops.cast(x, "float32") if half else x)


# === Layers ===


def rebuilt(layer):
    """A second layer from the first one's configs, with its weights."""
    again = type(layer).from_config(layer.get_config())
    again.build_from_config(layer.get_build_config())
    again.set_weights(layer.get_weights())
    return again


def randomised(layer, seed, size=0.5):
    """Gives every float weight random values; returns the layer. Tables of ids stay."""
    rng = np.random.default_rng(seed)
    for weight in layer.weights:
        if weight.dtype == "float32":
            weight.assign(rng.normal(0.0, size, weight.shape))
    return layer


def set_random_weights(layer, seed):
    """Gives every weight random values of a size that lets outputs vary; returns the layer."""
    rng = np.random.default_rng(seed)
    for weight in layer.weights:
        shape = tuple(weight.shape)
        fan_in = np.prod(shape[:-1]) if len(shape) > 1 else 4.0
        fan_in = 1.0 if weight.name == "embeddings" else fan_in
        centre = 1.0 if weight.name == "gamma" else 0.0
        weight.assign(centre + rng.normal(size=shape) / np.sqrt(fan_in))
    return layer
