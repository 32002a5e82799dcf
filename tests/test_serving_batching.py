"""serving.batching, with a model that answers at once."""

import asyncio
import threading
import time

import pytest

from colloquy.base.files import UserError
from colloquy.engine.checkpoints import checkpoint
from colloquy.serving.answers import RequestError
from colloquy.serving.batching import ROWS_AT_ONCE, BatchedModel
from colloquy.serving.limits import Limits

HELD = 0.5  # an instance whose batch waits for the event


class Numbers:
    """A model of numbers: each is its own number of rows, and answered by ten times itself."""

    name = "numbers"
    ready = True
    predictor_class = None

    def __init__(self, compute=lambda x: 10 * x):
        self.compute = compute
        self.predictor = self
        self.batches = []
        self.event = threading.Event()
        self.read_event = None

    def valid(self, instance, where):
        if self.read_event and instance == "slow":
            self.read_event.wait(20)
        if not isinstance(instance, int | float):
            raise UserError(f"{where}: expected a number")
        return instance

    def padded_rows(self, instance):
        return instance

    def answers(self, instances):
        self.batches.append(list(instances))
        assert HELD not in instances or self.event.wait(20)
        return [self.compute(instance) for instance in instances]

    def explain(self, instance):
        self.event.wait(20)
        return {"attention": []}


def write(predictor, answers):
    return answers


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


async def ask_together(batched, model, *requests):
    """The answers to requests that arrive, in this order, while the model computes a batch."""
    tasks = [await begin(batched.predict([HELD], write), lambda: model.batches)]
    count = 0
    for instances in requests:
        count += len(instances)
        is_queued = lambda count=count: batched.queued == count  # noqa: E731
        tasks.append(await begin(batched.predict(instances, write), is_queued))
    model.event.set()
    _, *answers = await asyncio.gather(*tasks, return_exceptions=True)
    return answers


def test_requests_that_wait_together_share_a_batch():
    model = Numbers()
    requests = [1, 2], [3], [4, 5, 6]
    answers = with_model(model, lambda b: ask_together(b, model, *requests), max_batch=5)
    assert answers == [[10, 20], [30], [40, 50, 60]]
    assert model.batches == [[HELD], [1, 2, 3], [4, 5, 6]]  # the third would not have fitted


def test_a_request_that_fails_fails_alone_and_the_others_need_few_calls():
    model = Numbers(lambda instance: 1 / instance)
    model.padded_rows = lambda instance: 1
    requests = [[n] for n in (1, 2, 3, 0, *range(4, 16))]
    answers = with_model(model, lambda batched: ask_together(batched, model, *requests))
    assert isinstance(answers.pop(3), ZeroDivisionError)
    assert answers == [[1 / n] for n in range(1, 16)]
    sizes = [len(batch) for batch in model.batches]
    assert sizes == [1, 16, 8, 4, 2, 2, 1, 1, 4, 8]


def test_a_wrong_or_too_large_request_is_refused_alone():
    model = Numbers()
    requests = [1], ["x"], [200, 101], [2]
    answers = with_model(model, lambda batched: ask_together(batched, model, *requests))
    assert (answers[0], answers[3]) == ([10], [20])
    assert str(answers[1]) == "instance 0: expected a number"
    assert answers[2].status == 413
    assert "300 rows at most. Received: 301" in str(answers[2])
    assert model.batches == [[HELD], [1, 2]]


def test_answers_and_explanations_wait_in_one_queue_which_refuses_when_it_is_full():
    model = Numbers()

    async def ask(batched):
        first = await begin(batched.predict([HELD], write), lambda: model.batches)
        waiting = asyncio.gather(first, batched.predict([1], write), batched.explain(0, write))
        await begin(waiting, lambda: batched.queued == 2)
        for refused in (batched.predict([3, 4], write), batched.explain(0, write)):
            message = "2 instances wait already, at most 2 may"
            with pytest.raises(RequestError, match=message) as error:
                await refused
            assert error.value.status == 429
        model.event.set()
        return await waiting, await batched.predict([3, 4], write)

    answers, later = with_model(model, ask, max_queue=2)
    assert answers == [[5.0], [10], [{"attention": []}]]
    assert later == [30, 40]


