"""Records of benchmarks: their flags, and the tables and files of their results."""

import json
import pathlib

from absl import flags

from colloquy.base import backend
from colloquy.base.files import atomic_file
from colloquy.metrics.tables import markdown

FLAGS = flags.FLAGS
flags.DEFINE_string("note", None, "Other work on the machine meanwhile, for the record.")
flags.DEFINE_string(
    "out", None, "FILE.json/NAME: file of records, and the name in it of the new one."
)
flags.register_validator(
    "out", lambda out: out is None or out.partition(".json/")[2], "expected FILE.json/NAME"
)


def define_flags(blocks, steps):
    """Defines the flags of a benchmark that calls `benchmarks.turns.alternate`.

    `blocks` and `steps` are the defaults of the flags of these names.
    """
    flags.DEFINE_integer("blocks", blocks, "Timed blocks of each side.", lower_bound=1)
    flags.DEFINE_integer("steps", steps, "Steps per block.", lower_bound=1)


def report(rows, **measurements):
    """Prints a table, and writes it to `--out` with the other measurements.

    Args:
        rows: Dicts, `{column: value}`.
        measurements: Numbers of the whole benchmark.
    """
    if FLAGS.out:
        _write_record({**measurements, "rows": rows})
    for name, value in measurements.items():
        print(f"{name}: {value}")
    columns = list(dict.fromkeys(column for row in rows for column in row))
    lines = []
    for row in rows:
        lines.append([_format(row.get(column, "")) for column in columns])
    print(markdown(columns, lines))


def _write_record(measurements):
    """Adds a record to the file of `--out`, or replaces the one of its name.

    It has the command, the measurements to four digits, the hardware and the commit.
    """
    backend.import_keras()

    from colloquy.engine.provenance import command, hardware, revision

    file, _, name = FLAGS.out.partition(".json/")
    path = pathlib.Path(f"{file}.json")
    records = {}
    if path.exists():
        records = json.loads(path.read_text(encoding="utf-8"))
    # Reading their JSON again rounds all numbers in it, also those in rows.
    rounded = json.loads(json.dumps(measurements), parse_float=_round)
    records[name] = {
        "command": command(),
        **rounded,
        "note": FLAGS.note,
        "hardware": hardware(),
        **revision(),
    }
    with atomic_file(path) as file:
        json.dump(records, file, indent=1)


def _round(text):
    return float(f"{float(text):.4g}")


def _format(value):
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
