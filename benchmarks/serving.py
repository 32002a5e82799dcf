"""Loads a server: latencies and memory under clients that ask without a pause.

    python -m colloquy.benchmarks.serving --run=build/demo/run --seconds=600
    python -m colloquy.benchmarks.serving --worst --reader=pretrained/bidaf-squad \
        --bot=pretrained/entity-memma-task5 --chat=pretrained/chat-dailydialog \
        --ranker=pretrained/dam-ubuntu-irc

It starts `serve.py` on a free port of this machine and ends it. Server and clients share the cores.
With `--run`, eight clients send examples of the run, each the next one as soon as it is answered.
With `--worst`: a small client, alone and beside the worst requests that the limits allow.
"""

import concurrent.futures
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import urllib3
from absl import flags

from colloquy.base import cli, runtime
from colloquy.base.files import UserError
from colloquy.benchmarks.turns import define_record_flags, memory, report

FLAGS = flags.FLAGS
flags.DEFINE_string("run", None, "Run directory of a model.")
flags.DEFINE_float(
    "seconds",
    20.0,
    "Duration of the load, and of each of the worst requests.",
    lower_bound=1.0,
    upper_bound=1200.0,
)
flags.DEFINE_bool("worst", False, "Measures a small client beside the worst requests.")
flags.DEFINE_string("reader", "pretrained/bidaf-squad", "Run of reading comprehension.")
flags.DEFINE_string("bot", "pretrained/entity-memma-task5", "Run of dialogs.")
flags.DEFINE_string("chat", "pretrained/chat-dailydialog", "Run of generation.")
flags.DEFINE_string("ranker", "pretrained/dam-ubuntu-irc", "Run of selection.")
flags.DEFINE_integer("seed", 1, "Seed of the times and the contents of requests.")
define_record_flags()

BODIES = 64
CLIENTS = 8


def main():
    if FLAGS.worst:
        measure_worst()
    elif FLAGS.run:
        measure_load()
    else:
        raise UserError("expected --run=DIR or --worst")


def measure_load():
    """Reports latencies and memory by minute."""
    runtime.import_keras()

    from colloquy.engine.run import Run

    run = Run.open(FLAGS.run)
    examples = run.examples()
    if not examples:
        raise UserError(f"{FLAGS.run} has no examples.json")
    rng = random.Random(FLAGS.seed)
    bodies = []
    for _ in range(BODIES):
        bodies.append(json.dumps({"instances": [vary_example(examples, rng)]}).encode())

    with serve({"m": FLAGS.run}) as (process, port), connect(port) as server:
        rows = []
        seconds_left = FLAGS.seconds
        while seconds_left > 0:
            seconds = min(60.0, seconds_left)
            row = load(server, bodies, CLIENTS, seconds, rng)
            rows.append({"minute": 1 + len(rows), **row, "memory_MB": memory("VmRSS", process.pid)})
            seconds_left -= seconds
    report(
        rows,
        model=run.model,
        corpus=run.dataset["name"],
        cores=os.cpu_count(),
        clients=CLIENTS,
        exit_code=process.returncode,
    )


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
            address = line.split("/ is open")[0]
            return int(address.rpartition(":")[2])
        lines.append(line)
    raise UserError(f"the server did not start: {''.join(lines)}")


# === Clients ===


def connect(port):
    """Opens connections to a server of this machine, which several threads share."""
    return urllib3.HTTPConnectionPool("127.0.0.1", port, maxsize=32, timeout=120, retries=False)


def ask(server, body, path="/v1/models/m:predict"):
    """Returns the status and the text of an answer, or the name of an error and no text."""
    headers = {"Content-Type": "application/json"}
    try:
        answer = server.request("POST", path, body=body, headers=headers)
    except urllib3.exceptions.HTTPError as error:
        return type(error).__name__, ""
    return str(answer.status), answer.data.decode()


def vary_example(examples, rng):
    """Returns an instance like one of the examples, of another size.

    It is a shorter conversation, has fewer candidates, or part of a passage.
    """
    instance = dict(rng.choice(examples)["instance"])
    for field, value in instance.items():
        if isinstance(value, list):
            instance[field] = value[-rng.randint(1, len(value)) :]
        elif field == "passage":
            words = value.split()
            count = rng.randint(len(words) // 2, len(words))
            instance[field] = " ".join(words[:count])
    return instance


# === The worst requests ===

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
        body = json.dumps({"instances": values}).encode()
        yield model, title, f"/v1/models/{model}:{verb}", body
    body = json.dumps({"model": "bot", "messages": lines}).encode()
    yield "bot", "990 lines in a chat completion", "/v1/chat/completions", body


def measure_worst():
    """Reports latencies of a small client of the model that each of the worst requests asks."""
    runs = {"reader": FLAGS.reader, "bot": FLAGS.bot, "chat": FLAGS.chat, "ranker": FLAGS.ranker}
    rows = []
    with serve(runs) as (process, port), connect(port) as server:
        alone = {}
        for model in SMALL:
            time_small(server, model, FLAGS.seconds / 4)  # warms up
            alone[model] = time_small(server, model, FLAGS.seconds)
        for model, title, path, body in worst_requests():
            outcomes = set()
            ended = threading.Event()

            def keep_asking(path=path, body=body, outcomes=outcomes, ended=ended):
                while not ended.is_set():
                    status, _ = ask(server, body, path)
                    outcomes.add(status)

            with concurrent.futures.ThreadPoolExecutor(BESIDE) as pool:
                for _ in range(BESIDE):
                    pool.submit(keep_asking)
                beside = time_small(server, model, FLAGS.seconds)
                ended.set()
            row = {"model": model, "request": title, "outcome": " ".join(sorted(outcomes))}
            for field, milliseconds in beside.items():
                row[f"{field}_alone"] = alone[model][field]
                row[field] = milliseconds
                row[f"{field}_ratio"] = milliseconds / alone[model][field]
            row["memory_MB"] = memory("VmRSS", process.pid)
            rows.append(row)
            print(row, file=sys.stderr, flush=True)
    report(rows, cores=os.cpu_count(), clients=BESIDE, exit_code=process.returncode)


def time_small(server, model, seconds):
    """Asks a model its small instance, again and again; returns percentiles in milliseconds."""
    body = json.dumps({"instances": [SMALL[model]]}).encode()
    times = []
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        status, text = ask(server, body, f"/v1/models/{model}:predict")
        if status != "200":
            raise UserError(f"{model} answered with {status}: {text:.200}")
        times.append(1000 * (time.perf_counter() - begin))
    return percentiles(times)


def percentiles(milliseconds):
    p50, p99 = np.percentile(milliseconds or [np.nan], [50, 99], method="higher")
    return {"p50_ms": float(p50), "p99_ms": float(p99)}


# === A load ===


def load(server, bodies, clients, seconds, rng):
    """Has clients ask, each as soon as its last request is answered.

    Returns:
        The number of answers, percentiles of their milliseconds, and the number of errors.
    """
    start = time.perf_counter()

    def keep_asking(_):
        times = []
        errors = 0
        while time.perf_counter() - start < seconds:
            begin = time.perf_counter()
            status, _ = ask(server, rng.choice(bodies))
            if status == "200":
                times.append(1000 * (time.perf_counter() - begin))
            else:
                errors += 1
        return times, errors

    times = []
    errors = 0
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        for times_of_client, errors_of_client in pool.map(keep_asking, range(clients)):
            times += times_of_client
            errors += errors_of_client
    return {"requests": len(times), **percentiles(times), "errors": errors}


if __name__ == "__main__":
    cli.run(main)
