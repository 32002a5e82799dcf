"""The same application on Ray Serve: replicas on several machines, as many as the load needs.

Each replica is a process with the application of `serving.app` and all models. Ray Serve routes
requests to the replicas, starts and replaces them, and has metrics of its own.
"""

import signal
import threading

import ray
from ray import serve

from colloquy.base import runtime
from colloquy.serving.limits import Limits

APPLICATION = "colloquy"


def application(paths, replicas=(1, 1), limits=None, access=None):
    """The application for `serve.run`.

    Args:
        paths: `{name: (run directory, directory of its index or None)}`.
        replicas: The fewest and the most replicas; each has one CPU.
        limits: `serving.limits.Limits`.
        access: `serving.access.Access`.
    """
    limits = limits or Limits()
    fewest, most = replicas

    # Ray Serve takes any other callable, also a `functools.partial`, for an ASGI application.
    def build():
        return build_app(paths, limits, access)

    deployment = serve.deployment(
        name=APPLICATION,
        autoscaling_config={
            "min_replicas": fewest,
            "max_replicas": most,
            "target_ongoing_requests": limits.instances / 2,
        },
        max_ongoing_requests=limits.max_queue,
        ray_actor_options={"num_cpus": 1},
    )
    return deployment(serve.ingress(build)()).bind()


def build_app(paths, limits, access):
    """Makes the application in a replica, with warm models."""
    runtime.prepare(threads=1)
    runtime.import_keras()
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
    """The application of a Serve config file, see `serving/manifests/rayservice.yaml`.

    `config` is `{"models": {name: {"path", "index"}}, "min_replicas", "max_replicas"}`; all but
    the paths have defaults.
    """
    paths = {}
    for name, model in config["models"].items():
        paths[name] = (model["path"], model.get("index"))
    replicas = config.get("min_replicas", 1), config.get("max_replicas", 1)
    return application(paths, replicas)


def start(app, host, port):
    """Opens the application on the cluster of `RAY_ADDRESS`, else on one of this machine."""
    if not ray.is_initialized():
        ray.init(log_to_driver=False, include_dashboard=False)
    serve.start(proxy_location="EveryNode", http_options={"host": host, "port": port})
    serve.run(app, name=APPLICATION, route_prefix="/")


def wait():
    """Waits until SIGTERM, a normal end, or Ctrl-C; then closes the application."""
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: ended.set())
    try:
        while not ended.wait(1):
            pass
    finally:
        serve.shutdown()
