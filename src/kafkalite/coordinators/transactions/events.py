"""What a transaction shard is asked, and what it asks of others. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from kafkalite.coordinators.transactions.transaction import (
    NO_PRODUCER_ID,
    TopicPartition,
    Transaction,
)


@dataclass(frozen=True, slots=True)
class InitProducerId:
    """A producer wants its id and epoch; answered by `ProducerIdentity`."""

    transactional_id: str
    timeout_ms: int
    expected_producer_id: int | None = None
    expected_epoch: int | None = None
    new_producer_id: int = NO_PRODUCER_ID


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
    new_producer_id: int = NO_PRODUCER_ID


@dataclass(frozen=True, slots=True)
class MarkersWritten:
    """Every partition of the transaction has its marker. By the old flow its producer's next one
    has the same epoch: they differ by when they were prepared."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    prepared_ms: int


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The transaction that began then has been open for longer than its producer allowed."""

    transactional_id: str
    started_ms: int
    new_producer_id: int = NO_PRODUCER_ID


# What an event may need before it can be decided: a producer id that nobody has.
PRODUCER_ID: Final = "a producer id"
MayNeedProducerId: TypeAlias = InitProducerId | EndTransaction | TimedOut


@dataclass(frozen=True, slots=True)
class ExpireIds:
    """Time to forget transactional ids that nobody has used for long: of these, from one of them
    on, or of all that there are now."""

    ids: tuple[str, ...] | None = None
    begin: int = 0


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
