"""A transactional id: who may produce under it and where its transaction stands.

Owns the states, the table of what may follow what, and each transition as a pure function from one
value to the next. Knows no log, clock or client. Invariant: a value never changes; a transition
that the table lacks is a bug of ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any

from kafkalite.env.dataclasses import dataclass, replace
from kafkalite.protocol.errors import Error, KafkaError

NO_PRODUCER_ID = -1
NO_EPOCH = -1
NO_TIMESTAMP = -1
MAX_EPOCH = 2**15 - 1
# The largest epoch that a client is given: one more is kept for fencing it.
LAST_CLIENT_EPOCH = MAX_EPOCH - 1

TopicPartition = tuple[str, int]


class State(IntEnum):
    """Where a transaction stands, by the numbers that its log has."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """The name that Kafka's tools show and filter by."""
        return "".join(word.capitalize() for word in self.name.split("_"))


SETTLED = (State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
PREPARED = (State.PREPARE_COMMIT, State.PREPARE_ABORT)

# What each state may follow. Fencing needs no state of its own here: the bumped epoch and the abort
# go to the log as one record, so PREPARE_EPOCH_FENCE is never entered, only known from other logs.
PREVIOUS: dict[State, tuple[State, ...]] = {
    State.EMPTY: SETTLED,
    State.ONGOING: (State.ONGOING, *SETTLED),
    State.PREPARE_COMMIT: (State.ONGOING,),
    State.PREPARE_ABORT: (State.ONGOING, *SETTLED),
    State.COMPLETE_COMMIT: (State.PREPARE_COMMIT,),
    State.COMPLETE_ABORT: (State.PREPARE_ABORT,),
    State.DEAD: SETTLED,
}

STATES_BY_TITLE = {state.title: state for state in State}


@dataclass(frozen=True, slots=True)
class Transaction:
    """The value that the log holds for a transactional id."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: State
    updated_ms: int
    partitions: tuple[TopicPartition, ...] = ()
    started_ms: int = NO_TIMESTAMP
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    client_version: int = 0
    # The epoch before the last bump that a client asked for. Kafka's log has no field for it: it
    # lets a retry of InitProducerId succeed as long as this coordinator lives.
    last_producer_epoch: int = NO_EPOCH

    @property
    def is_exhausted(self) -> bool:
        return self.producer_epoch >= LAST_CLIENT_EPOCH

    @property
    def is_two_phase(self) -> bool:
        """Never aborted by time (KIP-939)."""
        return self.timeout_ms == 2**31 - 1

    @property
    def is_commit(self) -> bool:
        return self.state in (State.PREPARE_COMMIT, State.COMPLETE_COMMIT)

    def _to(self, state: State, now_ms: int, **changes: Any) -> Transaction:
        assert self.state in PREVIOUS[state], f"{self.state.name} to {state.name}"
        return replace(
            self,
            state=state,
            updated_ms=now_ms,
            **{"previous_producer_id": self.producer_id, **changes},
        )

    def initialized(
        self, timeout_ms: int, expected_epoch: int | None, now_ms: int
    ) -> Transaction:
        """A producer starts, or goes on after an error (KIP-360): the epoch rises, once."""
        epoch, last = self._next_epoch(expected_epoch)
        return self._to(
            State.EMPTY, now_ms, producer_epoch=epoch, last_producer_epoch=last,
            timeout_ms=timeout_ms, partitions=(), started_ms=NO_TIMESTAMP,
        )

    def _next_epoch(self, expected: int | None) -> tuple[int, int]:
        if expected is None:
            return self.producer_epoch + 1, NO_EPOCH
        if self.producer_epoch == NO_EPOCH or expected == self.producer_epoch:
            return self.producer_epoch + 1, self.producer_epoch
        if expected == self.last_producer_epoch:
            return self.producer_epoch, self.last_producer_epoch  # a retry of what succeeded
        raise KafkaError(Error.PRODUCER_FENCED)

    def rotated(
        self, producer_id: int, timeout_ms: int, *, is_continued: bool, now_ms: int
    ) -> Transaction:
        """The epochs of the producer id are used up: a new id takes over at epoch 0."""
        return self._to(
            State.EMPTY, now_ms, producer_id=producer_id, producer_epoch=0,
            last_producer_epoch=self.producer_epoch if is_continued else NO_EPOCH,
            timeout_ms=timeout_ms, partitions=(), started_ms=NO_TIMESTAMP,
        )

    def with_partitions(
        self, added: Iterable[TopicPartition], client_version: int, now_ms: int
    ) -> Transaction:
        return self._to(
            State.ONGOING, now_ms,
            partitions=tuple(sorted({*self.partitions, *added})),
            started_ms=now_ms if self.state in SETTLED else self.started_ms,
            client_version=client_version,
        )

    def prepared(
        self, *, is_commit: bool, client_version: int, next_producer_id: int, now_ms: int
    ) -> Transaction:
        """The outcome is decided. From transaction version 2 on the epoch rises with it."""
        epochs: dict[str, int] = {}
        if client_version >= 2:
            epochs["last_producer_epoch"] = self.producer_epoch
            epochs["producer_epoch"] = min(self.producer_epoch + 1, MAX_EPOCH)
        return self._to(
            State.PREPARE_COMMIT if is_commit else State.PREPARE_ABORT, now_ms,
            # An abort of nothing has no start of its own.
            started_ms=now_ms if self.state in SETTLED else self.started_ms,
            next_producer_id=next_producer_id, client_version=client_version, **epochs,
        )

    def fenced(self, server_version: int, next_producer_id: int, now_ms: int) -> Transaction:
        """Abort what is ongoing under an epoch that its producer does not have."""
        aborted = self.prepared(
            is_commit=False, client_version=server_version,
            next_producer_id=next_producer_id, now_ms=now_ms,
        )
        if server_version >= 2:
            return aborted
        return replace(
            aborted, producer_epoch=min(self.producer_epoch + 1, MAX_EPOCH),
            last_producer_epoch=NO_EPOCH,
        )

    def completed(self, now_ms: int) -> Transaction:
        """Every partition has its marker."""
        rotates = self.client_version >= 2 and self.next_producer_id != NO_PRODUCER_ID
        return self._to(
            State.COMPLETE_COMMIT if self.is_commit else State.COMPLETE_ABORT, now_ms,
            producer_id=self.next_producer_id if rotates else self.producer_id,
            producer_epoch=0 if rotates else self.producer_epoch,
            next_producer_id=NO_PRODUCER_ID, partitions=(),
        )
