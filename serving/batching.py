"""Micro-batching: small requests that wait while a model computes share its next call.

Each model has two worker threads, one for small requests and one for large ones: a small request
does not wait until a large one is answered. On JAX it waits for one call of the model, see
`engine.parallel.exclusive_calls`. Whatever depends on the size of an instance happens on these
threads: reading it, tokenizing it, computing its answer, and writing the answer as JSON.
"""

import asyncio
import collections
import concurrent.futures
import contextlib
import dataclasses
import functools
import threading
from collections.abc import Callable

from colloquy.base.files import UserError
from colloquy.engine.cancellation import at_checkpoints
from colloquy.engine.parallel import exclusive_calls
from colloquy.serving.access import STOPPING
from colloquy.serving.answers import RequestError
from colloquy.serving.limits import check_count
from colloquy.serving.maps import cut_maps

ROWS_AT_ONCE = 64
"""Most rows (`Predictor.padded_rows`) per call of a model. A larger instance has its own call."""
# A request within both limits is small: it does not wait behind large ones, and shares batches.
SMALL_INSTANCES = 8
SMALL_CHARACTERS = 2_000

CLOSE_SECONDS = 5
"""Seconds that `close` waits for each worker thread."""

_loader = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="loader")
"""One thread loads all models: requests that wait for a model hold no thread that others need."""


@dataclasses.dataclass(eq=False)
class Job:
    """One request: its instances, how to read them, and how to write its result."""

    verb: str
    """`predict` or `explain`: small `predict` jobs share batches."""
    count: int
    """Number of instances, known before they are read."""
    read: Callable
    """Called with the predictor, returns the instances; a wrong one is a `UserError`."""
    write: Callable
    """Called with the predictor and the answers, returns the result of the request."""
    characters: int = 0
    """Characters of its instances."""
    instances: list = dataclasses.field(default_factory=list)
    rows: list = dataclasses.field(default_factory=list)
    """`Predictor.padded_rows` of each instance."""
    future: concurrent.futures.Future = dataclasses.field(default_factory=concurrent.futures.Future)

    @property
    def is_wanted(self):
        """False once it is answered or refused, its client has left, or its time is over."""
        return not self.future.done()

    @property
    def is_small(self):
        """True if the request is small, see `SMALL_INSTANCES`."""
        return self.count <= SMALL_INSTANCES and self.characters <= SMALL_CHARACTERS

    def succeed(self, result):
        with contextlib.suppress(concurrent.futures.InvalidStateError):  # the client has left
            self.future.set_result(result)

    def fail(self, error):
        with contextlib.suppress(concurrent.futures.InvalidStateError):
            self.future.set_exception(error)


