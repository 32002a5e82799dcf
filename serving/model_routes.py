"""The routes `:predict` and `:explain` of a model.

The classes of their bodies are made of a task's `Instance` and `Answer`. FastAPI checks requests by
these classes, and describes the routes at /docs.
"""

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
    """The instances of a request; `make_body_classes` makes a subclass with a task's `Instance`."""

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
    """A route that refuses a body with too many values before pydantic checks their types.

    pydantic takes 60 microseconds for each value of a wrong type, on the event loop.
    """

    def get_route_handler(self):
        handle = super().get_route_handler()

        async def handle_bounded(request):
            try:
                # The request keeps the parsed body, so FastAPI does not parse it again.
                body = await request.json()
                check_values(body, request.app.state.limits.values)
            except (ValueError, RecursionError) as error:
                raise RequestError(400, f"the body must be JSON: {str(error)[:200]}") from error
            return await handle(request)

        return handle_bounded


def make_router(model):
    """Makes the routes of a `serving.batching.BatchedModel`."""
    served = model.served
    router = APIRouter(tags=[served.name], responses=ERRORS, route_class=BoundedRoute)
    body_class, predictions_class, explanations_class = make_body_classes(served.predictor_class)

    examples = {}
    for example in served.summary()["examples"]:
        value = {"instances": [example["instance"]]}
        examples[example["title"]] = {"value": value}
    body_field = Body(openapi_examples=examples)

    @router.post(
        f"/v1/models/{served.name}:predict",
        response_model=predictions_class,
        operation_id=f"predict_{served.name}",
    )
    async def predict(request: Request, body: Annotated[body_class, body_field]):
        """Answers instances."""
        return await _answer(request, model, "predict", body.instances, "predictions")

    @router.post(
        f"/v1/models/{served.name}:explain",
        response_model=explanations_class,
        operation_id=f"explain_{served.name}",
    )
    async def explain(request: Request, body: Annotated[body_class, body_field]):
        """Answers one instance, with attention."""
        return await _answer(request, model, "explain", body.instances, "explanations")

    return router


async def _answer(request, model, verb, instances, field):
    """Answers the instances of a request by the JSON `{field: answers}`; see `Job` for `verb`."""
    request.state.model = model.served.name  # `serving.places` counts the request for it
    characters = check_instances(instances, request.app.state.limits)
    count = len(instances)
    if verb == "explain" and count > 1:
        raise RequestError(413, f"one instance is explained per request. Received: {count}")

    def read(predictor):
        checked = []
        for number, instance in enumerate(instances):
            checked.append(predictor.make_instance(instance, f"instance {number}"))
        return checked

    def write(predictor, answers):
        return make_json({field: answers})

    job = Job(verb, count, read, write, characters)
    content = await wait_for_answer(request, model.answer(job))
    return Response(content, media_type=JSON)


def find_model(request, name):
    """Finds the model that a request names.

    Raises:
        RequestError: No model has this name. The status is 404.
    """
    models = request.app.state.models
    if name not in models:
        message = f"there is no model {name[:100]!r}; there are {', '.join(models)}"
        raise RequestError(404, message, field="model", code="model_not_found")
    request.state.model = name
    return models[name]


@functools.cache
def make_body_classes(predictor_class):
    """Makes the pydantic classes of the bodies of a model's routes, from its `Predictor` class.

    Returns:
        The class of requests, of the answers of `:predict`, and of those of `:explain`.
    """
    name = predictor_class.__name__.removesuffix("Predictor")
    request_class = create_model(
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
    return request_class, predictions_class, explanations_class
