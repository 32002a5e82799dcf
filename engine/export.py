"""Export of a run as a TensorFlow SavedModel that takes raw strings."""

import os
import pathlib
import pprint
from typing import Any

import keras

from colloquy.base.files import UserError, atomic_directory, seal
from colloquy.engine.devices import set_precision
from colloquy.engine.run import VOCABULARY


def export(
    task: Any, run: Any, out: str | os.PathLike, version: int = 1, **options: object
) -> pathlib.Path:
    """Writes a run's best weights as the SavedModel `out/version`, which needs TensorFlow alone.

    It computes in float32 whatever the run was trained in. Its endpoints are those of
    `tasks/<task>/export.py`. `checksums.json` has the SHA-256 of its files.

    Args:
        options: Some of `task.export_options`, as `decode`.

    Returns:
        Its directory.
    """
    path = pathlib.Path(out) / str(version)
    _check_directory(path)
    _check_exportable(task, run, options)

    set_precision("float32")
    model = run.load_model()
    vocabulary = run.vocabulary
    if len(vocabulary) != model.config.vocabulary_size:
        raise UserError(
            f"{run.path / VOCABULARY}: expected {model.config.vocabulary_size} words, as the model "
            f"has. Received: {len(vocabulary)}"
        )
    without_cudnn(model)
    archive = task.export_archive(run, model, vocabulary, **options)
    with atomic_directory(path) as directory:
        archive.write_out(directory, verbose=False)
        seal(directory)
    return path


def _check_directory(path):
    """Refuses a version that exists."""
    out = path.parent
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is not a directory")
    if path.exists():
        names = [file.name for file in out.iterdir()]
        used = [int(name) for name in names if name.isascii() and name.isdigit()]
        raise UserError(f"{path} exists: --version={max(used) + 1} is free")


def _check_exportable(task, run, options):
    backend = keras.config.backend()
    if backend != "tensorflow":
        raise UserError(f"export needs KERAS_BACKEND=tensorflow. Received: {backend}")
    for name, value in options.items():
        if name not in task.export_options:
            raise UserError(
                f"--{name} is not for models of {task.name}. Received: --{name}={value}"
            )
    if not (run.path / VOCABULARY).is_file():
        raise UserError(f"{run.path} cannot be exported: its dataset lacks {VOCABULARY}")


def example(task: Any, run: Any) -> str:
    """Returns Python lines that call the exported `model` with the first example of the run."""
    examples = run.examples()
    instance = examples[0]["instance"] if examples else task.export_instance
    call = task.export_call
    lines = [f"{call.result} = model.{call.endpoint}("]
    for name, value in task.export_inputs(instance).items():
        text = pprint.pformat(value, width=100)
        if "\n" in text:
            indented = text.replace("\n", "\n        ")
            text = f"\n        {indented}\n    "
        lines.append(f"    {name}=tf.constant({text}),")
    lines.append(")")
    shown = ", ".join(f"{call.result}[{output!r}]" for output in call.outputs)
    lines.append(f"print({shown})")
    return "\n".join(lines) + "\n"


def without_cudnn(model: keras.Model) -> Any:
    """Makes recurrent layers of a model compute without cuDNN.

    Its operations cannot run on a CPU once they are exported.
    """
    for layer in model._flatten_layers():  # Keras 3.15 has no public way to layers inside of layers
        if hasattr(layer, "use_cudnn"):
            layer.use_cudnn = False


def build_archive(endpoints: Any, tracked: Any) -> Any:
    """Builds a `keras.export.ExportArchive` of some models and lookup tables.

    Args:
        endpoints: `{name: (function, {input: axes})}`; the inputs are texts, of `axes` as in
            `ensure_shape`. The first endpoint is `serving_default` too.
        tracked: The models and tables.
    """
    import tensorflow as tf

    archive = keras.export.ExportArchive()
    for resource in tracked:
        archive.track(resource)
    for endpoint, (function, inputs) in endpoints.items():
        signature = []
        for name, axes in inputs.items():
            signature.append(tf.TensorSpec([None] * len(axes), tf.string, name=name))
        archive.add_endpoint(endpoint, function, signature)
    return archive


def ensure_shape(x: Any, name: str, axes: Any) -> Any:
    """Checks the shape of a tensor, a letter per axis, and returns it.

    The error names the input and its shape: `turns_must_have_shape_B_T`.
    """
    import tensorflow as tf

    # While it is traced, x has the shape of the signature, and a check would be left out. Called,
    # the signature checks nothing. So the check is of a tensor whose shape is not known.
    any_shape = tf.TensorShape(None)
    x = tf.raw_ops.PlaceholderWithDefault(input=x, shape=any_shape)
    message = f"{name}_must_have_shape_{'_'.join(axes)}"
    return tf.ensure_shape(x, [None] * len(axes), name=message)


def require(checks: Any, *tensors: Any) -> Any:
    """Returns the tensors, computed once the `checks` of `tf.debugging` have passed.

    Otherwise what needs them may fail first, with an error that names no input.
    """
    import tensorflow as tf

    with tf.control_dependencies(checks):
        return [tf.identity(tensor) for tensor in tensors]
