"""Loads a server: capacity, latencies and memory at a steady load, the cost of REST, and misbehaving clients.

python -m benchmarks.serving --run=build/demo/run --seconds=600 --out=results/benchmarks/serving.json
python -m benchmarks.serving --run=build/demo/run --seconds=600 --hostile=0.1 --out=results/benchmarks/hostile.json
python -m benchmarks.serving --exported=build/reader/1 --exported=build/replier/1 --out=results/benchmarks/latency.json

Starts `serve.py` on a free port of this machine and ends it. First the model is called with and without the server,
alternately: the difference is the cost of REST. Then `--clients` clients ask without a pause, hostile ones among them
if there are any: that is the capacity. Then requests come at random moments, at a fraction of the capacity. Server and
clients share the cores. A latency counts from the moment at which the request was due, so that a server that stalls is
not spared the requests which it kept from being sent.
With `--exported`, single requests to exported models run alternately in one process: a question on a passage of 150
words, a reply to 15 words, or the order of ten candidates of 15 words after nine turns of 15 words.
"""

import collections
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import random
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time

import numpy as np
from absl import flags

from base import cli
from base.files import UserError
from benchmarks.turns import define_record_flags, report

FLAGS = flags.FLAGS
flags.DEFINE_string("run", None, "Run directory of a model.")
flags.DEFINE_multi_string("exported", [], "A version that export.py wrote; twice to compare two.")
flags.DEFINE_float("seconds", 20.0, "Duration of the load.", lower_bound=1.0, upper_bound=1200.0)
flags.DEFINE_float("fraction", 0.8, "Fraction of the capacity.", lower_bound=0.01, upper_bound=1.0)
flags.DEFINE_float("hostile", 0.0, "Fraction of requests from hostile clients.", lower_bound=0.0, upper_bound=0.5)
flags.DEFINE_integer("clients", 16, "Clients that find the capacity.", lower_bound=1, upper_bound=128)
flags.DEFINE_float("capacity_seconds", 20.0, "Duration of finding it.", lower_bound=1.0, upper_bound=60.0)
flags.DEFINE_integer("calls", 200, "Calls that measure REST, or each exported model.", lower_bound=1)
flags.DEFINE_multi_string("flag", [], "A flag of serve.py, as --flag=--batch_milliseconds=0; may be repeated.")
flags.DEFINE_integer("seed", 1, "Seed of when requests come and what they ask.")
define_record_flags()
NAME, BODIES, HOST = "m", 64, "127.0.0.1"
WARM_UP = 5  # calls that trace and compile
CONNECTIONS = 128  # ordinary requests that may be open at once; one more counts as an error
SLOW = threading.BoundedSemaphore(8)  # slow clients at once
KINDS = ("huge", "malformed", "wrong", "slow", "disconnecting")
SENTENCE = "the cook of the old house by the river knows what her guests want ."  # 15 words


def main():
    if bool(FLAGS.run) == bool(FLAGS.exported):
        raise UserError("expected either --run or --exported")
    if FLAGS.exported:
        rows = compare_exported(FLAGS.exported)
        report("serving", rows, milliseconds=[row["milliseconds"] for row in rows])
    else:
        load_server()


# === Clients ===


