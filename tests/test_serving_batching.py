"""serving.batching, with a model that answers at once."""

import asyncio
import threading
import time

from colloquy.base.files import UserError
from colloquy.engine.cancellation import checkpoint
from colloquy.serving.batching import ROWS_AT_ONCE, BatchedModel, Job
from colloquy.serving.limits import Limits

HELD = 0.5  # an instance whose batch waits for the event


class Numbers:
    """A model of numbers: each is its own number of rows, and answered by ten times itself."""

    name = "numbers"

    def __init__(self):
        self.predictor = self
        self.batches = []
        self.event = threading.Event()

    def make_instance(self, instance, where):
        if instance == "slow":
            self.batches.append("reads")
            self.event.wait(20)
        if not isinstance(instance, int | float):
            raise UserError(f"{where}: expected a number")
        return instance

    def padded_rows(self, instance):
        return instance

    def answer_as_dicts(self, instances):
        self.batches.append(list(instances))
        if HELD in instances:
            self.event.wait(20)
        if 13 in instances:
            raise ZeroDivisionError
        return [10 * instance for instance in instances]

    def explain(self, instance):
        self.batches.append(instance)
        return {"attention": []}


class Steps(Numbers):
    """Computes an instance in as many steps as its number says, and notes them."""

    def answer_as_dicts(self, instances):
        for instance in instances:
            for _ in range(instance):
                self.batches.append(instance)
                time.sleep(0.05)
                checkpoint()
        return list(instances)


def job(*instances, verb="predict", characters=0):
    """A job of instances, whose result are their answers."""

    def read(predictor):
        return [predictor.make_instance(instance, "instance") for instance in instances]

    def write(predictor, answers):
        return answers

    return Job(verb, len(instances), read, write, characters)


def with_model(model, conversation, **limits):
    """The result of `conversation(batched)` with a model."""

    async def main():
        batched = BatchedModel(model, Limits(**limits))
        result = await conversation(batched)
        await batched.close()
        return result

    return asyncio.run(main())


async def begin(request, is_under_way):
    """Starts a request and returns its task once `is_under_way()`."""
    task = asyncio.ensure_future(request)
    while not is_under_way():
        await asyncio.sleep(0.001)
    return task


async def ask_together(batched, model, *jobs):
    """The answers to jobs that arrive, in this order, while the model computes a batch."""
    tasks = [await begin(batched.answer(job(HELD)), lambda: model.batches)]
    count = 0
    for each in jobs:
        count += each.count
        is_queued = lambda count=count: batched.queued == count  # noqa: E731
        tasks.append(await begin(batched.answer(each), is_queued))
    model.event.set()
    _, *answers = await asyncio.gather(*tasks, return_exceptions=True)
    return answers


def test_requests_that_wait_together_share_a_batch():
    model = Numbers()
    jobs = job(1, 2), job(3), job(4, 5, 6), job(7, verb="explain")
    answers = with_model(model, lambda batched: ask_together(batched, model, *jobs), instances=5)
    assert answers == [[10, 20], [30], [40, 50, 60], [{"attention": []}]]
    assert model.batches == [[HELD], [1, 2, 3], [4, 5, 6], 7]  # the third would not have fitted


def test_an_explanation_does_not_wait_for_the_next():
    model = Numbers()
    jobs = job(1, verb="explain"), job(2, verb="explain")
    for each in jobs:
        each.write = lambda predictor, answers: model.batches.append("answered")
    with_model(model, lambda batched: ask_together(batched, model, *jobs))
    assert model.batches == [[HELD], 1, "answered", 2, "answered"]


def test_small_requests_with_many_rows_do_not_wait_for_each_other():
    model = Numbers()
    jobs = job(60), job(61)
    for each in jobs:
        each.write = lambda predictor, answers: model.batches.append("answered")
    with_model(model, lambda batched: ask_together(batched, model, *jobs))
    assert model.batches == [[HELD], [60], "answered", [61], "answered"]


def test_a_wrong_or_too_large_request_fails_alone():
    model = Numbers()
    jobs = job(1), job("x"), job(200, 101), job(2), job(13)
    answers = with_model(model, lambda batched: ask_together(batched, model, *jobs))
    assert (answers[0], answers[3]) == ([10], [20])
    assert "expected a number" in str(answers[1])
    assert answers[2].status == 413
    assert "300 rows at most. Received: 301" in str(answers[2])
    assert isinstance(answers[4], ZeroDivisionError)
    assert model.batches == [[HELD], [1, 2, 13], [1], [2], [13]]


def test_a_full_queue_refuses_and_the_end_answers_what_waits():
    model = Numbers()

    async def ask(batched):
        first = await begin(batched.answer(job(HELD)), lambda: model.batches)
        waiting = asyncio.gather(first, batched.answer(job(1)), batched.answer(job(2)))
        await begin(waiting, lambda: batched.queued == 2)
        [refused] = await asyncio.gather(batched.answer(job(3)), return_exceptions=True)
        closing = await begin(batched.close(), lambda: True)
        model.event.set()
        await closing
        return refused, await waiting

    refused, answers = with_model(model, ask, max_queue=2)
    assert (refused.status, str(refused)[:28]) == (429, "2 instances wait already, at")
    assert answers == [[5.0], [10], [20]]


def test_a_large_request_is_computed_in_pieces_while_somebody_waits():
    model = Numbers()
    large = ROWS_AT_ONCE - 1

    async def ask(batched):
        left = await begin(batched.answer(job(HELD, large, large)), lambda: model.batches)
        left.cancel()
        await asyncio.sleep(0.01)  # the worker is told
        model.event.set()
        return await batched.answer(job(30, 30, 30))

    assert with_model(model, ask) == [300, 300, 300]
    assert model.batches == [[HELD, large], [30, 30], [30]]


def test_small_requests_are_answered_beside_a_large_one():
    model = Steps()

    async def ask(batched):
        large = await begin(batched.answer(job(20, characters=90_000)), lambda: model.batches)
        assert await batched.answer(job(1, characters=10)) == [1]
        assert not large.done()
        return await large

    assert with_model(model, ask) == [20]
    assert model.batches.count(20) == 20


def test_after_the_grace_all_are_refused_and_a_large_request_ends_at_its_next_step():
    model = Steps()

    async def ask(batched):
        large = await begin(batched.answer(job(200, characters=90_000)), lambda: model.batches)
        waiting = await begin(batched.answer(job(3, characters=90_000)), lambda: batched.queued)
        batched.give_up()
        refused = await asyncio.gather(large, waiting, return_exceptions=True)
        assert [error.status for error in refused] == [503, 503]
        return await batched.answer(job(1, characters=90_000))

    assert with_model(model, ask) == [1]
    assert model.batches.count(200) < 20
    assert model.batches.count(3) == 0


def test_reading_is_given_up_with_its_client():
    """Requests that take long to read hold one thread, and none once their clients left."""
    model = Numbers()

    async def ask(batched):
        slow = [asyncio.ensure_future(batched.answer(job("slow"))) for _ in range(12)]
        while not model.batches:
            await asyncio.sleep(0.001)
        for task in slow:
            task.cancel()
        await asyncio.sleep(0.01)  # the worker is told
        waiting = asyncio.ensure_future(batched.answer(job(3)))
        await asyncio.sleep(0.01)
        assert batched.queued == 1  # clients that left do not wait
        model.event.set()
        return await waiting

    started = time.monotonic()
    assert with_model(model, ask) == [30]
    assert time.monotonic() - started < 5
    assert model.batches.count("reads") < 12
