"""The typed routes of a model: FastAPI checks their bodies, and describes them at /docs."""

import functools
from typing import Annotated, Literal

from fastapi import APIRouter, Body, Request, Response
from fastapi.routing import APIRoute
from pydantic import Field, create_model

from colloquy.base.config import Config
from colloquy.serving.answers import JSON, Error, RequestError, make_json
from colloquy.serving.batching import Job
from colloquy.serving.limits import check_instances, check_values, wait_for_answer


class AttentionMap(Config):
    """Weights of each row for each column."""

    title: str
    rows: list[str]
    columns: list[str]
    weights: list[list[float]]
    cut: bool = False
    """True: the model has more rows or columns than the map."""


class Instances(Config):
    """The instances of a request. Routes have subclasses, whose instances are those of a task."""

    instances: Annotated[list[Config], Field(min_length=1)]
    signature_name: Literal["", "serving_default"] = ""
    """TensorFlow Serving's clients send it."""


ERRORS = {
    400: {"model": Error, "description": "The body or an instance is wrong."},
    413: {"model": Error, "description": "The request is too large."},
    429: {"model": Error, "description": "Too many instances wait: try again later."},
    504: {"model": Error, "description": "The answer took too long."},
    "default": {"model": Error, "description": "Another error."},
}


class BoundedRoute(APIRoute):
    """A route that parses a body and counts its values before their types are checked.

    Each value of a wrong type would cost pydantic 60 microseconds on the event loop.
    """

    def get_route_handler(self):
        handle = super().get_route_handler()

        async def handle_bounded(request):
            try:
                body = await request.json()  # the request keeps it
                check_values(body, request.app.state.limits.values)
            except (ValueError, RecursionError) as error:
                raise RequestError(400, f"the body must be JSON: {str(error)[:200]}") from error
            return await handle(request)

        return handle_bounded


def make_router(model):
    """Makes the routes of a `serving.batching.BatchedModel` that answer instances."""
    router = APIRouter(tags=[model.name], responses=ERRORS, route_class=BoundedRoute)
    body_class, predictions_class, explanations_class = make_types(model.predictor_class)
    examples = {}
    for example in model.served.summary().get("examples", []):
        value = {"instances": [example["instance"]]}
        examples[example["title"]] = {"value": value}
    body_field = Body(openapi_examples=examples)

    @router.post(
        f"/v1/models/{model.name}:predict",
        response_model=predictions_class,
        operation_id=f"predict_{model.name}",
    )
    async def predict(request: Request, body: Annotated[body_class, body_field]):
        """Answers instances."""
        return await _answer(request, model, "predict", body.instances, "predictions")

    @router.post(
        f"/v1/models/{model.name}:explain",
        response_model=explanations_class,
        operation_id=f"explain_{model.name}",
    )
    async def explain(request: Request, body: Annotated[body_class, body_field]):
        """Answers one instance, with attention."""
        return await _answer(request, model, "explain", body.instances, "explanations")

    return router


async def _answer(request, model, verb, instances, field):
    """Answers instances by `{field: answers}`."""
    request.state.model = model.name  # for the metrics
    characters = check_instances(instances, request.app.state.limits)
    count = len(instances)
    if verb == "explain" and count > 1:
        raise RequestError(413, f"one instance is explained per request. Received: {count}")

    def read(predictor):
        read_instances = []
        for number, instance in enumerate(instances):
            read_instances.append(predictor.make_instance(instance, f"instance {number}"))
        return read_instances

    def write(predictor, answers):
        return make_json({field: answers})

    job = Job(verb, count, read, write, characters)
    content = await wait_for_answer(request, model.answer(job))
    return Response(content, media_type=JSON)


def find_model(request, name):
    """Finds the model of a name, for a request; a `RequestError` with status 404 without one."""
    models = request.app.state.models
    if name not in models:
        message = f"there is no model {name[:100]!r}; there are {', '.join(models)}"
        raise RequestError(404, message, field="model", code="model_not_found")
    request.state.model = name  # for the metrics
    return models[name]


@functools.cache
def make_types(predictor_class):
    """Makes the classes of a request, of predictions and of explanations of a kind of models."""
    name = predictor_class.__name__.removesuffix("Predictor")
    body_class = create_model(
        f"{name}Instances",
        __base__=Instances,
        instances=(list[predictor_class.Instance], Field(min_length=1)),
    )
    explanation_class = create_model(
        f"{name}Explanation",
        __base__=predictor_class.Answer,
        attention=(list[AttentionMap], ...),
    )
    predictions_class = create_model(
        f"{name}Predictions", predictions=(list[predictor_class.Answer], ...)
    )
    explanations_class = create_model(
        f"{name}Explanations", explanations=(list[explanation_class], ...)
    )
    return body_class, predictions_class, explanations_class
