"""Decodes and encodes messages.

A message in a version has one layout (layout.py); the functions here are compiled from it when
first needed, and kept. interpreted.py has their plain twins, which construct runs as they stand.
A frame that is no message raises MalformedFrame; a message that has no place on the wire
(None where no null may be, a number out of range) is our own mistake and raises ValueError.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

from kafkalite.protocol import compiler

T = TypeVar("T")
Buffer = bytes | bytearray | memoryview
Steps: TypeAlias = Generator[None, None, T]
Part = Any  # bytes, or what stands for `records`: a memoryview, or anything else with a length

# Bounded by the specs: a message class and one of its versions make a key.
_DECODERS: dict[tuple[type[Any], int], Callable[..., Any]] = {}
_PREFIX_DECODERS: dict[tuple[type[Any], int], Callable[..., Any]] = {}
_ENCODERS: dict[tuple[type[Any], int], Callable[[Any, list[Part]], None]] = {}
_DECODERS_IN_STEPS: dict[tuple[type[Any], int], Callable[..., Steps[Any]]] = {}
_FEW_DECODERS: dict[tuple[type[Any], int], Callable[..., Any]] = {}
_ENCODERS_IN_STEPS: dict[tuple[type[Any], int], Callable[[Any, list[Part]], Steps[None]]] = {}


def decode(cls: type[T], version: int, buffer: Buffer, position: int = 0) -> T:
    """The message that the buffer holds from `position` to its end; MalformedFrame if it does not.

    A field that this version lacks has its default. `records` are views of the buffer.
    """
    found = _DECODERS.get((cls, version)) or decoder(cls, version)
    message: T = found(buffer, position)
    return message


def decode_prefix(
    cls: type[T], version: int, buffer: Buffer, position: int = 0
) -> tuple[T, int]:
    """The message at `position` of the buffer, and the position after it."""
    found = _PREFIX_DECODERS.get((cls, version)) or prefix_decoder(cls, version)
    return found(buffer, position)


def encode(message: Any, version: int) -> bytes:
    """The bytes of a message. A field that this version lacks is left out."""
    try:
        cls = type(message)
        parts: list[Part] = []
        found = _ENCODERS.get((cls, version)) or encoder(cls, version)
        found(message, parts)
        return b"".join(parts)
    except TypeError as error:
        raise ValueError(f"{type(message).__name__} v{version}: {error}") from error


def decoder(cls: type[T], version: int) -> Callable[..., T]:
    """`decode(buffer, position=0)` of this message in this version, compiled at the first call."""
    key = (cls, version)
    if key not in _DECODERS:
        _DECODERS[key] = compiler.function("decode", cls, version)
    return _DECODERS[key]


def prefix_decoder(cls: type[T], version: int) -> Callable[..., tuple[T, int]]:
    """`decode(buffer, position=0)` that also returns the position after the message."""
    key = (cls, version)
    if key not in _PREFIX_DECODERS:
        _PREFIX_DECODERS[key] = compiler.function("decode_prefix", cls, version)
    return _PREFIX_DECODERS[key]


def few_decoder(cls: type[T], version: int) -> Callable[..., tuple[T, int]]:
    """The same, but it raises ManyElements for more than `runtime.FEW_ELEMENTS`."""
    key = (cls, version)
    if key not in _FEW_DECODERS:
        _FEW_DECODERS[key] = compiler.function("decode_few", cls, version)
    return _FEW_DECODERS[key]


def encoder(cls: type[T], version: int) -> Callable[[T, list[Part]], None]:
    """`encode(message, parts)`: appends the parts of such a message to a list.

    What stands for `records` becomes a part as it is; it has a length in bytes, or is a list of
    such values.
    """
    key = (cls, version)
    if key not in _ENCODERS:
        _ENCODERS[key] = compiler.function("encode", cls, version)
    return _ENCODERS[key]


def decoder_in_steps(cls: type[T], version: int) -> Callable[..., Steps[tuple[T, int]]]:
    """`decode(buffer, position=0)` like that of `prefix_decoder`, some elements at a time. The
    buffer must stay as it is meanwhile."""
    key = (cls, version)
    if key not in _DECODERS_IN_STEPS:
        _DECODERS_IN_STEPS[key] = compiler.function("decode_in_steps", cls, version)
    return _DECODERS_IN_STEPS[key]


def encoder_in_steps(cls: type[T], version: int) -> Callable[[T, list[Part]], Steps[None]]:
    """`encode(message, parts)` like that of `encoder`, some elements at a time."""
    key = (cls, version)
    if key not in _ENCODERS_IN_STEPS:
        _ENCODERS_IN_STEPS[key] = compiler.function("encode_in_steps", cls, version)
    return _ENCODERS_IN_STEPS[key]
