"""tools.fuzz: a small fraction of its inputs, and that it sees the faults it looks for."""

import ctypes
import pickle
import random
import re

import pytest
from helpers import run_process

from base.files import UserError
from tools import fuzz, hostile


@pytest.fixture
def canary(tmp_path):
    return tmp_path / "canary"


def refuse(message):
    raise UserError(message)


@pytest.mark.parametrize(
    ("work", "outcome", "said"),
    [
        (lambda: [1, "a"], "accepted", ""),
        (lambda: refuse("a.pkl: expected a pickle"), "refused", "a.pkl: expected a pickle"),
        (lambda: refuse("x" * 601), "uncaught", "a message of 601 characters: xxx"),
        (lambda: refuse("a\nb"), "uncaught", "a message of 3 characters: a\nb"),
        (lambda: refuse("Received: MemoryError: "), "memory", "Received: MemoryError: "),
        (lambda: 1 / 0, "uncaught", "ZeroDivisionError: division by zero"),
        (lambda: exit(3), "uncaught", "SystemExit: 3"),
        (lambda: "\ud800", "uncaught", "UnicodeEncodeError"),
        (lambda: bytearray(2 * 10**9), "memory", ""),
        (lambda: ctypes.string_at(0), "crashed", "SIGSEGV"),
    ],
)
def test_attempt_tells_what_became_of_an_input(canary, work, outcome, said):
    found, message = fuzz.attempt(work, 1000, canary)
    assert found == outcome and message.startswith(said)


def test_attempt_sees_what_hangs_and_what_runs(canary, monkeypatch):
    monkeypatch.setattr(fuzz, "SECONDS", 1)

    def hang():
        while True:
            pass

    assert fuzz.attempt(hang, 0, canary) == ("hung", "SIGXCPU")
    assert fuzz.attempt(canary.touch, 0, canary)[0] == "executed"
    assert not canary.exists()


def test_the_pickles_are_hostile(canary):
    """Python's own unpickler runs some of them: the canary is a real one."""
    outcomes = []
    for number in range(60):
        content = hostile._attack(random.Random(number), canary)
        outcomes.append(fuzz.attempt(lambda content=content: pickle.loads(content), len(content), canary)[0])
    assert outcomes.count("executed") > 20


def found_by(**given):
    """What `python -m tools.fuzz` counts, `{kind: {outcome: count}}`; forks of this large process would take long."""
    done = run_process("-m", "tools.fuzz", *(f"--{name}={value}" for name, value in given.items()))
    assert done.returncode == 0, done.stdout + done.stderr
    found = {}
    for kind, counts in re.findall(r"^(\w+): (.* inputs, .*)$", done.stdout, re.MULTILINE):
        pairs = re.findall(r"(\d[\d,]*) (\w+)", counts)
        found[kind] = {outcome: int(count.replace(",", "")) for count, outcome in pairs}
    return found


def test_a_share_of_the_inputs():
    inputs = {"pickles": 60, "datasets": 60, "corpora": 120}
    found = found_by(**inputs, seed=7)
    assert {kind: outcomes["inputs"] for kind, outcomes in found.items()} == inputs
    for outcomes in found.values():
        assert outcomes["accepted"] + outcomes["refused"] == outcomes["inputs"]
        assert outcomes["accepted"] and outcomes["refused"]


@pytest.mark.slow
def test_a_larger_share_of_the_inputs():  # all of them take many minutes: `make fuzz`
    inputs = {"pickles": 150, "datasets": 150, "corpora": 400}
    for kind, outcomes in found_by(**inputs, seed=2).items():
        assert outcomes["accepted"] + outcomes["refused"] == outcomes["inputs"] == inputs[kind]