class BatchedModel:
    """Answers requests to a `serving.models.Served`. Small `predict` requests that wait share
    batches.
    """

    def __init__(self, served, limits):
        self.served = served
        self._limits = limits
        self._predictor = None
        # Guards the queues and `_is_closed`. Its lock is reentrant: `_enqueue` reads `queued`.
        self._changed = threading.Condition()
        self._small_jobs = collections.deque()
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
        """Loads the model; a `RequestError` with status 500 says why that fails."""
        if self._predictor is not None:
            return
        try:
            loop = asyncio.get_running_loop()
            self._predictor = await loop.run_in_executor(_loader, lambda: self.served.predictor)
        except UserError as error:
            # As a `UserError` it would have status 400, but the request is not wrong.
            raise RequestError(500, str(error)) from error

    async def answer(self, job):
        """Answers a `Job`; returns what its `write` returns.

        `serving.limits.wait_for_answer` cancels this call if the client leaves or the time is over.
        That cancels `job.future`, and the worker gives the job up.

        Raises:
            UserError: An instance is wrong.
            RequestError: The status is 413 for too many rows, 429 if too many instances wait, 500
                if the model cannot be loaded, 503 after `give_up`.
        """
        await self.load()
        self._enqueue(job)
        return await asyncio.wrap_future(job.future)

    def give_up(self):
        """Refuses all open jobs with status 503: the server is stopping."""
        for job in list(self._open):
            job.fail(RequestError(503, STOPPING))

    async def close(self):
        """Ends each thread once its queue is empty; waits at most `CLOSE_SECONDS` for each."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for thread in self._threads:
            await asyncio.to_thread(thread.join, CLOSE_SECONDS)

    def _enqueue(self, job):
        max_queue = self._limits.max_queue
        with self._changed:
            queued = self.queued
            # Where nothing waits, a job of any size is taken: one larger than `max_queue` never
            # could be otherwise.
            if queued and queued + job.count > max_queue:
                message = (
                    f"{queued} instances wait already, at most {max_queue} may: try again later"
                )
                raise RequestError(429, message)
            queue = self._small_jobs if job.is_small else self._large_jobs
            queue.append(job)
            self._open.add(job)
            job.future.add_done_callback(lambda _: self._open.discard(job))
            if not self._threads:
                self._start_threads()
            self._changed.notify_all()

    def _start_threads(self):
        for queue in (self._small_jobs, self._large_jobs):
            thread = threading.Thread(target=self._work, args=[queue], name="model", daemon=True)
            thread.start()
            self._threads.append(thread)

    # === Called on the worker threads ===

    def _work(self, queue):
        """Answers the jobs of a queue; ends when the model is closed and the queue empty."""
        while True:
            with self._changed:
                while not queue and not self._is_closed:
                    self._changed.wait()
                if not queue:
                    return
                jobs = self._take_jobs(queue)
            self._answer(jobs)

    def _take_jobs(self, queue):
        """Takes the next job; if it is small, also the jobs right behind it that fit its batch."""
        taken = [queue.popleft()]
        count = taken[0].count
        # `explain` computes one instance at a time: in a batch the first would wait for the last.
        is_shared = taken[0].is_small and taken[0].verb == "predict"
        while is_shared and queue:
            count += queue[0].count
            if queue[0].verb != "predict" or count > self._limits.instances:
                break
            taken.append(queue.popleft())
        return taken

    def _answer(self, jobs):
        """Answers jobs in batches of at most `ROWS_AT_ONCE` rows: no job waits for the answers to a
        later batch. A job with more rows has a batch of its own.
        """
        batch = []
        rows = 0
        for job in jobs:
            if not self._read(job):
                continue
            own_rows = sum(job.rows)
            if batch and rows + own_rows > ROWS_AT_ONCE:
                self._answer_batch(batch)
                batch = []
                rows = 0
            batch.append(job)
            rows += own_rows
        self._answer_batch(batch)

    def _answer_batch(self, jobs):
        """Answers read jobs as one batch. If it fails, each is answered alone."""
        jobs = [job for job in jobs if job.is_wanted]
        if not jobs:
            return
        try:
            answers = self._compute(jobs)
        except Exception as error:
            if len(jobs) == 1:
                jobs[0].fail(error)
                return
            for job in jobs:
                self._answer_batch([job])
            return

        first = 0
        for job in jobs:
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
        """Reads a job's instances and counts rows.

        Returns False if that fails, which refuses the job, or if nobody waits for it.
        """
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
        """Computes the answers to jobs, at most `ROWS_AT_ONCE` rows per call of the model.

        Raises a `RequestError` once nobody waits for any of them.
        """
        instances = []
        rows = []
        for job in jobs:
            instances += job.instances
            rows += job.rows

        answers = []
        verb = jobs[0].verb
        while len(answers) < len(instances):
            first = len(answers)
            end = first + 1
            while end < len(rows) and sum(rows[first : end + 1]) <= ROWS_AT_ONCE:
                end += 1
            piece = instances[first:end]
            check_wanted = functools.partial(self._check_wanted, jobs)
            with at_checkpoints(check_wanted), self._exclusive_calls:
                answers += self._call_model(verb, piece)
            check_wanted()
        return answers

    def _check_wanted(self, jobs):
        """Raises a `RequestError` if nobody waits for any of the jobs."""
        if not any(job.is_wanted for job in jobs):
            raise RequestError(499, "nobody waits for this answer")

    def _call_model(self, verb, instances):
        predictor = self._predictor
        if verb == "predict":
            return predictor.answer_as_dicts(instances)
        return [cut_maps(predictor.explain(instance)) for instance in instances]
