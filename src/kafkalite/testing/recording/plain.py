"""Messages as plain values that make JSON, and back without loss.

Fields are named as in the spec, of the message's version only. Error codes have their names, uuids
Kafka's text, bytes are base64. Records are their bytes, beside what the caller tells of them.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any

from kafkalite.log.names import parse_uuid, uuid_text
from kafkalite.protocol import spec
from kafkalite.protocol.errors import Error
from kafkalite.protocol.traversal import to_message, to_values

DescribeRecords = Callable[[memoryview], Any]

_ERROR_NAMES = {int(error): error.name for error in Error}


def to_plain(message: Any, version: int, describe: DescribeRecords | None = None) -> dict[str, Any]:

    def leaf(value: Any, field: spec.Field) -> Any:
        if field.type == "records":
            described = {"batches": describe(memoryview(value))} if describe else {}
            return {**described, "bytes": text_of(value)}
        if field.type == "error":
            return _ERROR_NAMES.get(value, value)
        if field.type == "uuid":
            return uuid_text(value)
        return text_of(value) if field.type == "bytes" else value

    return to_values(message, version, leaf)


def from_plain(cls: type[Any], version: int, plain: dict[str, Any]) -> Any:
    """ValueError or KeyError when it is no message of this class and version."""
    return to_message(cls, version, plain, _read, dict.__getitem__)


def _read(plain: Any, field: spec.Field) -> Any:
    if field.type == "records":
        return bytes_of(plain["bytes"])
    if field.type == "error":
        return Error[plain] if isinstance(plain, str) else plain
    if field.type == "uuid":
        return parse_uuid(plain)
    return bytes_of(plain) if field.type == "bytes" else plain


def text_of(data: bytes | memoryview) -> str:
    return b64encode(data).decode("ascii")


def bytes_of(text: str) -> bytes:
    return b64decode(text, validate=True)