def test_closing_answers_what_waits_and_what_is_computed():
    model = Numbers()

    async def ask(batched):
        computed = await begin(batched.predict([HELD], write), lambda: model.batches)
        waits = await begin(batched.predict([8], write), lambda: batched.queued)
        closing = await begin(batched.close(), lambda: True)
        model.event.set()
        return await asyncio.gather(closing, computed, waits)

    assert with_model(model, ask, batch_milliseconds=20.0) == [None, [5.0], [80]]


def test_a_large_request_is_computed_in_pieces_while_somebody_waits():
    model = Numbers()
    large = ROWS_AT_ONCE - 1

    async def ask(batched):
        left = await begin(batched.predict([HELD, large, large], write), lambda: model.batches)
        left.cancel()
        await asyncio.sleep(0.01)  # the worker is told
        model.event.set()
        return await batched.predict([30, 30, 30], write)

    assert with_model(model, ask) == [300, 300, 300]
    assert model.batches == [[HELD, large], [30, 30], [30]]


class Steps(Numbers):
    """Computes an instance in as many steps as its number says, and notes them."""

    def __init__(self):
        super().__init__()
        self.begun = threading.Event()

    def answers(self, instances):
        for instance in instances:
            for _ in range(instance):
                self.batches.append(instance)
                self.begun.set()
                time.sleep(0.05)
                checkpoint()
        return list(instances)


def test_small_requests_are_answered_between_the_steps_of_a_large_one():
    model = Steps()

    async def ask(batched):
        large = await begin(batched.predict([20], write, 90_000), model.begun.is_set)
        assert await batched.predict([1], write, 10) == [1]
        assert not large.done()
        return await large

    assert with_model(model, ask) == [20]
    assert model.batches.count(20) == 20


def test_a_large_request_ends_at_its_next_step_once_nobody_waits_for_it():
    model = Steps()

    async def ask(batched):
        large = await begin(batched.predict([200], write, 90_000), model.begun.is_set)
        batched.give_up()
        with pytest.raises(RequestError) as error:
            await large
        assert error.value.status == 503
        return await batched.predict([1], write, 90_000)

    assert with_model(model, ask) == [1]
    assert model.batches.count(200) < 20


def test_what_nobody_waits_for_is_not_computed_and_what_the_end_finds_is_refused():
    model = Numbers()

    async def ask(batched):
        first = await begin(batched.predict([HELD], write), lambda: model.batches)
        left = await begin(batched.predict([2], write), lambda: batched.queued == 1)
        late = await begin(batched.predict([3], write), lambda: batched.queued == 2)
        left.cancel()
        batched.give_up()
        model.event.set()
        return await asyncio.gather(first, late, return_exceptions=True)

    assert [error.status for error in with_model(model, ask)] == [503, 503]
    assert model.batches == [[HELD]]


def test_reading_is_counted_and_given_up_with_its_client():
    """Twelve requests that take long to read hold one thread, and none once their clients left."""
    model = Numbers()
    model.read_event = threading.Event()
    read = []
    valid = model.valid

    def note(instance, where):
        read.append(instance)
        return valid(instance, where)

    model.valid = note

    async def ask(batched):
        slow = [asyncio.ensure_future(batched.predict(["slow"], write)) for _ in range(12)]
        while not read:
            await asyncio.sleep(0.001)
        for task in slow:
            task.cancel()
        await asyncio.sleep(0.01)  # the worker is told
        waiting = asyncio.ensure_future(batched.predict([3], write))
        await asyncio.sleep(0.01)
        assert batched.queued == 1  # clients that left do not wait
        model.read_event.set()
        started = time.monotonic()
        return await waiting, time.monotonic() - started

    answer, seconds = with_model(model, ask, batch_milliseconds=0.0)
    assert answer == [30]
    assert seconds < 1
    assert read.count("slow") == 1
