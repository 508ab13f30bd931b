"""From pydantic's errors to one clear error: the field's path, the value found, what is allowed, the nearest key.

What is allowed is read from the model's JSON Schema, so that it states the whole range and not only the limit that
was broken, and so that a field with several forms (a union) names all of them.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from cosa.common.errors import FieldError, InputError, nearest_of

Location = tuple[int | str, ...]
Schema = dict[str, Any]


def dotted(location: Location) -> str:
    """A location as ``levels[3].capacity_words``."""
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else (f".{part}" if path else part)
    return path


def allowed_values(model: type[BaseModel], name: str) -> str:
    """What a field of a model allows, in words, with its range."""
    schema = model.model_json_schema()
    return (_describe(schema, _schema_at(schema, (name,))) or "").removesuffix(" or null")


def input_error(model: type[BaseModel], data: Any, error: ValidationError, source: str | None) -> InputError:
    """The first thing wrong in `data`, as pydantic reports it for `model`."""
    located = [(_field_location(data, item), item) for item in error.errors(include_url=False)]
    location, item = _choose(located)
    schema = model.model_json_schema()
    more = len({path for path, _ in located if path[: len(location)] != location and location[: len(path)] != path})
    suffix = f" [and {more} more]" if more else ""
    cause = item.get("ctx", {}).get("error")
    if item["type"] == "extra_forbidden":
        known = _keys(schema, _schema_at(schema, location[:-1]))
        given = _value_at(data, location[:-1])
        # A misspelled key is most likely one that is not there yet.
        absent = [key for key in known if key not in given]
        nearest = nearest_of(str(location[-1]), absent) or nearest_of(str(location[-1]), known)
        keys = ", ".join(known)
        return InputError("unknown key" + suffix, source=source, path=dotted(location), allowed=keys, nearest=nearest)
    allowed = _describe(schema, _schema_at(schema, location)) if location else None
    found = {} if item["type"] == "missing" or not location else {"value": item["input"]}
    if isinstance(cause, FieldError):
        path = dotted(location)
        path += f".{cause.path}" if path and cause.path else cause.path
        found = cause.found or ({} if cause.path else found)
        allowed = cause.allowed or (None if cause.path else allowed)
        return InputError(cause.message + suffix, source=source, path=path or None, allowed=allowed, **found)
    if item["type"] == "missing":
        message = "missing"
    elif isinstance(cause, ValueError):
        message, allowed = str(cause), None
    elif item["type"] == "finite_number":
        message = "not a finite number"
    else:
        message = "not valid"
    text = item["input"] if isinstance(item["input"], str) else ""
    nearest = nearest_of(text, _choices(schema, _schema_at(schema, location)))
    path = dotted(location)
    return InputError(message + suffix, source=source, path=path or None, allowed=allowed, nearest=nearest, **found)


def _field_location(data: Any, item: ErrorDetails) -> Location:
    """The item's location without the names that pydantic adds for the branches of a union."""
    location: list[int | str] = []
    for part in item["loc"]:
        try:
            data = data[part]
        except (LookupError, TypeError):
            continue
        location.append(part)
    if item["type"] == "missing":
        location.append(item["loc"][-1])
    return tuple(location)


def _choose(located: list[tuple[Location, ErrorDetails]]) -> tuple[Location, ErrorDetails]:
    # A key that is unknown here explains one that is missing here, not the other way round.
    first, item = next((entry for entry in located if entry[1]["type"] == "extra_forbidden"), located[0])
    for location, other in located:
        # Of the branches of a union the one that got furthest into the data is the one that was meant.
        if len(location) > len(first) and location[: len(first)] == first:
            first, item = location, other
    return first, item


def _value_at(data: Any, location: Location) -> Any:
    for part in location:
        data = data[part]
    return data


def _options(root: Schema, node: Schema) -> list[Schema]:
    """The forms that a node allows, references resolved."""
    found = []
    for option in node.get("anyOf", [node]):
        while "$ref" in option:
            option = root["$defs"][option["$ref"].rsplit("/", 1)[-1]]
        found.append(option)
    return found


def _schema_at(root: Schema, location: Location) -> Schema:
    node = root
    for part in location:
        inner: Schema = {}
        for option in _options(root, node):
            places = option.get("prefixItems", [])
            if isinstance(part, int):
                inner = places[part] if part < len(places) else option.get("items") or inner
            else:
                inner = option.get("properties", {}).get(part) or inner
        node = inner
    return node


def _keys(root: Schema, node: Schema) -> list[str]:
    return [key for option in _options(root, node) for key in option.get("properties", {})]


def _choices(root: Schema, node: Schema) -> list[str]:
    options = _options(root, node)
    return [str(choice) for option in options for choice in option.get("enum", [option.get("const", "")]) if choice]


def _describe(root: Schema, node: Schema) -> str | None:
    """What a schema node allows, in words."""
    words = [word for option in _options(root, node) if (word := _describe_one(option))]
    return " or ".join(dict.fromkeys(words)) or None


def _describe_one(node: Schema) -> str | None:
    if "const" in node:
        return repr(node["const"])
    if "enum" in node:
        *most, last = (repr(choice) for choice in node["enum"])
        return f"{', '.join(most)} or {last}" if most else last
    kind = node.get("type")
    if kind in ("integer", "number"):
        low, above, high = node.get("minimum"), node.get("exclusiveMinimum"), node.get("maximum")
        start = "" if low is None and above is None else f" >= {low}" if above is None else f" > {above:g}"
        both = low is not None and high is not None
        limits = f" from {low} to {high}" if both else start + (f" and <= {high:g}" if high is not None else "")
        return ("a whole number" if kind == "integer" else "a number") + limits
    if kind == "string":
        if "pattern" in node:
            return f"text of the form {node['pattern']}"
        if "maxLength" in node:
            return f"text of {node.get('minLength', 0)} to {node['maxLength']} characters"
        return "text" + (", not empty" if node.get("minLength") else "")
    if kind == "array":
        few, many = node.get("minItems"), node.get("maxItems")
        size = f" of {few}" if few == many and few else f" of {few} to {many}" if few and many else ""
        return f"a list{size}" + (" entries" if size else f" of at least {few}" if few else "")
    if kind == "object":
        return "a mapping with the keys " + ", ".join(node.get("properties", {}))
    return {"boolean": "true or false", "null": "null"}.get(str(kind))
