"""What a small client sees alone, and beside each of the attacks that a server must hold.

    python -m colloquy.benchmarks.attacks --reader=pretrained/bidaf-squad \\
        --bot=pretrained/entity-memma-task5 --chat=pretrained/chat-dailydialog

Starts one `serve.py` with three models on a free port of this machine and ends it. The small client
asks the reader a short question, then `/healthz`, again and again. Beside it run, one after the
other, the attacks of `tests/test_hold_server.py` with more clients. Clients, attackers and server
share the cores.
"""

import concurrent.futures
import contextlib
import http.client
import json
import socket
import sys
import threading
import time

import numpy as np
from absl import flags

from colloquy.base import cli
from colloquy.benchmarks.servers import read_usage, serve
from colloquy.benchmarks.turns import define_record_flags, report

FLAGS = flags.FLAGS
flags.DEFINE_string("reader", None, "Run of BiDAF, which the small client asks.", required=True)
flags.DEFINE_string("bot", None, "Run of a memory network.", required=True)
flags.DEFINE_string("chat", None, "Run of seq2seq.", required=True)
flags.DEFINE_float("seconds", 15.0, "Duration of each attack.", lower_bound=1.0)
define_record_flags()

SMALL = {"instances": [{"passage": "Ann lives in Rome.", "question": "Where does Ann live?"}]}
LONG = {"passage": "Ann lives in Rome. " * 500, "question": "Where does Ann live?"}
WARM_UP = 20  # questions that trace and compile
UNREAD = 200  # requests of a client that does not read


class Server:
    """Requests to a server of this machine, each on a connection of its own."""

    def __init__(self, port):
        self.port = port

    def ask(self, path, body=None, headers=None, seconds=60):
        """Returns the status of an answer, which is read to its end; a `body` is posted."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        content = None if body is None else json.dumps(body)
        method = "GET" if body is None else "POST"
        all_headers = {"Content-Type": "application/json", **(headers or {})}
        with contextlib.closing(connection):
            connection.request(method, path, content, all_headers)
            response = connection.getresponse()
            response.read()
            return response.status

    def chat(self, model, text, **more):
        """Has a model said `text`, then asks it for a reply."""
        messages = [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": text},
            {"role": "user", "content": "hello"},
        ]
        return self.ask("/v1/chat/completions", {"model": model, "messages": messages, **more})


# === Attacks: a function that a client calls again and again, and the number of clients ===


def send_api_calls(server):
    return server.chat("bot", "api_call R_\n" * 500)


def leave_long_questions(server):
    try:
        return server.ask("/v1/models/reader:predict", {"instances": [LONG] * 2}, seconds=0.2)
    except TimeoutError:
        return "left"


def explain_long_question(server):
    instance = {"passage": "Ann lives in Rome. " * 20, "question": "Where does Ann live? " * 50}
    return server.ask("/v1/models/reader:explain", {"instances": [instance]})


def read_metadata(server):
    return server.ask("/v1/models/bot/metadata", headers={"Accept-Encoding": "gzip"})


def send_without_reading(server):
    request = b"GET /v1/models/bot/knowledge HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with contextlib.closing(socket.socket()) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(1)
        connection.connect(("127.0.0.1", server.port))
        with contextlib.suppress(OSError):
            connection.sendall(UNREAD * request)
        time.sleep(1)
    return "unread"


def stream(server):
    return server.chat("chat", "hello", stream=True)


def ask_for_strange_page(server):
    return server.ask(f"/pages/{'x' * 300}")


def come_by_another_name(server):
    return server.ask("/", headers={"Host": "colleague.example:8501"})


ATTACKS = {
    "none": (None, 0),
    "12 x api_call in a chat completion": (send_api_calls, 12),
    "12 x long questions, then gone": (leave_long_questions, 12),
    "2 x attention of a long question": (explain_long_question, 2),
    "8 x metadata with gzip": (read_metadata, 8),
    "20 x knowledge, unread": (send_without_reading, 20),
    "8 x streams of the chat": (stream, 8),
    "4 x names of 300 letters": (ask_for_strange_page, 4),
    "4 x another host name": (come_by_another_name, 4),
}


def main():
    runs = {"reader": FLAGS.reader, "bot": FLAGS.bot, "chat": FLAGS.chat}
    rows = []
    with serve(runs) as (process, port):
        server = Server(port)
        for _ in range(WARM_UP):
            server.ask("/v1/models/reader:predict", SMALL)
        server.chat("bot", "hello")
        server.chat("chat", "hello")
        for name, (attack, clients) in ATTACKS.items():
            latencies = measure_beside(server, attack, clients, FLAGS.seconds)
            megabytes, _ = read_usage(process)
            rows.append({"attack": name, **latencies, "memory_MB": megabytes})
            print(rows[-1], file=sys.stderr, flush=True)
    for row in rows:
        for field in ("p50", "p99"):
            row[f"{field}_ratio"] = row[f"{field}_ms"] / rows[0][f"{field}_ms"]
    report(rows, exit_code=process.returncode)


def measure_beside(server, attack, clients, seconds):
    """Returns what a small client sees while attackers send as fast as they are answered."""
    ended = threading.Event()
    statuses = set()

    def keep_attacking():
        while not ended.is_set():
            statuses.add(str(attack(server)))

    questions = []
    health_checks = []
    with concurrent.futures.ThreadPoolExecutor(max(clients, 1)) as pool:
        attackers = [pool.submit(keep_attacking) for _ in range(clients)]
        try:
            start = time.perf_counter()
            while time.perf_counter() - start < seconds:
                questions.append(time_small(server, "/v1/models/reader:predict", SMALL))
                health_checks.append(time_small(server, "/healthz"))
        finally:
            ended.set()
        for attacker in attackers:
            attacker.result()
    p50, p99 = np.percentile(questions, [50, 99], method="higher")
    return {
        "outcome": " ".join(sorted(statuses)),
        "questions": len(questions),
        "p50_ms": float(p50),
        "p99_ms": float(p99),
        "healthz_p50_ms": float(np.median(health_checks)),
    }


def time_small(server, path, body=None):
    """Returns the milliseconds until the answer to a small request."""
    start = time.perf_counter()
    status = server.ask(path, body)
    if status != 200:
        raise RuntimeError(f"{path} was answered with {status}")
    return 1000 * (time.perf_counter() - start)


if __name__ == "__main__":
    cli.run(main)
