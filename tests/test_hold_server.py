"""Attacks on a server, and what a small client beside each of them sees.

One server process serves small models for all tests. The limits are lower than by default, so that
an attack that gets through is noticed soon.
"""

import concurrent.futures
import contextlib
import http.client
import os
import signal
import socket
import time

import pytest
from echo import ask
from helpers import start_process

from colloquy.benchmarks.turns import memory

pytestmark = pytest.mark.slow
TIMEOUT_SECONDS = 10
SMALL_SECONDS = 5.0  # in which a small request is answered beside any attack
MEGABYTES = 400  # that an attack may cost


class Attacked:
    """A server process, and clients of it, each request on a connection of its own."""

    def __init__(self, process, port):
        self.process = process
        self.port = port
        self.megabytes_at_start = self.megabytes()

    def chat(self, model, text):
        """Has a model said `text`, then asks it for a reply."""
        messages = [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": text},
            {"role": "user", "content": "hello"},
        ]
        body = {"model": model, "messages": messages}
        return ask(self.port, "/v1/chat/completions", body)

    def ask_small(self):
        """Asks the reader a small question; returns the seconds until its answer."""
        start = time.perf_counter()
        instance = {"passage": "Ann lives in Rome.", "question": "Where does Ann live?"}
        status, _, _ = ask(self.port, "/v1/models/reader:predict", {"instances": [instance]})
        assert status == 200
        return time.perf_counter() - start

    def megabytes(self):
        return memory("VmRSS", self.process.pid)

    def count_descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def start_server(runs):
    flags = [f"--run={name}={path}" for name, path in runs.items()]
    process = start_process("serve.py", "--port=0", f"--timeout_seconds={TIMEOUT_SECONDS}", *flags)
    lines = []
    for line in process.stdout:
        lines.append(line)
        if " is open" in line:
            port = line.partition("/ is open")[0].rpartition(":")[2]
            return Attacked(process, int(port))
    raise AssertionError("".join(lines))


@pytest.fixture(scope="module")
def server(trained_dialog, trained_reading_comprehension):
    """A server of a bot and a reader."""
    runs = {
        "bot": trained_dialog.path,
        "reader": trained_reading_comprehension.path,
    }
    server = start_server(runs)
    with server.process:  # closes its pipes
        yield server
        server.process.kill()


LONG = {"passage": "Ann lives in Rome. " * 500, "question": "Where does Ann live?"}
HEAD = "Host: 127.0.0.1\r\nContent-Type: application/json\r\n"
NO_BODY = f"POST /v1/models/bot:predict HTTP/1.1\r\n{HEAD}Content-Length: 50\r\n\r\n"
IDLE = f"GET /healthz HTTP/1.1\r\n{HEAD}\r\n"


@pytest.mark.parametrize("sent", [NO_BODY, IDLE])
def test_a_flood_of_connections_leaves_room_for_others(server, sent):
    """Of clients that send no body, or nothing after their first request."""
    with contextlib.ExitStack() as opened:
        for _ in range(600):
            connection = opened.enter_context(socket.socket())
            connection.connect(("127.0.0.1", server.port))
            connection.sendall(sent.encode())
        for _ in range(10):
            assert server.ask_small() < SMALL_SECONDS
        assert server.count_descriptors() < 400
    assert server.megabytes() < server.megabytes_at_start + MEGABYTES


def test_sigterm_under_the_worst_requests_ends_within_the_grace(server):
    """The last test: it ends the server."""
    attacks = [
        lambda: ask(server.port, "/v1/models/reader:predict", {"instances": [LONG] * 2}),
        # These texts once took minutes: reading them grew with the square of their length.
        lambda: server.chat("bot", "a-" * 45_000 + "a"),
        lambda: server.chat("bot", "e" + "\u0301" * 60_000),
        lambda: server.chat("bot", "x\n" * 990),
    ]

    def run(attack):
        with contextlib.suppress(OSError, http.client.HTTPException):
            attack()

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        for attack in 3 * attacks:
            pool.submit(run, attack)
        time.sleep(0.5)
        start = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(60)
    assert server.process.returncode == 0
    grace_seconds = TIMEOUT_SECONDS + 5
    assert time.monotonic() - start < grace_seconds + 5
