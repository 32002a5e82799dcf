"""serving/server.py and connections.py on a port of this machine: the end at SIGTERM, and
connections that send no request.
"""

import concurrent.futures
import contextlib
import json
import resource
import signal
import socket
import time

import pytest
from echo import Echo, Running, ask, served
from helpers import until

from colloquy.serving import connections as serving_connections
from colloquy.serving.app import create_app
from colloquy.serving.limits import Limits
from colloquy.serving.server import Server, listen

ONE_BY_ONE = Limits(timeout_seconds=20, instances=1)


def predict(running, text=""):
    return ask(
        running.port, "/v1/models/echo:predict", {"instances": [{"text": text, "wait": True}]}
    )


def test_ctrl_c_is_an_interruption_and_sigterm_a_normal_end():
    interrupted, ended = (
        Server(create_app({"echo": served(Echo())}, Limits()), listen("127.0.0.1", 0), 1.0)
        for _ in range(2)
    )
    interrupted.handle_exit(signal.SIGINT, None)
    with pytest.raises(KeyboardInterrupt):
        interrupted.open()
    ended.handle_exit(signal.SIGTERM, None)
    ended.open()


@pytest.mark.parametrize(("grace_seconds", "status"), [(20, 200), (0.3, 503)])
def test_what_was_accepted_is_answered_or_refused_after_sigterm(grace_seconds, status):
    running = Running(ONE_BY_ONE, grace_seconds=grace_seconds)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(predict, running, "x" * number) for number in range(8)]
        until(lambda: running.echo.calls and running.server.state.open_requests == 8)
        running.server.handle_exit(signal.SIGTERM, None)
        code, headers, health = ask(running.port, "/healthz")
        assert (code, health, headers["Retry-After"]) == (503, {"status": "stopping"}, "1")
        code, headers, refused = predict(running)
        assert code == 503 and headers["Retry-After"] == "1" and "is stopping" in refused["error"]
        if status == 200:
            running.echo.event.set()
        found = [future.result() for future in asked]
    running.end()
    assert [code for code, _, _ in found] == [status] * 8
    if status == 200:
        lengths = [answer["predictions"][0]["length"] for _, _, answer in found]
        assert lengths == list(range(8))
    else:
        assert all(headers["Retry-After"] == "1" for _, headers, _ in found)


def closed_connections(connections):
    """How many of some connections the server closes within five seconds."""
    ended = 0
    for connection in connections:
        connection.settimeout(5)
        with contextlib.suppress(ConnectionResetError):
            while connection.recv(4096):
                pass
        ended += 1
        connection.close()
    return ended


def test_connections_without_a_request_are_closed_and_leave_room_for_others(monkeypatch):
    monkeypatch.setattr(serving_connections, "ARRIVAL_SECONDS", 0.5)
    running = Running(ONE_BY_ONE)
    silent = [socket.create_connection(("127.0.0.1", running.port)) for _ in range(9)]
    for connection in silent[3:6]:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: ")
    for connection in silent[6:]:
        connection.sendall(b"POST /v1/models/echo:predict HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        connection.sendall(b"Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{")
    assert ask(running.port, "/healthz")[0] == 200
    begin = time.monotonic()
    assert closed_connections(silent) == 9
    assert time.monotonic() - begin < 4
    assert ask(running.port, "/healthz")[0] == 200
    running.end()


HEALTH = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def test_idle_connections_are_short(monkeypatch):
    monkeypatch.setattr(serving_connections, "KEEP_ALIVE", 0.5)
    running = Running(ONE_BY_ONE)
    idle = []
    for _ in range(6):
        connection = socket.create_connection(("127.0.0.1", running.port))
        connection.sendall(HEALTH)
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        idle.append(connection)
    assert closed_connections(idle) == 6
    running.end()


@pytest.mark.parametrize(
    ("deadlines", "sent"),
    [("unfinished", b""), ("unfinished", HEALTH[:20]), ("idle", HEALTH)],
    ids=["silent", "half a request", "idle"],
)
def test_the_oldest_of_too_many_connections_are_closed_before_their_time(
    deadlines, sent, monkeypatch
):
    monkeypatch.setattr(serving_connections.Protocol, deadlines, serving_connections.Deadlines(5))
    running = Running(ONE_BY_ONE)
    with contextlib.ExitStack() as opened:
        connections = []
        for _ in range(9):
            connection = socket.create_connection(("127.0.0.1", running.port))
            opened.callback(connection.close)
            connection.sendall(sent)
            connections.append(connection)
        assert closed_connections(connections[:4]) == 4
    running.end()


def test_the_soft_limit_of_descriptors_is_raised():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Many systems have equal limits: there nothing would be left to raise.
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))
    running = Running(ONE_BY_ONE)
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    running.end()


def test_a_client_that_does_not_read_its_answers_loses_them(monkeypatch):
    monkeypatch.setattr(serving_connections, "WRITE_SECONDS", 0.5)
    running = Running(Limits(max_rows=100_000))
    body = json.dumps({"instances": [{"text": "x" * 90_000}]})
    head = "POST /v1/models/echo:predict HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with contextlib.closing(socket.socket()) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", running.port))
        connection.settimeout(10)
        # The answers to 9 MB of requests exceed what the system holds.
        with contextlib.suppress(ConnectionError):
            connection.sendall(100 * (head + body).encode())
        until(lambda: running.server.server_state.connections == set())
    assert ask(running.port, "/healthz")[0] == 200
    running.end()
