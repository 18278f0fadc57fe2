"""How `kafka-console-consumer` prints a record: Apache Kafka's DefaultMessageFormatter and those
like it.

Owns the columns and what separates them. Deserializers are known where Python prints what Java
does.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kafkalite.records.batch import BatchHeader, TimestampType
from kafkalite.records.record import Record
from kafkalite.tools.failures import Failure, serialization
from kafkalite.tools.line_reader import is_true
from kafkalite.tools.running import log, tell

PACKAGE = "org.apache.kafka.tools.consumer."
DEFAULT = f"{PACKAGE}DefaultMessageFormatter"
_NOTHING = f"{PACKAGE}NoOpMessageFormatter"
_SAME = (DEFAULT, f"{PACKAGE}LoggingMessageFormatter")  # which logs what no tool's log shows
# Of Apache Kafka's, for its internal topics; not here.
ABSENT = tuple(
    f"{PACKAGE}{name}MessageFormatter"
    for name in ("GroupMetadata", "Offsets", "TransactionLog", "group.share.ShareGroupState")
)
_SERIALIZATION = "org.apache.kafka.common.serialization."
_TIMESTAMPS = {
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}

Printer = Callable[[int, Record, BatchHeader], bytes]
Deserializer = Callable[[bytes], bytes]


def formatter(name: str, properties: Mapping[str, str]) -> Printer:
    """By the name of its class. Raises the failure of a class that is not there."""
    if name == _NOTHING:
        return lambda index, record, header: b""
    if name not in _SAME:
        raise Failure("java.lang.ClassNotFoundException", name)
    return DefaultFormatter(properties).text


class DefaultFormatter:
    def __init__(self, properties: Mapping[str, str]) -> None:
        self._shows = {
            name: is_true({f"print.{name}": "false", **properties}, f"print.{name}")
            for name in ("timestamp", "partition", "offset", "delivery", "epoch", "headers", "key")
        }
        self._shows["value"] = is_true({"print.value": "true", **properties}, "print.value")
        self._between = properties.get("key.separator", "\t").encode()
        self._end = properties.get("line.separator", "\n").encode()
        self._between_headers = properties.get("headers.separator", ",").encode()
        self._null = properties.get("null.literal", "null").encode()
        self._of_key = _deserializer(properties.get("key.deserializer"))
        self._of_value = _deserializer(properties.get("value.deserializer"))
        self._of_headers = _deserializer(properties.get("headers.deserializer"))

    def text(self, index: int, record: Record, header: BatchHeader) -> bytes:
        columns: dict[str, Callable[[], bytes]] = {
            "timestamp": lambda: _timestamp(record, header),
            "partition": lambda: b"Partition:%d" % index,
            "offset": lambda: b"Offset:%d" % record.offset,
            "delivery": lambda: b"Delivery:NOT_PRESENT",
            "epoch": lambda: b"Epoch:NOT_PRESENT",
            "headers": lambda: self._headers(record),
            "key": lambda: self._of_key(self._or_null(record.key)),
            "value": lambda: self._of_value(self._or_null(record.value)),
        }
        shown = [columns[name]() for name in columns if self._shows[name]]
        return self._between.join(shown) + self._end if shown else b""

    def _or_null(self, field: bytes | None) -> bytes:
        return self._null if field is None else field

    def _headers(self, record: Record) -> bytes:
        if not record.headers:
            return b"NO_HEADERS"
        return self._between_headers.join(
            name + b":" + self._of_headers(self._or_null(value)) for name, value in record.headers
        )


def _timestamp(record: Record, header: BatchHeader) -> bytes:
    kind = _TIMESTAMPS.get(header.timestamp_type) if header.magic else None
    return b"NO_TIMESTAMP" if kind is None else f"{kind}:{record.timestamp}".encode()


@dataclass(frozen=True, slots=True)
class _Number:
    name: str
    layout: str

    def __call__(self, data: bytes) -> bytes:
        if len(data) != struct.calcsize(self.layout):
            size = struct.calcsize(self.layout)
            raise serialization(f"Size of data received by {self.name} is not {size}")
        return str(struct.unpack(self.layout, data)[0]).encode()


def _text(data: bytes) -> bytes:
    return data.decode(errors="replace").encode()


def _uuid(data: bytes) -> bytes:
    try:
        return str(uuid.UUID(data.decode())).encode()
    except ValueError:
        raise serialization("Error parsing data into UUID") from None


def _as_it_is(data: bytes) -> bytes:
    return data


_DESERIALIZERS: dict[str, Deserializer] = {
    "StringDeserializer": _text,
    "ShortDeserializer": _Number("ShortDeserializer", ">h"),
    "IntegerDeserializer": _Number("IntegerDeserializer", ">i"),
    "LongDeserializer": _Number("LongDeserializer", ">q"),
    "UUIDDeserializer": _uuid,
}


def _deserializer(name: str | None) -> Deserializer:
    """By the name of its class; bytes as they are, and a line in the log, when it is not there."""
    if name is None:
        return _as_it_is
    found = _DESERIALIZERS.get(name.removeprefix(_SERIALIZATION))
    if found is None or not name.startswith(_SERIALIZATION):
        log("ERROR", f"Unable to instantiate a deserializer from {name}", DEFAULT)
        tell(f"java.lang.ClassNotFoundException: {name}")
        return _as_it_is
    return found
