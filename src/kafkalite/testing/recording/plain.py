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

DescribeRecords = Callable[[memoryview], Any]

_ERROR_NAMES = {int(error): error.name for error in Error}


def to_plain(message: Any, version: int, describe: DescribeRecords | None = None) -> dict[str, Any]:
    return _Writer(version, describe).struct(message, message.SPEC.root)


def from_plain(cls: type[Any], version: int, plain: dict[str, Any]) -> Any:
    """ValueError or KeyError when it is no message of this class and version."""
    return _Reader(cls, version).struct(plain, cls.SPEC.root)


def text_of(data: bytes | memoryview) -> str:
    return b64encode(data).decode("ascii")


def bytes_of(text: str) -> bytes:
    return b64decode(text, validate=True)


class _Writer:
    def __init__(self, version: int, describe: DescribeRecords | None) -> None:
        self.version, self.describe = version, describe

    def struct(self, value: Any, struct: spec.Struct) -> dict[str, Any]:
        return {
            field.name: self.field(getattr(value, field.name), field)
            for field in struct.fields
            if self.version in field.versions or self.version in field.tagged
        }

    def field(self, value: Any, field: spec.Field) -> Any:
        if value is None:
            return None
        if field.is_array:
            return [self.one(each, field) for each in value]
        return self.one(value, field)

    def one(self, value: Any, field: spec.Field) -> Any:
        if field.struct is not None:
            return self.struct(value, field.struct)
        if field.type == "records":
            described = {"batches": self.describe(memoryview(value))} if self.describe else {}
            return {**described, "bytes": text_of(value)}
        if field.type == "error":
            return _ERROR_NAMES.get(value, value)
        if field.type == "uuid":
            return uuid_text(value)
        return text_of(value) if field.type == "bytes" else value


class _Reader:
    def __init__(self, cls: type[Any], version: int) -> None:
        self.cls, self.version = cls, version

    def struct(self, plain: dict[str, Any], struct: spec.Struct) -> Any:
        cls = self.cls if struct is self.cls.SPEC.root else getattr(self.cls, struct.name)
        return cls(
            **{
                field.name: self.field(plain[field.name], field)
                for field in struct.fields
                if self.version in field.versions or self.version in field.tagged
            }
        )

    def field(self, plain: Any, field: spec.Field) -> Any:
        if plain is None:
            return None
        if field.is_array:
            return [self.one(each, field) for each in plain]
        return self.one(plain, field)

    def one(self, plain: Any, field: spec.Field) -> Any:
        if field.struct is not None:
            return self.struct(plain, field.struct)
        if field.type == "records":
            return bytes_of(plain["bytes"])
        if field.type == "error":
            return Error[plain] if isinstance(plain, str) else plain
        if field.type == "uuid":
            return parse_uuid(plain)
        return bytes_of(plain) if field.type == "bytes" else plain
