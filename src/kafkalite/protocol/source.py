"""What both generators share: lines of Python with indentation, names, and constants.

Also the few functions that generated code calls where straight lines would be longer than a call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from struct import Struct
from typing import Any

from construct.core import Bytes, Construct, Flag, FormatField

from kafkalite.protocol import primitives
from kafkalite.protocol.errors import MalformedFrame

# What is a run of fixed size: consecutive fields of it are read and written by one struct.Struct.
_FLAG = type(Flag)
UVARINTS = tuple(bytes((value,)) for value in range(128))
_SMALL_UVARINT = 127


class Source:
    """A function being written. `names` are its globals."""

    def __init__(self, signature: str) -> None:
        self.lines = [signature]
        self.depth = 1
        self.names: dict[str, Any] = {}
        self._count = 0

    def add(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def new(self, stem: str) -> str:
        """A name that no other part of the function has."""
        self._count += 1
        return f"{stem}{self._count}"

    def constant(self, stem: str, value: Any) -> str:
        """The global name of a value; the same one for the same value."""
        for name, known in self.names.items():
            if known is value:
                return name
        name = self.new(stem)
        self.names[name] = value
        return name

    def struct(self, layout: str, method: str) -> str:
        """The name of a bound method of the struct.Struct of this layout."""
        name = f"{method}_{layout.replace('?', 'T')}"
        if name not in self.names:
            self.names[name] = getattr(Struct(">" + layout), method)
        return name

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.add(head)
        self.depth += 1
        yield
        self.depth -= 1

    def compile(self, function: str, title: str) -> Callable[..., Any]:
        code = compile("\n".join(self.lines) + "\n", f"<{title}>", "exec")
        exec(code, self.names)
        compiled: Callable[..., Any] = self.names[function]
        return compiled


def fixed_format(subcon: Construct) -> str | None:
    """The struct format of a construct of fixed size, None of any other."""
    if isinstance(subcon, FormatField):
        return str(subcon.fmtstr[-1])
    if isinstance(subcon, Bytes):
        return f"{subcon.length}s"
    return "?" if isinstance(subcon, _FLAG) else None


def least_bytes(subcon: Construct) -> int:
    """The fewest bytes that anything can take on the wire; counts are checked against it."""
    subcon = unnamed(subcon)
    layout = fixed_format(subcon)
    if layout is not None:
        return Struct(">" + layout).size
    if isinstance(subcon, primitives.CompactLength):
        return 1
    if isinstance(subcon, primitives.Length | primitives.Sized):
        return least_bytes(subcon.subcon)
    if isinstance(subcon, primitives.List):
        return least_bytes(subcon.length)
    if isinstance(subcon, primitives.NullableStruct):
        return 1
    members = sum(map(least_bytes, subcon.subcon.subcons))
    return members + (subcon.tagged is not None)


def unnamed(subcon: Construct) -> Construct:
    """The construct behind the name that it has in its Struct."""
    from construct.core import Renamed

    return subcon.subcon if isinstance(subcon, Renamed) else subcon


def continue_uvarint(data: bytes, position: int, first: int) -> tuple[int, int]:
    """The value of a varint whose first byte goes on, and the position after it."""
    value = first & 0x7F
    for shift in range(7, 7 * primitives.MAX_UVARINT_BYTES, 7):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > primitives.MAX_UVARINT:
                break
            return value, position
    raise MalformedFrame("a varint of more than 32 bits")


def read_tag(data: bytes, position: int, end: int, previous: int) -> tuple[int, int, int]:
    """A tag, the position of its field, and the position after its field."""
    tag = data[position]
    position += 1
    if tag > _SMALL_UVARINT:
        tag, position = continue_uvarint(data, position, tag)
    size = data[position]
    position += 1
    if size > _SMALL_UVARINT:
        size, position = continue_uvarint(data, position, size)
    if tag <= previous:
        raise MalformedFrame(f"tag {tag} after tag {previous}")
    if size > end - position:
        raise MalformedFrame(f"tag {tag} claims {size} bytes; {end - position} are left")
    return tag, position, position + size


def skip_tags(data: bytes, position: int, end: int, count: int) -> int:
    """The position after the tagged fields, where none is known. `count` is their first byte."""
    if count > _SMALL_UVARINT:
        count, position = continue_uvarint(data, position, count)
    previous = -1
    for _ in range(count):
        previous, _, position = read_tag(data, position, end, previous)
    return position


def uvarint(value: int) -> bytes:
    """The bytes of a varint that needs more than one, or of any."""
    if value <= _SMALL_UVARINT:
        return UVARINTS[value]
    if value > primitives.MAX_UVARINT:
        raise ValueError(f"{value} does not fit into a varint of 32 bits")
    written = bytearray()
    while value > _SMALL_UVARINT:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)
