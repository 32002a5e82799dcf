"""Micro-batching: requests that arrive within a few milliseconds share one call of the model."""

import asyncio
import concurrent.futures
import time

from serving.limits import RequestError


class Batched:
    """A `serving.models.Served` whose concurrent requests share batches, computed one at a time on a thread.

    A second batch at once would compete for the same cores. If a batch fails, its requests are computed in ever smaller
    ones. A batch has at most `max_batch` instances and waits `milliseconds` from the arrival of its first one; beyond
    `max_queue` waiting instances more are refused. `observe(instances, seconds)` is called after each batch.
    """

    def __init__(self, model, milliseconds=2.0, max_batch=32, max_queue=256, observe=lambda count, seconds: None):
        self.name, self.version, self.metadata = model.name, model.version, model.metadata
        self._model, self._seconds = model, milliseconds / 1000
        self._max_batch, self._max_queue, self._observe = max_batch, max_queue, observe
        self._explaining = 0  # calls of `explain` that are not answered yet
        self._waiting = []  # (instances, future, arrival time) of each request
        self._arrived, self._task = asyncio.Event(), None
        self._thread = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="model")

    @property
    def queued(self):
        """Instances that wait."""
        return self._explaining + sum(len(instances) for instances, _, _ in self._waiting)

    async def start(self):
        """Gets ready to answer."""

    async def predict(self, instances):
        """Answers the instances of one request.

        Raises:
            UserError: if an instance is wrong, before it waits.
            RequestError: 429 if the queue has no room for them.
        """
        valid = [self._model.valid(instance, f"instance {number}") for number, instance in enumerate(instances)]
        self._check_room(len(valid))
        if self._task is None:
            self._task = asyncio.create_task(self._work())
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((valid, future, time.perf_counter()))
        self._arrived.set()
        return await future

    async def explain(self, instance):
        """Answers one instance with the model's attention; raises as `predict` does."""
        self._check_room(1)
        self._explaining += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._model.explain, instance)
        finally:
            self._explaining -= 1

    async def close(self):
        """Lets the waiting instances be computed, then ends the thread."""
        while self._waiting:
            await asyncio.sleep(0.01)
        if self._task is not None:
            self._task.cancel()
        self._thread.shutdown(wait=True)

    def _check_room(self, count):
        if self.queued + count > self._max_queue:
            waiting = f"{self.queued} instances wait already, at most {self._max_queue} may"
            raise RequestError(429, f"{waiting}: try again later")

    async def _work(self):
        while True:
            await self._arrived.wait()
            if self.queued < self._max_batch:
                waited = time.perf_counter() - self._waiting[0][2]
                await asyncio.sleep(max(0.0, self._seconds - waited))
            await self._compute(self._take())
            if not self._waiting:
                self._arrived.clear()

    def _take(self):
        """Takes whole requests, at least one and as many as fit into a batch; drops those whose client has left."""
        batch, count = [], 0
        while self._waiting and (not batch or count + len(self._waiting[0][0]) <= self._max_batch):
            instances, future, _ = self._waiting.pop(0)
            if not future.done():
                batch.append((instances, future))
                count += len(instances)
        return batch

    async def _compute(self, batch):
        if not batch:
            return
        instances = [instance for of_request, _ in batch for instance in of_request]
        started = time.perf_counter()
        try:
            answers = await asyncio.get_running_loop().run_in_executor(self._thread, self._model.answers, instances)
        except Exception as error:
            if len(batch) > 1:  # the other requests shall neither fail nor wait long for the one that does
                half = len(batch) // 2
                await self._compute(batch[:half])
                await self._compute(batch[half:])
            elif not batch[0][1].done():
                batch[0][1].set_exception(error)
            return
        self._observe(len(instances), time.perf_counter() - started)
        for of_request, future in batch:
            own, answers = answers[: len(of_request)], answers[len(of_request) :]
            if not future.done():
                future.set_result(own)
