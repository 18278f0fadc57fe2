"""The plain twin of codec.py: construct itself runs the layout. Slow, and what tests compare with.

The compiled functions accept, refuse and return the same; only the texts of errors differ.
"""

from __future__ import annotations

import io
from typing import Any, TypeVar

from construct.core import ConstructError

from kafkalite.protocol.errors import MalformedFrame
from kafkalite.protocol.layout import layout
from kafkalite.protocol.primitives import Object

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
