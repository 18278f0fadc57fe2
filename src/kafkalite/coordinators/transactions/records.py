"""Records of `__transaction_state`: key version 0, and the value versions that Apache Kafka writes.

Owns the bytes and nothing else. A key of an unknown type is none of ours; a value that cannot be
read says so, for guessing would lose a transaction.
"""

from __future__ import annotations

import struct

from kafkalite.coordinators.effects import Record
from kafkalite.coordinators.transactions.transaction import State, TopicPartition, Transaction
from kafkalite.protocol import codec
from kafkalite.protocol.messages import TransactionLogKey, TransactionLogValue

KEY_TYPE = 0
VALUE_VERSION = 1
# Before transaction.version 1 is finalized, a broker that knows nothing else may come back.
OLD_VALUE_VERSION = 0
_VERSION = struct.Struct(">h")


class UnreadableValue(Exception):
    """A value in a version or a state that we do not know: a newer broker wrote it."""


def record_of(transaction: Transaction, version: int = VALUE_VERSION) -> Record:
    """The record that makes a shard's state be this."""
    body = codec.encode(_value(transaction), version)
    return Record(key_of(transaction.transactional_id), _VERSION.pack(version) + body, transaction)


def tombstone_of(transactional_id: str) -> Record:
    return Record(key_of(transactional_id), None)


def key_of(transactional_id: str) -> bytes:
    key = TransactionLogKey(transactional_id=transactional_id)
    return _VERSION.pack(KEY_TYPE) + codec.encode(key, 0)


def read_key(key: bytes) -> str | None:
    """The transactional id, or None for a key of another type."""
    if _VERSION.unpack_from(key)[0] != KEY_TYPE:
        return None
    return codec.decode(TransactionLogKey, 0, key[2:]).transactional_id


def read_value(transactional_id: str, value: bytes) -> Transaction:
    version = _VERSION.unpack_from(value)[0]
    if version not in TransactionLogValue.SPEC.versions:
        raise UnreadableValue(f"version {version}")
    found = codec.decode(TransactionLogValue, version, value[2:])
    if found.transaction_status not in State.__members__.values():
        raise UnreadableValue(f"state {found.transaction_status}")
    return Transaction(
        transactional_id,
        found.producer_id,
        found.producer_epoch,
        found.transaction_timeout_ms,
        State(found.transaction_status),
        found.transaction_last_update_timestamp_ms,
        _partitions(found),
        found.transaction_start_timestamp_ms,
        found.previous_producer_id,
        found.next_producer_id,
        found.client_transaction_version,
    )


def _value(transaction: Transaction) -> TransactionLogValue:
    return TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=_topics(transaction),
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.client_version,
    )


def _topics(transaction: Transaction) -> list[TransactionLogValue.TransactionPartition] | None:
    if transaction.state is State.EMPTY:
        return None
    by_topic: dict[str, list[int]] = {}
    for topic, index in transaction.partitions:
        by_topic.setdefault(topic, []).append(index)
    return [
        TransactionLogValue.TransactionPartition(topic=topic, partition_ids=indexes)
        for topic, indexes in by_topic.items()
    ]


def _partitions(value: TransactionLogValue) -> tuple[TopicPartition, ...]:
    return tuple(
        (entry.topic, index)
        for entry in value.transaction_partitions or ()
        for index in entry.partition_ids
    )
