"""Attacks on a server, and what a small client beside each of them sees.

One server process serves small models for all tests. The limits are lower than by default, so that
an attack that gets through is noticed soon.
"""

import concurrent.futures
import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import time

import pytest
from helpers import enlarge_weights, start_process

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

    def ask(self, path, body=None, headers=None, seconds=60):
        """Returns the status and the body of an answer; a `body` is posted."""
        content = None if body is None else json.dumps(body)
        method = "GET" if body is None else "POST"
        sent_headers = {"Content-Type": "application/json", **(headers or {})}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        with contextlib.closing(connection):
            connection.request(method, path, content, sent_headers)
            response = connection.getresponse()
            return response.status, response.read()

    def chat(self, model, text, **more):
        """Has a model said `text`, then asks it for a reply."""
        messages = [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": text},
            {"role": "user", "content": "hello"},
        ]
        return self.ask("/v1/chat/completions", {"model": model, "messages": messages, **more})

    def ask_small(self):
        """Asks the reader a small question; returns the seconds until its answer."""
        start = time.perf_counter()
        instance = {"passage": "Ann lives in Rome.", "question": "Where does Ann live?"}
        status, _ = self.ask("/v1/models/reader:predict", {"instances": [instance]})
        assert status == 200
        return time.perf_counter() - start

    def megabytes(self):
        return memory("VmRSS", self.process.pid)

    def count_descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    @contextlib.contextmanager
    def holding(self, attacks):
        """Runs functions on threads; meanwhile small requests are answered, and memory is kept."""
        before = self.megabytes()
        with concurrent.futures.ThreadPoolExecutor(len(attacks)) as pool:
            running = [pool.submit(attack) for attack in attacks]
            for _ in range(5):
                assert self.ask_small() < SMALL_SECONDS
                start = time.perf_counter()
                assert self.ask("/healthz")[0] == 200
                assert time.perf_counter() - start < SMALL_SECONDS
            yield running
        assert self.megabytes() < before + MEGABYTES


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
def server(trained_dialog, trained_reading_comprehension, tmp_path_factory):
    """A server of a bot, a reader, and two runs that are damaged."""
    damaged = tmp_path_factory.mktemp("damaged") / "run"
    shutil.copytree(trained_dialog.path, damaged)
    (damaged / "history.jsonl").write_text('{"step": 1}\n')
    (damaged / "notes").symlink_to(damaged / "nowhere")
    (damaged / "page.json").write_text("[]")
    largest = tmp_path_factory.mktemp("largest") / "run"
    shutil.copytree(trained_reading_comprehension.path, largest)
    enlarge_weights(largest)
    runs = {
        "bot": trained_dialog.path,
        "reader": trained_reading_comprehension.path,
        "damaged": damaged,
        "largest": largest,
    }
    server = start_server(runs)
    with server.process:  # closes its pipes
        yield server
        server.process.kill()


def test_calls_in_a_message_of_the_bot_expand_to_nothing(server):
    def attack():
        return server.chat("bot", "api_call R_\n" * 500)

    with server.holding([attack] * 4) as running:
        statuses = [answer.result()[0] for answer in running]
    assert set(statuses) <= {200, 400}


LONG = {"passage": "Ann lives in Rome. " * 500, "question": "Where does Ann live?"}


def test_clients_that_left_take_their_work_with_them(server):
    def attack():
        with contextlib.suppress(TimeoutError):
            server.ask("/v1/models/reader:predict", {"instances": [LONG] * 2}, seconds=0.2)

    with server.holding([attack] * 12):
        pass
    assert server.ask_small() < SMALL_SECONDS


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


def test_runs_that_are_damaged_are_left_out(server):
    status, content = server.ask("/v1/models")
    assert (status, json.loads(content)["models"]) == (200, ["bot", "reader"])


def test_sigterm_under_the_worst_requests_ends_within_the_grace(server):
    """The last test: it ends the server."""
    attacks = [
        lambda: server.ask("/v1/models/reader:predict", {"instances": [LONG] * 2}),
        # These texts once took minutes: reading them grew with the square of their length.
        lambda: server.chat("bot", "a-" * 45_000 + "a"),
        lambda: server.chat("bot", "e" + "\u0301" * 60_000),
        lambda: server.chat("bot", "x\n" * 990),
    ]

    def attack(ask):
        with contextlib.suppress(OSError, http.client.HTTPException):
            ask()

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        for ask in 3 * attacks:
            pool.submit(attack, ask)
        time.sleep(0.5)
        start = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(60)
    assert server.process.returncode == 0
    grace_seconds = TIMEOUT_SECONDS + 5
    assert time.monotonic() - start < grace_seconds + 5
