"""Servers that benchmarks start and end."""

import contextlib
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
