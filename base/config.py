"""Settings: frozen pydantic classes, and the parser of `--set`."""

import contextlib
import copy
import json
import typing
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from colloquy.base.files import UserError, in_one_line

Positive = Annotated[int, Field(ge=1)]
NonNegative = Annotated[int, Field(ge=0)]
# A model with more layers than this takes minutes to build.
Layers = Annotated[int, Field(ge=0, le=64)]
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
    def of(cls, values: Mapping[str, object]) -> Self:
        """Builds a config from a dict as JSON has it, where tuples are lists.

        A path, or any other value that JSON lacks, becomes a text. Only fields of texts take it.
        """
        return cls.model_validate_json(json.dumps(values, default=_value_for_json))

    def explicit_fields(self) -> dict[str, Any]:
        """Returns `{field: value}` of the fields that were set, not left at their defaults."""
        return {name: value for name, value in self if name in self.model_fields_set}

    def replace(self, **changes: object) -> Self:
        """Returns a copy with some fields changed, validated."""
        return type(self).model_validate({**self.explicit_fields(), **changes})

    def to_json(self) -> dict[str, Any]:
        """Returns a dict ready for JSON, which `of` takes."""
        return self.model_dump(mode="json")


def _value_for_json(value):
    return value.to_json() if isinstance(value, Config) else str(value)


C = TypeVar("C", bound=Config)


def with_defaults(config_class: type[C], **defaults: object) -> type[C]:
    """Returns a subclass with other defaults of some fields."""
    fields: dict[str, Any] = {}
    for name, default in defaults.items():
        field = copy.copy(config_class.model_fields[name])
        field.default = default
        fields[name] = field.annotation, field  # the form that `create_model` takes
    return create_model(
        config_class.__name__, __base__=config_class, __module__=config_class.__module__, **fields
    )


def parse_assignments(assignments: Iterable[str], flag: str = "--set") -> dict[str, str]:
    """Splits the values of a flag such as `--set`; one that is not `field=value` is a `UserError`.

    >>> parse_assignments(["levels=2", "variant=cross"])
    {'levels': '2', 'variant': 'cross'}
    """
    values = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise UserError(f"{flag} expects field=value. Received: {assignment!r}")
        values[name] = value
    return values


def make_config(config_class: type[C], settings: Mapping[str, object], where: str = "") -> C:
    """Builds a config from `{field: value}`.

    Args:
        config_class: A subclass of `Config`.
        settings: Values by field. Text is parsed as JSON where it is JSON, and a nested field is
            `outer.inner`.
        where: Beginning of the message of a `UserError`, for example a file name.

    Raises:
        UserError: A field is missing or unknown, or a value is wrong.

    >>> from colloquy.models.dam_config import DAMConfig
    >>> settings = {"vocabulary_size": 7, "levels": "2", "lexical": "no", "lexical.turns": "3"}
    >>> make_config(DAMConfig, settings).levels
    2
    """
    try:
        return config_class.of(_parse_settings(config_class, settings))
    except ValidationError as error:
        raise UserError(where + sentence(error, config_class)) from error


def check_settings(config_class: type[Config], settings: Mapping[str, object]) -> None:
    """Refuses the settings that `make_config` refuses, but allows that fields are missing."""
    try:
        config_class.of(_parse_settings(config_class, settings))
    except ValidationError as error:
        problems = {problem["type"] for problem in error.errors()}
        if problems != {"missing"}:
            raise UserError(sentence(error, config_class)) from error


def _parse_settings(config_class, settings):
    """Parses texts, and puts nested fields into dicts.

    {"levels": "2", "lexical.turns": "3"}  ->  {"levels": 2, "lexical": {"turns": 3}}
    """
    values = {}
    for name, value in settings.items():
        field = config_class.model_fields.get(name)
        is_text = field is not None and str in types_of(field)
        if isinstance(value, str) and not is_text:
            value = parse_value(value)
        outer, _, inner = name.partition(".")
        if not inner:
            values[name] = value
            continue
        # A nested field is added to the fields of the outer one. Any other value of the outer
        # field, as `null`, is replaced.
        outer_fields = values.get(outer)
        if not isinstance(outer_fields, dict | Config):
            outer_fields = {}
        values[outer] = {**dict(outer_fields), inner: value}
    return values


def types_of(field: Any) -> tuple:
    """The type of a field, and the types that it is a union of."""
    return field.annotation, *typing.get_args(field.annotation)


def parse_value(text: str) -> Any:
    """Returns the JSON value of a text, a number such as `.5`, or the text itself."""
    text_of_python = {"True": "true", "False": "false", "None": "null"}
    json_text = text_of_python.get(text, text)
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(json_text)
    with contextlib.suppress(ValueError):
        return float(text)
    return text


def sentence(error: ValidationError, config_class: type[Config] | None = None) -> str:
    """Describes the first problem of a `ValidationError`; missing fields come last."""
    first = min(error.errors(), key=lambda problem: problem["type"] == "missing")
    name = in_one_line(".".join(str(part) for part in first["loc"]))
    if first["type"] == "extra_forbidden" and config_class:
        fields = ", ".join(config_class.model_fields) or "none"
        return f"{config_class.__name__} has no field {name!r}; it has {fields}"
    if first["type"] == "missing":
        prefix = f"{config_class.__name__}: " if config_class else ""
        return f"{prefix}the field {name} is missing"

    # pydantic says "Input should be a valid dictionary or instance of LexicalConfig".
    reason = first["msg"].removeprefix("Value error, ").partition(" or instance of ")[0]
    if not name:  # a rule across fields
        return reason
    received = in_one_line(first["input"])
    # Quotes show that a text was received, not the number that it looks like.
    if isinstance(first["input"], str) and first["type"].endswith("_type"):
        received = repr(received)
    return f"{name}: {reason[0].lower()}{reason[1:]}. Received: {received}"
