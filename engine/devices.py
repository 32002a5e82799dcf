"""How models compute: their precision, XLA and the seed."""

import keras

from colloquy.base import backend, machine, runtime
from colloquy.base.files import UserError
from colloquy.data.batching import XLA_MULTIPLE


def has_gpu() -> bool:
    """True if a GPU computes."""
    if keras.config.backend() == "torch":  # Keras does not list torch's devices
        import torch

        return torch.cuda.is_available()
    for device in keras.distribution.list_devices():
        name = device.lower()
        if "gpu" in name or "cuda" in name:
            return True
    return False


# === Precision ===

PRECISIONS = ("auto", "float32", "bfloat16", "float16")


def choose_precision(precision: str, gains: bool = True) -> str:
    """Chooses the precision to compute in, and warns once if it is slow here.

    Args:
        precision: One of `PRECISIONS`; any but `"auto"` is returned as it is.
        gains: Whether bfloat16 makes the model faster; if not, `"auto"` is float32.
    """
    if precision not in PRECISIONS:
        raise UserError(f"precision: expected {', '.join(PRECISIONS)}. Received: {precision}")
    gpu = has_gpu()
    is_fast_in_bfloat16 = gpu or machine.has_amx()
    if precision == "auto":
        return "bfloat16" if gains and is_fast_in_bfloat16 else "float32"
    if precision == "bfloat16" and not is_fast_in_bfloat16:
        runtime.announce(
            "warning: bfloat16 is slower than float32 on a CPU without AMX; "
            "--precision=auto avoids it"
        )
    if precision == "float16" and not gpu:
        runtime.announce(
            "warning: float16 is for GPUs; a CPU emulates most of it, several times slower than "
            "float32"
        )
    return precision


def set_precision(precision: str) -> None:
    """Makes layers built from now on compute in `float32`, `bfloat16` or `float16`.

    Their weights stay float32.
    """
    device = "GPU" if has_gpu() else "CPU"
    where = f"{keras.config.backend()} on a {device}"
    runtime.announce(f"runtime: {runtime.describe()}; {where}, computing in {precision}")
    policy = "float32" if precision == "float32" else f"mixed_{precision}"
    keras.config.set_dtype_policy(policy)


# === XLA and the seed ===


def choose_xla(model: keras.Model, jit: str) -> int:
    """Makes a model compile by XLA or not.

    Args:
        jit: `on`, `off` or `auto`. `auto` is on with a GPU, and with JAX, which without XLA
            computes op by op.

    Returns:
        The `length_multiple` of `engine.task.Task.collate`.
    """
    if jit == "auto":
        model.jit_compile = keras.config.backend() == "jax" or has_gpu()
    else:
        model.jit_compile = jit == "on"
    return XLA_MULTIPLE if model.jit_compile else 4


def set_seed(seed: int) -> None:
    """Seeds every random number generator, as Keras does."""
    if keras.config.backend() == "tensorflow":
        keras.utils.set_random_seed(seed)
        return
    # Keras seeds an installed TensorFlow with every backend; loading it would take seconds.
    with backend.without("tensorflow"):
        keras.utils.set_random_seed(seed)
