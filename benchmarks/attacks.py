"""Measures a small client alone, and beside each of the attacks that a server must hold.

    python -m colloquy.benchmarks.attacks --reader=pretrained/bidaf-squad \\
        --bot=pretrained/entity-memma-task5 --chat=pretrained/chat-dailydialog

Starts one `serve.py` with three models on a free port of this machine and ends it. The small client
asks the reader a short question, the bot for a reply, then `/healthz`, again and again. Beside it
run, one after the other, the attacks of `tests/test_hold_server.py` with more clients. A model has
one worker, so who asks the model that is attacked waits for what is being computed; the others must
not. Clients, attackers and server share the cores.
"""

import concurrent.futures
import contextlib
import socket
import sys
import threading
import time

import numpy as np
from absl import flags

from colloquy.base import cli
from colloquy.benchmarks.servers import Client, read_usage, serve
from colloquy.benchmarks.turns import define_record_flags, report

FLAGS = flags.FLAGS
flags.DEFINE_string("reader", None, "Run of BiDAF, which the small client asks.", required=True)
flags.DEFINE_string("bot", None, "Run of a memory network.", required=True)
flags.DEFINE_string("chat", None, "Run of seq2seq.", required=True)
flags.DEFINE_float("seconds", 15.0, "Duration of each attack.", lower_bound=1.0)
define_record_flags()

SMALL = {
    "reader": {"passage": "Ann lives in Rome.", "question": "Where does Ann live?"},
    "bot": {"history": [{"speaker": "user", "text": "hello"}]},
}
"""An instance for each model that the small client asks."""
LONG = {"passage": "Ann lives in Rome. " * 500, "question": "Where does Ann live?"}
WARM_UP = 20  # questions that trace and compile
UNREAD = 200  # requests of a client that does not read


class Server(Client):
    """A server with a model for each name in `SMALL`, and a model `chat`."""

    def status_of(self, path, body=None, **options):
        """Returns the status of an answer, see `Client.ask`."""
        status, _ = self.ask(path, body, **options)
        return status

    def ask_small(self, target):
        """Asks a model of `SMALL` its instance, or `healthz` whether the server lives."""
        if target == "healthz":
            return self.status_of("/healthz")
        return self.status_of(f"/v1/models/{target}:predict", {"instances": [SMALL[target]]})


# === Attacks: functions that a client calls again and again ===


def send_api_calls(server):
    status, _ = server.chat("bot", "api_call R_\n" * 500)
    return status


def leave_long_questions(server):
    try:
        return server.status_of("/v1/models/reader:predict", {"instances": [LONG] * 2}, seconds=0.2)
    except TimeoutError:
        return "left"


def explain_long_question(server):
    instance = {"passage": "Ann lives in Rome. " * 20, "question": "Where does Ann live? " * 50}
    return server.status_of("/v1/models/reader:explain", {"instances": [instance]})


def read_metadata(server):
    return server.status_of("/v1/models/bot/metadata", headers={"Accept-Encoding": "gzip"})


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
    status, _ = server.chat("chat", "hello", stream=True)
    return status


def ask_for_strange_page(server):
    return server.status_of(f"/pages/{'x' * 300}")


def come_by_another_name(server):
    return server.status_of("/", headers={"Host": "colleague.example:8501"})


ATTACKS = {
    "12 x api_call in a chat completion": (send_api_calls, 12, "bot"),
    "12 x long questions, then gone": (leave_long_questions, 12, "reader"),
    "2 x attention of a long question": (explain_long_question, 2, "reader"),
    "8 x metadata with gzip": (read_metadata, 8, None),
    "20 x knowledge, unread": (send_without_reading, 20, None),
    "8 x streams of the chat": (stream, 8, "chat"),
    "4 x names of 300 letters": (ask_for_strange_page, 4, None),
    "4 x another host name": (come_by_another_name, 4, None),
}
"""Name -> the function, the number of clients, the model that computes for them."""


def main():
    runs = {"reader": FLAGS.reader, "bot": FLAGS.bot, "chat": FLAGS.chat}
    rows = []
    with serve(runs) as (process, port):
        server = Server(port)
        for _ in range(WARM_UP):
            for model in SMALL:
                server.ask_small(model)
        server.chat("chat", "hello")
        alone = measure_beside(server, None, 0, FLAGS.seconds)
        for name, (attack, clients, attacked) in ATTACKS.items():
            measured = measure_beside(server, attack, clients, FLAGS.seconds)
            outcome = measured.pop("outcome")
            for model, latencies in measured.items():
                row = {
                    "attack": name,
                    "outcome": outcome,
                    "small_client_asks": model,
                    "which_is_attacked": "yes" if model == attacked else "no",
                }
                for field, value in latencies.items():
                    row[f"{field}_alone"] = alone[model][field]
                    row[field] = value
                    row[f"{field}_ratio"] = value / alone[model][field]
                row["memory_MB"] = read_usage(process)[0]
                rows.append(row)
                print(row, file=sys.stderr, flush=True)
    report(rows, exit_code=process.returncode)


def measure_beside(server, attack, clients, seconds):
    """Measures a small client while attackers send as fast as they are answered.

    Returns:
        `{model: latencies}` and `{"outcome": statuses that the attackers got}`.
    """
    ended = threading.Event()
    statuses = set()

    def keep_attacking():
        while not ended.is_set():
            statuses.add(str(attack(server)))

    milliseconds = {target: [] for target in (*SMALL, "healthz")}
    with concurrent.futures.ThreadPoolExecutor(max(clients, 1)) as pool:
        attackers = [pool.submit(keep_attacking) for _ in range(clients)]
        try:
            start = time.perf_counter()
            while time.perf_counter() - start < seconds:
                for target, times in milliseconds.items():
                    times.append(time_small(server, target))
        finally:
            ended.set()
        for attacker in attackers:
            attacker.result()
    result = {"outcome": " ".join(sorted(statuses))}
    for target, times in milliseconds.items():
        p50, p99 = np.percentile(times, [50, 99], method="higher")
        result[target] = {"p50_ms": float(p50), "p99_ms": float(p99)}
    return result


def time_small(server, target):
    """Returns the milliseconds until the answer to a small request."""
    start = time.perf_counter()
    status = server.ask_small(target)
    if status != 200:
        raise RuntimeError(f"{target} answered with {status}")
    return 1000 * (time.perf_counter() - start)


if __name__ == "__main__":
    cli.run(main)
