"""A message of Protobuf without its schema: its fields by their numbers, as `protoc --decode_raw`.

Owns the format's bytes. What has a length may be a text, a message or bytes; it is told as the
first of these that it can be.
"""

from __future__ import annotations

import struct
from typing import Any

MOST_DEEP = 30
_VARINT, _EIGHT, _LENGTH, _FOUR = 0, 1, 2, 5
_LONGEST_VARINT = 10


class NotProtobuf(ValueError):
    """Other bytes."""


def fields(data: bytes, depth: int = 0) -> dict[str, Any]:
    """Each field's value by its number; several of one number are a list."""
    found: dict[str, Any] = {}
    several: set[str] = set()
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, kind = tag >> 3, tag & 7
        if not 0 < number < 1 << 29:
            raise NotProtobuf(f"{number} is no number of a field")
        value, position = _value(data, position, kind, depth)
        name = str(number)
        if name not in found:
            found[name] = value
        elif name in several:
            found[name].append(value)
        else:
            several.add(name)
            found[name] = [found[name], value]
    return found


def _value(data: bytes, position: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind == _VARINT:
        return _varint(data, position)
    if kind == _LENGTH:
        length, position = _varint(data, position)
        return _with_length(_part(data, position, length), depth), position + length
    if kind in (_EIGHT, _FOUR):
        width, shape = (8, "<d") if kind == _EIGHT else (4, "<f")
        part = _part(data, position, width)
        told = {"bits": f"0x{int.from_bytes(part, 'little'):0{2 * width}x}",
                "as_float": repr(struct.unpack(shape, part)[0])}  # fmt: skip
        return told, position + width
    raise NotProtobuf(f"{kind} is no type of a field")


def _part(data: bytes, position: int, length: int) -> bytes:
    if position + length > len(data):
        raise NotProtobuf("it ends too early")
    return data[position : position + length]


def _with_length(part: bytes, depth: int) -> Any:
    try:
        text = part.decode()
        if text.isprintable():
            return text
    except UnicodeDecodeError:
        pass
    try:
        if part and depth < MOST_DEEP:
            return fields(part, depth + 1)
    except NotProtobuf:
        pass
    return {"bytes": part.hex()}


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for index in range(_LONGEST_VARINT):
        if position + index >= len(data):
            raise NotProtobuf("it ends too early")
        byte = data[position + index]
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, position + index + 1
    raise NotProtobuf("a number has too many bytes")
