"""Loads a server: capacity, latencies and memory at a steady load, and the cost of REST.

python -m colloquy.benchmarks.serving --run=build/demo/run --seconds=600

Starts `serve.py` on a free port of this machine and ends it. First the model is called with and
without the server,
alternately: the difference is the cost of REST. Then 1, 8 and 32 clients ask without a pause: the
best is the capacity. Then requests come at random moments, at a fraction of it. Server and clients
share the cores. A latency counts from the moment at which the request was due, so that a server
that stalls is not spared the requests which it kept from being sent.
"""

import collections
import concurrent.futures
import contextlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import numpy as np
import urllib3
from absl import flags

from colloquy.base import cli, runtime
from colloquy.base.files import UserError
from colloquy.benchmarks.turns import define_record_flags, memory, report

FLAGS = flags.FLAGS
flags.DEFINE_string("run", None, "Run directory of a model.", required=True)
flags.DEFINE_float("seconds", 20.0, "Duration of the load.", lower_bound=1.0, upper_bound=1200.0)
flags.DEFINE_integer("seed", 1, "Seed of the times and the contents of requests.")
define_record_flags()
BODIES, FRACTION = 64, 0.8  # of the capacity
CLIENTS, CAPACITY_SECONDS = (1, 8, 32), 10.0
WARM_UP, CALLS = 5, 200  # calls that trace and compile, and calls that measure REST
CONNECTIONS = 128  # half of the requests that are open at once; more of them wait


# === Clients ===


def connect(port):
    """Connections to a server of this machine, kept open, which several threads share."""
    return urllib3.HTTPConnectionPool(
        "127.0.0.1", port, maxsize=CONNECTIONS, timeout=120, retries=False
    )


def ask(server, body):
    """The status and the text of an answer, or the name of an error and nothing."""
    try:
        answer = server.request(
            "POST", "/v1/models/m:predict", body=body, headers={"Content-Type": "application/json"}
        )
    except urllib3.exceptions.HTTPError as error:
        return type(error).__name__, ""
    return str(answer.status), answer.data.decode()


# === Loads ===


def closed_loop(server, bodies, clients, seconds, rng):
    """Requests per second if each of some `clients` sends the next one as soon as it is
    answered.
    """
    begin = time.perf_counter()

    def keep_asking(_):
        done = 0
        while time.perf_counter() - begin < seconds:
            done += ask(server, rng.choice(bodies))[0] == "200"
        return done / (time.perf_counter() - begin)

    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        return sum(pool.map(keep_asking, range(clients)))


def open_loop(server, bodies, rate, seconds, rng, usage):
    """Sends requests at random moments, `rate` per second, whether or not the server answers.

    `usage()` gives the server's megabytes and CPU seconds. Returns a row per minute in which
    requests were due, and a Counter of errors.
    """
    asked, used = collections.defaultdict(list), collections.defaultdict(list)
    begin, due, sent = time.perf_counter(), 0.0, 0

    def timed(body, due):
        status, _ = ask(server, body)
        return 1000 * (time.perf_counter() - due), status

    with concurrent.futures.ThreadPoolExecutor(2 * CONNECTIONS) as pool:
        while due < seconds:
            time.sleep(max(0.0, begin + due - time.perf_counter()))
            minute = 1 + int(due // 60)
            if sent % 100 == 0 or not used[minute]:
                used[minute].append(usage())
            asked[minute].append(pool.submit(timed, bodies[sent % len(bodies)], begin + due))
            sent, due = sent + 1, due + rng.expovariate(rate)
    rows, errors = [], collections.Counter()
    for minute, usages in used.items():
        (_, cpu), (megabytes, cpu_after) = usages[0], usages[-1]
        answers = [future.result() for future in asked[minute]]
        failed = [status for _, status in answers if status != "200"]
        milliseconds = [each for each, status in answers if status == "200"]
        half, nearly_all = np.percentile(
            milliseconds or [np.nan], [50, 99], method="higher"
        ).tolist()
        row = {
            "minute": minute,
            "requests": len(milliseconds),
            "p50_ms": half,
            "p99_ms": nearly_all,
        }
        row |= {"memory_MB": megabytes, "cpu_seconds": cpu_after - cpu, "errors": len(failed)}
        rows.append(row)
        errors.update(failed)
    return rows, errors


def varied(examples, rng):
    """An instance like some examples, of another size: a shorter conversation, fewer candidates,
    part of a text.
    """
    instance = dict(rng.choice(examples)["instance"])
    for field, value in instance.items():
        if isinstance(value, list):
            instance[field] = value[-rng.randint(1, len(value)) :]
        elif field == "passage":
            words = value.split()
            instance[field] = " ".join(words[: rng.randint(len(words) // 2, len(words))])
    return instance


# === A server ===


@contextlib.contextmanager
def serving(run):
    """`serve.py` of a run as a process, with its port; ends it as a supervisor would."""
    command = [sys.executable, "serve.py", f"--run=m={run}", "--port=0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        lines = []
        while " is open" not in (line := process.stdout.readline()):
            lines.append(line)
            if not line:
                raise UserError(f"the server did not start: {''.join(lines)}")
        yield process, int(line.split("/ is open")[0].rpartition(":")[2])
        process.send_signal(signal.SIGTERM)
        process.wait(20)
    finally:
        process.kill()


def usage_of(process):
    """Megabytes of a process, and its CPU time in seconds."""
    times = (
        pathlib.Path(f"/proc/{process.pid}/stat")
        .read_text(encoding="utf-8")
        .rpartition(")")[2]
        .split()[11:13]
    )
    return memory("VmRSS", process.pid), sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def main():
    runtime.import_keras()

    from colloquy.engine.run import Run
    from colloquy.tasks import TASKS

    run, rng = Run.open(FLAGS.run), random.Random(FLAGS.seed)
    predictor, examples = TASKS[run.task].predictor(run), run.examples()
    if not examples:
        raise UserError(f"{FLAGS.run} has no examples.json")
    bodies = [json.dumps({"instances": [varied(examples, rng)]}).encode() for _ in range(BODIES)]
    found = {"model": run.model, "corpus": run.dataset.get("name"), "cores": os.cpu_count()}
    with serving(FLAGS.run) as (process, port), connect(port) as server:
        found |= overhead(server, predictor, bodies)
        per_second = {n: closed_loop(server, bodies, n, CAPACITY_SECONDS, rng) for n in CLIENTS}
        capacity = max(per_second.values())
        rate, usage = FRACTION * capacity, lambda: usage_of(process)
        rows, errors = open_loop(server, bodies, rate, FLAGS.seconds, rng, usage)
    found |= {
        "per_second_by_clients": per_second,
        "capacity_per_second": capacity,
        "rate_per_second": rate,
    }
    report(rows, **found, errors=dict(errors), exit_code=process.returncode)


def overhead(server, predictor, bodies):
    """Median milliseconds of a call by REST and of the same call without it."""
    times = []
    for number in range(WARM_UP + CALLS):
        body, begin = bodies[number % len(bodies)], time.perf_counter()
        status, text = ask(server, body)
        answered = time.perf_counter()
        predictor.predict(json.loads(body)["instances"])
        times.append((answered - begin, time.perf_counter() - answered))
        if status != "200":
            raise UserError(f"the server answered with {status}: {text}")
    rest, bare = 1000 * np.array(times[WARM_UP:]).T
    medians = {"rest_ms": rest, "bare_ms": bare, "overhead_ms": rest - bare}
    return {name: float(np.median(values)) for name, values in medians.items()}


if __name__ == "__main__":
    cli.run(main)
