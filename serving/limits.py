"""What a request may ask for, checked before a model sees it."""

import dataclasses
import json


class RequestError(Exception):
    """The client's request is at fault.

    Args:
        status: HTTP status, 4xx.
        message: One sentence: what was expected, what was received.
    """

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


@dataclasses.dataclass(frozen=True)
class Limits:
    """Sizes that a request may have at most."""

    body_bytes: int = 1_000_000
    """Bytes of a request's body."""
    instances: int = 64
    """Instances per request."""
    items: int = 2_000
    """Items of a list in an instance: turns, candidates, facts."""
    words: int = 20_000
    """Words of one text, separated by white space."""
    characters: int = 200_000
    """Characters of one text."""
    depth: int = 8
    """How deep lists and objects may be nested."""
    timeout_seconds: float = 30.0
    """Seconds until a request that is not answered yet is given up."""


def parse_json(body):
    """The JSON object of a request's body.

    Raises:
        RequestError: 400 where it is none.
    """

    def refuse(constant):
        raise ValueError(f"{constant} is no JSON number")

    try:
        request = json.loads(body.decode("utf-8"), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise RequestError(400, f"the body must be JSON in UTF-8: {str(error)[:200]}") from error
    if not isinstance(request, dict):
        raise RequestError(400, f"the body must be a JSON object. Received: {type(request).__name__}")
    return request


def check_instances(instances, limits):
    """Refuses instances beyond the limits.

    Raises:
        RequestError: 400 where they are no list of objects, 413 where they are too many or too large.
    """
    if not isinstance(instances, list) or not instances:
        raise RequestError(400, "`instances` must be a list of at least one object")
    if len(instances) > limits.instances:
        raise RequestError(413, f"`instances` may have {limits.instances} items at most. Received: {len(instances)}")
    for instance in instances:
        if not isinstance(instance, dict):
            raise RequestError(400, f"an instance must be an object. Received: {type(instance).__name__}")
        for field, value in instance.items():
            _check_value(field[:40], value, limits, limits.depth)


def _check_value(field, value, limits, depth):
    if depth == 0:
        raise RequestError(400, f"`{field}` may be nested {limits.depth} deep at most")
    if isinstance(value, str):
        if len(value) > limits.characters:
            raise RequestError(
                413, f"a text of `{field}` may have {limits.characters:,} characters at most. Received: {len(value):,}"
            )
        words = value.count(" ") + 1  # an upper bound is enough to let most texts pass unsplit
        if words > limits.words and len(value.split()) > limits.words:
            raise RequestError(413, f"a text of `{field}` may have {limits.words:,} words at most")
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise RequestError(400, f"a text of `{field}` has half a surrogate pair, which is no character") from error
    elif isinstance(value, list | dict):
        if len(value) > limits.items:
            raise RequestError(413, f"`{field}` may have {limits.items:,} items at most. Received: {len(value):,}")
        for item in value.values() if isinstance(value, dict) else value:
            _check_value(field, item, limits, depth - 1)
