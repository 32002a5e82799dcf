"""Ray Serve: the application of `serving.app` in replicas on several machines.

Each replica is a process that has all models. Ray Serve routes requests to the replicas, adds and
removes some as the load changes, replaces lost ones, and has metrics of its own.
"""

import signal
import threading

import ray
from ray import serve

from colloquy.base import backend, runtime
from colloquy.base.files import UserError, in_one_line
from colloquy.serving.limits import Limits

APPLICATION = "colloquy"
"""Name of the application and of its only deployment in Ray Serve."""


def application(paths, replicas, limits=None, access=None):
    """Describes the application for `start`; nothing is loaded yet.

    Args:
        paths: `{name of a model: (run directory, directory of its index or None)}`.
        replicas: The fewest and the most replicas; each has one CPU.
        limits: `serving.limits.Limits`, by default `Limits()`.
        access: `serving.access.Access`; see `serving.app.create_app`.

    Returns:
        The `ray.serve.Application`.
    """
    limits = limits or Limits()
    fewest, most = replicas

    # A plain function: `serve.ingress` calls it in each replica to build the ASGI application. It
    # takes any other callable, even a `functools.partial`, for the ASGI application itself.
    def build():
        return build_app(paths, limits, access)

    # `serve.ingress(build)` decorates a class. Called without one, it makes a class that only
    # serves the ASGI application.
    replica_class = serve.ingress(build)()
    deployment = serve.deployment(
        name=APPLICATION,
        autoscaling_config={
            "min_replicas": fewest,
            "max_replicas": most,
            # Ray Serve adds replicas if there are more open requests per replica than this. If each
            # request has one instance, they fill half of the largest batch.
            "target_ongoing_requests": limits.instances / 2,
        },
        max_ongoing_requests=limits.max_queue,
        ray_actor_options={"num_cpus": 1},
    )
    return deployment(replica_class).bind()


def build_app(paths, limits, access):
    """Builds the ASGI application in a replica. Its models are loaded and warm."""
    runtime.prepare(threads=1)
    backend.import_keras()
    from colloquy.serving.app import create_app
    from colloquy.serving.models import open_model
    from colloquy.serving.warm_up import freeze, warm_up

    models = {}
    for name, (path, index) in paths.items():
        models[name] = open_model(name, path, index)
        warm_up(models[name].predictor)
    freeze()
    return create_app(models, limits, access)


def from_config(config):
    """Describes the application by the `args` of a Serve config file.

    `serving/manifests/rayservice.yaml` is such a file.

    Args:
        config: A dict of

            models         `{name: {"path": run directory, "index": directory of its index}}`; a
                           model needs no index
            min_replicas   the fewest replicas, by default 1
            max_replicas   the most replicas, by default 1
    """
    paths = {}
    for name, model in config["models"].items():
        paths[name] = (model["path"], model.get("index"))
    fewest = config.get("min_replicas", 1)
    most = config.get("max_replicas", 1)
    return application(paths, (fewest, most))


def start(ray_application, host, port):
    """Runs the result of `application`, with an HTTP proxy on each node.

    It runs on the cluster at `RAY_ADDRESS`; without this variable, on a new one on this machine.
    """
    try:
        if not ray.is_initialized():
            ray.init(log_to_driver=False, include_dashboard=False)
        serve.start(proxy_location="EveryNode", http_options={"host": host, "port": port})
        serve.run(ray_application, name=APPLICATION, route_prefix="/")
    except (ConnectionError, RuntimeError, ValueError) as error:
        # Ray's message ends with the error of a replica.
        reason = in_one_line(str(error)[-300:], 300)
        raise UserError(f"--ray: Ray Serve did not start: {reason}") from error


def wait():
    """Waits until SIGTERM or Ctrl-C, then closes the application.

    After SIGTERM it returns, so that the process ends with status 0. Ctrl-C raises
    `KeyboardInterrupt`.
    """
    is_terminated = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: is_terminated.set())
    try:
        while not is_terminated.wait(timeout=1):
            pass
    finally:
        serve.shutdown()
