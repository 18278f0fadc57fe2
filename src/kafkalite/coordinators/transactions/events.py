"""What a transaction shard is asked, and what it asks of others. Values only."""

from __future__ import annotations

from typing import Final, TypeAlias

from kafkalite.coordinators.events import Event, R_co
from kafkalite.coordinators.transactions.transaction import (
    NO_PRODUCER_ID,
    TopicPartition,
    Transaction,
)
from kafkalite.env.dataclasses import dataclass


class OfTransaction(Event[R_co]):
    """An event that concerns one transactional id."""

    __slots__ = ()
    transactional_id: str

    @property
    def subject(self) -> str:
        return self.transactional_id


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """A producer id and its epoch."""

    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class InitProducerId(OfTransaction[ProducerIdentity]):
    """A producer wants its id and epoch."""

    transactional_id: str
    timeout_ms: int
    expected_producer_id: int | None = None
    expected_epoch: int | None = None
    new_producer_id: int = NO_PRODUCER_ID


@dataclass(frozen=True, slots=True)
class AddPartitions(OfTransaction[None]):
    """Partitions become part of the transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]
    client_version: int


@dataclass(frozen=True, slots=True)
class VerifyPartitions(OfTransaction[frozenset[TopicPartition]]):
    """Which of these are part of the transaction?"""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class EndTransaction(OfTransaction[ProducerIdentity]):
    """Commit or abort; answered by what to go on with."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_commit: bool
    client_version: int
    new_producer_id: int = NO_PRODUCER_ID


@dataclass(frozen=True, slots=True)
class MarkersWritten(OfTransaction[None]):
    """Every partition of the transaction has its marker. By the old flow its producer's next one
    has the same epoch: they differ by when they were prepared."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    prepared_ms: int


@dataclass(frozen=True, slots=True)
class TimedOut(OfTransaction[None]):
    """The transaction that began then has been open for longer than its producer allowed."""

    transactional_id: str
    started_ms: int
    new_producer_id: int = NO_PRODUCER_ID


# What an event may need before it can be decided: a producer id that nobody has.
PRODUCER_ID: Final = "a producer id"
MayNeedProducerId: TypeAlias = InitProducerId | EndTransaction | TimedOut


@dataclass(frozen=True, slots=True)
class ExpireIds(Event[None]):
    """Time to forget transactional ids that nobody has used for long: of these, from one of them
    on, or of all that there are now."""

    ids: tuple[str, ...] | None = None
    begin: int = 0


@dataclass(frozen=True, slots=True)
class Describe(OfTransaction[Transaction]):
    transactional_id: str


@dataclass(frozen=True, slots=True)
class List(Event[list[Transaction]]):
    """Every transaction of the shard."""


@dataclass(frozen=True, slots=True)
class WriteMarkers:
    """An errand: write the markers of a prepared transaction, then report MarkersWritten."""

    transaction: Transaction
