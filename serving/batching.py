"""Micro-batching: requests that arrive within a few milliseconds share one call of the model.

Each model has one worker thread. Whatever depends on the size of an instance happens there: reading
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

import numpy as np

from colloquy.base.files import UserError
from colloquy.engine.checkpoints import at_checkpoints, checkpoint
from colloquy.engine.predictor import Predictor
from colloquy.serving.access import STOPPING
from colloquy.serving.answers import RequestError, make_json
from colloquy.serving.limits import Limits, check_count

MAX_CELLS = 100  # rows, and columns, of an attention map that a client gets
ROWS_AT_ONCE = 64  # that are computed between two checkpoints
# A request of at most so many instances and characters is small: it is answered between two steps
# of a large one, and shares batches with other small ones.
SMALL_INSTANCES = 8
SMALL_CHARACTERS = 2_000
PATIENCE_SECONDS = 1.0  # that a large request waits while small ones come

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
    arrived: float = dataclasses.field(default_factory=time.monotonic)

    @property
    def is_wanted(self):
        """False if the client has left, its time is over, or it has an answer."""
        return not self.future.done()

    @property
    def is_small(self):
        """True if it may be answered between two steps of another request."""
        return self.count <= SMALL_INSTANCES and self.characters <= SMALL_CHARACTERS

    def succeed(self, result):
        with contextlib.suppress(concurrent.futures.InvalidStateError):  # the client has left
            self.future.set_result(result)

    def fail(self, error):
        with contextlib.suppress(concurrent.futures.InvalidStateError):
            self.future.set_exception(error)


class BatchedModel:
    """A `serving.models.Served` whose concurrent requests share batches.

    A wrong instance is a `UserError` of its request alone. A `RequestError` has status 413 for a
    request that is too large, 429 if too many wait, 503 after `give_up`.
    `count_batch(verb, instances, seconds)` is called after each batch.
    """

    def __init__(self, model, limits=None, count_batch=lambda verb, count, seconds: None):
        self.name = model.name
        self.predictor_class = model.predictor_class
        self._model = model
        self._limits = limits or Limits()
        self._count_batch = count_batch
        self._description = None
        self._predictor = None
        self._changed = threading.Condition()
        self._waiting = collections.deque()
        self._open = set()  # jobs that wait or are computed
        self._is_closed = False
        self._thread = None

    # === Called on the event loop ===

    @property
    def queued(self):
        """Instances that wait, without those whose clients have left."""
        with self._changed:
            return sum(job.count for job in self._waiting if job.is_wanted)

    @property
    def chats(self):
        """True for a model that replies to conversations."""
        return self.predictor_class.conversation is not Predictor.conversation

    def summary(self):
        """What is known without loading the model, and whether it is `ready`."""
        return self._model.summary()

    def card(self):
        """See `Served.card`; the model need not be loaded."""
        return self._model.card()

    async def load(self):
        """Loads the model and returns its predictor."""
        if self._predictor is None:
            try:
                self._predictor = await self._on_loader(lambda: self._model.predictor)
            except UserError as error:  # no request is to blame
                raise RequestError(500, str(error)) from error
        return self._predictor

    async def describe(self):
        """Returns `{part: serving.limits.Content}` of what `Served.describe` says."""
        await self.load()
        if self._description is None:
            self._description = await self._on_loader(self._make_description)
        return self._description

    async def predict(self, instances, write, characters=0):
        """Answers instances of some `characters` in all; returns `write(predictor, answers)`."""
        job = Job("predict", len(instances), _reader(instances), write, characters)
        return await self._submit(job)

    async def explain(self, instance, write, characters=0):
        """Answers one instance with its attention maps; returns `write(predictor, answers)`."""
        return await self._submit(Job("explain", 1, _reader([instance]), write, characters))

    async def reply(self, conversation, write, characters=0, with_attention=False):
        """Replies to `conversation(predictor)`, which returns an instance; returns as `predict`."""

        def read(predictor):
            return [predictor.valid(conversation(predictor), "the conversation")]

        verb = "explain" if with_attention else "predict"
        return await self._submit(Job(verb, 1, read, write, characters))

    def give_up(self):
        """Refuses all requests without an answer, as the server is stopping."""
        for job in list(self._open):
            job.fail(RequestError(503, STOPPING))

    async def close(self):
        """Lets the waiting requests be answered, then ends the thread."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, CLOSE_SECONDS)

    async def _submit(self, job):
        await self.load()
        job.arrived = time.monotonic()  # batches are collected from now on
        self._enqueue(job)
        return await asyncio.wrap_future(job.future)

    def _enqueue(self, job):
        most = self._limits.max_queue
        with self._changed:
            queued = self.queued
            if queued and queued + job.count > most:
                waiting = f"{queued} instances wait already, at most {most} may"
                raise RequestError(429, f"{waiting}: try again later")
            self._waiting.append(job)
            self._open.add(job)
            job.future.add_done_callback(lambda _: self._open.discard(job))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="model", daemon=True)
                self._thread.start()
            self._changed.notify()

    @staticmethod
    async def _on_loader(function):
        return await asyncio.get_running_loop().run_in_executor(_loader, function)

    def _make_description(self):
        parts = self._model.describe()
        return {name: make_json(part) for name, part in parts.items()}

    # === Called on the worker thread ===

    def _work(self):
        while True:
            jobs = self._take_jobs()
            if not jobs:
                return
            readable = [job for job in jobs if self._read(job)]
            if readable:
                self._answer(readable)

    def _take_jobs(self):
        """Waits for jobs and takes those of one batch; none after the end."""
        with self._changed:
            while not self._waiting and not self._is_closed:
                self._changed.wait()
            if not self._waiting:
                return []

            ready_at = self._waiting[0].arrived + self._limits.batch_milliseconds / 1000
            while self.queued < self._limits.max_batch:
                seconds = ready_at - time.monotonic()
                if seconds <= 0:
                    break
                self._changed.wait(seconds)

            oldest = self._waiting[0]
            waited = time.monotonic() - oldest.arrived
            is_due = not oldest.is_small and waited > PATIENCE_SECONDS
            if is_due or not any(job.is_small for job in self._waiting):
                return [self._waiting.popleft()]
        return self._take_small_jobs()

    def _take_small_jobs(self):
        """Takes the small jobs that wait and may share a batch; none if no small one waits."""
        with self._changed:
            taken = []
            count = 0
            for job in [job for job in self._waiting if job.is_small]:
                count += job.count
                is_other = taken and job.verb != taken[0].verb
                if is_other or (taken and count > self._limits.max_batch):
                    break
                taken.append(job)
            for job in taken:
                self._waiting.remove(job)
        return taken

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

    def _answer(self, jobs):
        """Answers jobs together. If that fails, it answers them in ever smaller batches."""
        try:
            answers = self._compute(jobs)
        except Exception as error:
            if len(jobs) == 1:
                jobs[0].fail(error)
                return
            # The others shall neither fail nor wait long for the one that does.
            half = len(jobs) // 2
            self._answer(jobs[:half])
            self._answer(jobs[half:])
            return

        first = 0
        for job in jobs:
            end = first + len(job.instances)
            own = answers[first:end]
            first = end
            if not job.is_wanted:
                continue
            try:
                job.succeed(job.write(self._predictor, own))
            except Exception as error:
                job.fail(error)

    def _compute(self, jobs):
        """Computes the answers to jobs piece by piece, while somebody waits for one of them."""
        instances = []
        rows = []
        for job in jobs:
            instances += job.instances
            rows += job.rows

        answers = []
        while len(answers) < len(instances) and any(job.is_wanted for job in jobs):
            first = len(answers)
            end = first + 1
            while end < len(rows) and sum(rows[first : end + 1]) <= ROWS_AT_ONCE:
                end += 1
            piece = instances[first:end]
            started = time.perf_counter()
            with at_checkpoints(functools.partial(self._between_steps, jobs)):
                answers += self._call_model(jobs[0].verb, piece)
                self._count_batch(jobs[0].verb, len(piece), time.perf_counter() - started)
                checkpoint()
        return answers

    def _between_steps(self, jobs):
        """Gives jobs up if nobody waits for them, and answers small ones that came meanwhile."""
        if not any(job.is_wanted for job in jobs):
            raise RequestError(499, "nobody waits for this answer")
        if all(job.is_small for job in jobs):
            return
        readable = [job for job in self._take_small_jobs() if self._read(job)]
        if readable:
            self._answer(readable)

    def _call_model(self, verb, instances):
        predictor = self._predictor
        if verb == "predict":
            return predictor.answers(instances)
        return [cut_maps(predictor.explain(instance)) for instance in instances]


def cut_maps(answer):
    """Cuts the attention maps of an answer to what a page can show; `"cut": true` says so."""
    maps = []
    for whole in answer["attention"]:
        weights = np.asarray(whole["weights"])
        shown = {**whole}
        if weights.size and max(weights.shape) > MAX_CELLS:
            peak_row, peak_column = np.unravel_index(weights.argmax(), weights.shape)
            rows = _around(peak_row, weights.shape[0])
            columns = _around(peak_column, weights.shape[1])
            weights = weights[rows, columns]
            shown["rows"] = whole["rows"][rows]
            shown["columns"] = whole["columns"][columns]
            shown["cut"] = True
        shown["weights"] = weights.round(5).tolist()
        maps.append(shown)
    return {**answer, "attention": maps}


def _around(peak, size):
    """The slice of `MAX_CELLS` of `size` cells that has `peak` in its middle, or near it."""
    first = min(peak - MAX_CELLS // 2, size - MAX_CELLS)
    first = max(first, 0)
    return slice(first, first + MAX_CELLS)


def _reader(instances):
    def read(predictor):
        read_instances = []
        for number, instance in enumerate(instances):
            read_instances.append(predictor.valid(instance, f"instance {number}"))
        return read_instances

    return read
