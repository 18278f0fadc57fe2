"""Frames that are wrong in ways that frames go wrong, for every API and version, from a seed."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from kafkalite.protocol import codec, headers, spec
from kafkalite.protocol.messages import message_class

LARGEST_COUNT = 2**31 - 1
# No bit away from 0 or 1, so that no frame is a well-formed request to take this broker off duty.
NUMBER = 85
_SCALARS: dict[str, Any] = {
    "string": "name",
    "bytes": b"bytes",
    "records": b"records that are none",
    "uuid": b"\1" * 16,
    "bool": True,
    "float64": 1.5,
}


def filled(api: spec.Api, version: int) -> bytes:
    """The frame of a request in which every array has an entry, without its size."""
    message = spec.message(f"{api.name}Request")
    cls = message_class(message.name)
    request = _fill(cls, cls(), message.root, version)
    has_tags = headers.request_header_version(api.key, version) == 2
    head = struct.pack(">hhih", api.key, version, 7, 4) + b"evil"
    return head + (b"\0" if has_tags else b"") + codec.encode(request, version)


def _fill(cls: type[Any], target: Any, struct_: spec.Struct, version: int) -> Any:
    for field in struct_.fields:
        if version not in field.versions:
            continue
        if field.struct is not None:
            value = _fill(cls, getattr(cls, field.type)(), field.struct, version)
        else:
            value = _SCALARS.get(field.type, NUMBER)
        setattr(target, field.name, [value] if field.is_array else value)
    return target


Shape = Callable[[bytes, Random], bytes]


def _overwritten(data: bytes, random: Random, piece: bytes) -> bytes:
    """The piece over a place after the API key and version."""
    position = random.randrange(4, max(5, len(data) - len(piece)))
    return data[:position] + piece + data[position + len(piece) :]


SHAPES: dict[str, Shape] = {
    "cut short": lambda data, random: data[: random.randrange(len(data))],
    "one byte short": lambda data, random: data[:-1],
    "trailing bytes": lambda data, random: data + random.randbytes(random.randrange(1, 9)),
    "largest count": lambda data, random: _overwritten(
        data, random, struct.pack(">i", LARGEST_COUNT)
    ),
    "negative count": lambda data, random: _overwritten(data, random, b"\xff\xff\xff\xfe"),
    "null where none may be": lambda data, random: _overwritten(data, random, b"\xff\xff\xff\xff"),
    "overlong varint": lambda data, random: _overwritten(data, random, b"\xff" * 6),
    "not UTF-8": lambda data, random: data.replace(b"name", b"\xc3\x28\xff\xfe"),
    "bad tag": lambda data, random: data[:-1] + b"\x02\x00\x01\x00\x00",
    "noise": lambda data, random: data[:8] + random.randbytes(len(data)),
    "one bit": lambda data, random: _flipped(data, random),
}


def _flipped(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    changed[random.randrange(4, len(data))] ^= 1 << random.randrange(8)
    return bytes(changed)


def frames(seed: int) -> Iterator[tuple[str, bytes]]:
    """Every API of the protocol, every version, every shape: a description and the frame."""
    random = Random(seed)
    for key in spec.api_files():
        api = spec.api(key)
        for version in (*api.versions, api.versions.stop, 0x7FFF):
            known = version if version in api.versions else api.versions.stop - 1
            data = bytearray(filled(api, known))
            data[2:4] = struct.pack(">h", version)
            for name, shape in SHAPES.items():
                yield f"{api.name} v{version}, {name}", shape(bytes(data), random)
