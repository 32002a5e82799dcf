"""serving.batching and the queue of large bodies in `serving.limits`, with models that answer at once."""

import asyncio
import threading
import time
import types

import numpy as np
import pytest

from engine.predictor import Size
from serving import limits
from serving.batching import Batched
from serving.limits import Limits, RequestError


def batched(conversation, compute=list, valid=lambda instance, where: instance, **limits):
    """What a conversation with a batched model of numbers returns, and the batches that it computed."""
    batches, event = [], threading.Event()

    def answers(instances):
        batches.append(list(instances))
        return compute(instances)

    shared = {"name": "numbers", "version": "1", "metadata": {}, "event": event}
    shared |= {"size": lambda instance: Size({}, 1, (instance,)), "explain": lambda instance: event.wait(5)}
    shared |= {"by_one_thread": lambda compute: compute, "ready": True}
    model = types.SimpleNamespace(**shared, valid=valid, answers=answers)
    model.predictor = model

    async def main():
        batched = Batched(model, Limits(**limits))
        found = await conversation(batched)
        await batched.close()
        return found

    return asyncio.run(main()), batches


def inverse(instances):
    return [1 / instance for instance in instances]


def test_requests_that_arrive_together_share_a_batch():
    def ask(model):
        return asyncio.gather(model.predict([1, 2]), model.predict([3]), model.predict([4, 5, 6]))

    found, batches = batched(ask, lambda instances: [10 * x for x in instances], batch_milliseconds=20.0, max_batch=5)
    assert found == [[10, 20], [30], [40, 50, 60]]
    assert batches == [[1, 2, 3], [4, 5, 6]]  # the third would not have fitted


def test_a_request_that_fails_fails_alone_and_the_others_need_few_calls():
    def ask(model):
        return asyncio.gather(*(model.predict([n]) for n in (1, 2, 3, 0, *range(4, 16))), return_exceptions=True)

    found, batches = batched(ask, inverse, batch_milliseconds=20.0)
    assert isinstance(found.pop(3), ZeroDivisionError)
    assert found == [[1 / n] for n in range(1, 16)]
    assert list(map(len, batches)) == [16, 8, 4, 2, 2, 1, 1, 4, 8]


def test_what_came_while_a_batch_was_computed_waits_no_longer():
    """A batch of two that came while another one was computed, half a second ago, does not wait for .4 s once more."""
    started = []

    def compute(instances):
        started.append(time.perf_counter())
        time.sleep(0.6)
        return instances

    async def ask(model):
        first = asyncio.create_task(model.predict([1]))
        await asyncio.sleep(0.45)
        await asyncio.gather(first, model.predict([2]), model.predict([3]))

    batched(ask, compute, batch_milliseconds=400.0)
    assert len(started) == 2 and started[1] - started[0] < 0.9


async def waiting(model, count, asked):
    """Starts a task and returns it once so many instances wait in a model's queue."""
    task = asyncio.ensure_future(asked)
    while model.queued < count:
        await asyncio.sleep(0.001)
    return task


def test_answers_and_explanations_wait_in_one_queue_which_refuses_when_it_is_full_and_continues():
    async def ask(model):
        first = await waiting(model, 2, asyncio.gather(model.predict([1]), model.explain(0)))
        for refused in (model.predict([3, 4]), model.explain(0)):
            with pytest.raises(RequestError, match="2 instances wait already, at most 2 may") as error:
                await refused
        model._model.event.set()
        return error.value.status, await first, await model.predict([3, 4])

    assert batched(ask, batch_milliseconds=400.0, max_queue=2)[0] == (429, [[1], True], [3, 4])


@pytest.mark.parametrize("milliseconds", [400.0, 0.0])
def test_closing_answers_what_waits_or_is_computed(milliseconds):
    def slow(instances):
        time.sleep(0.2)
        return instances

    async def ask(model):
        task = asyncio.create_task(model.predict([7]))
        await asyncio.sleep(0.1)
        assert model.queued == (milliseconds > 100)
        await model.close()
        return await asyncio.wait_for(task, 5)

    assert batched(ask, slow, batch_milliseconds=milliseconds)[0] == [7]


def test_a_small_request_passes_a_large_one_which_is_computed_in_pieces_while_somebody_waits():
    """Four instances of 50 cells are two pieces of 100; the client leaves during the first of them."""
    event, order = threading.Event(), []

    def compute(instances):
        order.append(instances)
        if instances[0] == 50:
            event.wait(5)
        return instances

    async def ask(model):
        large = asyncio.create_task(model.predict([50] * 4))
        while not order:
            await asyncio.sleep(0.001)
        small = await model.predict([3])
        large.cancel()
        event.set()
        return small, await model.predict([40] * 3)

    assert batched(ask, compute, max_work=1000, large=100)[0] == ([3], [40] * 3)
    assert order == [[50, 50], [3], [40, 40], [40]]


def test_what_nobody_waits_for_is_not_computed_and_what_the_end_finds_is_refused():
    event = threading.Event()

    async def ask(model):
        first = asyncio.create_task(model.predict([1]))
        while not batches:
            await asyncio.sleep(0.001)
        left, late = await waiting(model, 1, model.predict([2])), await waiting(model, 2, model.predict([3]))
        left.cancel()
        model.give_up()
        event.set()
        return await asyncio.gather(first, late, return_exceptions=True)

    batches = []
    refused, _ = batched(ask, lambda instances: batches.append(instances) or (event.wait(5) and instances))
    assert [error.status for error in refused] == [503, 503] and batches == [[1]]


def test_large_bodies_are_read_one_by_one_with_a_pause_and_too_many_are_refused(monkeypatch):
    monkeypatch.setattr(limits, "LANE", 3)
    times = []

    def work():
        times.append(time.monotonic())
        time.sleep(0.02)

    async def main():
        lane = limits.Lane()
        return await asyncio.gather(*(lane.do(work) for _ in range(4)), return_exceptions=True)

    *done, refused = asyncio.run(main())
    assert done == [None] * 3 and refused.status == 429 and min(np.diff(times)) > 0.02 * (1 + limits.REST)


def test_a_small_request_passes_large_bodies_whose_tokens_are_counted():
    event = threading.Event()

    def valid(instance, where):
        return event.wait(5) if isinstance(instance, str) else instance

    async def ask(model):
        large = [asyncio.create_task(model.predict(["a" * limits.LARGE_BODY])) for _ in range(12)]
        small = await model.predict([3])
        event.set()
        return small, await asyncio.gather(*large)

    assert batched(ask, valid=valid)[0] == ([3], [[True]] * 12)
