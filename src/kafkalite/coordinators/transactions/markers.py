"""Markers: the control records that end a transaction in each of its partitions.

Owns the writing of markers to partitions that this broker leads, once for each time it is asked.
Never decides about a transaction, and never tries again. Invariant: each partition has one outcome.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Protocol

from kafkalite.coordinators.appending import append_marker
from kafkalite.coordinators.effects import Producer
from kafkalite.coordinators.transactions.transaction import TopicPartition
from kafkalite.env.clock import Clock
from kafkalite.env.dataclasses import dataclass
from kafkalite.env.later import Later
from kafkalite.env.slicing import Slices, Steps
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.replication.partition import Partition
from kafkalite.replication.partitions import Partitions

log = logging.getLogger(__name__)

OFFSETS_TOPIC = "__consumer_offsets"
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
    ) -> Later[KafkaError | None]: ...


@dataclass(slots=True)
class Markers:
    """Writes markers to the partitions of this broker."""

    clock: Clock
    slices: Slices
    partitions: Partitions
    offsets: Offsets

    def write(self, marker: Marker) -> Later[Outcomes]:
        """What became of each partition, once all that was written is committed."""
        return self.write_all([marker]).map(lambda outcomes: outcomes[0])

    def write_all(self, markers: list[Marker]) -> Later[list[Outcomes]]:
        """The same for several, one after the other, and a slice per turn of the loop."""
        return self.slices.later(self._written(markers)).then_ask(Later.all)

    def _written(self, markers: list[Marker]) -> Steps[list[Later[Outcomes]]]:
        written: list[Later[Outcomes]] = []
        for marker in markers:
            errors: list[Later[Error]] = []
            for where in marker.partitions:
                errors.append(self._write_safely(marker, where))
                yield
            written.append(Later.all(errors).map(partial(_by_partition, marker)))
        return written

    def _write_safely(self, marker: Marker, where: TopicPartition) -> Later[Error]:
        """What fails by a mistake of ours is tried again, and holds up no other partition."""
        try:
            return self._write(marker, where)
        except Exception:
            log.exception("a marker for %s-%d failed", *where)
            return Later.of(Error.UNKNOWN_SERVER_ERROR)

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
        return partition.when_committed(end_offset).map(
            lambda error: Error.NONE if error is None else Error(error.code)
        )

    def _end_offsets(self, marker: Marker, index: int) -> Later[Error]:
        def outcome(error: KafkaError | None) -> Error:
            code = Error.NONE if error is None else Error(error.code)
            return Error.NOT_LEADER_OR_FOLLOWER if code in NOT_READY else code

        return self.offsets.end_transaction(
            index, marker.producer, marker.coordinator_epoch, marker.is_commit,
            marker.transaction_version,
        ).map(outcome)


def _by_partition(marker: Marker, errors: list[Error]) -> Outcomes:
    return dict(zip(marker.partitions, errors, strict=True))
