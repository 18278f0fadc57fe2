"""What a transaction shard is asked, and what it asks of others. Values only."""

from __future__ import annotations

from dataclasses import dataclass

from kafkalite.coordinators.transactions.transaction import TopicPartition, Transaction


@dataclass(frozen=True, slots=True)
class InitProducerId:
    """A producer wants its id and epoch; answered by `ProducerIdentity`."""

    transactional_id: str
    timeout_ms: int
    expected_producer_id: int | None = None
    expected_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """A producer id and its epoch."""

    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """Partitions become part of the transaction; answered by None."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]
    client_version: int


@dataclass(frozen=True, slots=True)
class VerifyPartitions:
    """Which of these are part of the transaction? Answered by the set of those that are."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class EndTransaction:
    """Commit or abort; answered by the `ProducerIdentity` to go on with."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_commit: bool
    client_version: int


@dataclass(frozen=True, slots=True)
class Prepared:
    """The record of a prepared transaction is committed: its markers may be written."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class MarkersWritten:
    """Every partition of the transaction has its marker."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class TimedOut:
    """A transaction may have been open for longer than its producer allowed."""

    transactional_id: str


@dataclass(frozen=True, slots=True)
class ExpireIds:
    """Time to forget transactional ids that nobody has used for long."""


@dataclass(frozen=True, slots=True)
class Describe:
    """Answered by the `Transaction`."""

    transactional_id: str


@dataclass(frozen=True, slots=True)
class List:
    """Answered by every `Transaction` of the shard, with the time they are compared to."""


@dataclass(frozen=True, slots=True)
class WriteMarkers:
    """An errand: write the markers of a prepared transaction, then report MarkersWritten."""

    transaction: Transaction
