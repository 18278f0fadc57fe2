"""Avro schemas that name types of other schemas, made whole.

Owns Avro's rules of names. Spark takes a schema as one text, so that each type must be defined in
it, where it is named first.
"""

from collections.abc import Iterable, Iterator
from typing import Any

_NAMED = ("record", "error", "enum", "fixed")
_PRIMITIVE = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


class UnknownName(Exception):
    """A schema names a type that nobody defines."""


def whole(schema: Any, others: Iterable[Any]) -> Any:
    """A schema that has in it what it needs of others."""
    definitions: dict[str, tuple[dict[str, Any], str]] = {}
    for other in others:
        for name, definition, namespace in _named_types(other, ""):
            definitions.setdefault(name, (definition, namespace))
    return _Placing(definitions).place(schema, "")


def _named_types(schema: Any, namespace: str) -> Iterator[tuple[str, dict[str, Any], str]]:
    """The types that a schema defines: full name, definition, and the namespace around it."""
    if isinstance(schema, list):
        for each in schema:
            yield from _named_types(each, namespace)
    elif isinstance(schema, dict):
        if schema["type"] in _NAMED:
            name = _full_name(schema, namespace)
            yield name, schema, namespace
            for field in schema.get("fields", ()):
                yield from _named_types(field["type"], _namespace(name))
        for inner in ("items", "values", "type"):
            yield from _named_types(schema.get(inner), namespace)


def _full_name(schema: dict[str, Any], namespace: str) -> str:
    return _resolved(schema["name"], schema.get("namespace", namespace))


def _resolved(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _namespace(full_name: str) -> str:
    return full_name.rpartition(".")[0]


class _Placing:
    """One walk over a schema, in the order in which its text is read."""

    def __init__(self, definitions: dict[str, tuple[dict[str, Any], str]]) -> None:
        self._definitions = definitions
        self._defined: set[str] = set()

    def place(self, schema: Any, namespace: str) -> Any:
        if isinstance(schema, str):
            return self._named(schema, namespace)
        if isinstance(schema, list):
            return [self.place(each, namespace) for each in schema]
        if schema["type"] in _NAMED:
            full_name = _full_name(schema, namespace)
            is_known = full_name in self._defined
            return full_name if is_known else self._definition(schema, namespace)
        return {
            key: self.place(value, namespace) if key in ("items", "values", "type") else value
            for key, value in schema.items()
        }

    def _named(self, name: str, namespace: str) -> Any:
        if name in _PRIMITIVE or name in ("array", "map"):
            return name
        full_name = _resolved(name, namespace)
        if full_name in self._defined:
            return full_name
        if full_name not in self._definitions:
            raise UnknownName(full_name)
        return self._definition(*self._definitions[full_name])

    def _definition(self, schema: dict[str, Any], namespace: str) -> dict[str, Any]:
        full_name = _full_name(schema, namespace)
        self._defined.add(full_name)
        own = _namespace(full_name)
        # Wherever it comes to lie, it and the names in it mean what they meant.
        placed = schema | {"name": full_name.rpartition(".")[2], "namespace": own}
        if "fields" in schema:
            placed["fields"] = [
                field | {"type": self.place(field["type"], own)} for field in schema["fields"]
            ]
        return placed
