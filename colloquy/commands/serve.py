"""Serves trained models: REST for programs, pages for people.

python serve.py                      # all models of pretrained/ and runs/, and that of make demo
python serve.py --run=dam=runs/dam --index=dam=build/index --run=reader=runs/bidaf --port=8501
python serve.py --run=dam=runs/dam --ray --replicas=1:4     # Ray Serve; needs the extra `ray`
"""

import importlib.util
import os
import pathlib
import re
import socket
import sys
from typing import Any

from absl import flags

from colloquy.base import backend, cli, machine, runtime, script_flags
from colloquy.base.files import UserError
from colloquy.engine.run_files import find_named_runs, find_run
from colloquy.serving.access import Access
from colloquy.serving.limits import Limits

FLAGS = flags.FLAGS
flags.DEFINE_multi_string("run", [], "NAME=DIR or DIR: a run directory; may be repeated.")
flags.DEFINE_multi_string(
    "index",
    [],
    "NAME=DIR, or DIR of a single model: index of tools.build_index, which finds candidates if a "
    "request has none; default: `index` in its run directory, or one of its `pairs`, built in "
    "~/.cache/colloquy.",
)
flags.DEFINE_string(
    "host", "127.0.0.1", "Address to listen on; 0.0.0.0: all addresses of this machine."
)
flags.DEFINE_integer("port", 8501, "Port to listen at.", lower_bound=0, upper_bound=65535)
LIMITS = ("max_queue", "timeout_seconds", "max_body_bytes", "max_rows")
script_flags.define_settings(Limits, LIMITS, defaults=True)
flags.DEFINE_list(
    "allowed_hosts",
    [],
    "Host names of this server, apart from localhost and its addresses; *: any.",
)
flags.DEFINE_list(
    "cors_origins", [], "Origins whose pages may send requests, such as https://example.org."
)
flags.DEFINE_string(
    "api_key", None, "Key that every request except /healthz needs; default: $COLLOQUY_API_KEY."
)
flags.DEFINE_bool(
    "ray", False, "Serves by Ray Serve, on the cluster of RAY_ADDRESS or one that this starts."
)
flags.DEFINE_string("replicas", "1", "With --ray, FEWEST:MOST or N: replicas of the server.")

NAME = re.compile(r"[\w.-]+")
NAME_RULE = "a model's name has letters, digits, . _ and -"
ORIGIN = re.compile(r"null|[a-z][a-z0-9+.-]*://[^/?#*\s]+")
LOCAL = ("localhost", "127.0.0.1", "::1")


# === Which models ===


def find_models() -> Any:
    """Finds the trained ones among the runs with a name: `{name: path}`.

    One whose name cannot be that of a model is left out.
    """
    models = {}
    for name, path in find_named_runs().items():
        if not (path / "best.weights.h5").is_file():
            continue
        if NAME.fullmatch(name):
            models[name] = path
        else:
            note = f"note: {path} is left out: {NAME_RULE}. --run=NAME=DIR gives it another name"
            print(note, file=sys.stderr)
    return models


def choose_models() -> Any:
    """Chooses the models to serve: `{name: (path, path of its index or None)}`."""
    paths = read_paths("run") if FLAGS.run else find_models()
    if not paths:
        raise UserError("there is no trained model in pretrained/ or runs/: train.py trains one")
    for name in paths:
        if not NAME.fullmatch(name):
            raise UserError(f"--run: {NAME_RULE}. Received: {name}")

    only_name = next(iter(paths)) if len(paths) == 1 else ""
    indexes = read_paths("index", default_name=only_name)
    for name in indexes:
        if name not in paths:
            raise UserError(f"--index: there is no model {name}; there are {', '.join(paths)}")
    return {name: (path, indexes.get(name)) for name, path in paths.items()}


def read_paths(flag: str, default_name: str | None = None) -> Any:
    """Reads the values of --run or --index: `{name: path}`.

    A value DIR, without a name, gets `default_name`; by default, the name of the directory.
    """
    paths = {}
    for value in FLAGS[flag].value or []:
        name, equals, path = value.partition("=")
        if not equals:
            path = value
            name = pathlib.Path(path).resolve().name if default_name is None else default_name
        if not (name and path):
            raise UserError(f"--{flag} expects NAME=DIR. Received: {value}")
        if name in paths:
            raise UserError(f"--{flag}: the name {name} is given twice")
        paths[name] = path
    return paths


