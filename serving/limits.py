"""Limits of a request, and the instances in its body, checked before a model sees them."""

import dataclasses
import json


class RequestError(Exception):
    """A request that gets no answer but an HTTP status, 4xx or 503, and one sentence."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


@dataclasses.dataclass(frozen=True)
class Limits:
    """Largest sizes of a request."""

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
    """Nesting of lists and objects."""
    timeout_seconds: float = 30.0
    """Seconds until a request without an answer is given up."""


def read_instances(body, limits):
    """Reads the instances of a request, `{"instances": [{field: value}]}` or `{"inputs": {field: [value]}}` in JSON.

    Returns a list of dicts, and whether they came as columns. A `RequestError` is 400 if they are not a list of
    objects, 413 if they are too many or too large.
    """
    request = _parse(body)
    if ("instances" in request) == ("inputs" in request):
        raise RequestError(400, "expected one of `instances` and `inputs`")
    columns = "inputs" in request
    instances = _rows(request["inputs"]) if columns else request["instances"]
    if not isinstance(instances, list) or not instances:
        raise RequestError(400, "`instances` must be a list of at least one object")
    if len(instances) > limits.instances:
        raise RequestError(413, f"`instances` may have {limits.instances} items at most. Received: {len(instances)}")
    for instance in instances:
        if not isinstance(instance, dict):
            raise RequestError(400, f"an instance must be an object. Received: {type(instance).__name__}")
        for field, value in instance.items():
            _check(field[:40], value, limits, limits.depth)
    return instances, columns


def _parse(body):
    def refuse(constant):
        raise ValueError(f"{constant} is not a JSON number")

    try:
        request = json.loads(body.decode("utf-8"), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise RequestError(400, f"the body must be JSON in UTF-8: {str(error)[:200]}") from error
    if not isinstance(request, dict):
        raise RequestError(400, f"the body must be a JSON object. Received: {type(request).__name__}")
    return request


def _rows(inputs):
    if not isinstance(inputs, dict) or not inputs or not all(isinstance(column, list) for column in inputs.values()):
        raise RequestError(400, "`inputs` must be an object of lists, one per field")
    if len({len(column) for column in inputs.values()}) > 1:
        raise RequestError(400, "the lists of `inputs` must be equally long")
    return [dict(zip(inputs, row, strict=True)) for row in zip(*inputs.values(), strict=True)]


def _check(field, value, limits, depth):
    if depth == 0:
        raise RequestError(400, f"`{field}` may be nested {limits.depth} deep at most")
    if isinstance(value, str):
        _check_text(field, value, limits)
    elif isinstance(value, list | dict):
        if len(value) > limits.items:
            raise RequestError(413, f"`{field}` may have {limits.items:,} items at most. Received: {len(value):,}")
        for item in value.values() if isinstance(value, dict) else value:
            _check(field, item, limits, depth - 1)


def _check_text(field, text, limits):
    where = f"a text of `{field}`"
    if len(text) > limits.characters:
        raise RequestError(413, f"{where} may have {limits.characters:,} characters at most. Received: {len(text):,}")
    words = text.count(" ") + 1  # an upper bound is enough to let most texts pass unsplit
    if words > limits.words and len(text.split()) > limits.words:
        raise RequestError(413, f"{where} may have {limits.words:,} words at most")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise RequestError(400, f"{where} has half a surrogate pair, which is no character") from error
