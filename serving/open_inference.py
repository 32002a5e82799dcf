"""The Open Inference Protocol, "V2" of KServe and Triton, and the signatures that TensorFlow Serving shows.

    GET  /v2  /v2/health/live  /v2/health/ready
    GET  /v2/models/NAME  /v2/models/NAME/ready
    POST /v2/models/NAME/infer             {"inputs": [{"name", "shape", "datatype": "BYTES", "data": [...]}]}

`NAME` may be followed by `/versions/N` or `/labels/stable`. A tensor is a field of the instances, its first axis the
instances. Texts and lists of texts are BYTES as they are; other fields, and unequal lists, are BYTES, the value of an
instance in JSON.
"""

import functools
import json
import math

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from serving.limits import (
    RequestError,
    as_json,
    check_instances,
    find_model,
    read,
    read_object,
    read_value,
    while_wanted,
)

DATATYPES = {"b": "BOOL", "i": "INT64", "f": "FP64", "U": "BYTES"}
TYPES = {"string": "BYTES", "number": "FP64", "integer": "INT64", "boolean": "BOOL"}
DTYPES = {"BYTES": "DT_STRING", "FP64": "DT_DOUBLE", "INT64": "DT_INT64", "BOOL": "DT_BOOL"}
router = APIRouter()
get = functools.partial(router.api_route, methods=["GET", "HEAD"])


# === Routes ===


@get("/v2")
async def server():
    return {"name": "colloquy", "version": "1", "extensions": []}


@get("/v2/health/live")
async def live():
    return {"live": True}


@get("/v2/health/ready")
async def ready(request: Request):
    ready = not request.app.state.door.stopping
    return JSONResponse({"ready": ready}, 200 if ready else 503)


@get("/v2/models/{model:model}")
async def model_metadata(request: Request):
    model = find_model(request)
    schemas = await model.schemas()
    return {
        "name": model.name,
        "versions": [model.version],
        "platform": "keras",
        "inputs": _described(schemas["instance"]),
        "outputs": _described(schemas["answer"]),
    }


@get("/v2/models/{model:model}/ready")
async def model_ready(request: Request):
    model = find_model(request)
    ready = (await model.summary())["ready"]
    return JSONResponse({"name": model.name, "ready": ready}, 200 if ready else 503)


@router.post("/v2/models/{model:model}/infer")
async def infer(request: Request):
    limits, model = request.app.state.limits, find_model(request)
    body = await read(request, read_object)
    schema = (await model.schemas())["instance"]["properties"]
    columns = {}
    for tensor in _tensors(body):
        plain = _is_text(schema.get(tensor["name"], {}))
        columns[tensor["name"]] = _values(tensor, plain, limits)
    if len({len(column) for column in columns.values()}) != 1:
        raise RequestError(400, "expected inputs with the same first axis, one item per instance")
    instances = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    found = await while_wanted(request, model.predict(check_instances(instances, limits)))
    outputs = [_tensor(name, [answer.get(name) for answer in found]) for name in found[0]]
    head = {"model_name": model.name, "model_version": model.version, "id": str(body.get("id", ""))}
    return as_json({**head, "outputs": outputs})


# === Tensors ===


def _tensors(body):
    inputs = body.get("inputs")
    if not isinstance(inputs, list) or not inputs or not all(isinstance(each, dict) for each in inputs):
        raise RequestError(400, "`inputs` must be a list of at least one tensor")
    for tensor in inputs:
        shape = tensor.get("shape")
        if not isinstance(tensor.get("name"), str) or not isinstance(tensor.get("data"), list):
            raise RequestError(400, "a tensor needs a `name`, a `shape`, a `datatype` and `data`, a list")
        if tensor.get("datatype") not in DTYPES:
            raise RequestError(400, f"`datatype` may be {', '.join(DTYPES)}. Received: {tensor.get('datatype')!s:.40}")
        if not isinstance(shape, list) or not shape or not all(type(size) is int and size > 0 for size in shape):
            raise RequestError(400, f"`shape` must be a list of numbers above 0. Received: {shape!s:.40}")
    return inputs


def _values(tensor, plain, limits):
    """The value of each instance; text that is not `plain` is JSON."""
    data = list(_flat(tensor["data"]))
    if len(data) != math.prod(tensor["shape"]) or len(tensor["shape"]) > 2:
        raise RequestError(400, f"{tensor['name'][:40]}: expected the items of a shape of 1 or 2 axes")
    if tensor["datatype"] == "BYTES" and not plain:
        data = [read_value(f"{tensor['name'][:40]}", item, limits) for item in data]
    rows = np.empty(len(data), object)
    rows[:] = data
    return rows.reshape(tensor["shape"]).tolist()


def _flat(data):
    for item in data:
        yield from _flat(item) if isinstance(item, list) else [item]


def _tensor(name, values):
    """The tensor of a field of the answers."""
    try:
        array = np.array(values)
    except ValueError:  # lists of unequal lengths
        array = np.array(None)
    if array.dtype.kind not in DATATYPES:
        array = np.array([json.dumps(value, ensure_ascii=False, allow_nan=False) for value in values])
    return {
        "name": name,
        "shape": list(array.shape),
        "datatype": DATATYPES[array.dtype.kind],
        "data": array.ravel().tolist(),
    }


# === Schemas ===


def _is_text(schema):
    options = [schema, *schema.get("anyOf", [])]
    return any("string" in (each.get("type"), each.get("items", {}).get("type")) for each in options)


def _described(schema):
    """The tensors of a JSON schema's fields."""
    found = []
    for name, field in schema.get("properties", {}).items():
        inner = field.get("items", {}).get("type")
        kind = TYPES.get(inner or field.get("type"), "BYTES")
        found.append({"name": name, "datatype": kind, "shape": [-1, -1] if inner in TYPES else [-1]})
    return found


def signatures(metadata):
    """The `signature_def` of a model as TensorFlow Serving shows it."""
    sides = {"inputs": metadata.get("instance", {}), "outputs": metadata.get("answer", {})}
    found = {side: {each["name"]: _info(each) for each in _described(schema)} for side, schema in sides.items()}
    return {"signature_def": {"serving_default": {**found, "method_name": "tensorflow/serving/predict"}}}


def _info(tensor):
    dims = [{"size": str(size), "name": ""} for size in tensor["shape"]]
    shape = {"dim": dims, "unknown_rank": False}
    return {"dtype": DTYPES[tensor["datatype"]], "tensor_shape": shape, "name": tensor["name"]}
