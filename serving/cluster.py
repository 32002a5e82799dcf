"""The same application on Ray Serve: replicas of each model on several machines, scaled with the
load.

    HTTP proxy of a node  ->  Door: the application of serving.app  ->  Replica: one model, which
                                                          batches its calls Door, Replica  ->
                                                          Counts: the metrics of all

A replica makes its batches by `serving.batching`, as a single process does, and not by
`@serve.batch`, whose batches count calls instead of instances, and where one wrong request fails
all others of its batch.
"""

import asyncio
import functools
import signal

import ray
from ray import serve
from ray.exceptions import RayActorError
from ray.serve.exceptions import ReplicaUnavailableError

from colloquy.base import runtime
from colloquy.base.files import UserError
from colloquy.serving.app import Metrics, app_of
from colloquy.serving.batching import Batched
from colloquy.serving.limits import Limits, RequestError

APPLICATION, COUNTS = "colloquy", "Counts"
# attempts per request: an answer depends on nothing but its request, so another replica may be
# asked
TRIES = 6
LOST = (RayActorError, ReplicaUnavailableError)


class Counts(Metrics):
    """The metrics of all processes, one replica."""

    async def add(self, notes):
        """Adds what another process saw: names of methods and their arguments."""
        for method, arguments in notes:
            getattr(self, method)(*arguments)


class Notes:
    """`serving.app.Metrics` that send what they see to `Counts`, by its handle, once per second."""

    def __init__(self, counts):
        self._counts, self._notes, self._sending = counts, [], None
        self.answered, self.computed = (
            functools.partial(self._add, method) for method in ("answered", "computed")
        )

    async def text(self, queued):
        """The counts of all processes for Prometheus; `queued` is of this one."""
        await self._send()
        return await self._counts.text.remote(queued)

    def _add(self, method, *arguments):
        self._notes.append((method, arguments))
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_all())

    async def _send_all(self):
        while self._notes:
            await asyncio.sleep(1.0)
            await self._send()

    async def _send(self):
        notes, self._notes = self._notes, []
        try:
            await self._counts.add.remote(notes)
        except LOST:  # until it has restarted
            self._notes[:0] = notes


class Replica:
    """One replica of a model: `load` returns a warm `serving.models.Served`."""

    def __init__(self, counts, name, load, limits):
        self._model = Batched(load(), limits, functools.partial(Notes(counts).computed, name))

    async def ask(self, method, *arguments):
        """Returns `(answer, None)` of a method of `Batched`, or `(None, (status, message))` if it
        refuses.
        """
        return await _caught(getattr(self._model, method)(*arguments))

    async def talk(self, *arguments):
        """As `ask`, for each reply that `Batched.talk` yields."""
        replies = self._model.talk(*arguments)
        while (found := await _caught(anext(replies, None))) != (None, None):
            yield found
            if found[1]:
                return


async def _caught(answer):
    try:
        return await answer, None
    except UserError as error:
        return None, (getattr(error, "status", 400), str(error))


class Remote:
    """A model whose replicas run in other processes, with the methods of
    `serving.batching.Batched`.
    """

    def __init__(self, name):
        self.name, self.version, self.queued, self._metadata = name, "", 0, {}

    async def start(self):
        """Asks a replica to describe the model."""
        self._handle = serve.get_deployment_handle(self.name, app_name=APPLICATION)
        self._metadata = await self._asked(0, "metadata")
        self.version = self._metadata["version"]

    async def metadata(self):
        return self._metadata

    def summary(self):
        return {**self._metadata, "ready": True}

    async def predict(self, instances):
        return await self._asked(len(instances), "predict", instances)

    async def explain(self, instance):
        return await self._asked(1, "explain", instance)

    async def talk(self, said, decode="", stream=False):
        """Yields replies as `Batched.talk`; a reply that has started is not requested again."""
        async for found, refusal in self._handle.options(stream=True).talk.remote(
            said, decode, stream
        ):
            if refusal is not None:
                raise RequestError(*refusal)
            yield found

    async def _asked(self, count, *arguments):
        """Asks a replica; if it is lost meanwhile, another one."""
        self.queued += count
        try:
            for attempt in range(TRIES):
                try:
                    found, refusal = await self._handle.ask.remote(*arguments)
                    break
                except LOST:
                    await asyncio.sleep(0.05 * 2**attempt)
            else:
                raise RequestError(503, f"no replica of {self.name} answers now: try again later")
        finally:
            self.queued -= count
        if refusal is not None:
            raise RequestError(*refusal)
        return found

    async def close(self):
        """Holds nothing."""


def application(loads, replicas, limits=None, access=None, doors=1):
    """The application for `serve.run`.

    `loads` are `{name: zero-argument callable that returns the warm model}`, called by each
    replica; `replicas` are `{name: (fewest, most)}`, between which Ray Serve chooses by the load,
    each with one CPU. `doors` are replicas of the application itself.
    """
    models, limits, free = [], limits or Limits(), {"num_cpus": 0}
    counts = serve.deployment(name=COUNTS, num_replicas=1, ray_actor_options=free)(Counts).bind()
    for name, load in loads.items():
        fewest, most = replicas[name]
        scale = {
            "min_replicas": fewest,
            "max_replicas": most,
            "target_ongoing_requests": limits.max_batch / 2,
        }
        deployment = serve.deployment(
            name=name,
            autoscaling_config=scale,
            max_ongoing_requests=limits.max_queue,
            ray_actor_options={"num_cpus": 1},
            health_check_period_s=1,
        )(Replica)
        models.append(deployment.bind(counts, name, load, limits))
    names = list(loads)

    def build():
        notes = Notes(serve.get_deployment_handle(COUNTS, app_name=APPLICATION))
        return app_of({name: Remote(name) for name in names}, limits, access, notes)

    options = {"num_replicas": doors, "max_ongoing_requests": 1000, "ray_actor_options": free}
    return serve.deployment(name="Door", **options)(serve.ingress(build)()).bind(*models)


def load_warm(name, path, index=None, trusted=False):
    """Loads a model in a replica, which has one CPU, and warms it up; see
    `serving.models.open_model`.
    """
    runtime.prepare(threads=1)
    runtime.import_keras()
    from colloquy.serving.models import freeze, open_model  # TensorFlow loads here, in the replica

    model = open_model(name, path, index, trusted)
    model.warm_up()
    freeze()
    return model


def from_config(config):
    """The application of a Serve config file, see `serving/manifests/rayservice.yaml`.

    `{"models": {name: {"path", "index", "min_replicas", "max_replicas"}}, "doors"}`; all but paths
    have defaults.
    """
    models = config["models"]
    return application(
        {
            name: functools.partial(load_warm, name, row["path"], row.get("index"))
            for name, row in models.items()
        },
        {
            name: (row.get("min_replicas", 1), row.get("max_replicas", 1))
            for name, row in models.items()
        },
        doors=config.get("doors", 1),
    )


def start(app, host, port, every_node=True):
    """Opens the application on the cluster of `RAY_ADDRESS` or one of this machine, on every node
    or the first one.
    """
    if not ray.is_initialized():
        ray.init(log_to_driver=False, include_dashboard=False)
    where = "EveryNode" if every_node else "HeadOnly"
    serve.start(proxy_location=where, http_options={"host": host, "port": port})
    serve.run(app, name=APPLICATION, route_prefix="/")


def wait():
    """Returns never; Ctrl-C and SIGTERM close the application."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        signal.pause()
    finally:
        serve.shutdown()
