"""Micro-batching: small requests that wait while a model computes share its next call.

Each model has two worker threads, one of small requests and one of large ones, so that no small
request waits for a large one. Whatever depends on the size of an instance happens there: reading
it, tokenizing it, computing its answer, and writing the answer as JSON.
"""

import asyncio
import collections
import concurrent.futures
import contextlib
import dataclasses
import functools
import threading
import time
from collections.abc import Callable

from colloquy.base.files import UserError
from colloquy.engine.cancellation import at_checkpoints, checkpoint
from colloquy.engine.parallel import exclusive_calls
from colloquy.serving.access import STOPPING
from colloquy.serving.answers import RequestError, make_json
from colloquy.serving.limits import Limits, check_count
from colloquy.serving.maps import cut_maps
from colloquy.serving.metrics import BATCH_INSTANCES, MODEL_SECONDS

ROWS_AT_ONCE = 64  # that are computed between two checkpoints
# A request of at most so many instances and characters is small: it is answered beside large ones,
# and shares batches with other small ones.
SMALL_INSTANCES = 8
SMALL_CHARACTERS = 2_000

CLOSE_SECONDS = 5  # for the step that is computed when the server ends

_loader = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="loader")
"""Loads models, so that requests for them hold no thread that others need."""


@dataclasses.dataclass(eq=False)
class Job:
    """The instances of one request, and what the worker does with them."""

    verb: str
    """`predict` or `explain`: small jobs with the same verb share batches."""
    count: int
    """Instances, before they are read."""
    read: Callable
    """Makes the instances, given the predictor."""
    write: Callable
    """Makes the result of the request, given the predictor and the answers."""
    characters: int = 0
    """Characters of its instances."""
    instances: list = dataclasses.field(default_factory=list)
    rows: list = dataclasses.field(default_factory=list)
    future: concurrent.futures.Future = dataclasses.field(default_factory=concurrent.futures.Future)

    @property
    def is_wanted(self):
        """False if the client has left, its time is over, or it has an answer."""
        return not self.future.done()

    @property
    def is_small(self):
        """True if it shares batches, and is answered beside large requests."""
        return self.count <= SMALL_INSTANCES and self.characters <= SMALL_CHARACTERS

    def succeed(self, result):
        with contextlib.suppress(concurrent.futures.InvalidStateError):  # the client has left
            self.future.set_result(result)

    def fail(self, error):
        with contextlib.suppress(concurrent.futures.InvalidStateError):
            self.future.set_exception(error)


