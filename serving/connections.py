"""Connections to the HTTP server, which are closed if their clients are slow.

uvicorn closes only idle connections. Others would stay as long as their client likes.
"""

import asyncio

from uvicorn.protocols.http.auto import AutoHTTPProtocol

KEEP_ALIVE = 20
"""Seconds that a connection may be idle between two requests."""
ARRIVAL_SECONDS = 20
"""Seconds in which a request must arrive."""
WRITE_SECONDS = 10
"""Seconds in which a client must read an answer, but for the end that fits the system's buffers."""
MOST_IDLE = 256
"""Idle connections; if there are more, the oldest is closed."""
MOST_UNFINISHED = 256
"""Connections whose requests have not arrived; if there are more, the oldest is closed."""
MOST_UNREAD = 128
"""Connections that do not read their answers; if there are more, the oldest is closed."""


class Deadlines:
    """Connections that wait for the same thing of their clients, and their timers.

    A connection is closed when its time is over. If there are more than `most`, the oldest is.
    """

    def __init__(self, most):
        self.most = most
        self._timers = {}  # by connection, the oldest first

    def start(self, connection, seconds):
        """Closes a connection after some seconds. A timer that runs already is left as it is."""
        if connection in self._timers or connection.transport.is_closing():
            return
        loop = asyncio.get_running_loop()
        self._timers[connection] = loop.call_later(seconds, connection.transport.abort)
        if len(self._timers) > self.most:
            oldest = next(iter(self._timers))
            self.stop(oldest)
            oldest.transport.abort()

    def stop(self, connection):
        """Stops the timer of a connection, if it has one."""
        timer = self._timers.pop(connection, None)
        if timer is not None:
            timer.cancel()


class Protocol(AutoHTTPProtocol):
    """A connection of uvicorn that is closed if its client is slow.

    asyncio and uvicorn call its methods. `self.cycle` is the last request and its answer.
    """

    idle = Deadlines(MOST_IDLE)
    unfinished = Deadlines(MOST_UNFINISHED)
    unread = Deadlines(MOST_UNREAD)

    def connection_made(self, transport):
        super().connection_made(transport)
        # With a limit of 0, `pause_writing` is called as soon as the system's buffer is full, and
        # `resume_writing` when all of an answer is in it.
        transport.set_write_buffer_limits(high=0)
        self.unfinished.start(self, ARRIVAL_SECONDS)

    def connection_lost(self, exc):
        for deadlines in (self.idle, self.unfinished, self.unread):
            deadlines.stop(self)
        super().connection_lost(exc)

    def data_received(self, data):
        self.idle.stop(self)
        super().data_received(data)
        # Without a cycle, or after its answer, the data are the beginning of a request.
        is_new_request = self.cycle is None or self.cycle.response_complete
        if is_new_request or self.cycle.more_body:
            self.unfinished.start(self, ARRIVAL_SECONDS)
        else:
            self.unfinished.stop(self)

    def on_response_complete(self):
        super().on_response_complete()
        # A client may send the next request before the answer: then it is the cycle by now.
        if self.cycle is not None and self.cycle.response_complete:
            self.idle.start(self, KEEP_ALIVE)

    def pause_writing(self):
        super().pause_writing()
        self.unread.start(self, WRITE_SECONDS)

    def resume_writing(self):
        super().resume_writing()
        self.unread.stop(self)
