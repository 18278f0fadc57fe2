"""Turns effects into record batches and appends them to a partition.

Owns the shape of what coordinators write (magic 2, uncompressed, create time) and how large a
batch of theirs may be: the log leaves that to them. It never retries.
Invariant: of effects that are atomic it appends everything, or says why and appends nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kafkalite.coordinators.effects import Effects, Producer, Record
from kafkalite.coordinators.ports import Partition
from kafkalite.env.slicing import Steps
from kafkalite.log.partition_log import AppendOrigin
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.records.batch import HEADER_BYTES, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from kafkalite.records.control import ControlType, EndTransactionMarker, build_marker_batch
from kafkalite.records.record import BatchBuilder

# Effects that are not atomic are cut into batches of at most so many records.
LOOSE_BATCH_RECORDS = 1_000
# So many are encoded, and so many replayed, in one step.
RECORDS_PER_STEP = 16
# One of more bytes is a step of its own.
LARGE_BYTES = 4_096
# What a record has at most besides its key and value: five lengths and deltas, and attributes.
RECORD_OVERHEAD_BYTES = 32


def write(
    partition: Partition, effects: Effects, now_ms: int, written: Callable[[int, Record], None]
) -> Steps[KafkaError | None]:
    """Appends batch by batch and hands over each record as soon as its batch is in the log, with
    the offset after the batch; returns why not all could be written, if so. What is encoded or
    handed over in one step is little, however much it is together."""
    limit = partition.log.config.max_message_bytes
    try:
        for records in [effects.records] if effects.atomic else _cut(effects.records, limit):
            builder = BatchBuilder()
            for record in records:
                builder.append(now_ms, record.key, record.value)
                if builder.count % RECORDS_PER_STEP == 0 or _is_large(record):
                    yield
            batch = _built(builder, effects.producer)
            # A record alone is as small as it gets: what it takes away would stay for good.
            if len(batch) > limit and (effects.atomic or len(records) > 1):
                raise KafkaError(
                    Error.MESSAGE_TOO_LARGE,
                    f"{len(records)} records that belong together are {len(batch)} bytes, and"
                    f" max.message.bytes is {limit}; raise it for this topic",
                )
            offset = _append_batch(partition, batch, now_ms)
            end_offset = offset + len(records)
            for count, record in enumerate(records, 1):
                record.offset = offset + count - 1
                record.producer = effects.producer
                written(end_offset, record)
                if count % RECORDS_PER_STEP == 0 or _is_large(record):
                    yield
    except KafkaError as error:
        return error
    return None


def _is_large(record: Record) -> bool:
    return record.value is not None and len(record.value) > LARGE_BYTES


def _cut(records: list[Record], limit: int) -> Iterator[list[Record]]:
    """Batches that keep within the limit, but for a record that is larger by itself."""
    batch: list[Record] = []
    size = HEADER_BYTES
    for record in records:
        needed = RECORD_OVERHEAD_BYTES + len(record.key or b"") + len(record.value or b"")
        if batch and (size + needed > limit or len(batch) == LOOSE_BATCH_RECORDS):
            yield batch
            batch, size = [], HEADER_BYTES
        batch.append(record)
        size += needed
    if batch:
        yield batch


def _built(builder: BatchBuilder, producer: Producer | None) -> bytearray:
    # Coordinators number nothing: what a transaction's records need is the producer's id, and
    # the log checks no sequence of theirs.
    return builder.build(
        producer_id=NO_PRODUCER_ID if producer is None else producer.producer_id,
        producer_epoch=NO_PRODUCER_EPOCH if producer is None else producer.producer_epoch,
        base_sequence=NO_SEQUENCE if producer is None else 0,
        is_transactional=producer is not None,
    )


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
        memoryview(batch),
        now_ms,
        AppendOrigin.COORDINATOR,
        is_all=True,
        transaction_version=transaction_version,
    )
    return result.base_offset


# How a failed append reads to the client of a coordinator, as in Apache Kafka.
_COORDINATOR_ERRORS = {
    Error.UNKNOWN_TOPIC_OR_PARTITION: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_ENOUGH_REPLICAS: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND: Error.COORDINATOR_NOT_AVAILABLE,
    Error.REQUEST_TIMED_OUT: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NETWORK_EXCEPTION: Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.NOT_LEADER_OR_FOLLOWER: Error.NOT_COORDINATOR,
    Error.KAFKA_STORAGE_ERROR: Error.NOT_COORDINATOR,
    Error.MESSAGE_TOO_LARGE: Error.UNKNOWN_SERVER_ERROR,
    Error.RECORD_LIST_TOO_LARGE: Error.UNKNOWN_SERVER_ERROR,
    Error.INVALID_FETCH_SIZE: Error.UNKNOWN_SERVER_ERROR,
}


def coordinator_error(error: KafkaError) -> KafkaError:
    mapped = _COORDINATOR_ERRORS.get(Error(error.code))
    return error if mapped is None else KafkaError(mapped)
