"""Texts about the fields of a config: type, limits, default and meaning."""

import json

from colloquy.base.config import Config, types_of


def describe_fields(config_class: type[Config], prefix: str = "") -> list[tuple]:
    """Lists the fields that `--set` can change.

    Returns:
        Texts `(name, type, default, description)`; the default is "" where there is none.
    """
    properties = config_class.model_json_schema()["properties"]
    rows = []
    for name, field in config_class.model_fields.items():
        inner_class = _nested_config(field)
        type_name = inner_class.__name__ if inner_class else _describe_type(properties[name])
        default = "" if field.is_required() else _as_setting(field.default)
        description = " ".join((field.description or "").split())
        rows.append((prefix + name, type_name, default, description))
        if inner_class:
            rows.extend(describe_fields(inner_class, f"{prefix}{name}."))
    return rows


def _as_setting(default):
    """A default as `--set` takes it."""
    return json.dumps(default) if isinstance(default, tuple) else str(default)


def _nested_config(field):
    for annotation in types_of(field):
        if isinstance(annotation, type) and issubclass(annotation, Config):
            return annotation
    return None


def _describe_type(schema):
    """Describes the type and the limits of a field, from its JSON schema."""
    if "anyOf" in schema:
        return " or ".join(_describe_type(option) for option in schema["anyOf"])
    if "const" in schema:
        return str(schema["const"])
    if "enum" in schema:
        return "|".join(str(choice) for choice in schema["enum"])
    signs = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
    words = [schema.get("type", "value")]
    for key, sign in signs.items():
        if key in schema:
            words.append(f"{sign} {schema[key]:g}")
    return " ".join(words)
