"""Serves trained models: REST for programs, pages for people.

python serve.py                              # all models of pretrained/ and runs/, and that of make
demo python serve.py --run=dam=runs/dam --index=dam=build/index --run=reader=runs/bidaf --port=8501
python serve.py --run=dam=runs/dam --ray --replicas=dam=1:4      # Ray Serve; needs the extra `ray`
"""

import functools
import importlib.util
import os
import pathlib
import re
import socket
import sys

from absl import flags

from colloquy.base import cli, runtime
from colloquy.base.files import UserError
from colloquy.serving.limits import Access, Limits

FLAGS = flags.FLAGS
flags.DEFINE_multi_string(
    "run", [], "NAME=DIR or DIR: a run directory or an exported model; may be repeated."
)
flags.DEFINE_multi_string(
    "index",
    [],
    "NAME=DIR, or DIR of a single model: index of tools.build_index, which finds candidates if a request has none; "
    "default: `index` in its run directory, or one of its `pairs`, built in ~/.cache/colloquy.",
)
flags.DEFINE_string(
    "host", "127.0.0.1", "Address to listen on; 0.0.0.0: all addresses of this machine."
)
flags.DEFINE_integer("port", 8501, "Port to listen at.", lower_bound=0, upper_bound=65535)
LIMITS = (
    "batch_milliseconds",
    "max_batch",
    "max_queue",
    "timeout_seconds",
    "max_body_bytes",
    "max_tokens",
    "max_work",
)
cli.define_settings(Limits, LIMITS, defaults=True)
flags.DEFINE_float(
    "grace_seconds", None, "Time for open requests after SIGTERM; default: 5 more than a request's."
)
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
    "trust_saved_models", False, "Also serves SavedModels of others, which can access files."
)
flags.DEFINE_bool(
    "ray", False, "Serves by Ray Serve, on the cluster of RAY_ADDRESS or one that this starts."
)
flags.DEFINE_multi_string(
    "replicas", [], "With --ray, NAME=FEWEST:MOST or NAME=N: replicas of a model; N: of each."
)

LOCAL = ("localhost", "127.0.0.1", "::1")


def found_models():
    """`{name: path}` of the trained runs of `pretrained/` and `runs/`, and of `make demo`."""
    configs = [
        *pathlib.Path("pretrained").glob("*/config.json"),
        *pathlib.Path("runs").glob("*/config.json"),
    ]
    found = {path.parent.name: path.parent for path in reversed(configs)} | {
        "demo": pathlib.Path("build/demo/run")
    }
    return {
        name: path for name, path in sorted(found.items()) if (path / "best.weights.h5").is_file()
    }


def by_name(flag, assignments, models=None):
    """`{name: path}` of the `NAME=DIR` assignments of a flag; names are those of some models, if
    given.
    """
    found = {}
    for assignment in assignments:
        name, _, path = assignment.partition("=")
        if flag == "run" and "=" not in assignment:
            name, path = pathlib.Path(assignment).resolve().name, assignment
        if not (name and path):
            raise UserError(f"--{flag} expects NAME=DIR. Received: {assignment}")
        if name in found:
            raise UserError(f"--{flag}: the name {name} is given twice")
        if models is not None and name not in models:
            raise UserError(f"--{flag}: there is no model {name}; there are {', '.join(models)}")
        found[name] = path
    return found


def replicas_of(assignments, models):
    """`{name: (fewest, most)}` of `--replicas` flags, for all of some models."""
    for_all = [each for each in assignments if "=" not in each]
    texts = dict.fromkeys(models, [*for_all, "1"][0])
    texts |= by_name("replicas", [each for each in assignments if "=" in each], models)
    replicas = {}
    for name, text in texts.items():
        found = re.fullmatch("([1-9][0-9]{0,3})(?::([1-9][0-9]{0,3}))?", text)
        replicas[name] = found and (int(found[1]), int(found[2] or found[1]))
        if not found or replicas[name][0] > replicas[name][1]:
            raise UserError(
                f"--replicas expects NAME=FEWEST:MOST with 1 <= FEWEST <= MOST. Received: {text}"
            )
    return replicas


