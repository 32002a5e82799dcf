"""Serves trained models: REST for programs, pages for people.

python serve.py                              # what there is: pretrained/*, runs/*, the model of make demo
python serve.py --samples                    # trains a small model of each kind first, in some minutes
python serve.py --run=dam=runs/dam --index=dam=build/index --run=reader=runs/bidaf --port=8501
python serve.py --run=dam=runs/dam --ray --replicas=dam=1:4      # Ray Serve; needs requirements-ray.txt
"""

import functools
import importlib.util
import pathlib
import re
import subprocess
import sys

from absl import flags

from base import cli
from base.files import UserError

FLAGS = flags.FLAGS
flags.DEFINE_multi_string("run", [], "NAME=DIR: a run directory or an exported model; may be repeated.")
flags.DEFINE_multi_string(
    "index",
    [],
    "NAME=DIR: directory that tools.build_index made, from which the model NAME takes candidates where a request has "
    "none; default: `index` in its run directory, built of `pairs` there. Where one model is served, DIR is enough.",
)
flags.DEFINE_bool("samples", False, "First trains a small model of each kind on the embedded samples, into runs/.")
flags.DEFINE_string("host", "127.0.0.1", "Address to listen at; 0.0.0.0: all of this machine's.")
flags.DEFINE_integer("port", 8501, "Port to listen at.", lower_bound=0, upper_bound=65535)
flags.DEFINE_float("batch_milliseconds", 2.0, "A batch waits this long for requests to share it.", lower_bound=0.0)
flags.DEFINE_integer("max_batch", 32, "Instances per call of a model.", lower_bound=1)
flags.DEFINE_integer("max_queue", 256, "Instances that may wait per model; more get status 429.", lower_bound=1)
flags.DEFINE_float("timeout_seconds", 30.0, "A request that is not answered by then gets status 504.", lower_bound=0.1)
flags.DEFINE_integer("max_body_bytes", 1_000_000, "Bytes of a request's body; more get status 413.", lower_bound=1)
flags.DEFINE_bool("ray", False, "Serves by Ray Serve, on the cluster of RAY_ADDRESS or one that this starts.")
flags.DEFINE_multi_string(
    "replicas",
    [],
    "With --ray, NAME=N or NAME=FEWEST:MOST: replicas of a model, between them as the load needs; or for all: N.",
)

KEEP_ALIVE = 75
"""Seconds that an idle connection stays open: longer than the usual client keeps one, or a request may meet its end."""
SAMPLES = {
    "sample-dam": ["--model=dam"],
    "sample-reader": ["--model=bidaf", "--epochs=7", "--set=hidden=32", "--set=character_filters=16"],
    "sample-talk": ["--model=seq2seq", "--epochs=4", "--set=hidden=128"],
    "sample-booking": ["--model=entity-memma", "--epochs=8"],
}
"""What `--samples` trains: run directory in `runs/`, and flags of train.py."""


def found_models():
    """`{name: path}` of what lies about: trained runs of `pretrained/` and `runs/`, and that of `make demo`."""
    configs = [*pathlib.Path("pretrained").glob("*/config.json"), *pathlib.Path("runs").glob("*/config.json")]
    found = {path.parent.name: path.parent for path in reversed(configs)}
    found |= {"demo": pathlib.Path("build/demo/run")}
    return {name: path for name, path in found.items() if (path / "best.weights.h5").is_file()}


def given_models(assignments, flag="run"):
    """`{name: path}` of `NAME=DIR` flags.

    Raises:
        UserError: where one is malformed or a name stands twice.
    """
    models = {}
    for assignment in assignments:
        name, equals, path = assignment.partition("=")
        if not (name and equals and path):
            raise UserError(f"--{flag} expects NAME=DIR. Received: {assignment}")
        if name in models:
            raise UserError(f"--{flag}: the name {name} stands twice")
        models[name] = path
    return models


def given_indexes(assignments, models):
    """`{name: path}` of `--index` flags, for some models.

    Raises:
        UserError: where one is malformed, or of a model that is not served.
    """
    if len(assignments) == len(models) == 1 and "=" not in assignments[0]:
        return {next(iter(models)): assignments[0]}
    indexes = given_models(assignments, "index")
    for name in indexes:
        if name not in models:
            raise UserError(f"--index: there is no model {name}; there are {', '.join(models)}")
    return indexes


