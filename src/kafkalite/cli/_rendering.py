"""Turns decoded messages into plain values, and plain values into text or JSON.

A field is shown under its spec's name, only in versions that have it, in the form in which people
know it: ids as Kafka prints them, error codes by name, bytes as text where they are text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from kafkalite.log.names import uuid_text
from kafkalite.protocol import spec
from kafkalite.protocol.errors import Error

SHOWN_BYTES = 200

Plain = Any  # None, bool, int, float, str, list[Plain] or dict[str, Plain]
DescribeRecords = Callable[[memoryview], Plain]


def plain_message(
    message: Any, version: int, describe_records: DescribeRecords | None = None
) -> dict[str, Plain]:
    """A message's fields; `records` are described by the caller's function, or by their size."""
    return _Plain(version, describe_records).struct(message, message.SPEC.root)


class _Plain:
    def __init__(self, version: int, describe_records: DescribeRecords | None) -> None:
        self.version = version
        self.describe_records = describe_records

    def struct(self, value: Any, struct: spec.Struct) -> dict[str, Plain]:
        return {
            field.name: self.field(getattr(value, field.name), field)
            for field in struct.fields
            if self.version in field.versions or self.version in field.tagged
        }

    def field(self, value: Any, field: spec.Field) -> Plain:
        if value is None:
            return None
        if field.is_array:
            return [self.one(each, field) for each in value]
        return self.one(value, field)

    def one(self, value: Any, field: spec.Field) -> Plain:
        if field.struct is not None:
            return self.struct(value, field.struct)
        if field.type == "records":
            return self.describe_records(value) if self.describe_records else plain_bytes(value)
        if field.type == "error":
            return error_name(value)
        if field.type == "uuid":
            return uuid_text(value)
        return plain_bytes(value) if isinstance(value, bytes | memoryview) else value


def error_name(code: int) -> str:
    """The name of an error code; of an unknown one the number."""
    try:
        return Error(code).name
    except ValueError:
        return str(code)


def plain_bytes(value: bytes | memoryview | None) -> Plain:
    """Text if the bytes are text, else hexadecimal; the start of it if it is long."""
    if value is None:
        return None
    shown = bytes(value[:SHOWN_BYTES])
    rest = f"… ({len(value)} bytes)" if len(value) > SHOWN_BYTES else ""
    try:
        text = shown.decode()
    except UnicodeDecodeError:
        return f"0x{shown.hex()}{rest}"
    return f"{text}{rest}" if text.isprintable() else f"0x{shown.hex()}{rest}"


def as_text(value: Plain) -> str:
    """Indented lines, a list's elements behind dashes."""
    return "\n".join(_lines(value))


def as_json(value: Plain) -> str:
    """One line, so that many values make a file of JSON lines."""
    return json.dumps(value, ensure_ascii=False)


def _lines(value: Plain) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _named(f"{name}:", inner)
    elif isinstance(value, list):
        for inner in value:
            first, *others = _lines(inner) if inner != {} else ["{}"]
            yield f"- {first}"
            yield from (f"  {line}" for line in others)
    else:
        yield _scalar(value)


def _named(name: str, value: Plain) -> Iterator[str]:
    if value and isinstance(value, dict | list):
        yield name
        yield from (f"  {line}" for line in _lines(value))
    else:
        yield f"{name} {_scalar(value)}"


def _scalar(value: Plain) -> str:
    """A value without parts, as JSON writes it."""
    return json.dumps(value, ensure_ascii=False)
