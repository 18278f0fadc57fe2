"""What generated code calls, and how it is tied to the classes it works on.

Needs neither construct nor the specs, so code that was kept from an earlier run starts without
them. `Written` is source with recipes for its global names, `Generated` the same compiled: all
plain data.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from types import CodeType
from typing import Any

from kafkalite.protocol.errors import MalformedFrame
from kafkalite.protocol.text import AS_JAVA

MAX_UVARINT = 0xFFFFFFFF
MAX_UVARINT_BYTES = 5
SMALL_UVARINT = 127
UVARINTS = tuple(bytes((value,)) for value in range(SMALL_UVARINT + 1))

# Read or written in one step of a message that is decoded or encoded in steps.
STEP_ELEMENTS = 20
# In the lists of a message that is decoded at once only when it is small.
FEW_ELEMENTS = 200

MADE_HERE = "kafkalite.protocol.generated"  # where stacks say that generated code is

FEW = 8  # numbers in a row: up to so many are packed without making a format string

# A recipe is ("class", struct), ("new", struct) for an object of it, (layout, method) of a
# struct.Struct, or ("few " + layout, method) of one for each count up to FEW. The empty name of a
# struct stands for the message itself.
Recipe = tuple[str, str]
Written = tuple[str, dict[str, Recipe]]
Generated = tuple[CodeType, dict[str, Recipe]]


class ManyElements(Exception):
    """A message with more than FEW_ELEMENTS."""


def link(generated: Generated, cls: type[Any], function: str) -> Callable[..., Any]:
    """The function of that name which the code defines, working on this message class."""
    code, recipes = generated
    names = {"__name__": MADE_HERE, **_HELPERS}
    for name, (kind, detail) in recipes.items():
        if kind in ("class", "new"):
            part = getattr(cls, detail) if detail else cls
            names[name] = part if kind == "class" else part()
        elif kind.startswith("few "):
            names[name] = _few(kind.removeprefix("few "), detail)
        else:
            names[name] = getattr(struct.Struct(kind), detail)
    exec(code, names)
    linked: Callable[..., Any] = names[function]
    return linked


@cache
def _few(layout: str, method: str) -> tuple[Callable[..., Any], ...]:
    return tuple(getattr(struct.Struct(f">{count}{layout}"), method) for count in range(FEW + 1))


def continue_uvarint(data: bytes, position: int, first: int) -> tuple[int, int]:
    """The value of a varint whose first byte goes on, and the position after it."""
    value = first & 0x7F
    for shift in range(7, 7 * MAX_UVARINT_BYTES, 7):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte <= SMALL_UVARINT:
            if value > MAX_UVARINT:
                break
            return value, position
    raise MalformedFrame("a varint of more than 32 bits")


def read_tag(data: bytes, position: int, end: int, previous: int) -> tuple[int, int, int]:
    """A tag, the position of its field, and the position after its field."""
    tag = data[position]
    position += 1
    if tag > SMALL_UVARINT:
        tag, position = continue_uvarint(data, position, tag)
    size = data[position]
    position += 1
    if size > SMALL_UVARINT:
        size, position = continue_uvarint(data, position, size)
    if tag <= previous:
        raise MalformedFrame(f"tag {tag} after tag {previous}")
    if size > end - position:
        raise MalformedFrame(f"tag {tag} claims {size} bytes; {end - position} are left")
    return tag, position, position + size


def skip_tags(data: bytes, position: int, end: int, count: int) -> int:
    """The position after the tagged fields, where none is known. `count` is their first byte."""
    if count > SMALL_UVARINT:
        count, position = continue_uvarint(data, position, count)
    previous = -1
    for _ in range(count):
        previous, _, position = read_tag(data, position, end, previous)
    return position


def uvarint(value: int) -> bytes:
    if value <= SMALL_UVARINT:
        return UVARINTS[value]
    if value < 1 << 14:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value < 1 << 21:  # the size of nearly all records that are sent
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    if value > MAX_UVARINT:
        raise ValueError(f"{value} does not fit into a varint of 32 bits")
    written = bytearray()
    while value > SMALL_UVARINT:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def records_size(value: Any) -> int:
    return sum(map(len, value)) if type(value) is list else len(value)


def refuse(value: object) -> None:
    raise ValueError(f"{value!r:.200} has no place on the wire")


_HELPERS: dict[str, Any] = {
    "AS_JAVA": AS_JAVA,
    "MalformedFrame": MalformedFrame,
    "ManyElements": ManyElements,
    "NOT_ON_THE_WIRE": (AttributeError, TypeError, struct.error),
    "PAST_THE_END": (IndexError, struct.error),
    "UVARINTS": UVARINTS,
    "continue_uvarint": continue_uvarint,
    "new": object.__new__,
    "pack": struct.pack,
    "read_tag": read_tag,
    "records_size": records_size,
    "refuse": refuse,
    "skip_tags": skip_tags,
    "unpack_from": struct.unpack_from,
    "uvarint": uvarint,
}
