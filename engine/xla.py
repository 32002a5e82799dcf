"""Whether a model is compiled by XLA."""

import keras

from engine.run import has_gpu

JITS = ("auto", "on", "off")


def choose_xla(model, jit, possible=True):
    """Makes a model compile by XLA or not, in training as in evaluation.

    Args:
        model: A `keras.Model`.
        jit: `on`, `off`, or `auto`: on with a GPU and with JAX, which would else compute op by op; off on a CPU.
        possible: `False` where the devices of `engine.devices` cannot.

    Returns:
        What lengths of batches are rounded up to a multiple of: XLA compiles every shape anew, so it is larger there.
    """
    xla = possible and (jit == "on" or (jit == "auto" and (keras.config.backend() == "jax" or has_gpu())))
    model.jit_compile = xla
    return 16 if xla else 4
