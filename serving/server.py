"""The HTTP server: slow connections are closed, and SIGTERM waits for open requests."""

import asyncio
import contextlib
import os
import signal
import socket
import time

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from colloquy.base.files import UserError

KEEP_ALIVE = 20  # seconds of an idle connection between two requests
ARRIVAL_SECONDS = 20  # in which a request must arrive
WRITE_SECONDS = 10  # in which a client must read what the system does not hold for it
MOST_IDLE = 256  # idle connections
MOST_UNFINISHED = 256  # connections whose requests have not arrived
MOST_UNREAD = 128  # connections that do not read their answers
UNACCEPTED = 512  # connections that wait for the server to accept them


class Deadlines:
    """Connections of this process that must do something within some seconds.

    A connection that is late is closed. If there are more than `most`, the oldest is.
    """

    def __init__(self, most):
        self.most = most
        self._timers = {}  # by connection, the oldest first

    def __len__(self):
        return len(self._timers)

    def __contains__(self, connection):
        return connection in self._timers

    def start(self, connection, seconds):
        """Closes a connection after some seconds, unless it is stopped or has been started."""
        if connection in self._timers or connection.transport.is_closing():
            return
        loop = asyncio.get_running_loop()
        self._timers[connection] = loop.call_later(seconds, connection.transport.abort)
        if len(self._timers) > self.most:
            oldest = next(iter(self._timers))
            self.stop(oldest)
            oldest.transport.abort()

    def stop(self, connection):
        timer = self._timers.pop(connection, None)
        if timer is not None:
            timer.cancel()


class Protocol(AutoHTTPProtocol):
    """A connection that is closed if it is slow: idle, with its request, or reading its answer.

    By itself uvicorn would keep an answer for as long as its client likes.
    """

    idle = Deadlines(MOST_IDLE)
    unfinished = Deadlines(MOST_UNFINISHED)
    unread = Deadlines(MOST_UNREAD)

    def connection_made(self, transport):
        super().connection_made(transport)
        # `pause_writing` is called as soon as anything waits for the client.
        transport.set_write_buffer_limits(high=0)
        self.unfinished.start(self, ARRIVAL_SECONDS)

    def connection_lost(self, exc):
        for deadlines in (self.idle, self.unfinished, self.unread):
            deadlines.stop(self)
        super().connection_lost(exc)

    def pause_writing(self):
        super().pause_writing()
        self.unread.start(self, WRITE_SECONDS)

    def resume_writing(self):
        super().resume_writing()
        self.unread.stop(self)

    def data_received(self, data):
        self.idle.stop(self)
        super().data_received(data)
        cycle = self.cycle
        if cycle is not None and not cycle.more_body and not cycle.response_complete:
            self.unfinished.stop(self)  # the whole request is there
        elif self not in self.idle:
            self.unfinished.start(self, ARRIVAL_SECONDS)

    def on_response_complete(self):
        super().on_response_complete()
        if self.cycle is not None and self.cycle.response_complete:
            self.idle.start(self, KEEP_ALIVE)


def listen(host, port):
    """Makes a socket that listens at an address; connections wait until a server accepts them.

    An address that is taken or unknown is a `UserError`.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=UNACCEPTED)
    except OSError as error:
        raise UserError(f"--host={host} --port={port}: {error.strerror}") from error
    # Without it, an answer takes 40 ms more.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def raise_descriptor_limit():
    """Allows this process as many open connections and files as the system lets it have."""
    if os.name == "nt":
        return
    import resource

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
        app: The application of `serving.app`.
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
        """Lets no request in from now on."""
        if self.state.stopping:
            super().handle_exit(sig, frame)
        self.state.stopping = True
        self.deadline = time.monotonic() + self.grace_seconds
        self.interrupted = sig == signal.SIGINT

    async def on_tick(self, counter):
        """Ends the server when nothing is open or the grace is over.

        Uvicorn calls it ten times per second.
        """
        if self.state.stopping:
            if time.monotonic() > self.deadline:
                for model in self.state.models.values():
                    model.give_up()
                self.should_exit = True
            if not self.state.open_requests:
                self.should_exit = True
        return await super().on_tick(counter)

    def open(self):
        """Serves until it is ended; a `KeyboardInterrupt` if by SIGINT."""
        raise_descriptor_limit()
        print(f"{address_of(self.listening)} is open; Ctrl-C ends it", flush=True)
        self.run(sockets=[self.listening])
        if self.interrupted:
            raise KeyboardInterrupt
