"""Servers that benchmarks start and end, and a client of one."""

import contextlib
import http.client
import json
import os
import pathlib
import signal
import subprocess
import sys

from colloquy.base.files import UserError
from colloquy.benchmarks.turns import memory


@contextlib.contextmanager
def serve(runs):
    """Serves runs by name, and yields the process and its port; ends it as a supervisor would."""
    command = [sys.executable, "serve.py", "--port=0"]
    for name, run in runs.items():
        command.append(f"--run={name}={run}")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process, _wait_for_port(process)
        process.send_signal(signal.SIGTERM)
        process.wait(20)
    finally:
        process.kill()


def _wait_for_port(process):
    lines = []
    for line in process.stdout:
        if " is open" in line:
            address = line.split("/ is open")[0]
            return int(address.rpartition(":")[2])
        lines.append(line)
    raise UserError(f"the server did not start: {''.join(lines)}")


def read_usage(process):
    """Returns megabytes of a process, and its CPU time in seconds."""
    stat = pathlib.Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8")
    # The name of the program, in brackets, may hold spaces.
    fields = stat.rpartition(")")[2].split()
    user_ticks, system_ticks = int(fields[11]), int(fields[12])
    seconds = (user_ticks + system_ticks) / os.sysconf("SC_CLK_TCK")
    return memory("VmRSS", process.pid), seconds


class Client:
    """Requests to a server of this machine, each on a connection of its own."""

    def __init__(self, port):
        self.port = port

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
