"""Attacks a server; prints the outcome and time of each attack, and the server's memory after it.

python -m benchmarks.attacks --run=pretrained/bidaf-squad --out=build/attacks.json/attacks

Starts `serve.py` with that reader and published models of other tasks on a free port of this machine, and ends it.
While an attack runs, another client asks small questions one by one: the median and p99 of their answers and their
errors follow. At the end the attacks with large bodies are repeated for `--minutes`.
"""

import concurrent.futures
import contextlib
import json
import signal
import socket
import threading
import time

import numpy as np
import urllib3
from absl import flags

from base import cli
from benchmarks.serving import HOST, JSON, ask, connect, head_of, serving, usage_of
from benchmarks.turns import report

FLAGS = flags.FLAGS
flags.DEFINE_string("ranker", "pretrained/dam-ubuntu-irc", "Run of a selection model.")
flags.DEFINE_string("talker", "pretrained/chat-dailydialog", "Run of a generation model.")
flags.DEFINE_float("minutes", 10.0, "Time to repeat the attacks with large bodies.", lower_bound=0.0)
flags.DEFINE_integer("idle", 1150, "Connections whose headers never end.", lower_bound=1)
SMALL = json.dumps({"instances": [{"passage": "Ann lives in Rome.", "question": "Where does Ann live?"}]})
TURNS = {"turns": ["how do i mount a usb stick ?"]}
INSTANCES = {
    "words without spaces": ("m", [{"passage": "a b c d " * 100, "question": "!" * 199_000}] * 4),
    "long questions": ("m", [{"passage": "a", "question": "!" * 14_000}] * 64),
    "long passages": ("m", [{"passage": "!" * 190_000, "question": "who ?"}] * 5),
    "long passages within the limits": ("m", [{"passage": "! " * 19_000, "question": "who ?"}] * 5),
    "candidates": ("ranker", [{**TURNS, "candidates": ["yes it does"] * 700}] * 64),
    "a long context for each candidate": ("ranker", [{"turns": ["a " * 3_000], "candidates": ["a"] * 2_000}] * 60),
    "200 candidates": (
        "ranker",
        [{"turns": TURNS["turns"] * 10, "candidates": [f"try mount /{n}" for n in range(200)]}],
    ),
    "64 searches": ("talker", [{**TURNS, "decode": f"beam=20,max_length={n + 30}"} for n in range(64)]),
}
BODIES = {name: (model, json.dumps({"instances": each})) for name, (model, each) in INSTANCES.items()}
BODIES["half a surrogate pair"] = "m", '{"instances": [{"passage": "a", "question": "b", "\\ud800": 1}]}'
BODIES["no number"] = "m", '{"instances": [{"passage": "a", "question": 1e999}]}'
HEADERS = {
    "another host": {"Host": "evil.example"},
    "another page": {"Origin": "https://evil.example"},
    "a form of another page": {"Content-Type": "text/plain"},
}


def outcome(server, body=SMALL, model="m", headers=JSON):
    """Status and sentence of an answer, or how it ended."""
    status, text = ask(server, body, model, headers)
    return f"{status} {json.loads(text).get('error', 'answered')[:90]}" if text else status


def at_once(server, name, clients=4):
    model, body = BODIES[name]
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        found = {future.result() for future in [pool.submit(outcome, server, body, model) for _ in range(clients)]}
    return "; ".join(sorted(found))


def repeated(server, minutes, names, clients=4):
    """Large bodies, one after the other, each from some clients at once."""
    end, rounds = time.monotonic() + 60 * minutes, 0
    while time.monotonic() < end:
        at_once(server, names[rounds % len(names)], clients)
        rounds += 1
    return f"{clients} x {rounds} requests"


def idle(server):
    """Opens connections with half a header; checks that /healthz still answers."""
    with contextlib.ExitStack() as stack:
        for _ in range(FLAGS.idle):
            with contextlib.suppress(OSError):
                connection = stack.enter_context(socket.create_connection((HOST, server.port), timeout=1))
                connection.sendall(b"POST / HTTP/1.1\r\nHost: ")
        answer = urllib3.request("GET", f"http://{HOST}:{server.port}/healthz", timeout=30, retries=False)
        return f"{answer.status} of /healthz"


def leaving(server):
    """Twenty clients send large requests and leave at once; times the next large request."""
    body = BODIES["long passages within the limits"][1].encode()
    for _ in range(20):
        with socket.create_connection((HOST, server.port)) as connection:
            connection.sendall(head_of(body) + body)
            time.sleep(0.1)
    return f"then {outcome(server, body)}"


def attacks():
    """`{name: function of the server that returns the outcome}`."""
    found = {f"4 x {name}": lambda server, name=name: at_once(server, name) for name in BODIES}
    for name, changed in HEADERS.items():
        found[name] = lambda server, changed=changed: outcome(server, headers={**JSON, **changed})
    found |= {"clients that leave": leaving, f"{FLAGS.idle:,} unfinished headers": idle}
    found["one client with 200 candidates"] = lambda server: repeated(server, 0.5, ["200 candidates"], 1)
    minutes, every = FLAGS.minutes, list(BODIES)
    return {**found, f"all large bodies for {minutes:g} minutes": lambda server: repeated(server, minutes, every)}


@contextlib.contextmanager
def asking(server):
    """Asks small questions one by one in the block; yields the list of their milliseconds and statuses."""
    answers, ended = [], threading.Event()

    def keep_asking():
        while not ended.is_set():
            begin = time.perf_counter()
            status, _ = ask(server, SMALL)
            answers.append((1000 * (time.perf_counter() - begin), status))

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(keep_asking)
        try:
            yield answers
        finally:
            ended.set()


def end(process, server):
    """SIGTERM beside forty requests: their statuses, and how the process ended."""
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        asked = [pool.submit(outcome, server) for _ in range(40)]
        time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        found = [future.result()[:22] for future in asked]
    process.wait(120)
    counts = ", ".join(f"{found.count(each)} x {each}" for each in sorted(set(found)))
    return f"{counts}; ended with {process.returncode}"


def main():
    others = [f"--run=ranker={FLAGS.ranker}", f"--run=talker={FLAGS.talker}"]
    rows = []
    with serving(FLAGS.run, others) as (process, port), connect(port) as server:
        for name, attack in {"none": lambda _: time.sleep(30) or "", **attacks()}.items():
            begin = time.perf_counter()
            with asking(server) as small:
                said = attack(server)
            rows.append(row(name, said, time.perf_counter() - begin, usage_of(process)[0], small))
        memory, begin = usage_of(process)[0], time.perf_counter()
        said = end(process, server)
        rows.append(row("SIGTERM", said, time.perf_counter() - begin, memory))
    report("attacks", rows)


def row(name, said, seconds, memory, small=()):
    p50, p99 = (round(each, 1) for each in np.percentile([each for each, _ in small] or [0], [50, 99]).tolist())
    errors = sum(status != "200" for _, status in small)
    print(f"{name:45} {seconds:6.1f} s {memory / 1e6:6.0f} MB {p50:6} {p99:6} ms {errors} errors  {said}", flush=True)
    found = {"attack": name, "outcome": said, "seconds": round(seconds, 1), "memory_MB": round(memory / 1e6)}
    return {**found, "p50_small_ms": p50, "p99_small_ms": p99, "errors_of_others": errors}


if __name__ == "__main__":
    cli.run(main)
