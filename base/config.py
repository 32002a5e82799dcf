"""Settings: frozen pydantic classes, whose fields' docstrings describe them, and the parser of
`--set`.
"""

import contextlib
import copy
import json
import typing
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from colloquy.base.files import UserError

Positive = Annotated[int, Field(ge=1)]
NonNegative = Annotated[int, Field(ge=0)]
Dropout = Annotated[float, Field(ge=0, lt=1)]


class Config(BaseModel):
    """Base class of all settings: frozen, strict types, no unknown field, no infinity and no NaN.

    The docstring under a field is its description. Limits are in its type, as `Annotated[int,
    Field(ge=1)]` or `Literal["adam", "adadelta"]`; rules across fields are a `model_validator`.
    Constructors raise a `ValueError`.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    @classmethod
    def of(cls, values):
        """Builds a config from a dict as JSON has it, where tuples are lists."""
        return cls.model_validate_json(json.dumps(values, default=Config.to_json))

    def explicit_fields(self):
        """Returns `{field: value}` of the fields that were set, not left at their defaults."""
        names = [name for name in type(self).model_fields if name in self.model_fields_set]
        return {name: getattr(self, name) for name in names}

    def replace(self, **changes):
        """Returns a copy with some fields changed, validated."""
        return type(self).model_validate({**self.explicit_fields(), **changes})

    def to_json(self):
        """Returns a dict ready for JSON, which `of` takes."""
        return self.model_dump(mode="json")


def with_defaults(config_class, **defaults):
    """A config class with other defaults of some fields, to be a base class."""
    fields = {}
    for name, default in defaults.items():
        field = copy.copy(config_class.model_fields[name])
        field.default = default
        fields[name] = field.annotation, field
    return create_model(
        config_class.__name__, __base__=config_class, __module__=config_class.__module__, **fields
    )


def parse_assignments(assignments, flag="--set"):
    """Splits the values of a flag such as `--set`; one that is not `field=value` is a `UserError`.

    >>> parse_assignments(["levels=2", "variant=cross"])
    {'levels': '2', 'variant': 'cross'}
    """
    for assignment in assignments:
        if "=" not in assignment:
            raise UserError(f"{flag} expects field=value. Received: {assignment!r}")
    return dict(assignment.split("=", 1) for assignment in assignments)


def make_config(config_class, settings, where="", partial=False):
    """Builds a config from `{field: value}`; text is parsed as JSON where it is JSON, a nested
    field is `outer.inner`.

    A wrong field, type or value is a `UserError`, which begins with `where`, for example a file
    name. With `partial` fields may be missing: the others are checked alone, and the result is
    `None`.

    >>> from colloquy.models.dam import DAMConfig
    >>> make_config(DAMConfig, {"vocabulary_size": 7, "levels": "2", "lexical": "no", "lexical.turns": "3"}).levels
    2
    """
    values = {}
    for name, value in settings.items():
        field = config_class.model_fields.get(name)
        if isinstance(value, str) and not (field and str in _types(field)):
            value = parse_value(value)
        outer, _, inner = name.partition(".")
        before = values.get(outer)
        values[outer] = (
            {**dict(before if isinstance(before, dict | Config) else {}), inner: value}
            if inner
            else value
        )
    try:
        return config_class.of(values)
    except ValidationError as error:
        if partial and {each["type"] for each in error.errors()} == {"missing"}:
            return None
        raise UserError(where + sentence(error, config_class)) from error


def _types(field):
    return field.annotation, *typing.get_args(field.annotation)


def parse_value(text):
    """Returns the JSON value of a text, a number such as `.5`, or the text itself."""
    for parse in (json.loads, float):
        with contextlib.suppress(ValueError, RecursionError):
            return parse({"True": "true", "False": "false", "None": "null"}.get(text, text))
    return text


def sentence(error, config_class=None):
    """The first problem of a `ValidationError` of a class, in one sentence; that a field is missing
    comes last.
    """
    first = min(error.errors(), key=lambda each: each["type"] == "missing")
    name = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden" and config_class:
        return f"{config_class.__name__} has no field {name!r}; it has {', '.join(config_class.model_fields)}"
    if first["type"] == "missing":
        return f"{config_class.__name__ + ': ' if config_class else ''}the field {name} is missing"
    reason = first["msg"].removeprefix("Value error, ").partition(" or instance of ")[0]
    if not name:  # a rule across fields
        return reason
    return f"{name}: {reason[0].lower()}{reason[1:]}. Received: {first['input']!s:.80}"


def describe_fields(config_class, prefix=""):
    """Texts `(name, type, default, description)` of each field that `--set` can change; "" without
    a default.
    """
    schema, found = config_class.model_json_schema(), []
    for name, field in config_class.model_fields.items():
        nested = [
            kind for kind in _types(field) if isinstance(kind, type) and issubclass(kind, Config)
        ]
        kind = nested[0].__name__ if nested else _kind(schema["properties"][name])
        default = "" if field.is_required() else str(field.default)
        found.append((prefix + name, kind, default, " ".join((field.description or "").split())))
        for inner in nested:
            found += describe_fields(inner, f"{prefix}{name}.")
    return found


def _kind(schema):
    """The type and limits of a field in words, from its JSON schema."""
    if "anyOf" in schema:
        return " or ".join(_kind(each) for each in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        return "|".join(map(str, schema.get("enum", [schema.get("const")])))
    words = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
    limits = [f"{sign} {schema[key]:g}" for key, sign in words.items() if key in schema]
    return " ".join([schema.get("type", "value"), *limits])