class BatchedModel:
    """A `serving.models.Served`, `served`, whose concurrent requests share batches."""

    def __init__(self, model, limits=None):
        self.served = model
        self._limits = limits or Limits()
        self._predictor = None
        self._changed = threading.Condition()
        self._small_jobs = collections.deque()  # that wait
        self._large_jobs = collections.deque()
        self._open = set()  # jobs that wait or are computed
        self._is_closed = False
        self._threads = []
        self._exclusive_calls = exclusive_calls()

    # === Called on the event loop ===

    @property
    def queued(self):
        """Instances that wait, without those whose clients have left."""
        with self._changed:
            waiting = [*self._small_jobs, *self._large_jobs]
            return sum(job.count for job in waiting if job.is_wanted)

    async def load(self):
        """Loads the model; a `RequestError` with status 500 says why it cannot be."""
        if self._predictor is None:
            try:
                loop = asyncio.get_running_loop()
                self._predictor = await loop.run_in_executor(_loader, lambda: self.served.predictor)
            except UserError as error:  # no request is to blame
                raise RequestError(500, str(error)) from error

    async def describe(self):
        """Returns what `Served.describe` says, as JSON."""
        await self.load()
        return make_json(self.served.describe())

    async def answer(self, job):
        """Answers a `Job`; returns what its `write` returns.

        A wrong instance is a `UserError`. A `RequestError` has status 413 for a job that is too
        large, 429 if too many wait, 503 after `give_up`.
        """
        await self.load()
        self._enqueue(job)
        return await asyncio.wrap_future(job.future)

    def give_up(self):
        """Refuses all requests without an answer, as the server is stopping."""
        for job in list(self._open):
            job.fail(RequestError(503, STOPPING))

    async def close(self):
        """Lets the waiting requests be answered, then ends the threads."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for thread in self._threads:
            await asyncio.to_thread(thread.join, CLOSE_SECONDS)

    def _enqueue(self, job):
        most = self._limits.max_queue
        with self._changed:
            queued = self.queued
            if queued and queued + job.count > most:
                waiting = f"{queued} instances wait already, at most {most} may"
                raise RequestError(429, f"{waiting}: try again later")
            waiting = self._small_jobs if job.is_small else self._large_jobs
            waiting.append(job)
            self._open.add(job)
            job.future.add_done_callback(lambda _: self._open.discard(job))
            if not self._threads:
                self._start_threads()
            self._changed.notify_all()

    def _start_threads(self):
        for waiting in (self._small_jobs, self._large_jobs):
            thread = threading.Thread(target=self._work, args=[waiting], name="model", daemon=True)
            thread.start()
            self._threads.append(thread)

    # === Called on the worker threads ===

    def _work(self, waiting):
        """Answers the jobs that wait in a queue, until the model is closed."""
        while True:
            with self._changed:
                while not waiting and not self._is_closed:
                    self._changed.wait()
                if not waiting:
                    return
                jobs = self._take_jobs(waiting)
            self._answer(jobs)

    def _take_jobs(self, waiting):
        """Takes the next job of a queue; with a small one, those after it that fit its batch."""
        taken = [waiting.popleft()]
        count = taken[0].count
        while taken[0].is_small and waiting:
            count += waiting[0].count
            if waiting[0].verb != taken[0].verb or count > self._limits.instances:
                break
            taken.append(waiting.popleft())
        return taken

    def _answer(self, jobs):
        """Answers jobs in a batch. If that fails, each is answered alone, so that one fails."""
        readable = [job for job in jobs if self._read(job)]
        if not readable:
            return
        try:
            answers = self._compute(readable)
        except Exception as error:
            if len(readable) == 1:
                readable[0].fail(error)
                return
            for job in readable:
                self._answer([job])
            return

        first = 0
        for job in readable:
            end = first + len(job.instances)
            own_answers = answers[first:end]
            first = end
            if not job.is_wanted:
                continue
            try:
                job.succeed(job.write(self._predictor, own_answers))
            except Exception as error:
                job.fail(error)

    def _read(self, job):
        """Reads the instances of a job and counts their rows; returns False if it fails."""
        if not job.is_wanted:
            return False
        try:
            predictor = self._predictor
            job.instances = job.read(predictor)
            job.rows = [predictor.padded_rows(instance) for instance in job.instances]
            check_count("a request", sum(job.rows), self._limits.max_rows, "rows")
        except Exception as error:
            job.fail(error)
            return False
        return True

    def _compute(self, jobs):
        """Computes the answers to jobs piece by piece, while somebody waits for one of them."""
        instances = []
        rows = []
        for job in jobs:
            instances += job.instances
            rows += job.rows

        answers = []
        verb = jobs[0].verb
        while len(answers) < len(instances) and any(job.is_wanted for job in jobs):
            first = len(answers)
            end = first + 1
            while end < len(rows) and sum(rows[first : end + 1]) <= ROWS_AT_ONCE:
                end += 1
            piece = instances[first:end]
            started = time.perf_counter()
            with at_checkpoints(functools.partial(self._check_wanted, jobs)):
                with self._exclusive_calls:
                    answers += self._call_model(verb, piece)
                seconds = time.perf_counter() - started
                BATCH_INSTANCES.labels(self.served.name, verb).observe(len(piece))
                MODEL_SECONDS.labels(self.served.name, verb).observe(seconds)
                checkpoint()
        return answers

    def _check_wanted(self, jobs):
        """Gives jobs up if nobody waits for them."""
        if not any(job.is_wanted for job in jobs):
            raise RequestError(499, "nobody waits for this answer")

    def _call_model(self, verb, instances):
        predictor = self._predictor
        if verb == "predict":
            return predictor.answer_as_dicts(instances)
        return [cut_maps(predictor.explain(instance)) for instance in instances]
