"""Micro-batching: requests that arrive within a few milliseconds share one call of the model."""

import asyncio
import concurrent.futures
import time


class Overloaded(Exception):
    """The queue is full; the message says how long it is."""


class Batched:
    """A model of this process as the application asks it: its calls wait for each other, and share batches.

    `serving.cluster.Remote` is the same for a model of another process.

    Args:
        model: As of `serving.models`.
        **options: Of `Batcher`.
    """

    def __init__(self, model, **options):
        self._model, self._batcher = model, Batcher(model.answers, **options)
        self.name, self.version, self.metadata = model.name, model.version, model.metadata

    @property
    def queued(self):
        """Instances that wait."""
        return self._batcher.queued

    async def start(self):
        """Gets ready to answer; called once."""

    async def predict(self, instances):
        """The results of one request's instances, in their order; those at fault are refused before they can wait."""
        valid = [self._model.valid(instance, f"instance {number}") for number, instance in enumerate(instances)]
        return await self._batcher(valid)

    async def explain(self, instance):
        """What the model attended to."""
        return await self._batcher.alone(self._model.explain, instance)

    async def close(self):
        """Lets what waits be computed."""
        await self._batcher.close()


class Unavailable(Exception):
    """No replica of the model answers now; the message says so."""


class Batcher:
    """Collects instances of concurrent requests and hands them to a function, one batch at a time, on its own thread.

    One batch is computed at a time: a second one would compete for the same cores.

    Args:
        compute: Function of a list of instances; returns as many results. An exception fails the requests of its batch.
        milliseconds: A batch waits this long for more instances after its first one arrived, which may have been while
            the batch before was computed.
        max_batch: Instances per call of `compute`, at most.
        max_queue: Instances that may wait, at most; more are refused.
        observe: Called as `observe(instances, seconds)` after each batch.
    """

    def __init__(self, compute, milliseconds=2.0, max_batch=64, max_queue=512, observe=lambda count, seconds: None):
        self._compute, self._seconds = compute, milliseconds / 1000
        self._max_batch, self._max_queue, self._observe = max_batch, max_queue, observe
        self._single = 0  # calls of `alone` that are not answered yet
        self._waiting = []  # (instances, future, when it came) of one request each
        self._arrived, self._task = asyncio.Event(), None
        self._thread = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="model")

    @property
    def queued(self):
        """Instances that wait."""
        return self._single + sum(len(instances) for instances, _, _ in self._waiting)

    async def __call__(self, instances):
        """The results of one request's instances, in their order.

        Raises:
            Overloaded: where the queue has no room for them.
        """
        self._check_room(len(instances))
        if self._task is None:
            self._task = asyncio.create_task(self._work())
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((instances, future, time.perf_counter()))
        self._arrived.set()
        return await future

    def _check_room(self, count):
        if self.queued + count > self._max_queue:
            raise Overloaded(f"{self.queued} instances wait already, at most {self._max_queue} may: try again later")

    async def _work(self):
        while True:
            await self._arrived.wait()
            if self.queued < self._max_batch:
                waited = time.perf_counter() - self._waiting[0][2]
                await asyncio.sleep(max(0.0, self._seconds - waited))
            await self._compute_batch(self._take())
            if not self._waiting:
                self._arrived.clear()

    def _take(self):
        """Whole requests, as many as fit into a batch, and at least one; those whose client has left are dropped."""
        batch, count = [], 0
        while self._waiting and (not batch or count + len(self._waiting[0][0]) <= self._max_batch):
            instances, future, _ = self._waiting.pop(0)
            if not future.done():
                batch.append((instances, future))
                count += len(instances)
        return batch

    async def _compute_batch(self, batch):
        if not batch:
            return
        instances = [instance for of_request, _ in batch for instance in of_request]
        started = time.perf_counter()
        try:
            results = await asyncio.get_running_loop().run_in_executor(self._thread, self._compute, instances)
        except Exception as error:
            if len(batch) > 1:  # one of them is at fault: the others shall neither fail nor wait long for it
                half = len(batch) // 2
                await self._compute_batch(batch[:half])
                await self._compute_batch(batch[half:])
            elif not batch[0][1].done():
                batch[0][1].set_exception(error)
            return
        self._observe(len(instances), time.perf_counter() - started)
        for of_request, future in batch:
            own, results = results[: len(of_request)], results[len(of_request) :]
            if not future.done():
                future.set_result(own)

    async def alone(self, function, *arguments):
        """The result of a function that is no batch, computed on the same thread.

        Raises:
            Overloaded: where the queue is full.
        """
        self._check_room(1)
        self._single += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)
        finally:
            self._single -= 1

    async def close(self):
        """Lets what waits be computed, then ends the thread."""
        while self._waiting:
            await asyncio.sleep(0.01)
        if self._task is not None:
            self._task.cancel()
        self._thread.shutdown(wait=True)
