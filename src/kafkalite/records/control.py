"""Control records: what brokers and controllers write among a partition's data.

Owns their keys and the marker that ends a transaction. The values of the KRaft ones are messages
of protocol_specs/records/control; here they are only named. Consumers skip the whole batch.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from struct import Struct
from typing import TypeAlias

from kafkalite.env.dataclasses import dataclass
from kafkalite.records.batch import (
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    BatchHeader,
    Buffer,
)
from kafkalite.records.errors import InvalidRecords
from kafkalite.records.record import BatchBuilder, Record, iterate_records

KEY_VERSION = 0
END_TRANSACTION_VERSION = 0

_KEY = Struct(">hh")  # version, type
_END_TRANSACTION = Struct(">hi")  # version, coordinator epoch


class ControlType(IntEnum):
    """The types of Apache Kafka; a reader skips those that it does not know."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6
    UNKNOWN = -1


# What a control record says: its type, and the bytes of its value.
ControlRecord: TypeAlias = tuple[ControlType, bytes]


@dataclass(slots=True)
class EndTransactionMarker:
    """The outcome of a producer's transaction in one partition."""

    type: ControlType
    coordinator_epoch: int

    @property
    def is_commit(self) -> bool:
        return self.type == ControlType.COMMIT


def read_type(key: bytes | None) -> ControlType:
    """The type in a control record's key; later versions of the key begin like version 0."""
    if key is None or len(key) < _KEY.size:
        raise InvalidRecords("the key of a control record is too short")
    version, number = _KEY.unpack_from(key)
    if version < KEY_VERSION:
        raise InvalidRecords(f"version {version} of a control record's key")
    return ControlType(number) if 0 <= number <= ControlType.KRAFT_VOTERS else ControlType.UNKNOWN


def read_marker(record: Record) -> EndTransactionMarker | None:
    """The marker in this control record, or None when it is a control record of another type."""
    kind = read_type(record.key)
    if kind not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    if record.value is None or len(record.value) < _END_TRANSACTION.size:
        raise InvalidRecords("the value of a transaction marker is too short")
    version, coordinator_epoch = _END_TRANSACTION.unpack_from(record.value)
    if version < END_TRANSACTION_VERSION:
        raise InvalidRecords(f"version {version} of a transaction marker")
    return EndTransactionMarker(kind, coordinator_epoch)


def read_batch_marker(buffer: Buffer, header: BatchHeader) -> EndTransactionMarker | None:
    """The marker in a control batch, which holds one record; None when it is not about one."""
    record = next(iterate_records(buffer, header), None)
    return None if record is None else read_marker(record)


def encode_key(kind: ControlType) -> bytes:
    return _KEY.pack(KEY_VERSION, kind)


def build_marker_batch(
    marker: EndTransactionMarker,
    *,
    producer_id: int,
    producer_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_LEADER_EPOCH,
) -> bytearray:
    """The batch that ends a transaction; it has no sequence number."""
    builder = BatchBuilder()
    value = _END_TRANSACTION.pack(END_TRANSACTION_VERSION, marker.coordinator_epoch)
    builder.append(timestamp, encode_key(marker.type), value)
    return builder.build(
        base_offset,
        partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )


def build_control_batch(
    records: Iterable[ControlRecord],
    *,
    timestamp: int,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_LEADER_EPOCH,
) -> bytearray:
    """A control batch that no producer is behind: those of KRaft."""
    builder = BatchBuilder()
    for kind, value in records:
        builder.append(timestamp, encode_key(kind), value)
    return builder.build(
        base_offset,
        partition_leader_epoch,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        is_control=True,
    )
