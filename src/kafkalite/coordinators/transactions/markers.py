"""Markers: the control records that end a transaction in each of its partitions.

Owns the writing of markers to partitions that this broker leads, and the errands that bring the
markers of a prepared transaction to all its leaders, trying again until every partition has one.
Never decides about a transaction. Invariant: an errand ends when every partition has its marker;
one that starts again after a crash may write a second, which changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from kafkalite.coordinators.appending import append_marker
from kafkalite.coordinators.effects import Producer
from kafkalite.coordinators.shards import gather
from kafkalite.coordinators.transactions.transaction import TopicPartition, Transaction
from kafkalite.env.clock import Clock
from kafkalite.env.later import Later
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.replication.partition import Partition
from kafkalite.replication.partitions import Partitions

log = logging.getLogger(__name__)

OFFSETS_TOPIC = "__consumer_offsets"
RETRY_MS = 100

# The partition has been ended by somebody newer: there is nothing left to write there.
SUPERSEDED = (Error.INVALID_PRODUCER_EPOCH, Error.TRANSACTION_COORDINATOR_FENCED)
# What a coordinator of offsets says while it is not ready, as the sender of markers expects it.
NOT_READY = (
    Error.COORDINATOR_NOT_AVAILABLE,
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.NOT_COORDINATOR,
)

Outcomes = dict[TopicPartition, Error]


@dataclass(frozen=True, slots=True)
class Marker:
    """One producer's end of transaction, for some partitions."""

    producer: Producer
    coordinator_epoch: int
    is_commit: bool
    transaction_version: int
    partitions: tuple[TopicPartition, ...]


class Offsets(Protocol):
    """The group coordinator's part: its log must tell its shard of the end."""

    def end_transaction(
        self,
        index: int,
        producer: Producer,
        coordinator_epoch: int,
        is_commit: bool,
        transaction_version: int = 0,
    ) -> Later[Any]: ...


class Writer(Protocol):
    """Whoever writes markers at one broker: itself, or the way to another."""

    def write(self, marker: Marker) -> Later[Outcomes]: ...


@dataclass(slots=True)
class Markers:
    """Writes markers to the partitions of this broker."""

    clock: Clock
    partitions: Partitions
    offsets: Offsets

    def write(self, marker: Marker) -> Later[Outcomes]:
        """What became of each partition, once all that was written is committed."""
        written = gather([self._write(marker, one) for one in marker.partitions])
        outcomes: Later[Outcomes] = Later()
        written.then(
            lambda errors: outcomes.resolve(dict(zip(marker.partitions, errors, strict=True)))
        )
        return outcomes

    def _write(self, marker: Marker, where: TopicPartition) -> Later[Error]:
        topic, index = where
        partition = self.partitions.get(topic, index)
        if partition is None:
            return Later.of(Error.UNKNOWN_TOPIC_OR_PARTITION)
        if marker.producer.producer_id < 0 or marker.producer.producer_epoch < 0:
            return Later.of(Error.UNKNOWN_SERVER_ERROR)  # a control batch must have a producer
        if topic == OFFSETS_TOPIC:
            return self._end_offsets(marker, index)
        return self._append(marker, partition)

    def _append(self, marker: Marker, partition: Partition) -> Later[Error]:
        try:
            end_offset = append_marker(
                partition, marker.producer, marker.coordinator_epoch, marker.is_commit,
                self.clock.now_ms(), marker.transaction_version,
            )
        except KafkaError as error:
            return Later.of(Error(error.code))
        committed: Later[Error] = Later()
        partition.when_committed(end_offset).then(lambda _: committed.resolve(Error.NONE))
        return committed

    def _end_offsets(self, marker: Marker, index: int) -> Later[Error]:
        ended: Later[Error] = Later()

        def answer(value: Any) -> None:
            code = Error(value.code) if isinstance(value, KafkaError) else Error.NONE
            ended.resolve(Error.NOT_LEADER_OR_FOLLOWER if code in NOT_READY else code)

        self.offsets.end_transaction(
            index, marker.producer, marker.coordinator_epoch, marker.is_commit,
            marker.transaction_version,
        ).then(answer)
        return ended


class Errands:
    """The markers under way from one broker's transaction coordinator."""

    def __init__(
        self,
        clock: Clock,
        leader_of: Callable[[str, int], int | None],
        writers: Mapping[int, Writer],
    ) -> None:
        self._clock = clock
        self._leader_of = leader_of
        self._writers = writers
        self._under_way: set[tuple[str, int, int]] = set()

    def run(
        self, transaction: Transaction, coordinator_epoch: int, done: Callable[[], None]
    ) -> None:
        """Write all markers of a prepared transaction, then call `done`."""
        key = transaction.transactional_id, transaction.producer_id, transaction.producer_epoch
        if key in self._under_way:
            return
        self._under_way.add(key)

        def finished() -> None:
            self._under_way.discard(key)
            done()

        marker = Marker(
            Producer(transaction.producer_id, transaction.producer_epoch), coordinator_epoch,
            transaction.is_commit, transaction.client_version, transaction.partitions,
        )
        self._round(marker, finished)

    def _round(self, marker: Marker, finished: Callable[[], None]) -> None:
        by_leader, unreachable = self._route(marker.partitions)
        sent = gather([
            self._writers[leader].write(replace(marker, partitions=tuple(partitions)))
            for leader, partitions in by_leader.items()
        ])
        sent.then(lambda outcomes: self._settle(marker, unreachable, outcomes, finished))

    def _route(
        self, partitions: Iterable[TopicPartition]
    ) -> tuple[dict[int, list[TopicPartition]], list[TopicPartition]]:
        """Partitions by leader, and those that have none now; deleted ones need no marker."""
        by_leader: dict[int, list[TopicPartition]] = {}
        unreachable: list[TopicPartition] = []
        for topic, index in partitions:
            leader = self._leader_of(topic, index)
            if leader is None:
                continue
            if leader in self._writers:
                by_leader.setdefault(leader, []).append((topic, index))
            else:
                unreachable.append((topic, index))
        return by_leader, unreachable

    def _settle(
        self,
        marker: Marker,
        unreachable: list[TopicPartition],
        outcomes: list[Outcomes],
        finished: Callable[[], None],
    ) -> None:
        left = list(unreachable)
        for outcome in outcomes:
            for where, error in outcome.items():
                if error in SUPERSEDED:
                    log.warning("%s-%d refused a marker of %s: %s", *where, marker, error.name)
                elif error is not Error.NONE:
                    left.append(where)
        if not left:
            finished()
            return
        again = replace(marker, partitions=tuple(left))
        self._clock.call_later(RETRY_MS, lambda: self._round(again, finished))
