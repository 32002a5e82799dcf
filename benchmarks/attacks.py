"""Attacks a server as a stranger would: outcome of each attack, its time, and the server's memory after it.

python -m benchmarks.attacks --run=pretrained/bidaf-squad --out=build/attacks.json/rows

Starts `serve.py` with that reader and published models of other tasks on a free port of this machine, and ends it.
While an attack runs, another client asks small questions: their slowest answer is the last column.
"""

import concurrent.futures
import contextlib
import http.client
import json
import signal
import socket
import threading
import time

from absl import flags

from base import cli
from benchmarks.serving import HOST, serving, usage_of
from benchmarks.turns import report

FLAGS = flags.FLAGS
flags.DEFINE_string("ranker", "pretrained/dam-ubuntu-irc", "Run of a selection model.")
flags.DEFINE_string("talker", "pretrained/chat-dailydialog", "Run of a generation model.")
flags.DEFINE_integer("idle", 1150, "Connections whose headers never end.", lower_bound=1)
JSON = {"Content-Type": "application/json"}
SMALL = json.dumps({"instances": [{"passage": "Ann lives in Rome.", "question": "Where does Ann live?"}]})
TURNS = {"turns": ["how do i mount a usb stick ?"]}


def instances(*given):
    return json.dumps({"instances": given})


BODIES = {
    "words without spaces": ("m", instances(*[{"passage": "a b c d " * 100, "question": "!" * 199_000}] * 4)),
    "long questions": ("m", instances(*[{"passage": "a", "question": "!" * 14_000}] * 64)),
    "long passages": ("m", instances(*[{"passage": "!" * 190_000, "question": "who ?"}] * 5)),
    "long passages within the limits": ("m", instances(*[{"passage": "! " * 19_000, "question": "who ?"}] * 5)),
    "candidates": ("ranker", instances(*[{**TURNS, "candidates": ["yes it does"] * 700}] * 64)),
    "a long context for each candidate": (
        "ranker",
        instances(*[{"turns": ["a " * 3_000], "candidates": ["a"] * 2_000}] * 60),
    ),
    "64 searches": ("talker", instances(*[{**TURNS, "decode": f"beam=20,max_length={n + 30}"} for n in range(64)])),
    "half a surrogate pair": ("m", '{"instances": [{"passage": "a", "question": "b", "\\ud800": 1}]}'),
    "no number": ("m", '{"instances": [{"passage": "a", "question": 1e999}]}'),
}


def post(port, model, body, headers=JSON, timeout=120):
    """The status and the text of an answer."""
    with contextlib.closing(http.client.HTTPConnection(HOST, port, timeout=timeout)) as connection:
        connection.request("POST", f"/v1/models/{model}:predict", body, headers)
        response = connection.getresponse()
        return response.status, response.read().decode()


def outcome(port, model, body, headers=JSON):
    """Status and sentence of an answer, or how it ended."""
    try:
        status, text = post(port, model, body, headers)
    except (OSError, http.client.HTTPException) as error:
        return type(error).__name__
    return f"{status} {json.loads(text).get('error', 'answered')[:90]}"


def four_at_once(port, name):
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = {future.result() for future in [pool.submit(outcome, port, *BODIES[name]) for _ in range(4)]}
    return "; ".join(sorted(found))


def idle(port):
    """Connections with half a header: whether /healthz is answered beside them."""
    with contextlib.ExitStack() as stack:
        for _ in range(FLAGS.idle):
            with contextlib.suppress(OSError):
                connection = stack.enter_context(socket.create_connection((HOST, port), timeout=1))
                connection.sendall(b"POST / HTTP/1.1\r\nHost: ")
        with contextlib.closing(http.client.HTTPConnection(HOST, port, timeout=30)) as connection:
            connection.request("GET", "/healthz")
            return f"{connection.getresponse().status} of /healthz"


def leaving(port):
    """Twenty clients that ask much and leave at once: how long the next large request then takes."""
    body = BODIES["long passages within the limits"][1].encode()
    for _ in range(20):
        with socket.create_connection((HOST, port)) as connection:
            head = f"POST /v1/models/m:predict HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            time.sleep(0.1)
    return f"then {outcome(port, 'm', body)}"


def attacks():
    """`{name: function of the port that returns the outcome}`."""
    found = {f"4 x {name}": lambda port, name=name: four_at_once(port, name) for name in BODIES}
    headers = {"another host": {"Host": "evil.example"}, "another page": {"Origin": "https://evil.example"}}
    headers["a form of another page"] = {"Content-Type": "text/plain"}
    for name, changed in headers.items():
        found[name] = lambda port, changed=changed: outcome(port, "m", SMALL, {**JSON, **changed})
    return {**found, "clients that leave": leaving, f"{FLAGS.idle:,} unfinished headers": idle}


@contextlib.contextmanager
def asking(port):
    """Asks small questions one by one in the block; yields the list of their milliseconds and statuses."""
    answers, ended = [], threading.Event()

    def ask():
        while not ended.is_set():
            begin = time.perf_counter()
            status = outcome(port, "m", SMALL)[:3]
            answers.append((1000 * (time.perf_counter() - begin), status))

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(ask)
        try:
            yield answers
        finally:
            ended.set()


def end(process, port):
    """SIGTERM beside forty requests: their statuses, and how long the process lived."""
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        asked = [pool.submit(outcome, port, "m", SMALL) for _ in range(40)]
        time.sleep(0.05)
        begin = time.perf_counter()
        process.send_signal(signal.SIGTERM)
        found = [future.result()[:22] for future in asked]
    process.wait(120)
    counts = ", ".join(f"{found.count(each)} x {each}" for each in sorted(set(found)))
    return f"{counts}; ended with {process.returncode}", time.perf_counter() - begin


def row(name, said, seconds, memory, small=()):
    slowest = round(max((milliseconds for milliseconds, _ in small), default=0))
    errors = sum(status != "200" for _, status in small)
    found = {"attack": name, "outcome": said, "seconds": round(seconds, 1), "memory_MB": round(memory / 1e6)}
    print(f"{name:45} {seconds:6.1f} s {memory / 1e6:6.0f} MB {slowest:6} ms {errors} errors  {said}", flush=True)
    return {**found, "slowest_small_ms": slowest, "errors_of_others": errors}


def main():
    others = [f"--run=ranker={FLAGS.ranker}", f"--run=talker={FLAGS.talker}"]
    with serving(FLAGS.run, others) as (process, port):
        with asking(port) as small:
            time.sleep(3)
        rows = [row("none", "", 3, usage_of(process)[0], small)]
        for name, attack in attacks().items():
            begin = time.perf_counter()
            with asking(port) as small:
                said = attack(port)
            rows.append(row(name, said, time.perf_counter() - begin, usage_of(process)[0], small))
        memory = usage_of(process)[0]
        rows.append(row("SIGTERM", *end(process, port), memory))
    report("attacks", rows)


if __name__ == "__main__":
    cli.run(main)
