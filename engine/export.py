"""Export of a run as a TensorFlow SavedModel that takes raw strings."""

import pathlib
import pprint

import keras

from colloquy.base.files import UserError, atomic_directory, seal
from colloquy.engine.devices import set_precision
from colloquy.engine.run import VOCABULARY


def export(task, run, out, version=1, **options):
    """Writes a run's best weights as the SavedModel `out/version`, which needs TensorFlow alone;
    returns its directory.

    It computes in float32 whatever the run was trained in. Its endpoints are those of
    `tasks/<task>/export.py`; `options` are some of `task.export_options`, as `decode`.
    `checksums.json` has the SHA-256 of its files.
    """
    out, path = pathlib.Path(out), pathlib.Path(out) / str(version)
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is no directory")
    if path.exists():
        used = [int(p.name) for p in out.iterdir() if p.name.isascii() and p.name.isdigit()]
        raise UserError(f"{path} exists: --version={max(used) + 1} is free")
    if (backend := keras.config.backend()) != "tensorflow":
        raise UserError(f"export needs KERAS_BACKEND=tensorflow. Received: {backend}")
    for name, value in options.items():
        if name not in task.export_options:
            raise UserError(
                f"--{name} is not for models of {task.name}. Received: --{name}={value}"
            )
    if not (run.path / VOCABULARY).is_file():
        raise UserError(f"{run.path} cannot be exported: its dataset lacks {VOCABULARY}")
    set_precision("float32")
    model, vocabulary = run.load_model(), run.vocabulary
    if len(vocabulary) != model.config.vocabulary_size:
        expected = f"expected {model.config.vocabulary_size} words, as the model has"
        raise UserError(f"{run.path / VOCABULARY}: {expected}. Received: {len(vocabulary)}")
    without_cudnn(model)
    archive = task.export_archive(run, model, vocabulary, **options)
    with atomic_directory(path) as directory:
        archive.write_out(directory, verbose=False)
        seal(directory)
    return path


def example(task, run):
    """Python lines that call the exported `model` with an example of the run."""
    instance = next((example["instance"] for example in run.examples()), task.export_instance)
    call, outputs = task.export_call
    lines = [f"{call}("]
    for name, value in task.export_inputs(instance).items():
        shown = pprint.pformat(value, width=100).replace("\n", "\n        ")
        shown = f"\n        {shown}\n    " if "\n" in shown else shown
        lines.append(f"    {name}=tf.constant({shown}),")
    name = call.partition(" ")[0]
    return "\n".join(
        [*lines, ")", f"print({', '.join(f'{name}[{output!r}]' for output in outputs)})", ""]
    )


def without_cudnn(model):
    """Makes recurrent layers of a model compute without cuDNN, whose operations cannot run on a CPU
    once exported.
    """
    for layer in model._flatten_layers():  # Keras 3.15 has no public way to layers inside of layers
        if hasattr(layer, "use_cudnn"):
            layer.use_cudnn = False


def build_archive(endpoints, tracked):
    """A `keras.export.ExportArchive` of some models and lookup tables.

    `endpoints` are `{name: (function, {input: axes})}`; the inputs are texts, of `axes` as in
    `ensure_shape`. The first endpoint is `serving_default` too.
    """
    import tensorflow as tf

    archive = keras.export.ExportArchive()
    for each in tracked:
        archive.track(each)
    for endpoint, (function, inputs) in endpoints.items():
        signature = [
            tf.TensorSpec([None] * len(axes), tf.string, name=name) for name, axes in inputs.items()
        ]
        archive.add_endpoint(endpoint, function, signature)
    return archive


def ensure_shape(x, name, axes):
    """The tensor `x`, or an error that names the input and its shape, a letter per axis:
    `turns_must_have_shape_B_T`.

    A signature's function checks no shapes, and tracing relies on the signature, so the static
    shape is dropped first.
    """
    import tensorflow as tf

    x = tf.raw_ops.PlaceholderWithDefault(input=x, shape=tf.TensorShape(None))
    return tf.ensure_shape(x, [None] * len(axes), name=f"{name}_must_have_shape_{'_'.join(axes)}")


def require(checks, *tensors):
    """The tensors, computed once the `checks` of `tf.debugging` have passed: otherwise what needs
    them may fail first, with an error that names no input."""
    import tensorflow as tf

    with tf.control_dependencies(checks):
        return [tf.identity(each) for each in tensors]
