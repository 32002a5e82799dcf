"""The Open Inference Protocol, "V2" of KServe and Triton, and the signatures that TensorFlow
Serving shows.

    GET  /v2  /v2/health/live  /v2/health/ready
    GET  /v2/models/NAME  /v2/models/NAME/ready
    POST /v2/models/NAME/infer             {"inputs": [{"name", "shape", "datatype": "BYTES",
    "data": [...]}]}

`NAME` may be followed by `/versions/N` or `/labels/stable`. A tensor is a field of the instances,
its first axis the instances. Texts and lists of texts are BYTES as they are; other fields, and
unequal lists, are BYTES, the value of an instance in JSON.
"""

import json
import math
from typing import Annotated, Literal

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import Field

from colloquy.base.config import Config, NonNegative
from colloquy.serving.limits import (
    RequestError,
    as_json,
    check_count,
    find_model,
    instances_of,
    read,
    read_value,
    while_wanted,
)

DATATYPES = {"b": "BOOL", "i": "INT64", "f": "FP64", "U": "BYTES"}
TYPES = {"string": "BYTES", "number": "FP64", "integer": "INT64", "boolean": "BOOL"}
DTYPES = {"BYTES": "DT_STRING", "FP64": "DT_DOUBLE", "INT64": "DT_INT64", "BOOL": "DT_BOOL"}
router = APIRouter()


class Tensor(Config, extra="ignore"):
    """A field of all instances or answers, which are its first axis."""

    name: str
    shape: Annotated[list[NonNegative], Field(min_length=1)]
    datatype: Literal["BYTES", "FP64", "INT64", "BOOL"]
    data: list


class Inputs(Config, extra="ignore"):
    """Instances as tensors."""

    inputs: Annotated[list[Tensor], Field(min_length=1)]
    id: str = ""


class Outputs(Config):
    """Answers as tensors."""

    model_name: str
    model_version: str
    id: str
    outputs: list[Tensor]


# === Routes ===


@router.get("/v2")
async def server():
    """Name of the server, as the open inference protocol has it."""
    return {"name": "colloquy", "version": "1", "extensions": []}


@router.get("/v2/health/live")
async def live():
    """Is the server up?"""
    return {"live": True}


@router.get("/v2/health/ready")
async def ready(request: Request):
    """Does the server answer?"""
    ready = not request.app.state.stopping
    return JSONResponse({"ready": ready}, 200 if ready else 503)


@router.get("/v2/models/{model:model}")
async def model_metadata(request: Request):
    """Tensors of a model."""
    model = find_model(request)
    metadata = await model.metadata()
    tensors = {
        "inputs": _described(metadata["instance"]),
        "outputs": _described(metadata["answer"]),
    }
    return {"name": model.name, "versions": [model.version], "platform": "keras", **tensors}


@router.get("/v2/models/{model:model}/ready")
async def model_ready(request: Request):
    """Is a model loaded?"""
    model = find_model(request)
    ready = model.summary()["ready"]
    return JSONResponse({"name": model.name, "ready": ready}, 200 if ready else 503)


@router.post("/v2/models/{model:model}/infer")
async def infer(request: Request):
    """Answers instances as tensors."""
    model, asked, limits = (
        find_model(request),
        await read(request, Inputs),
        request.app.state.limits,
    )
    schema = (await model.metadata())["instance"]["properties"]
    columns = {
        each.name: _values(each, _is_text(schema.get(each.name, {})), limits)
        for each in asked.inputs
    }
    found = await while_wanted(request, model.predict(instances_of(columns)))
    outputs = [tensor_of(name, [answer.get(name) for answer in found]) for name in found[0]]
    return as_json(
        {
            "model_name": model.name,
            "model_version": model.version,
            "id": asked.id,
            "outputs": outputs,
        }
    )


# === Tensors ===


def _values(tensor, plain, limits):
    """The value of each instance; text that is not `plain` is JSON."""
    data, (rows, *width) = list(_flat(tensor.data)), tensor.shape
    if len(data) != math.prod(tensor.shape) or len(width) > 1:
        raise RequestError(400, f"{tensor.name[:40]}: expected the items of a shape of 1 or 2 axes")
    # rows without items need no data
    check_count(f"{tensor.name[:40]}", rows, limits.instances, "instances")
    if tensor.datatype == "BYTES" and not plain:
        data = [read_value(f"{tensor.name[:40]}", item, limits) for item in data]
    return [data[i * width[0] : (i + 1) * width[0]] for i in range(rows)] if width else data


def _flat(data):
    for item in data:
        yield from _flat(item) if isinstance(item, list) else [item]


def tensor_of(name, values):
    """The tensor of a field, by its value in each instance or answer."""
    try:
        array = np.array(values)
    except ValueError:  # lists of unequal lengths
        array = np.array(None)
    if array.dtype.kind not in DATATYPES:
        array = np.array(
            [json.dumps(value, ensure_ascii=False, allow_nan=False) for value in values]
        )
    kind, data = DATATYPES[array.dtype.kind], array.ravel().tolist()
    return {"name": name, "shape": list(array.shape), "datatype": kind, "data": data}


# === Schemas ===


def _is_text(schema):
    options = [schema, *schema.get("anyOf", [])]
    return any(
        "string" in (each.get("type"), each.get("items", {}).get("type")) for each in options
    )


def _described(schema):
    """The tensors of a JSON schema's fields."""
    found = []
    for name, field in schema.get("properties", {}).items():
        inner = field.get("items", {}).get("type")
        kind = TYPES.get(inner or field.get("type"), "BYTES")
        found.append(
            {"name": name, "datatype": kind, "shape": [-1, -1] if inner in TYPES else [-1]}
        )
    return found


def signatures(metadata):
    """The `signature_def` of a model as TensorFlow Serving shows it."""
    signature = {"method_name": "tensorflow/serving/predict"}
    for side, field in (("inputs", "instance"), ("outputs", "answer")):
        signature[side] = {}
        for tensor in _described(metadata.get(field, {})):
            dims = [{"size": str(size), "name": ""} for size in tensor["shape"]]
            shape, name = {"dim": dims, "unknown_rank": False}, tensor["name"]
            signature[side][name] = {
                "dtype": DTYPES[tensor["datatype"]],
                "tensor_shape": shape,
                "name": name,
            }
    return {"signature_def": {"serving_default": signature}}
