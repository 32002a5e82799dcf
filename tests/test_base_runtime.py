"""base/runtime.py, backend.py and machine.py: choices for machines of several kinds, made before
TensorFlow loads.
"""

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest
from helpers import ROOT, refusal, written

from colloquy.base import backend, machine, runtime
from colloquy.benchmarks.turns import memory
from colloquy.engine.devices import choose_precision, set_precision
from colloquy.models import MODELS
from colloquy.tasks import RECIPES

EPYC_ZEN3 = "flags\t\t: fpu sse4_2 fma avx avx2"
EPYC_ZEN5 = "flags\t\t: fpu avx2 avx512f avx512_vnni avx512_bf16"
SAPPHIRE_RAPIDS = "flags\t\t: fpu avx2 avx512f avx512_bf16 amx_bf16 amx_tile"


@pytest.fixture(autouse=True)
def nothing_said_yet():
    runtime.announce.cache_clear()


@pytest.fixture
def cpuinfo(tmp_path, monkeypatch):
    """A function that describes another CPU."""
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    (tmp_path / "proc").mkdir()

    def write(flags):
        text = f"processor\t: 0\nmodel name\t: Some CPU\n{flags}\nbogomips\t: 5199\n"
        written(tmp_path / "proc" / "cpuinfo", text)

    return write


# === The environment ===


@pytest.fixture
def environ(monkeypatch):
    """The environment of a process that has not loaded TensorFlow."""
    values = {}
    monkeypatch.setattr(os, "environ", values)
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
    return values


def test_what_the_user_set_wins_also_in_a_process_that_inherits_it(environ):
    environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
    for _ in range(2):  # the second time as in a process that this one starts
        runtime.prepare()
    assert environ["TF_ENABLE_ONEDNN_OPTS"] == "0"
    assert environ["TF_CPU_ALLOCATOR_USE_BFC"] == "true"
    assert environ["TF_CPP_MIN_LOG_LEVEL"] == "3"
    assert environ["TF_NUM_INTEROP_THREADS"] == str(machine.available_cpus())
    assert runtime.user_value("TF_ENABLE_ONEDNN_OPTS") == "0"
    assert runtime.user_value("TF_NUM_INTRAOP_THREADS") is None
    assert runtime.user_value("HOME") is None
    runtime.prepare(threads=7)
    assert environ["TF_NUM_INTRAOP_THREADS"] == environ["TF_NUM_INTEROP_THREADS"] == "7"
    assert runtime.user_value("TF_NUM_INTRAOP_THREADS") == "7"


def test_one_line_says_what_was_chosen(environ, cpuinfo):
    cpuinfo(SAPPHIRE_RAPIDS)
    runtime.prepare()
    assert runtime.describe() == (
        f"{machine.available_cpus()} threads, oneDNN on, BFC allocator, bfloat16 by AMX"
    )
    environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
    environ["TF_CPU_ALLOCATOR_USE_BFC"] = "false"
    environ["TF_NUM_INTRAOP_THREADS"] = "5"
    cpuinfo(EPYC_ZEN3)
    shown = runtime.describe()
    assert shown == "5 threads, oneDNN off, malloc allocator"


def test_the_line_is_printed_once(capsys):
    for _ in range(2):
        set_precision("float32")  # says it, once
    line = f"runtime: {runtime.describe()}; tensorflow on a CPU, computing in float32\n"
    assert capsys.readouterr() == ("", line)


def test_freed_arrays_return_to_the_system():
    np.ones(2**19)  # 4 MB: by itself glibc would take the next ones from the heap
    before = memory("RssAnon")
    arrays = [np.ones(size) for size in [2**19, 2**12] * 32]
    del arrays[::2]
    assert memory("RssAnon") - before < 40


def write_control_groups(root, cgroup, files):
    for path, text in {"proc/self/cgroup": cgroup, **files}.items():
        file = root / (path if path.startswith("proc") else f"sys/fs/cgroup/{path}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


@pytest.mark.parametrize(
    ("cgroup", "files", "expected"),
    [
        ("", {}, 11),
        ("0::/\n", {"cpu.max": "max 100000\n"}, 11),
        ("0::/\n", {"cpu.max": "250000 100000\n"}, 3),
        ("0::/\n", {"cpu.max": "20000 100000\n"}, 1),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "200000 100000\n"}, 2),
        ("0::/outside/of/the/container\n", {"cpu.max": "500000 100000\n"}, 5),
    ],
)
def test_available_cpus_respects_affinity_and_control_groups(
    tmp_path, monkeypatch, cgroup, files, expected
):
    write_control_groups(tmp_path, cgroup, files)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(11)))
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    assert machine.available_cpus() == expected
    memory = {"a/memory.max": "max\n", "memory.max": "7000000\n"}
    write_control_groups(tmp_path, "0::/a\n", memory)
    assert machine.available_memory() == 7_000_000


# === Precision ===


