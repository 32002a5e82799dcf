"""Micro-batching: requests that arrive within a few milliseconds share one call of the model."""

import asyncio
import collections
import concurrent.futures
import dataclasses
import marshal
import time
from collections.abc import Callable

from colloquy.base.files import UserError
from colloquy.engine.predictor import work_of
from colloquy.serving.limits import LARGE_BODY, STOPPING, Limits, RequestError, check_size, lane

LARGE_QUEUE = 8  # the queue of large requests is shorter by this factor
SMALL_BATCH = 4  # small requests share batches of up to this times `large` cells
loader = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="loader")
"""Loads models, so that requests for them hold no thread that others need."""


class Batched:
    """A `serving.models.Served` whose concurrent requests share batches.

    Small requests are computed on one thread, as a second batch at once would compete for the same
    cores. Large ones wait in a queue of their own and are computed piece by piece on another
    thread, so that small ones pass them. If a batch fails, its requests are computed in ever
    smaller ones. `observe(verb, instances, seconds)` is called after each batch.
    """

    def __init__(self, model, limits=None, observe=lambda verb, count, seconds: None):
        self.name, self.version = model.name, model.version
        self._model, self._limits = model, limits or Limits()
        queue, batch, large = self._limits.max_queue, self._limits.max_batch, self._limits.large
        self._small = _Queue(
            self._limits.batch_milliseconds / 1000, queue, batch, SMALL_BATCH * large, observe
        )
        self._large = _Queue(0.0, max(1, queue // LARGE_QUEUE), batch, large, observe)

    @property
    def queued(self):
        """Instances that wait."""
        return self._small.queued + self._large.queued

    async def start(self):
        """Gets ready to answer."""

    def summary(self):
        """The facts known without loading the model, and whether it is `ready`."""
        return self._model.summary()

    async def metadata(self):
        """All that is known of the model, which this loads."""
        await self._load()
        return await asyncio.to_thread(lambda: self._model.metadata)

    async def predict(self, instances):
        """Answers the instances of one request; a wrong one is a `UserError`, before it waits.

        A `RequestError` is 413 if they are too large, 429 if the queue has no room for them, 503
        after `give_up`.
        """
        checked = await self._checked(instances)
        return await self._ask("predict", checked, self._model.predictor.answers)

    async def explain(self, instance):
        """Answers one instance and adds its attention maps; raises what `predict` raises."""
        checked = await self._checked([instance])
        [answer] = await self._ask(
            "explain", checked, lambda each: [self._model.predictor.explain(each[0])]
        )
        return answer

    async def talk(self, said, decode="", stream=False):
        """Yields `(reply, answer)` to a conversation of `(speaker, text)`, by search settings
        `decode` if it takes any: once, or with `stream` after each word. Errors as in `predict`."""
        await self._load()
        instance = await asyncio.to_thread(self._model.predictor.conversation, said, decode)
        checked, predictor = await self._checked([instance]), self._model.predictor
        if not stream:
            [answer] = await self._ask("predict", checked, predictor.answers)
            yield predictor.reply(answer), answer
            return
        words = predictor.write(checked[0][0])  # each waits for its turn
        while (
            answer := (await self._ask("chat", checked, lambda _: [next(words, None)]))[0]
        ) is not None:
            yield predictor.reply(answer), answer

    async def _ask(self, verb, checked, compute):
        valid, sizes, queue = checked
        if queue is self._large:
            compute = self._model.by_one_thread(compute)
        return await queue.answer(
            _Request(verb, valid, sizes, compute, asyncio.get_running_loop().create_future())
        )

    async def _load(self):
        """Loads the model; if it is damaged, no request is to blame."""
        if not self._model.ready:
            try:
                await asyncio.get_running_loop().run_in_executor(
                    loader, lambda: self._model.predictor
                )
            except UserError as error:
                raise RequestError(500, str(error)) from error

    async def _checked(self, instances):
        await self._load()
        predictor = self._model.predictor

        def check():
            valid = [
                predictor.valid(instance, f"instance {number}")
                for number, instance in enumerate(instances)
            ]
            return valid, *check_size(map(predictor.size, valid), self._limits)

        is_large = len(marshal.dumps(instances)) > LARGE_BODY
        valid, sizes, work = await (lane.do(check) if is_large else asyncio.to_thread(check))
        return valid, sizes, self._small if work < self._limits.large else self._large

    def give_up(self):
        """Refuses all requests without an answer, as the server is stopping."""
        for queue in (self._small, self._large):
            queue.give_up()

    async def close(self):
        """Lets the waiting instances be computed, then ends the threads."""
        for queue in (self._small, self._large):
            await queue.close()


@dataclasses.dataclass(frozen=True)
class _Request:
    verb: str
    instances: list
    sizes: list
    compute: Callable  # answers instances; requests with the same one share batches
    # done when the request is answered, its client has left or its time is over
    future: asyncio.Future
    arrived: float = dataclasses.field(default_factory=time.perf_counter)


class _Queue:
    """Requests that wait for one thread; `piece` is the most cells that it computes at once."""

    def __init__(self, seconds, max_queue, max_batch, piece, observe):
        self._seconds, self._max_queue, self._max_batch, self._observe = (
            seconds,
            max_queue,
            max_batch,
            observe,
        )
        self._piece, self._waiting, self._open = piece, collections.deque(), set()
        self._task = None
        self._thread = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="model")

    @property
    def queued(self):
        return sum(len(request.instances) for request in self._waiting)

    async def answer(self, request):
        """The answers to a request, once it is its turn."""
        if self._waiting and self.queued + len(request.instances) > self._max_queue:
            waiting = f"{self.queued} instances wait already, at most {self._max_queue} may"
            raise RequestError(429, f"{waiting}: try again later")
        self._waiting.append(request)
        self._open.add(request.future)
        request.future.add_done_callback(self._open.discard)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
        return await request.future

    def give_up(self):
        for future in list(self._open):
            if not future.done():
                future.set_exception(RequestError(503, STOPPING))

    async def close(self):
        while self._open:  # those that wait, and those that are computed now
            await asyncio.sleep(0.01)
        self._thread.shutdown(wait=True)

    async def _work(self):
        while self._waiting:
            if self.queued < self._max_batch:
                waited = time.perf_counter() - self._waiting[0].arrived
                await asyncio.sleep(max(0.0, self._seconds - waited))
            await self._compute(self._take())

    def _take(self):
        """Takes the next requests that fit into a batch, at least one; drops those that nobody
        waits for.
        """
        batch, sizes = [], []
        while self._waiting:
            request = self._waiting[0]
            together = [*sizes, *request.sizes]
            fits = len(together) <= self._max_batch and work_of(together) <= self._piece
            if batch and not (fits and request.compute == batch[0].compute):
                break
            self._waiting.popleft()
            if not request.future.done():
                batch.append(request)
                sizes = together
        return batch

    async def _compute(self, batch):
        """Answers requests together. If this fails, they are computed in ever smaller batches."""
        try:
            answers = await self._answers(batch)
        except Exception as error:
            # the other requests shall neither fail nor wait long for the one that does
            if len(batch) > 1:
                half = len(batch) // 2
                await self._compute(batch[:half])
                await self._compute(batch[half:])
            elif not batch[0].future.done():
                batch[0].future.set_exception(error)
            return
        for request in batch:
            own, answers = answers[: len(request.instances)], answers[len(request.instances) :]
            if not request.future.done():
                request.future.set_result(own)

    async def _answers(self, batch):
        """The answers to requests, computed piece by piece while somebody waits for one of them."""
        instances = [instance for request in batch for instance in request.instances]
        sizes, answers = [size for request in batch for size in request.sizes], []
        while len(answers) < len(instances) and not all(request.future.done() for request in batch):
            first = len(answers)
            end = first + 1
            while end < len(instances) and work_of(sizes[first : end + 1]) <= self._piece:
                end += 1
            started, piece = time.perf_counter(), instances[first:end]
            answers += await asyncio.get_running_loop().run_in_executor(
                self._thread, batch[0].compute, piece
            )
            self._observe(batch[0].verb, len(piece), time.perf_counter() - started)
        return answers