def chosen_models():
    """`{name: (path, path of its index or None)}` of the models to serve."""
    paths = by_name("run", FLAGS.run) or found_models()
    if not paths:
        raise UserError("there is no trained model in pretrained/ or runs/: train.py trains one")
    only = f"{next(iter(paths))}=" if len(paths) == 1 else ""
    indexes = by_name(
        "index", [each if "=" in each else only + each for each in FLAGS.index], paths
    )
    return {name: (path, indexes.get(name)) for name, path in paths.items()}


def load_models():
    """The models to serve, `serving.models.Served`: those named by `--run` warm, those found not
    loaded.
    """
    chosen = chosen_models()
    runtime.import_keras()

    from colloquy.serving.models import freeze, open_model, start_tensorflow

    start_tensorflow()
    models = {}
    for name, (path, index) in chosen.items():
        try:
            model = open_model(name, path, index, FLAGS.trust_saved_models)
            if FLAGS.run or index:
                model.warm_up()
                print(f"{name}: {path} is warm", flush=True)
            models[name] = model
        except UserError as error:
            if FLAGS.run:
                raise
            print(f"{name} is left out: {error}", file=sys.stderr)
    if not models:
        raise UserError("no model is left to serve")
    freeze()
    return models


def serve_on_ray(limits, access):
    """Serves by Ray Serve until Ctrl-C or SIGTERM."""
    cli.refuse_flags(["grace_seconds"], "--ray, which gives open requests 20 s")
    chosen = chosen_models()
    replicas = replicas_of(FLAGS.replicas, chosen)
    if importlib.util.find_spec("ray") is None:
        raise UserError("--ray needs Ray: python -m pip install -e '.[ray]'")
    from colloquy.serving import cluster

    loads = {}
    for name, paths in chosen.items():
        places = [path and str(pathlib.Path(path).resolve()) for path in paths]
        loads[name] = functools.partial(cluster.load_warm, name, *places, FLAGS.trust_saved_models)
    cluster.start(cluster.application(loads, replicas, limits, access), FLAGS.host, FLAGS.port)
    print(f"http://{FLAGS.host}:{FLAGS.port}/ is open; Ctrl-C ends it", flush=True)
    cluster.wait()


def limits_of_flags():
    longest = 2 * FLAGS.timeout_seconds  # of a request: for its body, and for its answer
    grace = longest + 5 if FLAGS.grace_seconds is None else FLAGS.grace_seconds
    if grace < longest:
        raise UserError(
            f"--grace_seconds expects at least the {longest:g} of a request. Received: {grace:g}"
        )
    return Limits(**cli.given_settings(Limits, LIMITS), grace_seconds=grace)


def access_of_flags():
    key, local = FLAGS.api_key or os.environ.get("COLLOQUY_API_KEY"), FLAGS.host in LOCAL
    if not (key or local):
        print(
            f"warning: everybody who reaches {FLAGS.host} can use this server: give --api_key",
            file=sys.stderr,
        )
    names = [*LOCAL, FLAGS.host, *FLAGS.allowed_hosts, *([] if local else [socket.gethostname()])]
    origins = [origin.rstrip("/") for origin in FLAGS.cors_origins]
    return Access(frozenset(map(str.lower, names)), frozenset(map(str.lower, origins)), key)


def main():
    limits, access, cpus = limits_of_flags(), access_of_flags(), runtime.available_cpus()
    runtime.prepare(max(1, cpus // 2), operations=cpus)  # each keeps copies of oneDNN's operations
    if FLAGS.ray:
        serve_on_ray(limits, access)
        return
    cli.refuse_flags(["replicas"], "one process: give --ray too")
    from colloquy.serving.server import Server, bind

    listening, models = bind(FLAGS.host, FLAGS.port), load_models()
    from colloquy.serving.app import create_app
    from colloquy.serving.models import warming

    app = create_app(models, limits, access)
    with warming(models.values(), lambda: app.state.requests):
        Server(app, listening, limits.grace_seconds).open()


if __name__ == "__main__":
    cli.run(main)
