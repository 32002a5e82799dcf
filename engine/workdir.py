"""The directory of a run: made, cleaned after a killed process, removed if nothing was saved.

Also the command that resumes it.
"""

import contextlib
import pathlib

from colloquy.base.files import PathLike, UserError, check_output, unfinished_name
from colloquy.data.vocabulary import Vocabulary
from colloquy.engine.interrupts import LOCK
from colloquy.engine.run import Run
from colloquy.engine.run_files import CONFIG, VOCABULARY, is_written


def create_run(path: PathLike, record: dict, vocabulary: Vocabulary | None = None) -> Run:
    """Makes the directory of a new run, and writes `config.json` and vocabulary.

    Files of a run that was never saved are removed first. After an error, nothing is left.

    Raises:
        UserError: See `prepare_directory`.
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
    """Makes the directory of a new run, or checks the existing one. It removes nothing.

    Raises:
        UserError: The directory cannot be written, or holds anything but a run that was never
            saved.
    """
    run = Run(pathlib.Path(path), {})
    if run.path.exists() and not run.path.is_dir():
        raise UserError(f"{run.path} is not a directory: give another --workdir")
    check_output(run.path / CONFIG)  # makes the directory, too
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
    # Other programs write a `config.json`, too: `Run.open` refuses one that is not of a run.
    if any(run.path.glob("[!.]*")):
        Run.open(path)
    return run


def remove_run(run: Run) -> None:
    """Removes what a run wrote, and its directory if nothing else is in it."""
    # The caller handles an exception, which an error here would hide.
    with contextlib.suppress(OSError):
        _remove_written(run)
        (run.path / LOCK).unlink(missing_ok=True)
        run.path.rmdir()


def _remove_written(run):
    """Removes the files that a run writes, except the lock.

    `config.json` is the last: if the process is killed, `prepare_directory` still knows the rest as
    a run.
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


def how_to_resume(run: Run) -> str:
    """The command that continues a run, for messages."""
    state = run.saved_state()
    if state is None:
        return "nothing was saved before, so nothing is kept"
    return f"train.py --resume --workdir={run.path} continues from step {state.step}"
