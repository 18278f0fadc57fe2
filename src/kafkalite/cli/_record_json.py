"""Records as lines of JSON, in kcat's envelope, there and back.

    {"topic": …, "partition": 0, "offset": 7, "tstype": "create", "ts": …, "headers": ["name",
    "value", …], "key": …, "payload": …}

What is no text is {"base64": "…"}, so that each record comes back as it was.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import Any

from kafkalite.records.batch import BatchHeader, TimestampType
from kafkalite.records.record import Record

Headers = tuple[tuple[str | bytes, bytes | None], ...]
_FIELDS = (
    "topic", "partition", "offset", "tstype", "ts", "broker", "headers", "key", "payload",
)  # fmt: skip
_BASE64 = "base64"
_LARGEST = (1 << 63) - 1


class BadLine(ValueError):
    """A line that is no record, and why."""


@dataclass(slots=True)
class Typed:
    """A record as a line has it."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp: int | None
    partition: int | None


def plain(field: bytes | None) -> Any:
    if field is None:
        return None
    try:
        return field.decode()
    except UnicodeDecodeError:
        return {_BASE64: b64encode(field).decode()}


def as_line(
    topic: str, partition: int, record: Record, header: BatchHeader, key: Any, payload: Any
) -> bytes:
    """key, payload: as plain values."""
    is_appended = header.timestamp_type == TimestampType.LOG_APPEND_TIME
    envelope: dict[str, Any] = {
        "topic": topic, "partition": partition, "offset": record.offset,
        "tstype": "logappend" if is_appended else "create", "ts": record.timestamp,
    }  # fmt: skip
    if record.headers:
        envelope["headers"] = [plain(each) for pair in record.headers for each in pair]
    envelope |= {"key": key, "payload": payload}
    return json.dumps(envelope, ensure_ascii=False).encode() + b"\n"


def from_line(line: bytes) -> Typed:
    """BadLine says what it is not."""
    try:
        found = json.loads(line)
    except ValueError as error:
        raise BadLine(f"this is no JSON: {error}") from None
    except RecursionError:
        raise BadLine("this JSON is nested too deeply") from None
    if not isinstance(found, dict):
        raise BadLine("this is no JSON object")
    if unknown := sorted(found.keys() - set(_FIELDS)):
        raise BadLine(f"{unknown[0]!r} is none of {', '.join(_FIELDS)}")
    return Typed(
        _bytes("key", found.get("key")), _bytes("payload", found.get("payload")),
        _headers(found.get("headers", [])), _number("ts", found.get("ts")),
        _number("partition", found.get("partition")),
    )  # fmt: skip


def _bytes(name: str, value: Any) -> bytes | None:
    if value is None:
        return None
    try:
        if isinstance(value, str):
            return value.encode()
        if isinstance(value, dict) and value.keys() == {_BASE64}:
            return b64decode(value[_BASE64], validate=True)
        return json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, TypeError):
        raise BadLine(f"{name}: this is neither text nor base64") from None


def _headers(value: Any) -> Headers:
    if not isinstance(value, list) or len(value) % 2:
        raise BadLine("headers: expected a list of name, value, name, value, …")
    names = [_bytes("the name of a header", each) for each in value[::2]]
    return tuple(
        (name or b"", _bytes("the value of a header", each))
        for name, each in zip(names, value[1::2], strict=True)
    )


def _number(name: str, value: Any) -> int | None:
    """None for one below 0, which stands for none."""
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadLine(f"{name}: {value!r} is no whole number")
    if value > _LARGEST:
        raise BadLine(f"{name}: {value} does not fit in 64 bits")
    return value if value >= 0 else None
