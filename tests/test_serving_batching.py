"""serving.batching and the queue of large bodies in `serving.limits`, with models that answer at
once.
"""

import asyncio
import threading
import time
import types

import numpy as np
import pytest

from colloquy.engine.predictor import Size
from colloquy.serving import batching, limits
from colloquy.serving.batching import Batched
from colloquy.serving.limits import Limits, RequestError


class Numbers:
    """A model of numbers; batches with one of `held` wait for `event`, as explanations do."""

    name, version, metadata, ready = "numbers", "1", {}, True

    def __init__(self, compute=list, held=()):
        self.compute, self.held, self.batches, self.event = compute, {*held}, [], threading.Event()
        self.predictor = self

    def valid(self, instance, where):
        return instance

    def size(self, instance):
        return Size({}, 1, (instance,))

    def by_one_thread(self, compute):
        return compute

    def answers(self, instances):
        self.batches.append(list(instances))
        assert self.held.isdisjoint(instances) or self.event.wait(20)
        return self.compute(instances)

    def explain(self, instance):
        return self.event.wait(20)


def batched(model, conversation, **limits):
    """The result of `conversation(batched)` with a model."""

    async def main():
        batched = Batched(model, Limits(**limits))
        found = await conversation(batched)
        await batched.close()
        return found

    return asyncio.run(main())


async def begun(asked, true):
    """Starts a request and returns its task once `true()`."""
    task = asyncio.ensure_future(asked)
    while not true():
        await asyncio.sleep(0.001)
    return task


async def together(batched, model, *requests):
    """The answers to requests that come, in this order, while the model computes the batch
    `[0.5]`.
    """
    tasks, count = [await begun(batched.predict([0.5]), lambda: model.batches)], 0
    for instances in requests:
        count += len(instances)
        tasks.append(
            await begun(batched.predict(instances), lambda count=count: batched.queued == count)
        )
    model.event.set()
    _, *found = await asyncio.gather(*tasks, return_exceptions=True)
    return found


def test_requests_that_wait_together_share_a_batch():
    model = Numbers(lambda instances: [10 * x for x in instances], held=[0.5])
    found = batched(
        model, lambda batched: together(batched, model, [1, 2], [3], [4, 5, 6]), max_batch=5
    )
    assert found == [[10, 20], [30], [40, 50, 60]]
    assert model.batches == [[0.5], [1, 2, 3], [4, 5, 6]]  # the third would not have fitted


def test_a_request_that_fails_fails_alone_and_the_others_need_few_calls():
    model = Numbers(lambda instances: [1 / instance for instance in instances], held=[0.5])
    requests = [[n] for n in (1, 2, 3, 0, *range(4, 16))]
    found = batched(model, lambda batched: together(batched, model, *requests))
    assert isinstance(found.pop(3), ZeroDivisionError)
    assert found == [[1 / n] for n in range(1, 16)]
    assert list(map(len, model.batches)) == [1, 16, 8, 4, 2, 2, 1, 1, 4, 8]


def test_what_came_while_a_batch_was_computed_waits_no_longer(monkeypatch):
    """Requests wait 20 s for others; those of a second batch wait what is left of it."""
    slept, model = [], Numbers(held=[0.5])

    async def sleep(seconds):
        slept.append(seconds)

    async def ask(batched):
        begin = time.perf_counter()
        await together(batched, model, [2], [3])
        return time.perf_counter() - begin

    monkeypatch.setattr(
        batching, "asyncio", types.SimpleNamespace(**{**vars(asyncio), "sleep": sleep})
    )
    lasted = batched(model, ask, batch_milliseconds=20_000.0)
    assert model.batches == [[0.5], [2, 3]] and 20 - lasted < slept[1] < 20 - 0.001


def test_answers_and_explanations_wait_in_one_queue_which_refuses_when_it_is_full_and_continues():
    model = Numbers(held=[0.5])

    async def ask(batched):
        first = await begun(batched.predict([0.5]), lambda: model.batches)
        asked = asyncio.gather(first, batched.predict([1]), batched.explain(0))
        await begun(asked, lambda: batched.queued == 2)
        for refused in (batched.predict([3, 4]), batched.explain(0)):
            with pytest.raises(
                RequestError, match="2 instances wait already, at most 2 may"
            ) as error:
                await refused
        model.event.set()
        return error.value.status, await asked, await batched.predict([3, 4])

    assert batched(model, ask, max_queue=2) == (429, [[0.5], [1], True], [3, 4])


def test_closing_answers_what_waits_and_what_is_computed():
    model = Numbers(held=[7])

    async def ask(batched):
        computed = await begun(batched.predict([7]), lambda: model.batches)
        waits = await begun(batched.predict([8]), lambda: batched.queued)
        closing = await begun(batched.close(), lambda: True)
        model.event.set()
        return await asyncio.gather(closing, computed, waits)

    assert batched(model, ask, batch_milliseconds=20.0) == [None, [7], [8]]


def test_a_small_request_passes_a_large_one_which_is_computed_in_pieces_while_somebody_waits():
    """Four instances of 50 cells are two pieces of 100; the client leaves during the first of
    them.
    """
    model = Numbers(held=[50])

    async def ask(batched):
        large = await begun(batched.predict([50] * 4), lambda: model.batches)
        small = await batched.predict([3])
        large.cancel()
        model.event.set()
        return small, await batched.predict([40] * 3)

    assert batched(model, ask, max_work=1000, large=100) == ([3], [40] * 3)
    assert model.batches == [[50, 50], [3], [40, 40], [40]]


def test_what_nobody_waits_for_is_not_computed_and_what_the_end_finds_is_refused():
    model = Numbers(held=[1])

    async def ask(batched):
        first = await begun(batched.predict([1]), lambda: model.batches)
        left = await begun(batched.predict([2]), lambda: batched.queued == 1)
        late = await begun(batched.predict([3]), lambda: batched.queued == 2)
        left.cancel()
        batched.give_up()
        model.event.set()
        return await asyncio.gather(first, late, return_exceptions=True)

    assert [error.status for error in batched(model, ask)] == [503, 503] and model.batches == [[1]]


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
    assert (
        done == [None] * 3
        and refused.status == 429
        and min(np.diff(times)) > 0.02 * (1 + limits.REST)
    )


def test_a_small_request_passes_large_bodies_whose_tokens_are_counted(monkeypatch):
    model = Numbers()
    monkeypatch.setattr(
        model, "valid", lambda instance, _: model.event.wait(20) if instance != 3 else instance
    )

    async def ask(batched):
        large = [asyncio.create_task(batched.predict(["a" * limits.LARGE_BODY])) for _ in range(12)]
        small = await batched.predict([3])
        model.event.set()
        return small, await asyncio.gather(*large)

    assert batched(model, ask) == ([3], [[True]] * 12)