@pytest.mark.parametrize(
    ("asked", "flags", "gains", "gpu", "expected", "is_slow"),
    [
        ("auto", EPYC_ZEN3, True, False, "float32", False),
        ("auto", EPYC_ZEN3, True, True, "bfloat16", False),
        ("auto", EPYC_ZEN5, True, False, "float32", False),
        ("auto", SAPPHIRE_RAPIDS, True, False, "bfloat16", False),
        ("auto", SAPPHIRE_RAPIDS, False, False, "float32", False),
        ("bfloat16", SAPPHIRE_RAPIDS, False, False, "bfloat16", False),
        ("bfloat16", EPYC_ZEN5, True, False, "bfloat16", True),
        ("float16", SAPPHIRE_RAPIDS, True, False, "float16", True),
    ],
)
def test_choose_precision(
    cpuinfo, capsys, monkeypatch, asked, flags, gains, gpu, expected, is_slow
):
    cpuinfo(flags)
    monkeypatch.setattr("colloquy.engine.devices.has_gpu", lambda: gpu)
    for _ in range(2):  # a warning is given once
        assert choose_precision(asked, gains) == expected
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == is_slow
    for line in lines:
        assert line.startswith("warning: ") and asked in line and "slower than float32" in line


# === Before TensorFlow ===

WATCH = """
import importlib.abc, os, runpy, sys

class Watch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "tensorflow":
            names = "TF_ENABLE_ONEDNN_OPTS", "TF_CPU_ALLOCATOR_USE_BFC", "TF_CPP_MIN_LOG_LEVEL"
            print(*(os.environ.get(name) for name in names), flush=True)
            os._exit(7)

sys.meta_path.insert(0, Watch())
sys.argv = sys.argv[1:]
sys.path.insert(0, "")
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run_python(program, *arguments, **environment):
    """Runs a program without the choices that this process made."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TF_", "ONEDNN_", "RUNTIME_"))
    }
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, cwd=ROOT, env=kept | environment, capture_output=True, text=True)


@pytest.mark.parametrize("command", ["train.py --workdir=x", "serve.py --run=m=x"])
def test_scripts_choose_before_tensorflow_loads(command):
    result = run_python(WATCH, *command.split(), TF_CPP_MIN_LOG_LEVEL="1")
    printed = result.stdout.removeprefix("loading TensorFlow and the models\n")
    assert (result.returncode, printed) == (7, "1 true 1\n"), result.stderr


IMPORT = """
import gc, sys
from colloquy.base import backend, cli, runtime
backend.import_keras()
"""


@pytest.mark.slow
def test_import_keras_drops_log_lines_and_matplotlib_and_freezes_what_it_loads():
    program = f"{IMPORT}import tensorflow; tensorflow.config.list_physical_devices()"
    shown = "print(gc.isenabled(), gc.get_freeze_count() > 10**5, *sys.modules)"
    done = run_python(f"{program}; sys.stderr.write('x'); {shown}")
    assert done.stderr == "x"
    is_enabled, is_frozen, *modules = done.stdout.split()
    assert (is_enabled, is_frozen) == ("True", "True")
    assert "keras" in modules and "matplotlib" not in modules


def test_recipes_that_were_measured_pin_a_precision_that_auto_would_change():
    gaining = {
        name: recipe for name, recipe in RECIPES.items() if MODELS[recipe.model].gains_in_bfloat16
    }
    unpinned = {name for name, recipe in gaining.items() if "precision" not in recipe.settings()}
    # which were not measured here
    assert gaining and unpinned <= {"dam-ubuntu-v1", "dam-douban", "dam-ecommerce"}


# === The backend ===


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("foo", "KERAS_BACKEND expects one of tensorflow, jax, torch. Received: foo"),
        ("jax", "KERAS_BACKEND=jax needs a package: pip install 'colloquy[jax]'"),
    ],
)
def test_a_backend_that_is_unknown_or_missing_gets_one_sentence(name, message, monkeypatch):
    monkeypatch.delitem(sys.modules, "keras")
    monkeypatch.setenv("KERAS_BACKEND", name)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert message in refusal(backend.import_keras)


@pytest.mark.parametrize(
    "statement",
    [
        "from colloquy.layers import masking",
        "from colloquy.models import MODELS; MODELS['dam'].build",
    ],
)
def test_a_layer_and_a_model_refuse_a_backend_before_keras_is_loaded(statement):
    result = run_python(statement, KERAS_BACKEND="foo")
    *trace, last = result.stderr.splitlines()
    assert last.startswith("colloquy.base.files.UserError: KERAS_BACKEND expects one of ")
    assert result.returncode == 1 and not [line for line in trace if "/keras/" in line]


def test_the_backend_is_that_of_the_environment_or_of_keras_file(tmp_path, monkeypatch):
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    assert backend.keras_backend() == "tensorflow"
    written(tmp_path / "keras.json", '{"backend": "torch"}')
    assert backend.keras_backend() == "torch"
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    assert backend.keras_backend() == "jax"
