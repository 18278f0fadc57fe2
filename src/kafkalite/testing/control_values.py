"""Records and what was said, as the values that make JSON, and records back from such.

Owns how bytes are shown: as text where they are, else in base64. Bounded: what is too much is left
out, and its caller says so.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterable
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from kafkalite.testing.control_shape import Mistake

if TYPE_CHECKING:
    from kafkalite.testing.asking import TestRecord
    from kafkalite.testing.exchange import Exchange

SHOWN_BYTES = 16 * 1024 * 1024
SHOWN_RECORDS = 10  # of one partition in a request or reply

Values = dict[str, Any]


def bounded(shown: Iterable[Values]) -> list[Values]:
    """The first of them that fit into an answer, one at least; no more of them are made."""
    found: list[Values] = []
    left = SHOWN_BYTES
    for each in shown:
        left -= len(json.dumps(each))
        if left < 0 and found:
            break
        found.append(each)
    return found


def moment(at: int | str | None) -> datetime | int | None:
    """A moment as it is given: milliseconds since 1970, or ISO 8601."""
    if not isinstance(at, str):
        return at
    try:
        found = datetime.fromisoformat(at)
    except ValueError:
        raise Mistake(400, f"'at' is {at!r}: expected such as 2030-01-01T00:00:00Z") from None
    if found.tzinfo is None:
        raise Mistake(400, f"'at' is {at!r}, of which time zone? Z at its end is UTC")
    return found


# --- records --------------------------------------------------------------------------------------


def record(found: TestRecord) -> Values:
    return {
        "topic": found.topic,
        "partition": found.partition,
        "offset": found.offset,
        "timestamp_ms": round(found.timestamp.timestamp() * 1000),
        **_shown("key", found.key),
        **_shown("value", found.value),
        "headers": {
            name: None if value is None else value.decode(errors="replace")
            for name, value in found.headers.items()
        },
    }


def _shown(name: str, value: bytes | None) -> Values:
    text, base64 = None, None
    if value is not None:
        try:
            text = value.decode()
        except UnicodeDecodeError:
            base64 = b64encode(value).decode()
    return {name: text, f"{name}_base64": base64}


def pair_of(given: Values) -> tuple[Any, Any]:
    """Key and value of a record that is to be written."""
    return _one_of("key", given), _one_of("value", given)


def _one_of(name: str, given: Values) -> Any:
    base64 = given[f"{name}_base64"]
    if base64 is None:
        return given[name]
    if given[name] is not None:
        raise Mistake(400, f"a record has both {name!r} and '{name}_base64': give one")
    try:
        return b64decode(base64, validate=True)
    except (NotBase64, ValueError) as error:
        raise Mistake(400, f"'{name}_base64' of a record is no base64: {error}") from None


def headers_of(given: Values) -> dict[str, str | None]:
    headers = given["headers"] or {}
    for name, value in headers.items():
        if value is not None and not isinstance(value, str):
            raise Mistake(400, f"header {name!r} of a record is {value!r}: expected a text or null")
    return headers


# --- what was said --------------------------------------------------------------------------------


def api_named(name: str) -> str:
    from kafkalite.testing.faults import api_name

    return api_name(name)


def exchange(found: Exchange) -> Values:
    return {
        "index": found.index,
        "connection": found.number,
        "time_ms": found.time_ms,
        "replied_ms": found.replied_ms,
        "api": found.api,
        "version": found.version,
        "client_id": found.client_id,
        "request": _message(found.request, found.version),
        "response": _message(found.response, found.version),
        "errors": [error.name for error in found.errors],
        "outcome": found.outcome,
    }


def _message(message: Any, version: int | None) -> Values | None:
    from kafkalite.log.names import uuid_text
    from kafkalite.protocol import spec
    from kafkalite.protocol.errors import Error
    from kafkalite.protocol.traversal import to_values

    if message is None:
        return None

    def leaf(value: Any, field: spec.Field) -> Any:
        if field.type == "records":
            return _batches(memoryview(value))
        if field.type == "error":
            return Error(value).name
        if field.type == "uuid":
            return uuid_text(value)
        return b64encode(value).decode() if field.type == "bytes" else value

    return to_values(message, version or 0, leaf)


def _batches(data: memoryview) -> Values:
    """How many records these are, and the first of them."""
    from kafkalite.protocol.errors import KafkaError
    from kafkalite.records.batch import iterate_headers
    from kafkalite.records.convert import iterate_any

    found: Values = {"bytes": len(data), "count": 0, "first": []}
    try:
        for header in iterate_headers(data):
            found["count"] += max(header.record_count, 1)  # of old formats none is told
            room = SHOWN_RECORDS - len(found["first"])
            for each in islice(iterate_any(data, header), room):
                key, value = (_own(part) for part in (each.key, each.value))
                shown = {"offset": each.offset, "timestamp_ms": each.timestamp}
                found["first"].append(shown | _shown("key", key) | _shown("value", value))
    except KafkaError as error:
        found["unreadable"] = str(error)
    return found


def _own(value: Any) -> bytes | None:
    return None if value is None else bytes(value)
