"""Set-up of tests: environment, number of workers."""

import os
import signal

import pytest

from colloquy.base import machine, runtime

# Workers share the cores, so each computes on one. Scripts that run in this process leave the
# number as it is.
runtime.prepare(threads=1 if "PYTEST_XDIST_WORKER" in os.environ else machine.available_cpus())
WORKER_BYTES = 3 * 2**30  # peak memory of one test worker


def pytest_configure():
    """Restores SIGINT, which tests send: a shell makes background processes ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Workers of `-n auto`: one per available CPU, fewer if memory is short."""
    return max(1, min(machine.available_cpus(), machine.available_memory() // WORKER_BYTES))
