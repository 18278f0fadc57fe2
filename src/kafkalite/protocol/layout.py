"""From a message's spec and a version to its construct object: THE definition of the wire layout.

Everything that decodes or encodes goes through the object made here: construct itself interprets
it, and compiler.py turns it into straight-line Python. Nothing else reads versions or flexibility.
"""

from __future__ import annotations

from typing import Any

from construct.core import (
    Bytes,
    Construct,
    Flag,
    Float64b,
    Int8sb,
    Int16sb,
    Int16ub,
    Int32sb,
    Int32ub,
    Int64sb,
    Struct,
)

from kafkalite.protocol import primitives, spec
from kafkalite.protocol.classes import default_value

_SCALARS: dict[str, Construct] = {
    "bool": Flag,
    "int8": Int8sb,
    "int16": Int16sb,
    "uint16": Int16ub,
    "int32": Int32sb,
    "uint32": Int32ub,
    "int64": Int64sb,
    "float64": Float64b,
    "uuid": Bytes(16),
    "error": Int16sb,
}
_SIZED: dict[str, type[primitives.Sized]] = {
    "string": primitives.Text,
    "bytes": primitives.Blob,
    "records": primitives.Records,
}


def layout(cls: type[Any], version: int) -> primitives.Object:
    """The layout of the message of this class in this version."""
    message: spec.Message = cls.SPEC
    if version not in message.versions:
        raise ValueError(f"{message.name} has no version {version}")
    return _Layout(cls, message, version).object(message.root, cls)


class _Layout:
    """What the parts of one message in one version have in common."""

    def __init__(self, cls: type[Any], message: spec.Message, version: int) -> None:
        self.cls = cls
        self.message = message
        self.version = version
        self.is_flexible = version in message.flexible

    def object(self, struct: spec.Struct, cls: type[Any]) -> primitives.Object:
        plain: list[Construct] = []
        tagged: dict[int, primitives.TaggedField] = {}
        for field in struct.fields:
            if self.is_flexible and field.tag is not None and self.version in field.tagged:
                subcon = self.field(field, is_tagged=True)
                default = default_value(self.cls, field)
                tagged[field.tag] = primitives.TaggedField(field.name, subcon, default)
            elif self.version in field.versions:
                plain.append(field.name / self.field(field, is_tagged=False))
        if self.is_flexible:
            return primitives.Object(cls, Struct(*plain), primitives.TaggedFields(tagged))
        if not plain and struct is not self.message.root:
            raise spec.SpecError(f"{struct.name} of {self.message.name} v{self.version} is empty")
        return primitives.Object(cls, Struct(*plain), None)

    def field(self, field: spec.Field, is_tagged: bool) -> Construct:
        is_nullable = self.version in field.nullable
        is_compact = self.is_flexible and not field.is_inflexible
        if field.is_array:
            count = _length(Int32sb, is_compact, is_nullable)
            return primitives.List(count, self.element(field, is_compact, is_nullable=False))
        element = self.element(field, is_compact, is_nullable)
        if field.struct is None or not is_nullable:
            return element
        if is_tagged:
            return primitives.NullableStruct(primitives.Uvarint(), 0, 1, element)
        return primitives.NullableStruct(Int8sb, -1, 1, element)

    def element(self, field: spec.Field, is_compact: bool, is_nullable: bool) -> Construct:
        if field.struct is not None:
            return self.object(field.struct, getattr(self.cls, field.type))
        if field.type in _SCALARS:
            return _SCALARS[field.type]
        plain_length = Int16sb if field.type == "string" else Int32sb
        return _SIZED[field.type](_length(plain_length, is_compact, is_nullable))


def _length(plain: Construct, is_compact: bool, is_nullable: bool) -> primitives.Length:
    if is_compact:
        return primitives.CompactLength(primitives.Uvarint(), is_nullable)
    return primitives.Length(plain, is_nullable)
