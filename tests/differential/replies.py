"""Plausible replies, made from the specs: every field filled, every list of two elements.

What tells elements apart differs between them, ids and times look like a broker's own, and batches
of records are real ones: a plain one, a compressed one, one with the broker's times, a marker.
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any

from kafkalite.protocol import spec
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import message_class
from kafkalite.records.batch import Compression, TimestampType
from kafkalite.records.record import BatchBuilder

COUNT = 2
LONG_AGO_MS = (int(time.time()) - 30 * 86_400) * 1000
NOW_MS = int(time.time() * 1000)
_TIMES = frozenset(
    "log_append_time_ms timestamp last_timestamp transaction_start_time_ms last_fetch_timestamp"
    " last_caught_up_timestamp".split()
)


def reply(api: str, version: int, *, refused: bool = False) -> Any:
    """One that went well, or one in which every error is set and every number says: none."""
    return _Maker(message_class(f"{api}Response"), version, refused).made()


class _Maker:
    def __init__(self, cls: type[Any], version: int, refused: bool) -> None:
        self.cls, self.version, self.refused = cls, version, refused
        self.number = 0
        self.has_records = False

    def made(self) -> Any:
        return self.struct(self.cls.SPEC.root)

    def struct(self, struct: spec.Struct) -> Any:
        cls = self.cls if struct is self.cls.SPEC.root else getattr(self.cls, struct.name)
        here = [each for each in struct.fields if each.is_in(self.version)]
        return cls(**{each.name: self.field(each) for each in here})

    def field(self, field: spec.Field) -> Any:
        if field.is_array:
            return [self.one(field) for _ in range(COUNT)]
        return self.one(field)

    def one(self, field: spec.Field) -> Any:
        self.number += 1
        if field.struct is not None:
            return self.struct(field.struct)
        match field.type:
            case "error":
                return int(Error.INVALID_REQUEST if self.refused else Error.NONE)
            case "string":
                return f"{field.name.replace('_', '-')}-{self.number}"
            case "bytes":
                return b"bytes %d" % self.number
            case "uuid":
                return b"id %013d" % self.number
            case "bool":
                return True
            case "float64":
                return float(self.number)
            case "records":
                is_first, self.has_records = not self.has_records, True
                return batches() if is_first else b""
        return self.count(field)

    def count(self, field: spec.Field) -> int:
        if self.refused and field.type.startswith("int") and not field.is_array:
            return -1
        if field.name in _TIMES:
            return NOW_MS
        return self.number % 100 + 1 if field.type != "int64" else self.number + 1


@cache
def batches() -> bytes:
    kinds: tuple[dict[str, Any], ...] = (
        {"producer_id": 77, "producer_epoch": 3, "base_sequence": 5},
        {"compression": Compression.GZIP},
        {"timestamp_type": TimestampType.LOG_APPEND_TIME},
        {"producer_id": 78, "producer_epoch": 1, "is_control": True},
    )
    return b"".join(
        _batch(number, base_offset=10 * number, **fields) for number, fields in enumerate(kinds)
    )


def _batch(number: int, **fields: Any) -> bytes:
    builder = BatchBuilder()
    is_brokers = "timestamp_type" in fields or "is_control" in fields
    for which in range(2):
        builder.append(
            (NOW_MS if is_brokers else LONG_AGO_MS) + which,
            b"key %d" % which,
            b"value %d of %d" % (which, number),
            ((b"header", b"%d" % which),),
        )
    return bytes(builder.build(partition_leader_epoch=4, **fields))
