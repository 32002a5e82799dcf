"""serving/server.py on a port of this machine: the end at SIGTERM, and connections that send no request."""

import concurrent.futures
import contextlib
import http.client
import json
import signal
import socket
import sys
import threading
import time
import types

import numpy as np
import pytest

from engine.predictor import Size
from serving import server as serving_server
from serving.app import create_app
from serving.limits import Limits
from serving.server import Server, bind


class Running:
    """A server on a thread, whose model waits for `event`."""

    def __init__(self, grace_seconds):
        self.event, self.started = threading.Event(), threading.Event()
        model = types.SimpleNamespace(name="m", version="1", ready=True, metadata={}, answers=self.answers)
        model.valid, model.size, model.predictor = lambda instance, _: instance, lambda _: Size({}, 1, (1,)), model
        app = create_app({"m": model}, Limits(timeout_seconds=20, batch_milliseconds=0.0, max_batch=1))
        self.server = Server(app, bind("127.0.0.1", 0), grace_seconds)
        self.thread = threading.Thread(target=self.server.open, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        [listening] = self.server.servers[0].sockets
        self.port = listening.getsockname()[1]
        assert listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) and sys.getswitchinterval() < 0.001

    def answers(self, instances):
        self.started.set()
        assert self.event.wait(20)
        return instances

    def ask(self, path="/v1/models/m:predict", number=0):
        """Status, headers and JSON of an answer."""
        body = json.dumps({"instances": [{"number": number}]})
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)) as connection:
            connection.request("POST" if ":" in path else "GET", path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.headers, json.load(response)

    def end(self):
        self.event.set()
        self.thread.join(20)
        assert not self.thread.is_alive()


def test_ctrl_c_is_an_interruption_and_sigterm_a_normal_end():
    interrupted, ended = (Server(create_app({}, Limits()), bind("127.0.0.1", 0), 1.0) for _ in range(2))
    interrupted.handle_exit(signal.SIGINT, None)
    with pytest.raises(KeyboardInterrupt):
        interrupted.open()
    ended.handle_exit(signal.SIGTERM, None)
    ended.open()


@pytest.mark.parametrize(("grace_seconds", "status"), [(20, 200), (0.3, 503)])
def test_what_was_accepted_is_answered_or_refused_after_sigterm(grace_seconds, status):
    running = Running(grace_seconds)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(running.ask, number=number) for number in range(8)]
        assert running.started.wait(20)
        while running.server.state.requests < 8:
            time.sleep(0.01)
        running.server.handle_exit(signal.SIGTERM, None)
        code, headers, health = running.ask("/healthz")
        assert (code, health, headers["Retry-After"]) == (503, {"status": "stopping"}, "1")
        code, headers, refused = running.ask()
        assert code == 503 and headers["Retry-After"] == "1" and "is stopping" in refused["error"]
        if status == 200:
            running.event.set()
        found = [future.result() for future in asked]
    running.end()
    assert [code for code, _, _ in found] == [status] * 8
    if status == 200:
        assert [each["predictions"] for _, _, each in found] == [[{"number": number}] for number in range(8)]
    else:
        assert all(headers["Retry-After"] == "1" for _, headers, _ in found)


def test_connections_without_a_request_are_closed_and_leave_room_for_others(monkeypatch):
    monkeypatch.setattr(serving_server, "HEADER_SECONDS", 0.5)
    monkeypatch.setattr(serving_server, "UNFINISHED", 5)
    running = Running(20)
    idle = [socket.create_connection(("127.0.0.1", running.port)) for _ in range(9)]
    for connection in idle[4:]:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: ")
    assert running.ask("/healthz")[0] == 200
    begin, ended = time.monotonic(), []
    for connection in idle:
        connection.settimeout(5)
        try:
            ended.append(connection.recv(1))
        except ConnectionResetError:
            ended.append(b"")
        connection.close()
    assert ended == [b""] * 9 and time.monotonic() - begin < 3
    assert running.ask("/healthz")[0] == 200
    running.server.handle_exit(signal.SIGTERM, None)
    running.end()


def test_requests_have_their_turn_between_any_two_new_connections():
    running, waiting = Running(20), []
    loop = running.server.servers[0].get_loop()

    def count():
        waiting.append(len(serving_server.Protocol.waiting))
        if waiting[-1] < 40:
            loop.call_soon(count)

    loop.call_soon_threadsafe(time.sleep, 0.5)
    begin = time.monotonic()
    with contextlib.ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(socket.create_connection(("127.0.0.1", running.port)))
        assert time.monotonic() - begin < 0.5  # all wait: none was sent away to try again
        loop.call_soon_threadsafe(count)
        while waiting[-1:] != [40]:
            time.sleep(0.01)
    assert max(np.diff(waiting)) == 1
    running.server.handle_exit(signal.SIGTERM, None)
    running.end()