class Client:
    """Posts to a server on this machine, by connections that are kept open.

    Args:
        port, path: Address of the requests.
    """

    def __init__(self, port, path):
        self.port, self.path, self._idle = port, path, []

    def post(self, body):
        """The status and the body of the answer."""
        with contextlib.suppress(IndexError, http.client.RemoteDisconnected, BrokenPipeError):
            return self._post(self._idle.pop(), body)
        return self._post(http.client.HTTPConnection(HOST, self.port), body)  # none was idle, or the server closed it

    def _post(self, connection, body):
        try:
            connection.request("POST", self.path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = response.status, response.read()
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        return answer

    def close(self):
        """Closes idle connections."""
        for connection in self._idle:
            connection.close()


def attack(client, body, kind):
    """Sends what no client should, on a connection of its own.

    Args:
        client: A `Client`, for its port and path.
        body: Body of an ordinary request.
        kind: One of `KINDS`.

    Returns:
        `KIND: status`, or how the connection ended.
    """
    slow = kind == "slow" and SLOW.acquire(blocking=False)
    if kind == "slow" and not slow:
        kind = "malformed"
    if kind == "huge":
        body = b'{"instances": "' + b"x" * 3_000_000 + b'"}'
    elif kind == "malformed":
        body = body[: len(body) // 2]
    elif kind == "wrong":
        body = json.dumps({"instances": [{"turns": [["deep"] * 50] * 50}]}).encode()
    head = f"POST {client.path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
    try:
        with socket.create_connection((HOST, client.port)) as connection:
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode())
            if slow:
                return f"slow: {drip(connection, body)}"
            connection.sendall(body)
            return f"{kind}: {'left without the answer' if kind == 'disconnecting' else status_of(connection)}"
    except (OSError, http.client.HTTPException):
        return f"{kind}: closed"
    finally:
        if slow:
            SLOW.release()


def drip(connection, body):
    """Sends a byte every quarter of a second, until the server answers or for twenty seconds."""
    connection.settimeout(0.25)
    for place in range(80):
        connection.sendall(body[place : place + 1])
        try:
            connection.recv(1, socket.MSG_PEEK)
            return status_of(connection)
        except TimeoutError:
            continue
    return "left unfinished"


def status_of(connection):
    """The status of the answer that a connection brings."""
    with http.client.HTTPResponse(connection) as response:
        response.begin()
        return response.status


# === Loads ===


def ask(client, body, due):
    """Milliseconds from the moment that a request was due to its answer, and what went wrong, if anything."""
    try:
        status, _ = client.post(body)
        error = None if status == 200 else str(status)
    except (OSError, http.client.HTTPException) as failure:
        error = type(failure).__name__
    return 1000 * (time.perf_counter() - due), error


def closed_loop(client, bodies, clients, seconds, rng, hostile=0.0):
    """Requests per second if each of `clients` clients sends the next one as soon as it is answered.

    Other arguments as in `open_loop`; hostile requests count too, and nobody waits for them.
    """
    begin = time.perf_counter()

    def keep_asking(pool):
        done = 0
        while time.perf_counter() - begin < seconds:
            if rng.random() < hostile:
                pool.submit(attack, client, bodies[0], rng.choice(KINDS))
                done += 1
            else:
                done += ask(client, rng.choice(bodies), begin)[1] is None
        return done / (time.perf_counter() - begin)

    with concurrent.futures.ThreadPoolExecutor(clients + CONNECTIONS) as pool:
        return sum(future.result() for future in [pool.submit(keep_asking, pool) for _ in range(clients)])


def open_loop(client, bodies, rate, seconds, rng, usage, hostile=0.0):
    """Sends requests at random moments, whatever the server does.

    Args:
        client: A `Client`.
        bodies: Bodies of ordinary requests.
        rate: Requests per second.
        seconds: Duration.
        rng: A `random.Random`.
        usage: Returns the server's memory in bytes, and its CPU time in seconds.
        hostile: Fraction of requests that come from hostile clients.

    Returns:
        A row per minute, a Counter of errors, and one of the outcomes of hostile requests.
    """
    asked, used, attacks = collections.defaultdict(list), collections.defaultdict(list), []
    free, errors = threading.BoundedSemaphore(CONNECTIONS), collections.Counter()
    begin, due, sent = time.perf_counter(), 0.0, 0
    with concurrent.futures.ThreadPoolExecutor(2 * CONNECTIONS) as pool:
        while due < seconds:
            time.sleep(max(0.0, begin + due - time.perf_counter()))
            minute = int(due // 60)
            if sent % 100 == 0 or not used[minute]:
                used[minute].append(usage())
            if rng.random() < hostile:
                attacks.append(pool.submit(attack, client, bodies[0], KINDS[sent % len(KINDS)]))
            elif free.acquire(blocking=False):
                asked[minute].append(pool.submit(ask, client, bodies[sent % len(bodies)], begin + due))
                asked[minute][-1].add_done_callback(lambda _: free.release())
            else:
                errors["no connection was free"] += 1
            sent, due = sent + 1, due + rng.expovariate(rate)
    rows = []
    for minute in used:
        answers = [future.result() for future in asked[minute]]
        errors.update(error for _, error in answers if error)
        milliseconds = [milliseconds for milliseconds, error in answers if not error]
        rows.append(minute_row(minute + 1, milliseconds, len(answers) - len(milliseconds), used[minute]))
    return rows, errors, collections.Counter(future.result() for future in attacks)


def minute_row(number, milliseconds, errors, used):
    """The requests that were due within a minute, and the memory and CPU time of the server: a row of the record."""
    half, nearly_all = np.percentile(milliseconds or [np.nan], [50, 99], method="higher").tolist()
    return {
        "minute": number,
        "requests": len(milliseconds),
        "p50_ms": round(half, 1),
        "p99_ms": round(nearly_all, 1),
        "memory_MB": round(used[-1][0] / 1e6),
        "cpu_seconds": round(used[-1][1] - used[0][1], 1),
        "errors": errors,
    }


def varied(examples, rng):
    """An instance like some examples, of another size: a shorter conversation, fewer candidates, part of a text."""
    instance = dict(rng.choice(examples)["instance"])
    for field, value in instance.items():
        if isinstance(value, list):
            instance[field] = value[-rng.randint(1, len(value)) :]
        elif field == "passage":
            words = value.split()
            instance[field] = " ".join(words[: rng.randint(len(words) // 2, len(words))])
    return instance


# === A server ===


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
        """Its memory, bytes, and its CPU time, seconds."""
        process = pathlib.Path("/proc", str(self.process.pid))
        memory = process.joinpath("status").read_text(encoding="utf-8").partition("VmRSS:")[2].split()[0]
        times = process.joinpath("stat").read_text(encoding="utf-8").rpartition(")")[2].split()[11:13]
        return 1024 * int(memory), sum(map(int, times)) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        """Ends it as a supervisor would; returns its exit code, `None` if it had to be killed."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None


def load_server():
    """Measures a server of `--run`."""
    from engine.run import Run  # TensorFlow takes seconds to load
    from tasks import TASKS

    run, rng = Run.open(FLAGS.run), random.Random(FLAGS.seed)
    predictor, examples = TASKS[run.task].predictor(run), run.examples()
    if not examples:
        raise UserError(f"{FLAGS.run} has no examples.json")
    bodies = [json.dumps({"instances": [varied(examples, rng)]}).encode() for _ in range(BODIES)]
    server = Server(FLAGS.run, FLAGS.flag)
    try:
        rows, found = measure(server, predictor, bodies, rng)
    finally:
        code = server.stop()
    found |= {"model": run.model, "corpus": run.dataset.get("name"), "cores": os.cpu_count(), "exit_code": code}
    for name, value in found.items():
        print(f"{name}: {value}")
    report("serving", rows, **found)


def measure(server, predictor, bodies, rng):
    """Returns a row per minute, and all else that is measured."""
    client = Client(server.port, f"/v1/models/{NAME}:predict")
    found = overhead(client, predictor, bodies, FLAGS.calls)
    capacity = closed_loop(client, bodies, FLAGS.clients, FLAGS.capacity_seconds, rng, FLAGS.hostile)
    rate = FLAGS.fraction * capacity
    rows, errors, hostile = open_loop(client, bodies, rate, FLAGS.seconds, rng, server.usage, FLAGS.hostile)
    client.close()
    found |= {"capacity_per_second": round(capacity, 2), "rate_per_second": round(rate, 2)}
    return rows, {**found, "errors": dict(errors), "hostile": dict(sorted(hostile.items()))}


def overhead(client, predictor, bodies, calls):
    """Median milliseconds of a call by REST and of the same call without it."""
    milliseconds = {"rest_ms": [], "bare_ms": [], "overhead_ms": []}
    for number in range(WARM_UP + calls):
        body, times = bodies[number % len(bodies)], [time.perf_counter()]
        status, _ = client.post(body)
        times.append(time.perf_counter())
        predictor.predict(json.loads(body)["instances"])
        times.append(time.perf_counter())
        if status != 200:
            raise UserError(f"the server answered with status {status}")
        rest, bare = 1000 * (times[1] - times[0]), 1000 * (times[2] - times[1])
        for values, value in zip(milliseconds.values(), (rest, bare, rest - bare), strict=True):
            values.append(value)
    return {name: round(statistics.median(values[WARM_UP:]), 2) for name, values in milliseconds.items()}


# === Exported models ===


def compare_exported(paths):
    """A row per exported model: median milliseconds of a request."""
    import tensorflow as tf

    turn = tf.constant([[SENTENCE]])
    passage, question = tf.constant([" ".join([SENTENCE] * 10)]), tf.constant(["What does she know ?"])
    requests = {
        "answer": {"passage": passage, "question": question},
        "reply": {"turns": turn},
        "rank": {"turns": tf.repeat(turn, 9, axis=1), "candidates": tf.repeat(turn, 10, axis=1)},
    }
    models, rows = [], []
    for path in paths:
        try:
            models.append(tf.saved_model.load(path))
        except OSError as error:
            raise UserError(f"{path}: expected a version that export.py wrote. {error}") from error
        endpoint = next((name for name in requests if hasattr(models[-1], name)), None)
        if endpoint is None:
            raise UserError(f"{path}: expected one of the endpoints {', '.join(requests)}. Received: none of them")
        rows.append({"model": path, "endpoint": endpoint})
    times = [[] for _ in paths]
    for _ in range(WARM_UP + FLAGS.calls):
        for model, row, found in zip(models, rows, times, strict=True):
            started = time.perf_counter()
            getattr(model, row["endpoint"])(**requests[row["endpoint"]])
            found.append(1000 * (time.perf_counter() - started))
    for row, found in zip(rows, times, strict=True):
        row |= {"milliseconds": statistics.median(found[WARM_UP:]), "slowest": max(found[WARM_UP:])}
    return rows


if __name__ == "__main__":
    cli.run(main)
