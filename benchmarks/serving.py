"""Loads a server: latencies and memory under clients that ask without a pause.

    python -m colloquy.benchmarks.serving --run=build/demo/run --seconds=600
    python -m colloquy.benchmarks.serving --seconds=10

It starts `serve.py` on a free port of this machine and ends it. Server and clients share the cores.
With `--run`, eight clients send examples of the run, each the next one as soon as it is answered.
Without it: a small client of a published model, alone and beside the worst requests that the limits
allow.
"""

import collections
import concurrent.futures
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import urllib3
from absl import flags

from colloquy.base import cli
from colloquy.base.files import UserError
from colloquy.benchmarks.records import report
from colloquy.benchmarks.turns import memory

FLAGS = flags.FLAGS
flags.DEFINE_string("run", None, "Run directory of a model; default: the worst requests.")
flags.DEFINE_float(
    "seconds", 20.0, "Duration of the load, and of each of the worst requests.", lower_bound=1.0
)

BODIES = 64
CLIENTS = 8


def main():
    if FLAGS.run:
        measure_load()
    else:
        measure_worst()


def measure_load():
    """Reports latencies and memory by minute."""
    rng = random.Random(1)
    path = "/v1/models/m:predict"
    with serve({"m": FLAGS.run}) as (process, port), connect(port) as server:
        facts = server.request("GET", "/v1/models/m").json()
        if not facts["examples"]:
            raise UserError(f"{FLAGS.run} has no examples.json")
        bodies = []
        for _ in range(BODIES):
            example = rng.choice(facts["examples"])
            bodies.append(make_body(vary_size(example["instance"], rng)))

        rows = []
        seconds_left = FLAGS.seconds
        while seconds_left > 0:
            latencies = ask_together(server, path, bodies, CLIENTS, min(60.0, seconds_left))
            answered = latencies.pop("200", [])
            row = {
                "minute": 1 + len(rows),
                "requests": len(answered),
                **percentiles(answered),
                "errors": sum(len(others) for others in latencies.values()),
                "memory_MB": memory("VmRSS", process.pid),
            }
            rows.append(row)
            seconds_left -= 60.0
    report(
        rows,
        model=facts["model"],
        corpus=facts["corpus"],
        cores=os.cpu_count(),
        clients=CLIENTS,
        exit_code=process.returncode,
    )


def vary_size(instance, rng):
    """Returns an instance with fewer turns, or fewer candidates."""
    varied = dict(instance)
    for field, value in instance.items():
        if isinstance(value, list):
            varied[field] = value[-rng.randint(1, len(value)) :]
    return varied


# === The server ===


@contextlib.contextmanager
def serve(runs):
    """Serves runs by name, and yields the process and its port; ends it as a supervisor would."""
    command = [sys.executable, "serve.py", "--port=0"]
    for name, run in runs.items():
        command.append(f"--run={name}={run}")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process, _wait_for_port(process)
        process.send_signal(signal.SIGTERM)
        process.wait(20)
    finally:
        process.kill()


def _wait_for_port(process):
    lines = []
    for line in process.stdout:
        if " is open" in line:
            return int(line.split("/ is open")[0].rpartition(":")[2])
        lines.append(line)
    raise UserError(f"the server did not start: {''.join(lines)}")


# === Clients ===


def connect(port):
    """Opens connections to a server of this machine, which several threads share."""
    return urllib3.HTTPConnectionPool("127.0.0.1", port, maxsize=32, timeout=120, retries=False)


def make_body(*instances):
    return json.dumps({"instances": instances}).encode()


def ask_together(server, path, bodies, clients, seconds):
    """Has clients ask for some seconds, each as soon as its last request is answered.

    Returns:
        `{status: milliseconds of each answer}`; of a request without an answer, the name of its
        error is the status.
    """
    end = time.perf_counter() + seconds
    latencies = collections.defaultdict(list)

    def keep_asking(client):
        rng = random.Random(client)
        while time.perf_counter() < end:
            begin = time.perf_counter()
            status = ask(server, path, rng.choice(bodies))
            latencies[status].append(1000 * (time.perf_counter() - begin))

    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        list(pool.map(keep_asking, range(clients)))
    return latencies


