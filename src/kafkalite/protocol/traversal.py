"""Goes through a message by its spec: every field of one version, into structs and arrays.

Owns the way, not what becomes of a value: whoever visits says that of the values without parts, and
what is made of a struct's fields. Knows the way to what a message names, too. Encoding and decoding
have generated code of their own.
Invariant: a null stays null, and a field that the version does not have is not visited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from kafkalite.protocol import spec

Leaf = Callable[[Any, spec.Field], Any]
Resource = tuple[str, str | int]  # one of spec.RESOURCES, and its name or id


@dataclass(slots=True)
class Visit:
    """`leaf` is given each value that is there and has no parts: an array's one by one."""

    version: int
    leaf: Leaf
    part: Callable[[Any, str], Any]  # a struct's field by its name
    made: Callable[[spec.Struct, dict[str, Any]], Any]  # what becomes of a struct's fields
    array: Callable[[list[Any]], list[Any]]  # and of an array's elements

    def struct(self, value: Any, struct: spec.Struct) -> Any:
        fields = {
            field.name: self.field(self.part(value, field.name), field)
            for field in struct.fields
            if field.is_in(self.version)
        }
        return self.made(struct, fields)

    def field(self, value: Any, field: spec.Field) -> Any:
        if value is None:
            return None
        if field.is_array:
            return self.array([self._one(each, field) for each in value])
        return self._one(value, field)

    def _one(self, value: Any, field: spec.Field) -> Any:
        return self.leaf(value, field) if field.struct is None else self.struct(value, field.struct)


def to_values(
    message: Any,
    version: int,
    leaf: Leaf,
    array: Callable[[list[Any]], list[Any]] = lambda elements: elements,
) -> dict[str, Any]:
    """A message as dictionaries and lists of what `leaf` makes of its values."""
    visit = Visit(version, leaf, getattr, lambda _, fields: fields, array)
    values: dict[str, Any] = visit.struct(message, message.SPEC.root)
    return values


def to_message(
    cls: type[Any],
    version: int,
    source: Any,
    leaf: Leaf,
    part: Callable[[Any, str], Any] = getattr,
) -> Any:
    """A message of what `leaf` makes of the values of another, or of anything with such parts."""

    def made(struct: spec.Struct, fields: dict[str, Any]) -> Any:
        return (cls if struct is cls.SPEC.root else getattr(cls, struct.name))(**fields)

    return Visit(version, leaf, part, made, lambda elements: elements).struct(source, cls.SPEC.root)


def resources_of(message: Any, version: int) -> Iterator[Resource]:
    """What a message names by its name or number, in the order of its fields, as often as it does.

    Nothing is looked at that has no names in it, such as partitions and records."""
    return _resources(message, message.SPEC.root, message.SPEC.name, version)


def _resources(value: Any, struct: spec.Struct, message: str, version: int) -> Iterator[Resource]:
    for field in _naming(message, struct.name, version):
        part = getattr(value, field.name)
        if part is None:
            continue
        for each in part if field.is_array else (part,):
            if field.struct is not None:
                yield from _resources(each, field.struct, message, version)
            elif field.resource is not None:
                yield field.resource, each


@cache
def _naming(message: str, struct: str, version: int) -> tuple[spec.Field, ...]:
    """The fields of a struct that name something, or have something in them that does."""
    found = spec.message(message)
    return tuple(
        field
        for field in found.structs.get(struct, found.root).fields
        if field.is_in(version)
        and (field.resource or (field.struct and _naming(message, field.type, version)))
    )
