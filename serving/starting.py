"""Shows the pages, and says how far the server is, before its models are there.

Importing TensorFlow takes seconds, in which Python runs no other thread. So a small process answers
on the same socket meanwhile: it sends the pages, which ask for the models until these answer; other
requests get status 503. It ends with the block of `starting`, or when this process ends.
"""

import contextlib
import http.server
import json
import os
import socket
import subprocess
import sys
import threading
import time

from colloquy.serving.page_files import INDEX, find_pages, headers_of, media_type

REPORT_SECONDS = 1.0
END_SECONDS = 2.0  # for requests that are being answered


class Progress:
    """The present step of the start, for people; it may be set again and again."""

    def __init__(self):
        self._step = "starting"
        self._readers = []

    @property
    def step(self):
        return self._step

    @step.setter
    def step(self, text):
        self._step = text
        for reader in self._readers:
            with contextlib.suppress(OSError):  # it has ended
                reader.write(f"{text}\n")
                reader.flush()

    @contextlib.contextmanager
    def told_to(self, reader):
        """For the block, writes each step as a line to `reader`."""
        self._readers.append(reader)
        try:
            yield
        finally:
            self._readers.remove(reader)


@contextlib.contextmanager
def starting(listening, progress):
    """For the block, shows the pages on the socket `listening`, and prints `progress` each second.

    On Windows, processes share no sockets this way, and nothing is shown.
    """
    if os.name == "nt":
        yield
        return
    number = listening.fileno()
    process = subprocess.Popen(
        [sys.executable, "-m", "colloquy.serving.starting", str(number)],
        stdin=subprocess.PIPE,
        pass_fds=[number],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        text=True,
    )
    try:
        with progress.told_to(process.stdin):
            yield
    finally:
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:  # a client sends its request slowly
            process.kill()
            process.wait()


# === The process that answers meanwhile ===


class _Handler(http.server.BaseHTTPRequestHandler):
    """Sends the pages, and status 503 for everything else."""

    timeout = 10  # seconds for a client to send its request
    server_version = "colloquy"
    sys_version = ""

    def do_GET(self):
        is_page = "text/html" in self.headers.get("Accept", "")
        path = self.path.partition("?")[0]
        name = INDEX if path == "/" and is_page else path.removeprefix("/pages/")
        file = find_pages().get(name)
        if file is None or path not in ("/", f"/pages/{name}"):
            self._refuse()
            return
        headers = {**headers_of(name), "Content-Type": media_type(file)}
        self._send(200, file.read_bytes(), headers)

    def _refuse(self):
        body = {"error": f"the server is starting: {self.server.step}"}
        headers = {"Content-Type": "application/json", "Retry-After": "1"}
        self._send(503, json.dumps(body).encode(), headers)

    do_POST = do_HEAD = do_PUT = do_DELETE = do_OPTIONS = _refuse

    def _send(self, status, body, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *arguments):
        """Logs nothing, as the server itself."""


class _Server(http.server.ThreadingHTTPServer):
    """Answers on a socket that listens already."""

    daemon_threads = False
    step = "starting"

    def __init__(self, listening):
        super().__init__(listening.getsockname(), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening

    def report(self, began):
        """Prints every second what is done, without end; first that the pages are there."""
        remark = f"; the pages are at port {self.server_address[1]} already"
        while True:
            time.sleep(REPORT_SECONDS)
            print(f"{time.monotonic() - began:.0f} s: {self.step}{remark}", flush=True)
            remark = ""


def main():
    began = time.monotonic()
    server = _Server(socket.socket(fileno=int(sys.argv[1])))
    for target, arguments in ((server.serve_forever, ()), (server.report, (began,))):
        threading.Thread(target=target, args=arguments, daemon=True).start()
    with contextlib.suppress(KeyboardInterrupt):
        for line in sys.stdin:  # it ends with the other process
            server.step = line.strip()
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    main()
