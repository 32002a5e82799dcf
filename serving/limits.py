"""How large a request may be, and how long its answer may take."""

import asyncio
from typing import Annotated

from pydantic import Field

from colloquy.base.config import Config, Positive
from colloquy.serving.answers import RequestError


class Limits(Config):
    """Largest sizes of a request and of a batch. What exceeds a size gets status 413."""

    max_body_bytes: Positive = 200_000
    """Bytes of a request's body."""
    instances: Positive = 32
    """Instances per request, and per call of a model."""
    text_characters: Positive = 100_000
    """Characters of all texts of an instance, or of a conversation."""
    lines: Positive = 1_000
    """Lines of a conversation in a chat completion; a model of dialogs reads each as a sentence."""
    values: Positive = 5_000
    """Values of a body: texts, numbers, lists, objects."""
    max_rows: Positive = 300
    """Rows that the model computes for a request, see `engine.predictor.Predictor.padded_rows`."""
    max_queue: Positive = 256
    """Instances that may wait per model; more get status 429."""
    requests: Positive = 512
    """Requests that are answered at once; more get status 503."""
    timeout_seconds: Annotated[float, Field(gt=0)] = 30.0
    """Seconds for an answer; later it gets status 504."""

    @property
    def grace_seconds(self):
        """Seconds that open requests have after SIGTERM."""
        return self.timeout_seconds + 5


def check_count(where, count, most, unit):
    """Refuses a `count` above `most`, by status 413."""
    if count > most:
        raise RequestError(413, f"{where} may have {most:,} {unit} at most. Received: {count:,}")


def check_instances(instances, limits):
    """Refuses too many instances, and an instance with too much text; returns the characters."""
    check_count("`instances`", len(instances), limits.instances, "items")
    total = 0
    for number, instance in enumerate(instances):
        characters = _count_characters(instance.model_dump())
        check_count(f"instance {number}", characters, limits.text_characters, "characters")
        total += characters
    return total


def _count_characters(value):
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return 0
    return sum(_count_characters(item) for item in value)


def check_values(body, most):
    """Refuses a body, as JSON has it, with more than `most` values.

    A text with half of a surrogate pair, which is not valid Unicode, raises a `ValueError`.
    """
    counted = 0
    waiting = [body]
    while waiting:
        value = waiting.pop()
        counted += 1
        if isinstance(value, str):
            value.encode("utf-8")
        if isinstance(value, dict):
            "".join(value).encode("utf-8")
            value = list(value.values())
        if isinstance(value, list):
            check_count("a body", counted + len(waiting) + len(value), most, "values")
            waiting += value


async def wait_for_answer(request, answer):
    """Awaits an answer. Cancels it if the client leaves or its time is over."""
    seconds = request.app.state.limits.timeout_seconds
    answering = asyncio.ensure_future(answer)
    leaving = asyncio.ensure_future(_wait_until_left(request))
    tasks = [answering, leaving]
    try:
        done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if answering in done:
            return answering.result()
        if leaving in done:
            raise RequestError(499, "the client left before its answer")
        raise RequestError(504, f"no answer within {seconds:g} seconds")
    finally:
        for task in tasks:
            task.cancel()


async def _wait_until_left(request):
    message = await request.receive()
    while message["type"] != "http.disconnect":
        message = await request.receive()
