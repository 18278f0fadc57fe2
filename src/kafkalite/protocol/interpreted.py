"""The plain twin of codec.py: construct itself runs the layout. Slow, and what tests compare with.

The compiled functions accept, refuse and return the same; only the texts of errors differ.
"""

from __future__ import annotations

import io
from typing import Any, TypeVar

from construct import Container
from construct.core import ConstructError

from kafkalite.protocol.errors import MalformedFrame
from kafkalite.protocol.layout import layout
from kafkalite.protocol.primitives import UNKNOWN_TAGS, Object

T = TypeVar("T")
Buffer = bytes | bytearray | memoryview
_LAYOUTS: dict[tuple[type[Any], int], Object] = {}


def decode(cls: type[T], version: int, buffer: Buffer, position: int = 0) -> T:
    message, end = decode_prefix(cls, version, buffer, position)
    if end != len(buffer):
        raise MalformedFrame(f"{cls.__name__} v{version}: bytes after its end")
    return message


def decode_prefix(
    cls: type[T], version: int, buffer: Buffer, position: int = 0
) -> tuple[T, int]:
    stream = io.BytesIO(buffer)
    stream.seek(position)
    try:
        message: T = _layout(cls, version).parse_stream(stream)
    except ConstructError as error:
        raise MalformedFrame(f"{cls.__name__} v{version}: {error}") from error
    return message, stream.tell()


def unknown_tags(cls: type[Any], version: int, buffer: Buffer, position: int = 0) -> list[int]:
    """The tagged fields that decoding skips, because this version of the message has none such."""
    stream = io.BytesIO(buffer)
    stream.seek(position)
    context = Container(_parsing=True, _building=False, _sizing=False)
    context._params = context
    _layout(cls, version)._parsereport(stream, context, cls.__name__)
    return list(context.get(UNKNOWN_TAGS, []))


def encode(message: Any, version: int) -> bytes:
    try:
        return bytes(_layout(type(message), version).build(message))
    except (ConstructError, AttributeError, TypeError) as error:
        raise ValueError(f"{type(message).__name__} v{version}: {error}") from error


def _layout(cls: type[Any], version: int) -> Object:
    key = (cls, version)
    if key not in _LAYOUTS:
        _LAYOUTS[key] = layout(cls, version)
    return _LAYOUTS[key]
