"""Export of a run as a TensorFlow SavedModel that takes raw strings.

`export` writes it and `call_lines` shows how to call it. The endpoints are defined in
`tasks/<task>/export.py`, see `engine.endpoints`.
"""

import pathlib
import pprint
from typing import Any

import keras

from colloquy.base.files import PathLike, UserError, atomic_directory, in_one_line, seal
from colloquy.engine.devices import set_precision
from colloquy.engine.run import VOCABULARY


def export(task: Any, run: Any, out: PathLike, version: int = 1, **options: object) -> pathlib.Path:
    """Writes a run's best weights as a SavedModel, which can be called with TensorFlow alone.

    The SavedModel computes in float32, whatever precision the run was trained in. The file
    `checksums.json` has the SHA-256 of the other files.

    Args:
        task: The `engine.task.Task` of the run.
        run: `engine.run.Run`.
        out: Directory of all versions; missing or with other versions.
        version: Number of a version that `out` does not have yet, at least 0.
        options: Options that `task.export_options` names, such as `decode`.

    Returns:
        The directory of the SavedModel, `out/version`.
    """
    if version < 0:
        raise UserError(f"version: expected a number of at least 0. Received: {version}")
    path = pathlib.Path(out) / str(version)
    _check_directory(path)
    _check_exportable(task, run, options)

    set_precision("float32")
    model = run.load_model()
    vocabulary = run.vocabulary
    if len(vocabulary) != model.config.vocabulary_size:
        raise UserError(
            f"{run.path / VOCABULARY}: expected {model.config.vocabulary_size} words, as many as "
            f"the model knows. Received: {len(vocabulary)}"
        )
    disable_cudnn(model)
    archive = task.export_archive(run, model, vocabulary, **options)
    with atomic_directory(path) as directory:
        _write(archive, directory, path)
        seal(directory)
    return path


def _write(archive, directory, path):
    """Writes an archive to a directory that becomes `path`."""
    import tensorflow as tf

    try:
        archive.write_out(directory, verbose=False)
    except tf.errors.OpError as error:  # TensorFlow raises it on a full disk, not an `OSError`
        raise UserError(f"{path} cannot be written: {in_one_line(error, length=200)}") from error


def _check_directory(path):
    """Raises a `UserError` if `out` is a file, or has the version already."""
    out = path.parent
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is not a directory")
    if path.exists():
        names = [file.name for file in out.iterdir()]
        versions = [int(name) for name in names if name.isascii() and name.isdigit()]
        raise UserError(f"{path} exists: --version={max(versions) + 1} is free")


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


def call_lines(task: Any, run: Any) -> str:
    """Returns Python lines that call the exported `model` with an example of the run."""
    examples = run.examples()
    instance = examples[0]["instance"] if examples else task.export_instance
    call = task.export_call
    lines = [f"outputs = model.{call.endpoint}("]
    for name, value in task.export_inputs(instance).items():
        text = pprint.pformat(value, width=100)
        if "\n" in text:
            indented = text.replace("\n", "\n        ")
            text = f"\n        {indented}\n    "
        lines.append(f"    {name}=tf.constant({text}),")
    lines.append(")")
    printed = ", ".join(f"outputs[{output!r}]" for output in call.outputs)
    lines.append(f"print({printed})")
    return "\n".join(lines) + "\n"


def disable_cudnn(model: keras.Model) -> None:
    """Makes the recurrent layers of a model compute without cuDNN.

    An exported graph with operations of cuDNN cannot run on a CPU.
    """
    # Keras 3.15 has no public method that lists layers inside of layers.
    for layer in model._flatten_layers():
        if hasattr(layer, "use_cudnn"):
            layer.use_cudnn = False
