"""Turns effects into record batches and appends them to a partition.

Owns the shape of what coordinators write: magic 2, uncompressed, create time. It never retries.
Invariant: for effects that are atomic it appends everything, or raises KafkaError and nothing.
"""

from __future__ import annotations

from kafkalite.coordinators.effects import Effects, Producer, Record
from kafkalite.coordinators.ports import Partition
from kafkalite.log.partition_log import AppendOrigin
from kafkalite.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from kafkalite.records.control import ControlType, EndTransactionMarker, build_marker_batch
from kafkalite.records.record import BatchBuilder

# Effects that are not atomic (the sweep of expired offsets) are cut into batches of this size.
LOOSE_BATCH_RECORDS = 1_000


def append_effects(partition: Partition, effects: Effects, now_ms: int) -> int:
    """Appends, tells each record its offset, and returns the offset after the last."""
    records = effects.records
    size = len(records) if effects.atomic else LOOSE_BATCH_RECORDS
    end_offset = 0
    for start in range(0, len(records), size):
        chunk = records[start : start + size]
        end_offset = _append(partition, chunk, effects.producer, now_ms)
    return end_offset


def _append(
    partition: Partition, records: list[Record], producer: Producer | None, now_ms: int
) -> int:
    builder = BatchBuilder()
    for record in records:
        builder.append(now_ms, record.key, record.value)
    # Coordinators number nothing: what a transaction's records need is the producer's id, and
    # the log checks no sequence of theirs.
    batch = builder.build(
        producer_id=NO_PRODUCER_ID if producer is None else producer.producer_id,
        producer_epoch=NO_PRODUCER_EPOCH if producer is None else producer.producer_epoch,
        base_sequence=NO_SEQUENCE if producer is None else 0,
        is_transactional=producer is not None,
    )
    base_offset = _append_batch(partition, batch, now_ms)
    for delta, record in enumerate(records):
        record.offset = base_offset + delta
        record.producer = producer
    return base_offset + len(records)


def append_marker(
    partition: Partition,
    producer: Producer,
    coordinator_epoch: int,
    committed: bool,
    now_ms: int,
    transaction_version: int = 0,
) -> int:
    """Appends the marker that ends a transaction; returns the offset after it."""
    kind = ControlType.COMMIT if committed else ControlType.ABORT
    batch = build_marker_batch(
        EndTransactionMarker(kind, coordinator_epoch),
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        timestamp=now_ms,
    )
    return _append_batch(partition, batch, now_ms, transaction_version) + 1


def _append_batch(
    partition: Partition, batch: bytearray, now_ms: int, transaction_version: int = 0
) -> int:
    result = partition.append(
        memoryview(batch), now_ms, AppendOrigin.COORDINATOR,
        is_all=True, transaction_version=transaction_version,
    )
    return result.base_offset
