"""The weights of a run, `best.weights.h5`, and the state of its training, `last.npz`."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import pathlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from colloquy.base.files import CHECKSUMS, UserError, atomic_file
from colloquy.data.json_files import read_json, write_json
from colloquy.engine.records import TrainState
from colloquy.engine.run_files import BEST, CONFIG
from colloquy.engine.untrusted_weights import check_weights

if TYPE_CHECKING:
    import keras


def write_weights(file: pathlib.Path, model: keras.Model) -> None:
    """Writes the weights of a model, from memory: on a full disk HDF5 would end the process.

    The checksum of the new weights is added before they replace the former ones, and those of the
    former ones stay: if the process ends in between, the former weights still match theirs.
    """
    _check_run(file)
    content = _WeightsInMemory()
    model.save_weights(content)
    checksums = read_json(file.parent / CHECKSUMS) if (file.parent / CHECKSUMS).exists() else {}
    digest = hashlib.sha256(content.getbuffer()).hexdigest()
    with atomic_file(file, "wb") as out:
        out.write(content.getbuffer())
        out.flush()
        write_json(file.parent / CHECKSUMS, {BEST: [*checksums.get(BEST, [])[-9:], digest]})


def _check_run(file):
    """Refuses to write into a run whose directory somebody removed."""
    if not file.parent.is_dir():
        raise UserError(f"{file} cannot be written: {file.parent} is gone")


class _WeightsInMemory(io.BytesIO):
    """A file for `keras.Model.save_weights`, which asks for the ending of its name."""

    def __str__(self):
        return BEST


def find_not_finite(model: keras.Model) -> str | None:
    """The path of the first weights with NaN or infinity; `None` if a model has none."""
    for weight in model.weights:
        if not np.isfinite(np.asarray(weight)).all():
            return weight.path
    return None


def write_state(file: pathlib.Path, model: keras.Model, state: TrainState) -> None:
    """Writes every variable of a compiled model and its optimizer, and the `TrainState`."""
    _check_run(file)
    arrays: dict[str, Any] = {}
    for number, variable in enumerate(_variables(model)):
        arrays[f"v/{number}"] = np.asarray(variable)
    with atomic_file(file, "wb") as out:
        np.savez(out, state=json.dumps(state.to_json()), **arrays)


def restore_state(file: pathlib.Path, model: keras.Model) -> TrainState:
    """Loads a file of `write_state` into a compiled model, bit by bit."""
    variables = _variables(model)
    with _opened_state(file) as (saved, state):
        saved_variables = len(saved.files) - 1
        if saved_variables != len(variables):
            raise ValueError(f"{saved_variables} variables, not {len(variables)}")
        for number, variable in enumerate(variables):
            variable.assign(saved[f"v/{number}"])
    return state


def read_state(file: pathlib.Path) -> TrainState:
    """The `TrainState` of a file of `write_state`."""
    with _opened_state(file) as (_, state):
        return state


@contextlib.contextmanager
def _opened_state(file):
    """Yields the arrays of a file and the `TrainState`."""
    with fitting(file):
        check_weights(file.parent, file.name)
        with np.load(file, allow_pickle=False) as saved:
            state = json.loads(str(saved["state"]))
            yield saved, TrainState.of(state)


@contextlib.contextmanager
def fitting(file: pathlib.Path) -> Iterator[None]:
    """Turns the errors of building a model and of reading weights or a state into a `UserError`."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # of a damaged file Keras, NumPy and h5py raise anything
        reason = (str(error) or type(error).__name__).splitlines()[0][:200]
        raise UserError(
            f"{file}: the weights do not fit {CONFIG} or are damaged. {reason}"
        ) from error


def _variables(model):
    """Every variable that the next step depends on, dropout's random state included."""
    if not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)
    return [*model.variables, *model.optimizer.variables]
