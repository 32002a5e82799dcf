"""The HTTP server: slow connections are closed, and SIGTERM waits for open requests."""

import asyncio
import signal
import socket
import sys
import time

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from colloquy.base.files import UserError

# Seconds of an idle connection. Clients keep one for less, so they use none that closes.
KEEP_ALIVE = 75
HEADER_SECONDS = 10  # in which the headers of a request must arrive
WRITE_SECONDS = 30  # in which a client must read what the system does not hold for it
# Connections without a complete request. Beyond this number the oldest is closed.
UNFINISHED = 256
UNACCEPTED = 2048  # connections that wait for the server to accept them
# Time after which a computing Python thread lets another one run, 5 ms by default. A small request
# waits for its turn some twenty times.
SWITCH_SECONDS = 0.00005


class Protocol(AutoHTTPProtocol):
    """A connection that has `HEADER_SECONDS` for the headers of each request.

    A client that does not read its answer within `WRITE_SECONDS` loses it: by itself uvicorn would
    keep the answer for as long as the client likes.
    """

    waiting = {}
    """`{connection: timer}` of this process's connections without a request, the oldest first."""

    def connection_made(self, transport):
        super().connection_made(transport)
        self._writing = None
        # `pause_writing` is called as soon as anything waits for the client.
        transport.set_write_buffer_limits(high=0)
        self._watch()

    def connection_lost(self, exc):
        self._forget()
        self._stop_writing_timer()
        super().connection_lost(exc)

    def pause_writing(self):
        super().pause_writing()
        loop = asyncio.get_running_loop()
        self._writing = loop.call_later(WRITE_SECONDS, self.transport.abort)

    def resume_writing(self):
        super().resume_writing()
        self._stop_writing_timer()

    def _stop_writing_timer(self):
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def data_received(self, data):
        super().data_received(data)
        self._watch()

    def _watch(self):
        """Starts the timer where a request is to come, and stops it once its headers are there."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._forget()
        elif self not in self.waiting and not self.transport.is_closing():
            loop = asyncio.get_running_loop()
            self.waiting[self] = loop.call_later(HEADER_SECONDS, self.transport.abort)
            if len(self.waiting) > UNFINISHED:
                next(iter(self.waiting)).transport.abort()

    def _forget(self):
        timer = self.waiting.pop(self, None)
        if timer is not None:
            timer.cancel()


def bind(host, port):
    """Makes a socket at an address, which accepts nothing yet.

    An address that is taken or unknown is a `UserError`.
    """
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Without it, an answer takes 40 ms more.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise UserError(f"--host={host} --port={port}: {error.strerror}") from error
    return listening


def listen(listening):
    """Lets a socket of `bind` accept connections; a `UserError` if another server does already."""
    try:
        listening.listen()
    except OSError as error:  # it was bound to the port at the same moment
        host, port, *_ = listening.getsockname()
        raise UserError(f"--host={host} --port={port}: {error.strerror}") from error


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
        listening: A socket of `bind`.
        grace_seconds: Time for open requests; those left then get status 503.
    """

    def __init__(self, app, listening, grace_seconds):
        config = uvicorn.Config(
            app,
            http=Protocol,
            backlog=1,
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

    async def startup(self, sockets=None):
        """Sets how many connections may wait.

        The backlog of 1 lets asyncio accept one connection at once, so that a thousand new ones do
        not keep requests waiting.
        """
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(UNACCEPTED)

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
        sys.setswitchinterval(SWITCH_SECONDS)
        listen(self.listening)
        print(f"{address_of(self.listening)} is open; Ctrl-C ends it", flush=True)
        self.run(sockets=[self.listening])
        if self.interrupted:
            raise KeyboardInterrupt
