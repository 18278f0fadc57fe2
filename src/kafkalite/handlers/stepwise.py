"""Large replies, encoded some elements at a time, and large messages let go of in the same way.

Owns which are large. To free two hundred thousand objects at once takes as long as to encode a
tenth of them, and so does joining their parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias, TypeVar

from kafkalite.env.network import Part
from kafkalite.env.slicing import Steps
from kafkalite.protocol import spec

T = TypeVar("T")
Lists: TypeAlias = tuple[tuple[str, "Lists"], ...]

# Of a reply, in one part.
PIECE_BYTES = 256 * 1024
_FREED_PER_STEP = 256
# What lies in the lists of a reply that is encoded at once.
_ELEMENTS_AT_ONCE = 512

EncodeInSteps = Callable[[Any, list[Any]], Steps[None]]


def pieces(elements: list[T], size: int) -> Iterator[list[T]]:
    """So many elements at a time."""
    for start in range(0, len(elements), size):
        yield elements[start : start + size]


def encoded(
    encode: EncodeInSteps, response: Any, *, has_records: bool
) -> Steps[tuple[list[Part], int]]:
    """The response's parts, neighbours of bytes joined, and how many bytes all of them are."""
    parts: list[Any] = []
    pieces: list[Part] = []
    small: list[bytes] = []
    size = small_size = 0
    for _ in _and_last(encode(response, parts)):
        for piece in joined(parts) if has_records else (b"".join(parts),):
            size += len(piece)
            if type(piece) is bytes:
                small.append(piece)
                small_size += len(piece)
            if small and (type(piece) is not bytes or small_size >= PIECE_BYTES):
                pieces.append(b"".join(small))
                small, small_size = [], 0
            if type(piece) is not bytes:
                pieces.append(piece)
        parts.clear()  # the encoder goes on with the same list
        yield
    if small:
        pieces.append(b"".join(small))
    yield from let_go(response)
    return pieces, size


def _and_last(steps: Steps[None]) -> Iterator[None]:
    yield from steps
    yield


def joined(parts: list[Any]) -> list[Any]:
    """The parts with neighbours of bytes joined and empty ones left out."""
    found: list[Any] = []
    own: list[bytes] = []
    for part in parts:
        if type(part) is bytes:
            own.append(part)
        elif len(part):
            if own:
                found.append(b"".join(own))
                own = []
            found.append(part)
    if own:
        found.append(b"".join(own))
    return found


def lists_of(struct: spec.Struct) -> Lists:
    """The names of its lists, each with those of its elements."""
    return tuple(
        (field.name, lists_of(field.struct) if field.struct else ())
        for field in struct.fields
        if field.is_array
    )


def is_long(message: Any, lists: Lists) -> bool:
    """Whether more lies in these lists than can be encoded at once."""
    return _left((message,), lists, _ELEMENTS_AT_ONCE) < 0


def _left(messages: Iterable[Any], lists: Lists, left: int) -> int:
    """How many more elements than are in their lists there might be; it looks no further than it
    must."""
    for message in messages:
        for name, inner in lists:
            value = getattr(message, name)
            if value:
                left -= len(value)
                if inner and left >= 0:
                    left = _left(value, inner, left)
        if left < 0:
            break
    return left


def let_go(message: Any) -> Steps[None]:
    """Frees what lies in a message's long lists; nobody else may need it."""
    for name in getattr(message, "__slots__", ()):
        value = getattr(message, name)
        if type(value) is list and value and hasattr(value[0], "__slots__"):
            if len(value) < _FREED_PER_STEP:
                for element in value:
                    yield from let_go(element)
            else:
                while value:
                    del value[-max(1, _FREED_PER_STEP // _weight(value[-1])) :]
                    yield


def _weight(message: Any) -> int:
    """How many there are of it and what lies in its lists."""
    values = (getattr(message, name) for name in getattr(message, "__slots__", ()))
    return 1 + sum(len(value) for value in values if type(value) is list)