def ask(server, path, body):
    """Returns the status of an answer, or the name of an error."""
    headers = {"Content-Type": "application/json"}
    try:
        return str(server.request("POST", path, body=body, headers=headers).status)
    except urllib3.exceptions.HTTPError as error:
        return type(error).__name__


def percentiles(milliseconds):
    p50, p99 = np.percentile(milliseconds or [np.nan], [50, 99], method="higher")
    return {"p50_ms": float(p50), "p99_ms": float(p99)}


# === The worst requests ===

RUNS = {
    "reader": "pretrained/bidaf-squad",
    "bot": "pretrained/entity-memma-task5",
    "chat": "pretrained/chat-dailydialog",
    "ranker": "pretrained/dam-ubuntu-irc",
}
SMALL = {
    "reader": {"passage": "Ann lives in Rome.", "question": "Where does Ann live?"},
    "bot": {"history": [{"speaker": "user", "text": "hello"}]},
    "chat": {"turns": ["hello"]},
    "ranker": {"turns": ["how do i mount a disk"], "candidates": ["with mount", "hello"]},
}
"""A small instance for each model."""
LONG_TEXT = "Ann lives in Rome and works at the harbour. " * 2_000
BESIDE = 4  # clients that send the worst request, each as soon as it is answered


def worst_requests():
    """Yields the model, a title, the path and the body of each of the worst requests."""
    passage = LONG_TEXT[:90_000]
    long_question = {"passage": passage[:9_000], "question": "Where does Ann live? " * 50}
    sentences = [{"speaker": "user", "text": "x"}] * 1_600
    lines = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "x\n" * 990},
        {"role": "user", "content": "hello"},
    ]
    beam = {"turns": ["hello"], "decode": "beam=10,max_length=100"}
    candidates = {"turns": [LONG_TEXT[:2_000]] * 9, "candidates": [LONG_TEXT[:250]] * 250}
    long_passage = {"passage": passage, "question": "Where does Ann live?"}
    instances = [
        ("reader", "90,000 characters", "predict", [long_passage]),
        ("reader", "90,000 characters, explained", "explain", [long_passage]),
        ("reader", "a question of 250 words", "predict", [long_question]),
        ("bot", "1,600 sentences", "predict", [{"history": sentences}]),
        ("chat", "25 beams of 10", "predict", [beam] * 25),
        ("ranker", "250 candidates", "predict", [candidates]),
        ("ranker", "250 candidates, explained", "explain", [candidates]),
    ]
    for model, title, verb, values in instances:
        yield model, title, f"/v1/models/{model}:{verb}", make_body(*values)
    body = json.dumps({"model": "bot", "messages": lines}).encode()
    yield "bot", "990 lines in a chat completion", "/v1/chat/completions", body


def measure_worst():
    """Reports latencies of a small client of the model that each of the worst requests asks."""
    rows = []
    with serve(RUNS) as (process, port), connect(port) as server:
        alone = {}
        for model in SMALL:
            time_small(server, model, FLAGS.seconds / 4)  # warms up
            alone[model] = time_small(server, model, FLAGS.seconds)
        for model, title, path, body in worst_requests():
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                beside = pool.submit(time_small, server, model, FLAGS.seconds)
                outcomes = ask_together(server, path, [body], BESIDE, FLAGS.seconds)
            row = {"model": model, "request": title, "outcome": " ".join(sorted(outcomes))}
            for field, milliseconds in beside.result().items():
                row[f"{field}_alone"] = alone[model][field]
                row[field] = milliseconds
                row[f"{field}_ratio"] = milliseconds / alone[model][field]
            row["memory_MB"] = memory("VmRSS", process.pid)
            rows.append(row)
            print(row, file=sys.stderr, flush=True)
    report(rows, cores=os.cpu_count(), clients=BESIDE, exit_code=process.returncode)


def time_small(server, model, seconds):
    """Asks a model its small instance, again and again; returns percentiles in milliseconds."""
    body = make_body(SMALL[model])
    latencies = ask_together(server, f"/v1/models/{model}:predict", [body], 1, seconds)
    if set(latencies) != {"200"}:
        raise UserError(f"{model} answered with {', '.join(latencies)}")
    return percentiles(latencies["200"])


if __name__ == "__main__":
    cli.run(main)
