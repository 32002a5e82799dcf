"""Attacks a server; prints the outcome and time of each attack, and the server's memory after it.

python -m benchmarks.attacks --run=pretrained/bidaf-squad --out=build/attacks.json/attacks

`serve.py` has that reader and published models of other tasks. Each attack is repeated without a pause for `--seconds`,
while a client, a process of its own, asks small questions one by one: the median and p99 of its answers and its errors
follow, and the cores that server and attacker used. At the end all attacks with large bodies are repeated for
`--minutes`.
"""

import concurrent.futures
import contextlib
import itertools
import json
import signal
import socket
import time

import numpy as np
import urllib3
from absl import flags

from base import cli
from benchmarks.serving import HOST, JSON, ask, connect, serving, usage_of
from benchmarks.turns import new_process, report

FLAGS = flags.FLAGS
flags.DEFINE_float("minutes", 10.0, "Time to repeat the attacks with large bodies.", lower_bound=0.0)
flags.DEFINE_multi_string("only", [], "Attacks by name; default: all.")
OTHERS = "--run=ranker=pretrained/dam-ubuntu-irc", "--run=talker=pretrained/chat-dailydialog"
IDLE = 1150  # connections whose headers never end
SMALL = json.dumps({"instances": [{"passage": "Ann lives in Rome.", "question": "Where does Ann live?"}]})
QUESTION = ["how do i mount a usb stick ?"]
INSTANCES = {
    "words without spaces": ("m", [{"passage": "a b c d " * 100, "question": "!" * 199_000}] * 4),
    "long questions": ("m", [{"passage": "a", "question": "!" * 14_000}] * 64),
    "long passages": ("m", [{"passage": "!" * 190_000, "question": "who ?"}] * 5),
    "long passages within the limits": ("m", [{"passage": "! " * 19_000, "question": "who ?"}] * 5),
    "candidates": ("ranker", [{"turns": QUESTION, "candidates": ["yes it does"] * 700}] * 64),
    "a long context for each candidate": ("ranker", [{"turns": ["a " * 3_000], "candidates": ["a"] * 2_000}] * 60),
    "200 candidates": ("ranker", [{"turns": QUESTION * 10, "candidates": [f"try mount /{n}" for n in range(200)]}]),
    "64 searches": ("talker", [{"turns": QUESTION, "decode": f"beam=20,max_length={n + 30}"} for n in range(64)]),
}
BODIES = {name: (model, json.dumps({"instances": each})) for name, (model, each) in INSTANCES.items()}
BODIES["half a surrogate pair"] = "m", '{"instances": [{"passage": "a", "question": "b", "\\ud800": 1}]}'
BODIES["no number"] = "m", '{"instances": [{"passage": "a", "question": 1e999}]}'
BODIES["half a body"] = "m", SMALL[: len(SMALL) // 2]
BODIES["3 MB"] = "m", json.dumps({"instances": "x" * 3_000_000})
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


def idle(server):
    """Opens connections with half a header; checks that /healthz still answers."""
    with contextlib.ExitStack() as stack:
        for _ in range(IDLE):
            with contextlib.suppress(OSError):
                connection = stack.enter_context(socket.create_connection((HOST, server.port), timeout=1))
                connection.sendall(b"POST / HTTP/1.1\r\nHost: ")
        answer = urllib3.request("GET", f"http://{HOST}:{server.port}/healthz", timeout=30, retries=False)
        return f"{answer.status} of /healthz"


def leaving(server):
    """Twenty clients send large requests and leave at once; times the next large request."""
    body = BODIES["long passages within the limits"][1].encode()
    head = f"POST /v1/models/m:predict HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
    for _ in range(20):
        with socket.create_connection((HOST, server.port)) as connection:
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            time.sleep(0.1)
    return f"then {outcome(server, body)}"


def attacks():
    """`{name: function of the server that attacks once and returns the outcome}`."""
    found = {"none": lambda _: time.sleep(0.1) or ""}
    found |= {f"4 x {name}": lambda server, name=name: at_once(server, name) for name in BODIES}
    for name, changed in HEADERS.items():
        found[name] = lambda server, changed=changed: outcome(server, headers={**JSON, **changed})
    found |= {"clients that leave": leaving, f"{IDLE:,} unfinished headers": idle}
    found["one client with 200 candidates"] = lambda server: at_once(server, "200 candidates", 1)
    names = itertools.cycle(BODIES)
    return {**found, "all large bodies": lambda server: at_once(server, next(names))}


def ask_small(port, seconds):
    """Asks small questions one by one; returns the milliseconds and the status of each answer."""
    answers, end = [], time.perf_counter() + seconds
    with connect(port) as server:
        while (begin := time.perf_counter()) < end:
            status, _ = ask(server, SMALL)
            answers.append((1000 * (time.perf_counter() - begin), status))
    return answers


def repeated(name, attack, seconds, process, server, client):
    """The row of an attack that is repeated while a `client`, an executor, asks small questions for some seconds."""
    begin, own, (_, cpu) = time.perf_counter(), time.process_time(), usage_of(process)
    asked, outcomes = client.submit(ask_small, server.port, seconds), []
    while not asked.done():
        outcomes.append(attack(server))
    took, (megabytes, cpu_after) = time.perf_counter() - begin, usage_of(process)
    p50, p99 = np.percentile([each for each, _ in asked.result()], [50, 99]).tolist()
    found = {"attack": name, "outcome": f"{len(outcomes)} x {'; '.join(dict.fromkeys(outcomes))}"[:206]}
    found |= {"seconds": took, "memory_MB": megabytes, "server_cores": (cpu_after - cpu) / took}
    found |= {"attacker_cores": (time.process_time() - own) / took, "small": len(asked.result())}
    found |= {"p50_small_ms": p50, "p99_small_ms": p99}
    return {**found, "errors_of_others": sum(status != "200" for _, status in asked.result())}


def end(process, server):
    """The row of SIGTERM beside forty requests: their statuses, and how the process ended."""
    (megabytes, _), begin = usage_of(process), time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        asked = [pool.submit(outcome, server) for _ in range(40)]
        time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        found = [future.result()[:22] for future in asked]
    process.wait(120)
    counts = ", ".join(f"{found.count(each)} x {each}" for each in sorted(set(found)))
    said = f"{counts}; ended with {process.returncode}"
    return {"attack": "SIGTERM", "outcome": said, "seconds": time.perf_counter() - begin, "memory_MB": megabytes}


def main():
    with serving(FLAGS.run, *OTHERS) as (process, port), connect(port) as server, new_process() as client:
        client.submit(ask_small, port, 1).result()  # imports what it needs
        found, rows = attacks(), []
        for name, attack in found.items():
            if name in (FLAGS.only or found):
                seconds = 60 * FLAGS.minutes if attack is found["all large bodies"] else FLAGS.seconds
                rows.append(repeated(name, attack, seconds, process, server, client))
                print(json.dumps(rows[-1]), flush=True)
        rows.append(end(process, server))
    report(rows)


if __name__ == "__main__":
    cli.run(main)
