"""Lets every reader loose on hostile files: nothing may run, crash, hang, take too much memory or end in a traceback.

    python -m tools.fuzz --out=results/benchmarks/fuzz.json

Each input is read in a process of its own, with a limit of memory (ten times the input and 200 MB above what the
process has before; of a compressed input counts what it may hold), a limit of processor time, and a canary: a file that
only code in the input would make. An input is accepted or refused by a `UserError` of one short line; anything else is
a fault. What prepare.py makes of a mutated corpus must be read again.
"""

import collections
import contextlib
import faulthandler
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import warnings

from absl import flags

from base.files import UserError, atomic_file
from data import pickles
from data.corpora import CORPORA
from data.text_files import largest_content
from data.vocabulary import Vocabulary
from tools import hostile
from tools.fuzz_targets import READERS, SQUAD, TASKS, prepared, write_corpus

SECONDS = 20
"""Of processor time for an input."""
MEMORY = 200 * 10**6, 10
"""Bytes that reading may take, and so many times the input."""
FAULTS = ("executed", "crashed", "hung", "memory", "uncaught")
LONGEST = 600
"""Characters of a message."""


# === One input ===


def attempt(work, size, canary):
    """Reads an input in a process of its own.

    Args:
        work: Function without arguments.
        size: Of the input, in bytes.
        canary: Path of the file that only code in the input makes.

    Returns:
        `"accepted"`, `"refused"` or one of `FAULTS`, and what the process said last.
    """
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads: the child starts none and ends by itself
        child = os.fork()
    if not child:
        _in_child(work, size, writer)
    os.close(writer)
    with open(reader, "rb") as pipe:
        said = pipe.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    if canary.exists():
        canary.unlink()
        return "executed", said
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return ("hung" if number == signal.SIGXCPU else "crashed"), signal.Signals(number).name
    outcome, _, message = said.partition(" ")
    return outcome or "crashed", message


def _in_child(work, size, writer):
    faulthandler.disable()  # a crash is a finding: nobody needs its stack
    try:
        with open(os.devnull, "w") as nothing:
            os.dup2(nothing.fileno(), 1)
            os.dup2(nothing.fileno(), 2)
        pages = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + MEMORY[0] + MEMORY[1] * size
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        said = _outcome(work)
    except BaseException as error:
        said = f"uncaught {type(error).__name__}"
    os.write(writer, said.encode(errors="replace")[:900])
    os._exit(0)


def _outcome(work):
    try:
        value = work()
        for part in value if isinstance(value, list | tuple) else [value]:
            str(part)[:10_000].encode()
        return "accepted"
    except UserError as error:
        message = str(error)
        if "MemoryError" in message:
            return f"memory {message}"
        if len(message) > LONGEST or "\n" in message:
            return f"uncaught a message of {len(message)} characters: {message}"
        return f"refused {message}"
    except MemoryError:
        return "memory"
    except BaseException as error:
        return f"uncaught {type(error).__name__}: {error}"


# === Kinds of inputs: each gives what to do, and the size of the input ===


def pickle_input(rng, place, canary):
    """A hostile pickle for the reader of pickles."""
    path = place / "data.pkl"
    path.write_bytes(hostile.hostile_pickle(rng, canary))
    return lambda: pickles.load(path), path.stat().st_size


def corpus_input(rng, place, canary):
    """A mutated text for its reader; one in ten a whole corpus for prepare.py, whose result must be read again."""
    if rng.random() < 0.1:
        return _corpus_to_prepare(rng, place)
    text, reader = rng.choice(READERS)
    plain = text if isinstance(text, bytes) else text.encode()
    content = hostile.hostile_json(rng, text) if text is SQUAD else hostile.mutated(rng, plain)
    packed = rng.random() < 0.2 and plain is not text and reader != Vocabulary.load
    path = place / ("text.gz" if packed else "text")
    path.write_bytes(hostile.compressed(rng, content) if packed else content)
    return lambda: reader(path), largest_content(path) if packed else path.stat().st_size


def _corpus_to_prepare(rng, place):
    corpus = rng.choice(list(CORPORA))
    write_corpus(corpus, place)
    path = rng.choice(sorted((place / "raw").iterdir()))
    content = path.read_bytes()
    path.write_bytes(
        hostile.hostile_json(rng, content.decode()) if path.suffix == ".json" else hostile.mutated(rng, content)
    )

    def work():
        out = prepared(corpus, place)
        try:
            TASKS[corpus][1].load_dataset(out)
        except UserError as error:
            raise AssertionError(f"what prepare.py wrote cannot be read: {error}") from error

    return work, sum(file.stat().st_size for file in (place / "raw").iterdir())


