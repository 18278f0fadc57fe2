"""Records of `__share_group_state`: whole states and what changed since, as in Apache Kafka.

Owns the bytes and nothing else. A key or a value that cannot be read is none of ours.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

from kafkalite.coordinators.effects import Record
from kafkalite.coordinators.shares.batches import NO_OFFSET, StateBatch, combined
from kafkalite.env.dataclasses import dataclass
from kafkalite.protocol import codec
from kafkalite.protocol.messages import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)

VALUE_VERSION = 0
NO_COUNT = -1

B = TypeVar("B")


class ShareKey(NamedTuple):
    """A partition as one group shares it."""

    group_id: str
    topic_id: bytes
    partition: int


@dataclass(slots=True, frozen=True)
class ShareState:
    """All that lasts of it."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    # Records at or above the start that are dealt with; NO_COUNT while nobody has read any.
    complete_count: int
    batches: tuple[StateBatch, ...] = ()
    created_ms: int = 0
    written_ms: int = 0


@dataclass(slots=True, frozen=True)
class ShareChange:
    """What is different from the state before: no epoch of the state, and what is -1 stays."""

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int
    batches: tuple[StateBatch, ...]


def snapshot(key: ShareKey, state: ShareState) -> Record:
    value = ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.complete_count,
        create_timestamp=state.created_ms,
        write_timestamp=state.written_ms,
        state_batches=[_written(ShareSnapshotValue.StateBatch, one) for one in state.batches],
    )
    return Record(_key_bytes(ShareSnapshotKey, key), _value_bytes(value), (key, state))


def update(key: ShareKey, change: ShareChange) -> Record:
    value = ShareUpdateValue(
        snapshot_epoch=change.snapshot_epoch,
        leader_epoch=change.leader_epoch,
        start_offset=change.start_offset,
        delivery_complete_count=change.complete_count,
        state_batches=[_written(ShareUpdateValue.StateBatch, one) for one in change.batches],
    )
    return Record(_key_bytes(ShareUpdateKey, key), _value_bytes(value), (key, change))


def tombstone(key: ShareKey) -> Record:
    return Record(_key_bytes(ShareSnapshotKey, key), None, (key, None))


def _key_bytes(kind: type[ShareSnapshotKey | ShareUpdateKey], key: ShareKey) -> bytes:
    made = kind(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)
    return kind.TYPE.to_bytes(2, "big") + codec.encode(made, 0)


def _written(kind: type[B], one: StateBatch) -> B:
    made: Any = kind
    batch: B = made(
        first_offset=one.first, last_offset=one.last, delivery_state=one.state,
        delivery_count=one.deliveries,
    )  # fmt: skip
    return batch


def _value_bytes(value: ShareSnapshotValue | ShareUpdateValue) -> bytes:
    return VALUE_VERSION.to_bytes(2, "big") + codec.encode(value, VALUE_VERSION)


def read(record: Record) -> tuple[ShareKey, ShareState | ShareChange | None] | None:
    """What a record says; None when it is of another type, or in a version that is not ours."""
    if record.decoded is not None:
        said: tuple[ShareKey, ShareState | ShareChange | None] = record.decoded
        return said
    assert record.key is not None, "a record of __share_group_state without a key"
    kind = int.from_bytes(record.key[:2], "big")
    if kind not in (ShareSnapshotKey.TYPE, ShareUpdateKey.TYPE):
        return None
    made = codec.decode(ShareSnapshotKey, 0, record.key, 2)
    key = ShareKey(made.group_id, bytes(made.topic_id), made.partition)
    if record.value is None:
        return key, None
    if int.from_bytes(record.value[:2], "big") != VALUE_VERSION:
        return None
    if kind == ShareUpdateKey.TYPE:
        return key, _change(codec.decode(ShareUpdateValue, VALUE_VERSION, record.value, 2))
    return key, _state(codec.decode(ShareSnapshotValue, VALUE_VERSION, record.value, 2))


def _state(value: ShareSnapshotValue) -> ShareState:
    return ShareState(
        value.snapshot_epoch, value.state_epoch, value.leader_epoch, value.start_offset,
        value.delivery_complete_count, _batches(value), value.create_timestamp,
        value.write_timestamp,
    )  # fmt: skip


def _change(value: ShareUpdateValue) -> ShareChange:
    return ShareChange(
        value.snapshot_epoch, value.leader_epoch, value.start_offset,
        value.delivery_complete_count, _batches(value),
    )  # fmt: skip


def _batches(value: ShareSnapshotValue | ShareUpdateValue) -> tuple[StateBatch, ...]:
    """In order, whoever wrote them."""
    said = (
        StateBatch(one.first_offset, one.last_offset, one.delivery_state, one.delivery_count)
        for one in value.state_batches
    )
    return tuple(combined((), said, NO_OFFSET))


UNINITIALIZED = ShareState(0, 0, 0, NO_OFFSET, NO_COUNT)