def load_models() -> Any:
    """Loads the models to serve, `{name: serving.models.Served}`.

    Models of `--run`, and those with an `--index`, are loaded and answer first texts here, which
    makes them warm. The others are loaded while the server runs, see `warm_up.warming`. A model
    that cannot be opened is left out.

    Raises:
        UserError: No model is left.
    """
    chosen = choose_models()
    print("loading TensorFlow and the models", flush=True)
    backend.import_keras()
    from colloquy.serving.models import open_model
    from colloquy.serving.warm_up import freeze, warm_up

    models = {}
    for name, (path, index) in chosen.items():
        try:
            model = open_model(name, path, index)
            if FLAGS.run or index:
                warm_up(model.predictor)
                print(f"{name}: {path} is warm", flush=True)
        except UserError as error:
            if len(chosen) == 1:
                raise
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        models[name] = model
    if not models:
        raise UserError("no model is left to serve")
    freeze()
    return models


# === How ===


def read_access() -> Any:
    """Reads the flags that say who may send requests."""
    origins = frozenset(origin.rstrip("/").lower() for origin in FLAGS.cors_origins)
    for origin in origins:
        if not ORIGIN.fullmatch(origin):
            expected = "--cors_origins expects origins, as https://example.org"
            raise UserError(f"{expected}. Received: {origin or 'nothing'}")
    given_key = FLAGS.api_key or os.environ.get("COLLOQUY_API_KEY", "")
    # A key from a file often ends with a line break, which no header can have.
    key = given_key.strip()
    if given_key and not key:
        raise UserError("--api_key and COLLOQUY_API_KEY expect a key. Received: white space")
    try:
        key.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UserError("--api_key and COLLOQUY_API_KEY expect a key in UTF-8") from error
    hosts = [*LOCAL, FLAGS.host, *FLAGS.allowed_hosts]
    if FLAGS.host not in LOCAL:
        hosts.append(socket.gethostname())
        if not key:
            warning = f"everybody who reaches {FLAGS.host} can use this server: give --api_key"
            print(f"warning: {warning}", file=sys.stderr)
    return Access(hosts=frozenset(host.lower() for host in hosts), origins=origins, api_key=key)


def read_replicas() -> Any:
    """Returns the fewest and the most replicas."""
    match = re.fullmatch("([1-9][0-9]{0,3})(?::([1-9][0-9]{0,3}))?", FLAGS.replicas)
    if match:
        fewest = int(match[1])
        most = int(match[2] or fewest)
        if fewest <= most:
            return fewest, most
    expected = "FEWEST:MOST with 1 <= FEWEST <= MOST"
    raise UserError(f"--replicas expects {expected}. Received: {FLAGS.replicas}")


def serve_on_ray(limits: Any, access: Any) -> None:
    """Serves by Ray Serve until Ctrl-C or SIGTERM."""
    replicas = read_replicas()
    if importlib.util.find_spec("ray") is None:
        raise UserError("--ray needs Ray: python -m pip install -e '.[ray]'")
    paths = {}
    for name, (path, index) in choose_models().items():
        run = str(find_run(path).resolve())
        paths[name] = [run, str(pathlib.Path(index).resolve()) if index else None]
    from colloquy.serving import cluster

    cluster.start(cluster.application(paths, replicas, limits, access), FLAGS.host, FLAGS.port)
    print(f"http://{FLAGS.host}:{FLAGS.port}/ is open; Ctrl-C ends it", flush=True)
    cluster.wait()


def main() -> None:
    limits = Limits(**script_flags.given_settings(Limits, LIMITS))
    access = read_access()
    cpus = machine.available_cpus()
    # One operation computes on half of the cores. More operations at once than there are cores,
    # because a large request starts several long ones, and small requests would wait for them.
    runtime.prepare(max(1, cpus // 2), operations=cpus + 4)
    if FLAGS.ray:
        serve_on_ray(limits, access)
        return
    script_flags.refuse_flags(["replicas"], "one process: give --ray too")
    from colloquy.serving.server import Server, listen

    # A port in use is noticed before models are loaded.
    listening = listen(FLAGS.host, FLAGS.port)
    models = load_models()
    from colloquy.serving.app import create_app
    from colloquy.serving.warm_up import warming

    app = create_app(models, limits, access)
    with warming(models.values(), lambda: app.state.open_requests):
        Server(app, listening, limits.grace_seconds).open()


if __name__ == "__main__":
    cli.run(main)