def dataset_input(rng, place, canary, samples):
    """A prepared dataset of which one file is hostile."""
    corpus = rng.choice(list(samples))
    out = place / "out"
    shutil.copytree(samples[corpus], out)
    path = rng.choice(sorted(out.iterdir()))
    if path.suffix == ".pkl" and rng.random() < 0.7:
        value = hostile.hostile_value(rng, pickles.load(path))
        with contextlib.suppress(TypeError):  # a value that only Python's own pickler writes
            path.write_bytes(hostile.dumped(rng, value))
    elif path.suffix == ".pkl":
        path.write_bytes(hostile.hostile_pickle(rng, canary))
    elif path.suffix == ".json":
        path.write_bytes(hostile.hostile_json(rng, path.read_text(encoding="utf-8")))
    else:
        path.write_bytes(hostile.mutated(rng, path.read_bytes()))
    size = sum(file.stat().st_size for file in out.iterdir())
    return lambda: TASKS[corpus][1].load_dataset(out), size


def fuzz(counts, seed, report=print):
    """Reads so many inputs of each kind.

    Args:
        counts: `{"pickles": inputs, "datasets": inputs, "corpora": inputs}`.
        seed: Of the inputs: input `i` of a kind is the same in every run.
        report: Called with a line for each fault.

    Returns:
        `{kind: {outcome: inputs}}`.
    """
    found = {}
    with tempfile.TemporaryDirectory(prefix="fuzz-") as root:
        root = pathlib.Path(root)
        samples = {}
        for corpus in ("smn", "babi-dialog", "squad", "conversations"):
            write_corpus(corpus, root / corpus)
            samples[corpus] = prepared(corpus, root / corpus)
        kinds = {
            "pickles": pickle_input,
            "datasets": lambda *given: dataset_input(*given, samples),
            "corpora": corpus_input,
        }
        for kind, count in counts.items():
            outcomes = collections.Counter({outcome: 0 for outcome in ("accepted", "refused", *FAULTS)})
            for number in range(count):
                place, canary = root / "input", root / "canary"
                place.mkdir()
                work, size = kinds[kind](random.Random(f"{seed} {kind} {number}"), place, canary)
                outcome, said = attempt(work, size, canary)
                outcomes[outcome] += 1
                if outcome in FAULTS:
                    report(f"{kind} {number}: {outcome} {said:.300}")
                shutil.rmtree(place)
            found[kind] = {"inputs": count, **outcomes}
    return found


def main():
    values = flags.FLAGS
    start = time.time()
    counts = {kind: values[kind].value for kind in ("pickles", "datasets", "corpora")}
    found = fuzz(counts, values.seed)
    for kind, outcomes in found.items():
        print(f"{kind}: " + ", ".join(f"{count:,} {outcome}" for outcome, count in outcomes.items()))
    if values.out:
        from engine.provenance import hardware, revision  # TensorFlow would be copied into every process

        record = {
            "command": " ".join(["python -m tools.fuzz", *sys.argv[1:]]),
            "seed": values.seed,
            "limits": {"memory": f"{MEMORY[1]} x input + {MEMORY[0] // 10**6} MB", "processor_seconds": SECONDS},
            **found,
            "seconds": round(time.time() - start),
            "hardware": hardware(),
            **revision(),
        }
        with atomic_file(values.out) as file:
            json.dump(record, file, indent=1)
    faults = sum(outcomes[fault] for outcomes in found.values() for fault in FAULTS)
    if faults:
        raise UserError(f"{faults:,} inputs were neither accepted nor refused")


if __name__ == "__main__":
    from base import cli

    flags.DEFINE_integer("pickles", 2000, "Hostile pickles.", lower_bound=0)
    flags.DEFINE_integer("datasets", 2000, "Prepared datasets with a hostile file.", lower_bound=0)
    flags.DEFINE_integer("corpora", 10_000, "Mutated files of corpora.", lower_bound=0)
    flags.DEFINE_integer("seed", 1, "Seed of the inputs.")
    flags.DEFINE_string("out", None, "Also writes what was found, as JSON.")
    cli.run(main)
