"""Turns decoded messages into plain values, and plain values into text or JSON.

A field is shown under its spec's name, only in versions that have it, in the form in which people
know it: ids as Kafka prints them, error codes by name, bytes as text where they are text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from kafkalite.log.names import uuid_text
from kafkalite.protocol import spec
from kafkalite.protocol.errors import Error
from kafkalite.protocol.traversal import to_values

SHOWN_BYTES = 200
_UNSEEN = re.compile(
    "[\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff\ud800-\udfff]"
)

Plain = Any  # None, bool, int, float, str, list[Plain] or dict[str, Plain]
DescribeRecords = Callable[[memoryview], Plain]


def plain_message(
    message: Any, version: int, describe_records: DescribeRecords | None = None
) -> dict[str, Plain]:
    """A message's fields; `records` are described by the caller's function, or by their size."""

    def leaf(value: Any, field: spec.Field) -> Plain:
        if field.type == "records":
            return describe_records(value) if describe_records else plain_bytes(value)
        if field.type == "error":
            return error_name(value)
        if field.type == "uuid":
            return uuid_text(value)
        return plain_bytes(value) if isinstance(value, bytes | memoryview) else value

    return to_values(message, version, leaf)


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
    return legible(json.dumps(value, ensure_ascii=False))


def legible(text: str) -> str:
    """JSON without characters that command a terminal, that YAML refuses or takes for the end of a
    line, or that nobody sees."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


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
    return as_json(value)
