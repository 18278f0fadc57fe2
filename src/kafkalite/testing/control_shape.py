"""What may be asked over HTTP, in words that a program reads: fields, and who answers them.

Owns what is understood of a body and a query, and the OpenAPI document, both of the same fields.
Does nothing. Invariant: what is not named in a field is refused by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isnan
from typing import Any

from kafkalite import __version__

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}
_TRUE_FALSE = {"true": True, "false": False}
ERROR_DOC = "Why not, and what to do instead."


class Mistake(Exception):
    """What is answered instead: a status and a sentence."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(slots=True, frozen=True)
class Field:
    """A member of an object. Of an array `fields` are those of its elements."""

    name: str
    types: str  # of JSON, with blanks between; none is any
    about: str
    is_required: bool = False
    default: Any = None
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    fields: tuple[Field, ...] = ()

    def schema(self) -> dict[str, Any]:
        types = self.types.split()
        found: dict[str, Any] = {"description": self.about}
        if types:
            found["type"] = types[0] if len(types) == 1 else types
        if self.choices:
            found["enum"] = list(self.choices)
        if self.fields:
            below = object_schema(self.fields)
            found |= {"items": below} if "array" in types else below
        named = {"default": self.default, "minimum": self.least, "maximum": self.most}
        return found | {name: value for name, value in named.items() if value is not None}


@dataclass(slots=True, frozen=True)
class Endpoint:
    """One method of one path."""

    method: str
    path: str
    about: str
    act: Callable[[Any, dict[str, Any]], dict[str, Any]]
    answer: tuple[Field, ...]
    body: tuple[Field, ...] = ()
    query: tuple[Field, ...] = ()
    status: int = 200
    waits: bool = False  # for clients of the broker, which may be a long time

    @property
    def names_in_path(self) -> list[str]:
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]


# --- reading --------------------------------------------------------------------------------------


def read(fields: tuple[Field, ...], given: Any, where: str) -> dict[str, Any]:
    """The members of an object, those that are left out as by default; Mistake names what is
    wrong."""
    if not isinstance(given, dict):
        raise Mistake(400, f"{where} is {_shown(given)}: expected an object, such as {{}}")
    known = {field.name: field for field in fields}
    for name in given:
        if name not in known:
            raise Mistake(400, f"{where} has no field {name!r}: {_known(known)}")
    return {name: _member(field, given, where) for name, field in known.items()}


def read_query(fields: tuple[Field, ...], given: Mapping[str, str]) -> dict[str, Any]:
    """The same of the texts of a query."""
    known = {field.name: field for field in fields}
    values = {
        name: _of_text(known[name], text) if name in known else text
        for name, text in given.items()
    }
    return read(fields, values, "the query")


def _member(field: Field, given: dict[str, Any], where: str) -> Any:
    if field.name not in given:
        if field.is_required:
            raise Mistake(400, f"{where} lacks the field {field.name!r}: {field.about}")
        return field.default
    value, what = given[field.name], f"{field.name!r} of {where}"
    types = field.types.split()
    if types and not any(_is_a(value, each) for each in types):
        raise Mistake(400, f"{what} is {_shown(value)}: expected {' or '.join(types)}")
    if field.choices and value is not None and value not in field.choices:
        raise Mistake(400, f"{what} is {_shown(value)}: expected one of {', '.join(field.choices)}")
    if isinstance(value, int | float):
        _check_range(field, value, what)
    if field.fields and isinstance(value, dict):
        return read(field.fields, value, what)
    if field.fields and isinstance(value, list):
        return [read(field.fields, each, f"{what}[{at}]") for at, each in enumerate(value)]
    return value


def _is_a(value: Any, kind: str) -> bool:
    is_bool = isinstance(value, bool)
    return isinstance(value, _TYPES[kind]) and is_bool == (kind == "boolean")


def _check_range(field: Field, value: float, what: str) -> None:
    if isinstance(value, float) and isnan(value):
        raise Mistake(400, f"{what} is {value}: expected a number")
    if field.least is not None and value < field.least:
        raise Mistake(400, f"{what} is {value}: expected {field.least} or more")
    if field.most is not None and value > field.most:
        raise Mistake(400, f"{what} is {_shown(value)}: expected {field.most} or less")


def _of_text(field: Field, text: str) -> Any:
    try:
        if field.types == "integer":
            return int(text)
        if field.types == "number":
            return float(text)
    except ValueError:
        return text  # of the wrong type, which is told
    return _TRUE_FALSE.get(text, text) if field.types == "boolean" else text


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _known(names: Mapping[str, Field]) -> str:
    return f"it may have {', '.join(names)}" if names else "it has none"


# --- telling --------------------------------------------------------------------------------------


def object_schema(fields: tuple[Field, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": "object",
        "properties": {field.name: field.schema() for field in fields},
        "additionalProperties": False,
    }
    required = [field.name for field in fields if field.is_required]
    return found | ({"required": required} if required else {})


def openapi(endpoints: tuple[Endpoint, ...], *, has_token: bool) -> dict[str, Any]:
    """The document of OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for each in endpoints:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each)
    error = Field("error", "string", ERROR_DOC, is_required=True)
    components: dict[str, Any] = {"schemas": {"Error": object_schema((error,))}}
    if has_token:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "kafkalite's controls",
            "version": __version__,
            "description": "What tests have the broker do: kafkalite serve --control HOST:PORT.",
        },
        "paths": paths,
        "components": components,
        **({"security": [{"token": []}]} if has_token else {}),
    }


def _operation(each: Endpoint) -> dict[str, Any]:
    answer = {field.name: field for field in each.answer}
    said = object_schema(tuple(answer.values())) | {"required": list(answer)}
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in each.names_in_path
    ]
    in_query = [
        {"name": field.name, "in": "query", "required": field.is_required,
         "description": field.about, "schema": field.schema()}
        for field in each.query
    ]  # fmt: skip
    words = [part.strip("{}") for part in each.path.split("/") if part]
    found: dict[str, Any] = {
        "operationId": "_".join([each.method.lower(), *words]),
        "summary": each.about,
        "parameters": in_path + in_query,
        "responses": {
            str(each.status): {"description": "Done.", "content": _json(said)},
            "default": {
                "description": ERROR_DOC,
                "content": _json({"$ref": "#/components/schemas/Error"}),
            },
        },
    }
    if each.body:
        is_required = any(field.is_required for field in each.body)
        content = _json(object_schema(each.body))
        found["requestBody"] = {"required": is_required, "content": content}
    return found


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
