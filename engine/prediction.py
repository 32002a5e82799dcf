"""Batch inference: JSON lines in, JSON lines out, one per example; answered examples are not computed again."""

import itertools
import json
import os
import pathlib
import sys

from base.files import UserError

BATCH = 32  # lines that are answered together


def predict_lines(predictor, source, out, explain=False):
    """Answers a file of examples, line by line.

    A line that is malformed gets `{"error": one sentence}`, and the others go on. Interrupted, it goes on from the
    lines that `out` has when it is called again.

    Args:
        predictor: A `engine.predictor.Predictor`.
        source: File of JSON objects, one per line, as the predictor's `fields` say; `-`: standard input.
        out: File to write, one line for each of `source`; `-`: standard output.
        explain: Answers also say what the model attended to.

    Returns:
        How many lines were answered now, and how many of these are errors.

    Raises:
        UserError: where `source` cannot be read or `out` has more lines than it.
    """
    done = _lines_done(out)
    answered = errors = 0
    with _opened(source, "rb", sys.stdin) as lines, _opened(out, "ab", sys.stdout) as written:
        if sum(1 for _ in itertools.islice(lines, done)) < done:
            raise UserError(f"{out} has {done:,} lines already, more than {source}: give another file")
        numbers = itertools.count(done + 1)
        while chunk := list(itertools.islice(lines, BATCH)):
            for answer in _answers(predictor, chunk, numbers, explain):
                errors += "error" in answer
                written.write(json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
            written.flush()
            answered += len(chunk)
    return answered, errors


def _answers(predictor, chunk, numbers, explain):
    """An answer, or an error, for each line."""
    instances = [_parsed(line, number) for line, number in zip(chunk, numbers, strict=False)]
    real = [instance for instance in instances if not isinstance(instance, UserError)]
    try:
        found = iter(predictor.predict(real) if real and not explain else [])
        alone = explain
    except UserError:  # one of them is at fault: each is asked by itself
        alone = True
    for instance in instances:
        if isinstance(instance, UserError):
            yield {"error": str(instance)}
        elif alone:
            try:
                yield predictor.explain(instance) if explain else predictor.predict([instance])[0]
            except UserError as error:
                yield {"error": str(error)}
        else:
            yield next(found)


def _parsed(line, number):
    try:
        return json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        return UserError(f"line {number}: expected a JSON object. {str(error)[:120]}")


def _lines_done(out):
    """How many whole lines a file has; half a line at its end, of a call that was killed, is cut off."""
    path = pathlib.Path(out)
    if out == "-" or not path.exists():
        return 0
    with open(path, "rb+") as file:
        done = end = 0
        for line in file:
            if line.endswith(b"\n"):
                done, end = done + 1, end + len(line)
        os.truncate(path, end)
    return done


def _opened(path, mode, standard):
    if path == "-":
        return open(standard.fileno(), mode.replace("a", "w"), closefd=False)
    try:
        return open(path, mode)
    except OSError as error:
        raise UserError(f"{path} cannot be opened: {error.strerror}") from error
