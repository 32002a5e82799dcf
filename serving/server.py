"""The HTTP server: connections whose headers do not arrive are closed, and SIGTERM waits for open
requests.
"""

import asyncio
import signal
import socket
import sys
import time

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from colloquy.base.files import UserError

# seconds of an idle connection: longer than clients keep one, else they use one that closes
KEEP_ALIVE = 75
HEADER_SECONDS = 10  # in which the headers of a request arrive
# connections that may send no request, or part of its headers; beyond, the oldest is closed
UNFINISHED = 256
UNACCEPTED = 2048  # connections that wait for the server to accept them
SWITCH_SECONDS = 0.00005
"""Time after which a thread that computes in Python lets another one, of 5 ms by default; a small
request waits for its turn some twenty times."""


class Protocol(AutoHTTPProtocol):
    """A connection that has `HEADER_SECONDS` for the headers of each request."""

    waiting = {}
    """`{connection: timer}` of all connections of this process without a request, the oldest
    first.
    """

    def connection_made(self, transport):
        super().connection_made(transport)
        self._watch()

    def connection_lost(self, exc):
        self._forget()
        super().connection_lost(exc)

    def data_received(self, data):
        super().data_received(data)
        self._watch()

    def _watch(self):
        """Starts the timer where a request is to come, and stops it once its headers are there."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._forget()
        elif self not in self.waiting and not self.transport.is_closing():
            self.waiting[self] = asyncio.get_running_loop().call_later(
                HEADER_SECONDS, self.transport.abort
            )
            if len(self.waiting) > UNFINISHED:
                next(iter(self.waiting)).transport.abort()

    def _forget(self):
        if timer := self.waiting.pop(self, None):
            timer.cancel()


def bind(host, port):
    """A socket at an address, that accepts nothing yet; one that is taken or unknown is a
    `UserError`.
    """
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # else an answer takes 40 ms more
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise UserError(f"--host={host} --port={port}: {error.strerror}") from error
    return listening


class Server(uvicorn.Server):
    """A server that at SIGTERM or SIGINT answers what is open before it ends; a second signal ends
    it at once.

    `listening` is a socket of `bind`. Open requests have `grace_seconds`; those left then get
    status 503.
    """

    def __init__(self, app, listening, grace_seconds):
        options = {"log_level": "warning", "server_header": False, "http": Protocol, "backlog": 1}
        times = {"timeout_graceful_shutdown": 2, "timeout_keep_alive": KEEP_ALIVE}
        super().__init__(uvicorn.Config(app, **options, **times))
        self.state, self.listening, self.grace_seconds = app.state, listening, grace_seconds
        self.deadline, self.interrupted = 0, False

    async def startup(self, sockets=None):
        """Accepts one connection at once, the backlog, so that a thousand new ones do not keep
        requests waiting.
        """
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(UNACCEPTED)

    def handle_exit(self, sig, frame):
        """Lets no request in from now on."""
        if self.state.stopping:
            super().handle_exit(sig, frame)
        self.state.stopping, self.deadline = True, time.monotonic() + self.grace_seconds
        self.interrupted = sig == signal.SIGINT

    async def on_tick(self, counter):
        """Sets `should_exit` when nothing is open or the grace is over; uvicorn calls it ten times
        per second.
        """
        if self.state.stopping and time.monotonic() > self.deadline:
            for model in self.state.models.values():
                model.give_up()
            self.should_exit = True
        self.should_exit |= self.state.stopping and not self.state.requests
        return await super().on_tick(counter)

    def open(self):
        """Serves until it is ended; a `KeyboardInterrupt` if by SIGINT."""
        sys.setswitchinterval(SWITCH_SECONDS)
        host, port, *_ = self.listening.getsockname()
        try:
            self.listening.listen()
        except OSError as error:  # another server was bound to the port at the same moment
            raise UserError(f"--host={host} --port={port}: {error.strerror}") from error
        print(
            f"http://{f'[{host}]' if ':' in host else host}:{port}/ is open; Ctrl-C ends it",
            flush=True,
        )
        self.run(sockets=[self.listening])
        if self.interrupted:
            raise KeyboardInterrupt
