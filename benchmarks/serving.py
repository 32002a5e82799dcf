"""Loads a server: what can it do, does it stay fast and small, what does REST cost, what do hostile clients do?

python -m benchmarks.serving --run=build/demo/run --seconds=600 --out=results/benchmarks/serving.json
python -m benchmarks.serving --run=build/demo/run --seconds=600 --hostile=0.1 --out=results/benchmarks/hostile.json

Starts `serve.py` on a free port of this machine and ends it. First the model is called with and without the server, in
turn: what lies between is REST's. Then as many clients as `--clients` ask without a pause, hostile ones among them if
there are any: that is the capacity. Then requests come at random moments, at a fraction of the capacity, for
`--seconds`. Server and clients share the cores.
"""

import asyncio
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import time

from absl import flags
from rich.console import Console
from rich.table import Table

from base import cli
from base.files import UserError
from benchmarks.load import Client, closed_loop, open_loop, varied
from benchmarks.turns import write_record

FLAGS = flags.FLAGS
flags.DEFINE_string("run", None, "Run directory of a model.", required=True)
flags.DEFINE_float("seconds", 20.0, "How long the load lasts.", lower_bound=1.0, upper_bound=1200.0)
flags.DEFINE_float("fraction", 0.8, "Of the capacity.", lower_bound=0.01, upper_bound=1.0)
flags.DEFINE_float("hostile", 0.0, "Fraction of requests from hostile clients.", lower_bound=0.0, upper_bound=0.5)
flags.DEFINE_integer("clients", 16, "Clients that find the capacity.", lower_bound=1, upper_bound=128)
flags.DEFINE_float("capacity_seconds", 20.0, "For how long.", lower_bound=1.0, upper_bound=60.0)
flags.DEFINE_integer("calls", 200, "Calls that measure what REST costs.", lower_bound=1, upper_bound=10_000)
flags.DEFINE_multi_string("flag", [], "A flag of serve.py, as --flag=--batch_milliseconds=0; may be repeated.")
flags.DEFINE_integer("seed", 1, "Seed of when requests come and what they ask.")
flags.DEFINE_string("out", None, "Also writes what was measured, as JSON.")
NAME, BODIES = "m", 64


class Server:
    """`serve.py` as a process of its own."""

    def __init__(self, run, arguments):
        command = [sys.executable, "serve.py", f"--run={NAME}={run}", "--port=0", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if " is open" in line:
                self.port = int(line.split("/ is open")[0].rpartition(":")[2])
                return
        raise UserError(f"the server did not start: {''.join(lines)}")

    def usage(self):
        """What it holds, bytes, and its CPU time, seconds."""
        process = pathlib.Path("/proc", str(self.process.pid))
        memory = process.joinpath("status").read_text(encoding="utf-8").partition("VmRSS:")[2].split()[0]
        times = process.joinpath("stat").read_text(encoding="utf-8").rpartition(")")[2].split()[11:13]
        return 1024 * int(memory), sum(map(int, times)) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        """Ends it as a supervisor would.

        Returns:
            Its exit code, `None` where it had to be killed.
        """
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None


async def overhead(client, predictor, bodies, calls):
    """Milliseconds of a call by REST and of the same call without it, in turn; medians of `calls`."""
    rest, bare = [], []
    for number in range(calls + 5):
        body = bodies[number % len(bodies)]
        await asyncio.sleep(0.001)  # what the server closed while the model was called is noticed
        times = [time.perf_counter()]
        status, _ = await client.post(body)
        times.append(time.perf_counter())
        predictor.predict(json.loads(body)["instances"])
        times.append(time.perf_counter())
        if status != 200:
            raise UserError(f"the server answered with status {status}")
        if number >= 5:  # the first ones trace and compile
            rest.append(1000 * (times[1] - times[0]))
            bare.append(1000 * (times[2] - times[1]))
    difference = statistics.median(a - b for a, b in zip(rest, bare, strict=True))
    return {"rest_ms": statistics.median(rest), "bare_ms": statistics.median(bare), "overhead_ms": difference}


async def measure(server, predictor, bodies, rng):
    """All that is measured, as a dict."""
    client = Client(server.port, f"/v1/models/{NAME}:predict")
    found = await overhead(client, predictor, bodies, FLAGS.calls)
    found["capacity_per_second"] = await closed_loop(
        client, bodies, FLAGS.clients, FLAGS.capacity_seconds, rng, FLAGS.hostile
    )
    rate = FLAGS.fraction * found["capacity_per_second"]
    minutes, outcomes = await open_loop(client, bodies, rate, FLAGS.seconds, rng, server.usage, FLAGS.hostile)
    client.close()
    rows = [minute.row(number + 1) for number, minute in enumerate(minutes)]
    errors = sum((minute.errors for minute in minutes), start=type(outcomes)())
    found = {name: round(value, 2) for name, value in found.items()}
    return {
        **found,
        "rate_per_second": round(rate, 2),
        "rows": rows,
        "errors": errors,
        "hostile": dict(sorted(outcomes.items())),
    }


def main():
    from engine.run import Run  # TensorFlow takes seconds to load
    from tasks import TASKS

    run, rng = Run.open(FLAGS.run), random.Random(FLAGS.seed)
    predictor, examples = TASKS[run.task].predictor(run), run.examples()
    if not examples:
        raise UserError(f"{FLAGS.run} has no examples.json to take requests from")
    bodies = [json.dumps({"instances": [varied(examples, rng)]}).encode() for _ in range(BODIES)]
    server = Server(FLAGS.run, FLAGS.flag)
    try:
        found = asyncio.run(measure(server, predictor, bodies, rng))
    finally:
        code = server.stop()
    show(found)
    print(f"the server ended with exit code {code}")
    model = {"model": run.model, "corpus": run.dataset.get("name"), "cores": os.cpu_count()}
    write_record(FLAGS.out, "serving", **model, exit_code=code, **found)


def show(found):
    """Prints what was measured."""
    print(
        f"REST {found['rest_ms']:.1f} ms, without {found['bare_ms']:.1f} ms: {found['overhead_ms']:.1f} ms are REST's; "
        f"capacity {found['capacity_per_second']:.1f} requests per second"
    )
    table = Table(*found["rows"][0], title=f"{found['rate_per_second']:.1f} requests per second")
    for row in found["rows"]:
        table.add_row(*map(str, row.values()))
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    for name in ("errors", "hostile"):
        print(f"{name}: {', '.join(f'{kind} {count}' for kind, count in found[name].items()) or 'none'}")


if __name__ == "__main__":
    cli.run(main)
