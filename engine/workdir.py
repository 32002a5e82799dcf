"""The directory of a new run: made, and removed if its training fails before anything is saved."""

import contextlib
import pathlib

from colloquy.base.files import PathLike, UserError, check_output, unfinished_name
from colloquy.data.vocabulary import Vocabulary
from colloquy.engine.interrupts import LOCK
from colloquy.engine.run import Run
from colloquy.engine.run_files import CONFIG, VOCABULARY, is_written


def create_run(path: PathLike, record: dict, vocabulary: Vocabulary | None = None) -> Run:
    """Makes the directory of a new run, and writes `config.json` and vocabulary.

    Raises:
        UserError: The directory is in use.
    """
    run = prepare_directory(path)
    _remove_written(run)
    try:
        run.update(record)
        if vocabulary is not None:
            vocabulary.save(run.path / VOCABULARY)
    except BaseException:
        remove_run(run)
        raise
    return run


def prepare_directory(path: PathLike) -> Run:
    """Makes the directory of a new run.

    Raises:
        UserError: The directory holds something else than a run that was never saved.
    """
    run = Run(pathlib.Path(path), {})
    if run.path.exists() and not run.path.is_dir():
        raise UserError(f"{run.path} is not a directory: give another --workdir")
    check_output(run.path / CONFIG)
    if run.saved():
        raise UserError(
            f"{run.path} holds a trained run: give another --workdir, or --resume to continue"
        )
    for file in sorted(run.path.iterdir()):
        if not is_written(file):
            raise UserError(
                f"{run.path} holds {file.name!r:.80}, which train.py does not write: "
                "give another --workdir"
            )
    if any(run.path.glob("[!.]*")):
        Run.open(path)  # other programs have a config.json, too
    return run


def remove_run(run: Run) -> None:
    """Removes what a run wrote, and its directory if nothing else is in it."""
    # An error would hide the one that led here.
    with contextlib.suppress(OSError):
        _remove_written(run)
        (run.path / LOCK).unlink(missing_ok=True)
        run.path.rmdir()


def _remove_written(run):
    """Removes what a run writes, but for the lock.

    `config.json` is the last: if the process is killed, the rest is still known to be a run.
    """
    for file in list(run.path.iterdir()):
        if is_written(file) and file.name not in (CONFIG, LOCK):
            file.unlink()
    (run.path / CONFIG).unlink(missing_ok=True)


def remove_unfinished(run: Run) -> None:
    """Removes the files that a killed process was writing."""
    for file in list(run.path.iterdir()):
        if unfinished_name(file) and is_written(file):
            file.unlink()