def given_replicas(assignments, models):
    """`{name: (fewest, most)}` of `--replicas` flags, for all of some models.

    Raises:
        UserError: where one is malformed, or of a model that is not served.
    """
    replicas = dict.fromkeys(models, (1, 1))
    for assignment in assignments:
        found = re.fullmatch(r"(?:(?P<name>.+)=)?(?P<fewest>[0-9]{1,4})(?::(?P<most>[0-9]{1,4}))?", assignment)
        if not found:
            raise UserError(f"--replicas expects NAME=FEWEST:MOST. Received: {assignment}")
        fewest, most = int(found["fewest"]), int(found["most"] or found["fewest"])
        if not 0 < fewest <= most:
            raise UserError(f"--replicas expects at least one, and no fewer at most. Received: {assignment}")
        if found["name"] and found["name"] not in models:
            raise UserError(f"--replicas: there is no model {found['name']}; there are {', '.join(models)}")
        replicas |= dict.fromkeys([found["name"]] if found["name"] else models, (fewest, most))
    return replicas


def train_samples():
    """Trains and scores the models of `SAMPLES` that are not in `runs/` yet."""
    for name, arguments in SAMPLES.items():
        if not pathlib.Path("runs", name, "metrics.json").is_file():
            resume = ["--resume"] if pathlib.Path("runs", name, "last.npz").is_file() else arguments
            for command in (["train.py", *resume, f"--workdir=runs/{name}"], ["evaluate.py", f"--run=runs/{name}"]):
                print(f"python {' '.join(command)}", flush=True)
                if subprocess.run([sys.executable, *command], check=False).returncode:
                    raise UserError(f"this failed: python {' '.join(command)}")


def chosen_models():
    """`({name: path}, {name: path of its index})` of what is to be served.

    Raises:
        UserError: where there is nothing, or a flag is at fault.
    """
    paths = given_models(FLAGS.run) or found_models()
    if not paths:
        raise UserError(
            "there is no trained model in pretrained/ or runs/: `python serve.py --samples` trains a small one of each "
            "kind in some minutes, train.py your own"
        )
    return paths, given_indexes(FLAGS.index, paths)


def load_models():
    """The models to serve, warm; of those that nobody named, one that cannot be loaded is left out."""
    paths, indexes = chosen_models()
    from serving.models import freeze, load
    from tasks import TASKS  # TensorFlow takes seconds to load

    models = {}
    for name, path in paths.items():
        try:
            models[name] = load(name, path, TASKS, indexes.get(name))
            models[name].warm_up()
            print(f"{name}: {path} is warm", flush=True)
        except UserError as error:
            if FLAGS.run:
                raise
            print(f"{name} is left out: {error}", file=sys.stderr)
    if not models:
        raise UserError("no model is left to serve")
    freeze()
    return models


def serve_on_ray(limits):
    """Serves by Ray Serve until Ctrl-C or SIGTERM."""
    paths, indexes = chosen_models()
    replicas = given_replicas(FLAGS.replicas, paths)
    if importlib.util.find_spec("ray") is None:
        raise UserError("--ray needs Ray: python -m pip install -r requirements-ray.txt")
    from serving import cluster

    place = {name: str(pathlib.Path(path).resolve()) for name, path in paths.items()}
    index = {name: str(pathlib.Path(path).resolve()) for name, path in indexes.items()}
    loads = {name: functools.partial(cluster.load_warm, name, place[name], index.get(name)) for name in paths}
    sizes = {"milliseconds": FLAGS.batch_milliseconds, "max_batch": FLAGS.max_batch, "max_queue": FLAGS.max_queue}
    cluster.start(cluster.application(loads, replicas, limits, sizes), FLAGS.host, FLAGS.port)
    print(f"http://{FLAGS.host}:{FLAGS.port}/ is open; Ctrl-C ends it", flush=True)
    cluster.wait()


def listen(app):
    """Serves until Ctrl-C or SIGTERM; what was asked is answered first."""
    import uvicorn

    class Server(uvicorn.Server):
        async def startup(self, sockets=None):
            await super().startup(sockets)
            if self.started:
                port = self.servers[0].sockets[0].getsockname()[1]
                print(f"http://{FLAGS.host}:{port}/ is open; Ctrl-C ends it", flush=True)

    config = uvicorn.Config(
        app,
        host=FLAGS.host,
        port=FLAGS.port,
        log_level="warning",
        timeout_graceful_shutdown=10,
        timeout_keep_alive=KEEP_ALIVE,
        server_header=False,
    )
    Server(config).run()


def main():
    if FLAGS.samples:
        cli.refuse_flags(["run"], "--samples, which serves all that is in runs/")
        train_samples()
    from serving.limits import Limits

    limits = Limits(body_bytes=FLAGS.max_body_bytes, timeout_seconds=FLAGS.timeout_seconds)
    if FLAGS.ray:
        serve_on_ray(limits)
        return
    cli.refuse_flags(["replicas"], "one process: give --ray too")
    models = load_models()
    from serving.app import create_app

    sizes = {"milliseconds": FLAGS.batch_milliseconds, "max_batch": FLAGS.max_batch, "max_queue": FLAGS.max_queue}
    listen(create_app(models, limits, **sizes))


if __name__ == "__main__":
    cli.run(main)
