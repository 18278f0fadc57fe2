"""The field types of the protocol as construct classes: the wire layout, read plainly.

Together with construct's own integers, floats, flags and structs they are all that layout.py
composes messages of. Parsing refuses with a ConstructError whatever a peer can get wrong, and
building whatever has no place on the wire. The compiler reads the attributes of these objects.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from construct.core import (
    CodeGen,
    Construct,
    ConstructError,
    StreamError,
    Subconstruct,
    stream_read,
)

from kafkalite.protocol.runtime import MAX_UVARINT, MAX_UVARINT_BYTES
from kafkalite.protocol.text import AS_JAVA

MAX_STRING_BYTES = 32767


def _left(stream: io.BytesIO) -> int:
    return stream.getbuffer().nbytes - stream.tell()


class Uvarint(Construct):  # type: ignore[misc]
    """32 bits unsigned, seven to the byte, the lowest first; five bytes at most."""

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> int:
        value = 0
        for shift in range(0, 7 * MAX_UVARINT_BYTES, 7):
            byte: int = stream_read(stream, 1, path)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value > MAX_UVARINT:
                    break
                return value
        raise ConstructError("varint of more than 32 bits", path=path)

    def _build(self, obj: int, stream: io.BytesIO, context: Any, path: str) -> int:
        value = obj
        if not 0 <= value <= MAX_UVARINT:
            raise ConstructError(f"{obj} is not a 32 bit unsigned integer", path=path)
        while value > 0x7F:
            stream.write(bytes((value & 0x7F | 0x80,)))
            value >>= 7
        stream.write(bytes((value,)))
        return obj


class Length(Subconstruct):  # type: ignore[misc]
    """A count or a size, or None for null: a signed integer with -1 for null."""

    def __init__(self, subcon: Construct, is_nullable: bool) -> None:
        super().__init__(subcon)
        self.is_nullable = is_nullable

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> int | None:
        return _checked(self.subcon._parsereport(stream, context, path), self.is_nullable, path)

    def _build(self, obj: int | None, stream: io.BytesIO, context: Any, path: str) -> None:
        _refuse_null(obj, self.is_nullable, path)
        self.subcon._build(-1 if obj is None else obj, stream, context, path)


class CompactLength(Length):
    """A count or a size, or None for null: one more than it as a varint, 0 for null."""

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> int | None:
        return _checked(self.subcon._parsereport(stream, context, path) - 1, self.is_nullable, path)

    def _build(self, obj: int | None, stream: io.BytesIO, context: Any, path: str) -> None:
        _refuse_null(obj, self.is_nullable, path)
        self.subcon._build(0 if obj is None else obj + 1, stream, context, path)


def _checked(length: int, is_nullable: bool, path: str) -> int | None:
    if length == -1 and is_nullable:
        return None
    if length < 0:
        raise ConstructError(f"length {length} where none may be", path=path)
    return length


def _refuse_null(value: object, is_nullable: bool, path: str) -> None:
    if value is None and not is_nullable:
        raise ConstructError("None where no null may be", path=path)


class Sized(Subconstruct):  # type: ignore[misc]
    """Bytes after their length. `subcon` is the length; subclasses say what the bytes are."""

    def __init__(self, subcon: Length) -> None:
        super().__init__(subcon)

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> Any:
        length = self.subcon._parsereport(stream, context, path)
        if length is None:
            return None
        return self.read(stream_read(stream, length, path), path)

    def _build(self, obj: Any, stream: io.BytesIO, context: Any, path: str) -> Any:
        if obj is None:
            self.subcon._build(None, stream, context, path)
            return obj
        data = self.written(obj, path)
        self.subcon._build(len(data), stream, context, path)
        stream.write(data)
        return obj

    def read(self, data: bytes, path: str) -> Any:
        raise NotImplementedError

    def written(self, obj: Any, path: str) -> Any:
        return obj


class Text(Sized):
    def read(self, data: bytes, path: str) -> str:
        if len(data) > MAX_STRING_BYTES:
            raise ConstructError(f"string of {len(data)} bytes", path=path)
        return data.decode("utf-8", AS_JAVA)

    def written(self, obj: str, path: str) -> bytes:
        data = obj.encode()
        if len(data) > MAX_STRING_BYTES:
            raise ConstructError(f"string of {len(data)} bytes", path=path)
        return data


class Blob(Sized):
    def read(self, data: bytes, path: str) -> bytes:
        return data


class Records(Sized):
    """Record batches: a view of the buffer once compiled. A list of parts is their joined bytes."""

    def read(self, data: bytes, path: str) -> memoryview:
        return memoryview(data)

    def written(self, obj: Any, path: str) -> Any:
        return b"".join(obj) if isinstance(obj, list) else obj


class List(Subconstruct):  # type: ignore[misc]
    """Elements after their count. A count that the bytes left cannot hold is refused at once."""

    def __init__(self, length: Length, subcon: Construct) -> None:
        super().__init__(subcon)
        self.length = length

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> list[Any] | None:
        parse = self.subcon._parsereport
        return self.collect(stream, context, path, lambda: parse(stream, context, path))

    def _build(self, obj: Any, stream: io.BytesIO, context: Any, path: str) -> None:
        build = self.subcon._build
        self.spread(obj, stream, context, path, lambda one: build(one, stream, context, path))

    def collect(
        self, stream: io.BytesIO, context: Any, path: str, parse: Callable[[], Any]
    ) -> list[Any] | None:
        count = self.length._parsereport(stream, context, path)
        if count is None:
            return None
        if count > _left(stream):  # no element is smaller than a byte
            raise StreamError(f"{count} elements in {_left(stream)} bytes", path=path)
        return [parse() for _ in range(count)]

    def spread(
        self, obj: Any, stream: io.BytesIO, context: Any, path: str, build: Callable[[Any], Any]
    ) -> None:
        self.length._build(None if obj is None else len(obj), stream, context, path)
        for element in obj or ():
            build(element)

    def _emitparse(self, code: CodeGen) -> str:
        element = self.subcon._compileparse(code)
        return f"{_linked(self, code)}.collect(io, this, '', lambda: {element})"

    def _emitbuild(self, code: CodeGen) -> str:
        element = self.subcon._compilebuild(code)
        return f"{_linked(self, code)}.spread(obj, io, this, '', lambda obj: {element})"


class NullableStruct(Subconstruct):  # type: ignore[misc]
    """A struct after a marker: `present` before one, `absent` alone for null."""

    def __init__(self, marker: Construct, absent: int, present: int, subcon: Construct) -> None:
        super().__init__(subcon)
        self.marker = marker
        self.absent = absent
        self.present = present

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> Any:
        marker = self.marker._parsereport(stream, context, path)
        if marker == self.absent:
            return None
        if marker != self.present:
            raise ConstructError(f"marker {marker} before a struct", path=path)
        return self.subcon._parsereport(stream, context, path)

    def _build(self, obj: Any, stream: io.BytesIO, context: Any, path: str) -> None:
        marker = self.absent if obj is None else self.present
        self.marker._build(marker, stream, context, path)
        if obj is not None:
            self.subcon._build(obj, stream, context, path)


class TaggedField:
    """What can stand behind one tag. `default` is what is not written."""

    __slots__ = ("default", "name", "subcon")

    def __init__(self, name: str, subcon: Construct, default: Any) -> None:
        self.name = name
        self.subcon = subcon
        self.default = default


# In the context of a parse: the tags that were skipped.
UNKNOWN_TAGS = "unknown_tags"


class TaggedFields(Construct):  # type: ignore[misc]
    """The end of a flexible struct: fields with tag and size, tags rising; unknown ones skipped."""

    def __init__(self, fields: dict[int, TaggedField]) -> None:
        super().__init__()
        self.fields = dict(sorted(fields.items()))
        self.uvarint = Uvarint()

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        count = self.uvarint._parsereport(stream, context, path)
        previous = -1
        for _ in range(count):
            tag = self.uvarint._parsereport(stream, context, path)
            if tag <= previous:
                raise ConstructError(f"tag {tag} after tag {previous}", path=path)
            previous = tag
            data = stream_read(stream, self.uvarint._parsereport(stream, context, path), path)
            if tag in self.fields:
                field = self.fields[tag]
                found[field.name] = _parse_whole(field.subcon, data, context, path)
            else:
                context.get("_params", context).setdefault(UNKNOWN_TAGS, []).append(tag)
        return found

    def _build(self, obj: Any, stream: io.BytesIO, context: Any, path: str) -> None:
        present = [
            (tag, field)
            for tag, field in self.fields.items()
            if getattr(obj, field.name) != field.default
        ]
        self.uvarint._build(len(present), stream, context, path)
        for tag, field in present:
            content = io.BytesIO()
            field.subcon._build(getattr(obj, field.name), content, context, path)
            self.uvarint._build(tag, stream, context, path)
            self.uvarint._build(len(content.getvalue()), stream, context, path)
            stream.write(content.getvalue())


def _parse_whole(subcon: Construct, data: bytes, context: Any, path: str) -> Any:
    stream = io.BytesIO(data)
    value = subcon._parsereport(stream, context, path)
    if _left(stream):
        raise ConstructError(f"{_left(stream)} bytes too many in a tagged field", path=path)
    return value


class Object(Subconstruct):  # type: ignore[misc]
    """A construct Struct whose values are the attributes of an object made by `factory`."""

    def __init__(
        self, factory: type[Any], subcon: Construct, tagged: TaggedFields | None
    ) -> None:
        super().__init__(subcon)
        self.factory = factory
        self.tagged = tagged

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> Any:
        values = self.subcon._parsereport(stream, context, path)
        return self.made(values, stream, context, path)

    def _build(self, obj: Any, stream: io.BytesIO, context: Any, path: str) -> None:
        build = self.subcon._build
        self.taken(obj, stream, context, path, lambda held: build(held, stream, context, path))

    def made(self, values: Any, stream: io.BytesIO, context: Any, path: str) -> Any:
        values.pop("_io", None)
        if self.tagged is not None:
            values |= self.tagged._parsereport(stream, context, path)
        return self.factory(**values)

    def taken(
        self, obj: Any, stream: io.BytesIO, context: Any, path: str, build: Callable[[Any], Any]
    ) -> None:
        if not isinstance(obj, self.factory):
            raise ConstructError(f"{obj!r} is no {self.factory.__name__}", path=path)
        values = {member.name: getattr(obj, member.name) for member in self.subcon.subcons}
        build(values)
        if self.tagged is not None:
            self.tagged._build(obj, stream, context, path)

    def _emitparse(self, code: CodeGen) -> str:
        return f"{_linked(self, code)}.made({self.subcon._compileparse(code)}, io, this, '')"

    def _emitbuild(self, code: CodeGen) -> str:
        struct = self.subcon._compilebuild(code)
        return f"{_linked(self, code)}.taken(obj, io, this, '', lambda obj: {struct})"


def _linked(subcon: Construct, code: CodeGen) -> str:
    """How the code of construct's own compile(), which is measured beside ours, calls an object."""
    code.linkedinstances[id(subcon)] = subcon
    return f"linkedinstances[{id(subcon)}]"
