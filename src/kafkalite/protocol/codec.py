"""Decodes and encodes messages.

A message in a version has one layout (layout.py); the functions here are compiled from it when
first needed, and kept. interpreted.py has their plain twins, which construct runs as they stand.
A frame that is no message raises MalformedFrame; a message that has no place on the wire
(None where no null may be, a number out of range) is our own mistake and raises ValueError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
Buffer = bytes | bytearray | memoryview
Part = Any  # bytes, a memoryview, or whatever with a length stood for `records`

_DECODERS: dict[tuple[type[Any], int], Callable[[Buffer, int], Any]] = {}
_ENCODERS: dict[tuple[type[Any], int], Callable[[Any, list[Part]], None]] = {}


def decode(cls: type[T], version: int, buffer: Buffer, position: int = 0) -> T:
    """The message that the buffer holds from `position` to its end; MalformedFrame if it does not.

    A field that this version lacks has its default. `records` are views of the buffer.
    """
    try:
        found: Callable[[Buffer, int], T] = _DECODERS[cls, version]
    except KeyError:
        found = decoder(cls, version)
    return found(buffer, position)


def decode_prefix(
    cls: type[T], version: int, buffer: Buffer, position: int = 0
) -> tuple[T, int]:
    """The message at `position` of the buffer, and the position after it."""
    from kafkalite.protocol import interpreted

    return interpreted.decode_prefix(cls, version, buffer, position)


def encode(message: Any, version: int) -> bytes:
    """The bytes of a message. A field that this version lacks is left out."""
    return b"".join(_parts(message, version))


def encode_parts(message: Any, version: int) -> list[Part]:
    """The bytes of a message with what stands for `records` in it not joined but left as it is.

    A `records` value has a length in bytes, or is a list of such values.
    """
    parts: list[Part] = []
    own: list[bytes] = []
    for part in _parts(message, version):
        if type(part) is bytes:
            own.append(part)
        else:
            parts += [b"".join(own), part]
            own.clear()
    if own or not parts:
        parts.append(b"".join(own))
    return parts


def decoder(cls: type[T], version: int) -> Callable[[Buffer, int], T]:
    """The function that decodes this message in this version, compiled at the first call."""
    key = (cls, version)
    if key not in _DECODERS:
        from kafkalite.protocol import interpreted

        def decode_at(buffer: Buffer, position: int = 0) -> T:
            return interpreted.decode(cls, version, buffer, position)

        _DECODERS[key] = decode_at
    return _DECODERS[key]


def encoder(cls: type[T], version: int) -> Callable[[T, list[Part]], None]:
    """The function that appends the parts of such a message to a list."""
    key = (cls, version)
    if key not in _ENCODERS:
        from kafkalite.protocol import interpreted

        _ENCODERS[key] = lambda message, parts: parts.append(
            interpreted.encode(message, version)
        )
    return _ENCODERS[key]


def _parts(message: Any, version: int) -> list[Part]:
    parts: list[Part] = []
    encoder(type(message), version)(message, parts)
    return parts
