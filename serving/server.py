"""The HTTP server: the address that it listens at, and its end at SIGTERM."""

import contextlib
import resource
import signal
import socket
import time

import uvicorn

from colloquy.base.files import UserError
from colloquy.serving.connections import KEEP_ALIVE, Protocol

UNACCEPTED = 512
"""Connections that wait for the server to accept them; the system refuses more."""


def listen(host, port):
    """Makes a socket that listens at an address; connections wait until a server accepts them.

    An address that is taken or unknown is a `UserError`.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=UNACCEPTED)
    except OSError as error:
        raise UserError(f"--host={host} --port={port}: {error.strerror}") from error
    # Without this option, the system holds the end of an answer back for 40 ms.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def raise_descriptor_limit():
    """Allows this process as many open connections and files as the system lets it have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # macOS allows fewer than the hard limit that it names.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def address_of(listening):
    """The address of a socket for people: `http://127.0.0.1:8501/`."""
    host, port, *_ = listening.getsockname()
    if ":" in host:
        host = f"[{host}]"
    return f"http://{host}:{port}/"


class Server(uvicorn.Server):
    """A server that answers open requests at SIGTERM or SIGINT before it ends.

    A second signal ends it at once.

    Args:
        app: The application of `serving.app`. While `app.state.stopping`, it refuses requests.
        listening: A socket of `listen`.
        grace_seconds: Time for open requests; those left then get status 503.
    """

    def __init__(self, app, listening, grace_seconds):
        config = uvicorn.Config(
            app,
            http=Protocol,
            backlog=UNACCEPTED,
            log_level="warning",
            server_header=False,
            # `on_tick` waits for open requests. These seconds are for sending what is left.
            timeout_graceful_shutdown=2,
            timeout_keep_alive=KEEP_ALIVE,
        )
        super().__init__(config)
        self.state = app.state
        self.listening = listening
        self.grace_seconds = grace_seconds
        self.deadline = 0.0
        self.interrupted = False

    def handle_exit(self, sig, frame):
        """Begins to stop at a signal; at a second one, the server exits.

        Uvicorn calls it.
        """
        self.interrupted = sig == signal.SIGINT
        if self.state.stopping:
            super().handle_exit(sig, frame)
            return
        self.state.stopping = True
        self.deadline = time.monotonic() + self.grace_seconds

    async def on_tick(self, counter):
        """Exits when no request is open or the grace is over.

        Uvicorn calls it ten times per second.
        """
        if self.state.stopping:
            if not self.state.open_requests:
                self.should_exit = True
            if time.monotonic() > self.deadline:
                for model in self.state.models.values():
                    model.give_up()
                self.should_exit = True
        return await super().on_tick(counter)

    def open(self):
        """Serves until a signal ends it.

        Raises:
            KeyboardInterrupt: The signal was SIGINT.
        """
        raise_descriptor_limit()
        print(f"{address_of(self.listening)} is open; Ctrl-C ends it", flush=True)
        self.run(sockets=[self.listening])
        if self.interrupted:
            raise KeyboardInterrupt
