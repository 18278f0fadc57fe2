"""What a partition knows of its producers: sequence numbers, epochs, open transactions.

Owns the rules by which a batch of a producer with an id is accepted, recognised as one already
written, or refused, and the offsets below which every transaction is decided. It never touches a
file (see `snapshots`) and it changes only in `apply`, which is called after the batch was written.
Invariant: the window of a producer holds its last batches of one epoch, at most five, in the order
of their offsets.

Apache Kafka's snapshot keeps one batch for each producer, so after a restart it recognises a
repetition of that one only. Here a window loaded from a snapshot is marked as partial, and when a
batch comes that such a window cannot explain, `look_back` is asked once for the batches before it
(see `partition_log`): the five batches survive a crash, and a start costs nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

from kafkalite.env.dataclasses import dataclass, field
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.records.batch import MAX_SEQUENCE, BatchHeader

WINDOW_BATCHES = 5
NO_EPOCH = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1
NO_OFFSET = -1
_MAX_EPOCH = 32_767


class AppendOrigin(IntEnum):
    """Who appends: it decides what is checked."""

    CLIENT = 0
    COORDINATOR = 1
    RAFT = 2
    REPLICATION = 3


class SeenBatch(NamedTuple):
    """A batch of a producer that is in the log."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & MAX_SEQUENCE


class Marker(NamedTuple):
    """The end of a transaction, as its control record says."""

    is_commit: bool
    coordinator_epoch: int
    timestamp: int


class CompletedTransaction(NamedTuple):
    """A transaction that ended on this partition."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


@dataclass(slots=True)
class ProducerState:
    """One producer on one partition."""

    producer_id: int
    epoch: int = NO_EPOCH
    coordinator_epoch: int = -1
    last_timestamp: int = NO_TIMESTAMP
    transaction_start: int = NO_OFFSET
    batches: list[SeenBatch] = field(default_factory=list)
    is_partial: bool = False

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    def find(self, first_sequence: int, last_sequence: int) -> SeenBatch | None:
        for batch in self.batches:
            if batch.last_sequence == last_sequence and batch.first_sequence == first_sequence:
                return batch
        return None

    def enter_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.batches.clear()
            self.epoch = epoch
            self.is_partial = False

    def go_on(self, header: BatchHeader, last_offset: int) -> None:
        """Notes a batch that was found to go on, and is in the log now."""
        delta, timestamp = header.last_offset_delta, header.max_timestamp
        self.add(SeenBatch(header.base_sequence + delta, last_offset, delta, timestamp))
        self.last_timestamp = timestamp

    def add(self, batch: SeenBatch) -> None:
        if len(self.batches) >= WINDOW_BATCHES:
            del self.batches[0]
        self.batches.append(batch)


@dataclass(slots=True, eq=False)
class Verification:
    """A promise that the transaction coordinator knows of a transaction, asked for before its first
    append. One is as good as this very object."""

    epoch: int
    lowest_sequence: int
    supports_epoch_bump: bool
    started_ms: int


# In place of a verification: nobody asks for one.
WAIVED = Verification(NO_EPOCH, NO_SEQUENCE, supports_epoch_bump=False, started_ms=0)


class Unwritten(NamedTuple):
    """The batch with which a producer wanted to begin, and which its disk did not take."""

    epoch: int
    first_sequence: int
    refused_ms: int


def is_next(last_sequence: int, sequence: int) -> bool:
    return sequence == last_sequence + 1 or (sequence == 0 and last_sequence == MAX_SEQUENCE)


LookBack = Callable[[ProducerState], list[SeenBatch]]


class Producers:
    """All producers of one partition."""

    __slots__ = (
        "_undecided",
        "_unreplicated",
        "_unwritten",
        "_verifications",
        "end_offset",
        "look_back",
        "states",
    )

    def __init__(self, look_back: LookBack, end_offset: int = 0) -> None:
        self.states: dict[int, ProducerState] = {}
        self.end_offset = end_offset  # everything below is in `states`
        self.look_back = look_back
        self._undecided: dict[
            int, int
        ] = {}  # first offset of a transaction to producer id, by offset
        self._unreplicated: dict[int, int] = {}  # first to last offset of decided ones at the end
        self._verifications: dict[int, Verification] | None = None
        self._unwritten: dict[int, Unwritten] = {}  # of producers that are not in `states`

    def __len__(self) -> int:
        return len(self.states)

    # --- checking ---------------------------------------------------------------------------------

    def find_duplicate(self, header: BatchHeader) -> SeenBatch | None:
        """The same batch, if it is one of the last five of its producer."""
        state = self.states.get(header.producer_id)
        if state is None or state.epoch != header.producer_epoch or not state.batches:
            return None
        first, last = header.base_sequence, header.last_sequence
        found = state.find(first, last)
        if found is None and state.is_partial and not is_next(state.last_sequence, first):
            self._complete(state)
            found = state.find(first, last)
        return found

    def going_on(self, header: BatchHeader) -> ProducerState | None:
        """The producer of a plain batch that begins where its last one ended, in the same epoch
        and outside any transaction: what most batches are. None when there is more to be said."""
        state = self.states.get(header.producer_id)
        if (
            state is None
            or state.epoch != header.producer_epoch
            or not state.batches
            or header.base_sequence != state.batches[-1].last_sequence + 1
            or header.base_sequence + header.last_offset_delta > MAX_SEQUENCE
            or header.attributes
            or state.transaction_start != NO_OFFSET
            or self._verifications
        ):
            return None
        return state

    def _complete(self, state: ProducerState) -> None:
        """Fetches from the log what the snapshot did not keep."""
        state.is_partial = False
        room = WINDOW_BATCHES - len(state.batches)
        if room > 0:
            state.batches[:0] = self.look_back(state)[-room:]

    def check(self, header: BatchHeader, origin: AppendOrigin) -> None:
        """Refuses a data batch whose epoch or sequence is not the producer's next."""
        state = self.states.get(header.producer_id)
        if state is None:
            state = ProducerState(header.producer_id)
        if origin != AppendOrigin.REPLICATION and header.producer_epoch < state.epoch:
            raise _stale_epoch(header, state)
        if origin == AppendOrigin.CLIENT:
            self._check_sequence(header, state)
        if state.transaction_start != NO_OFFSET and not header.is_transactional:
            raise KafkaError(
                Error.INVALID_TXN_STATE,
                f"a batch outside the open transaction of producer {header.producer_id}",
            )

    def _check_sequence(self, header: BatchHeader, state: ProducerState) -> None:
        sequence = header.base_sequence
        verification = self.verification(header.producer_id)
        if verification is not None:
            is_unknown = verification.supports_epoch_bump and not state.batches and sequence != 0
            if is_unknown or sequence > verification.lowest_sequence:
                raise _out_of_order(header, verification.lowest_sequence)
        if state.epoch == NO_EPOCH:
            # Retention may have removed all that was known: any sequence is a beginning, but for
            # those behind one that was not written.
            if self._is_ahead(header):
                raise _out_of_order(header, NO_SEQUENCE)
            return
        if header.producer_epoch != state.epoch:
            if sequence != 0:
                raise _out_of_order(header, NO_SEQUENCE)
        elif not is_next(state.last_sequence, sequence):
            raise _out_of_order(header, state.last_sequence)

    def _is_ahead(self, header: BatchHeader) -> bool:
        """Whether a batch comes before the one with which its producer wanted to begin."""
        unwritten = self._unwritten.get(header.producer_id)
        return (
            unwritten is not None
            and header.producer_epoch == unwritten.epoch
            and header.base_sequence > unwritten.first_sequence
        )

    def check_marker(
        self, header: BatchHeader, marker: Marker, origin: AppendOrigin, transaction_version: int
    ) -> None:
        """Refuses the end of a transaction that is not of this producer's epoch, or of an old
        coordinator."""
        state = self.states.get(header.producer_id)
        if state is None or origin == AppendOrigin.REPLICATION:
            return
        if transaction_version >= 2:
            if header.producer_epoch <= state.epoch and not _is_marker_again(header, state):
                raise _stale_epoch(header, state)
        elif header.producer_epoch < state.epoch:
            raise _stale_epoch(header, state)
        if state.coordinator_epoch > marker.coordinator_epoch:
            raise KafkaError(
                Error.TRANSACTION_COORDINATOR_FENCED,
                f"marker of coordinator epoch {marker.coordinator_epoch} for producer"
                f" {header.producer_id}, which has seen {state.coordinator_epoch}",
            )

    # --- verification (KIP-890) -------------------------------------------------------------------

    def has_open_transaction(self, producer_id: int, epoch: int) -> bool:
        state = self.states.get(producer_id)
        return state is not None and state.transaction_start != NO_OFFSET and state.epoch == epoch

    def verification(self, producer_id: int) -> Verification | None:
        return self._verifications.get(producer_id) if self._verifications else None

    def start_verification(
        self, producer_id: int, sequence: int, epoch: int, now_ms: int, *, supports_epoch_bump: bool
    ) -> Verification | None:
        """What the first append of a transaction must bring along; None when one is open
        already."""
        state = self.states.get(producer_id)
        if state is not None and epoch < state.epoch:
            raise KafkaError(
                Error.INVALID_PRODUCER_EPOCH, f"producer {producer_id} has seen epoch {state.epoch}"
            )
        if self.has_open_transaction(producer_id, epoch):
            return None
        if self._verifications is None:
            self._verifications = {}
        found = self._verifications.get(producer_id)
        if found is None:
            found = Verification(epoch, sequence, supports_epoch_bump, now_ms)
            self._verifications[producer_id] = found
        elif epoch > found.epoch:
            found.epoch, found.lowest_sequence = epoch, sequence
        elif epoch == found.epoch:
            found.lowest_sequence = min(found.lowest_sequence, sequence)
        return found

    def take_verifications(self, other: Producers) -> None:
        """What was promised to the log that this one's takes the place of holds here, too."""
        self._verifications = other._verifications
        self._unwritten = other._unwritten

    def check_verified(self, header: BatchHeader, verification: Verification | None) -> None:
        """Refuses the first batch of a transaction that its coordinator was not asked about."""
        if verification is WAIVED:
            return
        if self.has_open_transaction(header.producer_id, header.producer_epoch):
            return
        state = self.states.get(header.producer_id)
        if state is not None and header.producer_epoch < state.epoch:
            raise _stale_epoch(header, state)
        if verification is None or self.verification(header.producer_id) is not verification:
            raise KafkaError(
                Error.INVALID_TXN_STATE, "the batch is not part of an open transaction"
            )

    def _settle_verification(self, header: BatchHeader) -> None:
        """A promise ends with the first batch of its transaction, or with the marker of the one
        before, which may come late: since version 2 that has the epoch of the next transaction."""
        assert self._verifications is not None
        found = self._verifications.get(header.producer_id)
        if found is None:
            return
        is_next_begun = found.supports_epoch_bump and header.producer_epoch == found.epoch
        if not (header.is_control and is_next_begun):
            del self._verifications[header.producer_id]

    # --- changing ---------------------------------------------------------------------------------

    def not_written(self, header: BatchHeader, now_ms: int) -> None:
        """A batch was in order, and the disk did not take it: if nothing is known of its producer,
        those that were sent behind it would be taken for a beginning, and it could never follow."""
        known = self._unwritten.get(header.producer_id)
        is_older = known is not None and header.producer_epoch < known.epoch
        if not (header.is_control or header.producer_id in self.states or is_older):
            unwritten = Unwritten(header.producer_epoch, header.base_sequence, now_ms)
            self._unwritten[header.producer_id] = unwritten

    def apply(self, header: BatchHeader, marker: Marker | None) -> CompletedTransaction | None:
        """Notes a batch that is in the log now; returns the transaction that it ended, if any."""
        state = self.states.get(header.producer_id)
        if state is None:
            state = self.states[header.producer_id] = ProducerState(header.producer_id)
            self._unwritten.pop(header.producer_id, None)
        if self._verifications and header.is_transactional:
            self._settle_verification(header)
        if header.is_control:
            return self._apply_marker(state, header, marker) if marker is not None else None
        state.enter_epoch(header.producer_epoch)
        timestamp = header.max_timestamp
        last_offset = header.last_offset
        state.add(SeenBatch(header.last_sequence, last_offset, header.last_offset_delta, timestamp))
        state.last_timestamp = timestamp
        if header.is_transactional and state.transaction_start == NO_OFFSET:
            state.transaction_start = header.base_offset
            self._undecided[header.base_offset] = header.producer_id
        return None

    def _apply_marker(
        self, state: ProducerState, header: BatchHeader, marker: Marker
    ) -> CompletedTransaction | None:
        first_offset = state.transaction_start
        state.enter_epoch(header.producer_epoch)
        state.coordinator_epoch = marker.coordinator_epoch
        state.transaction_start = NO_OFFSET
        state.last_timestamp = marker.timestamp
        if first_offset == NO_OFFSET:
            return None
        last_offset = header.base_offset
        return CompletedTransaction(
            header.producer_id, first_offset, last_offset, not marker.is_commit
        )

    def complete(self, transaction: CompletedTransaction) -> None:
        """The transaction is decided; it stays unstable until its marker is replicated."""
        self._undecided.pop(transaction.first_offset, None)
        self._unreplicated[transaction.first_offset] = transaction.last_offset

    def load(self, states: Iterable[ProducerState]) -> None:
        """Takes over those of a snapshot; they come in any order."""
        for state in states:
            self.states[state.producer_id] = state
            if state.transaction_start != NO_OFFSET:
                self._undecided[state.transaction_start] = state.producer_id
        self._undecided = dict(sorted(self._undecided.items()))

    def clear(self, end_offset: int) -> None:
        self.states.clear()
        self._undecided.clear()
        self._unreplicated.clear()
        self._unwritten.clear()
        self.end_offset = end_offset

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forgets producers that were silent for long and have no open transaction."""
        limit = now_ms - expiration_ms
        for state in list(self.states.values()):
            if state.transaction_start == NO_OFFSET and state.last_timestamp <= limit:
                del self.states[state.producer_id]
        for producer_id, unwritten in list(self._unwritten.items()):
            if unwritten.refused_ms <= limit:
                del self._unwritten[producer_id]
        if self._verifications:
            for producer_id, verification in list(self._verifications.items()):
                if verification.started_ms <= limit:
                    del self._verifications[producer_id]

    # --- what is stable ---------------------------------------------------------------------------

    @property
    def first_unstable(self) -> int | None:
        """The lowest offset of a transaction that is open, or whose end is not replicated yet."""
        undecided = next(iter(self._undecided), None)
        if not self._unreplicated:
            return undecided
        unreplicated = min(self._unreplicated)
        return unreplicated if undecided is None else min(undecided, unreplicated)

    def last_stable_after(self, transaction: CompletedTransaction) -> int:
        """The last stable offset at the moment when this transaction is decided."""
        for first_offset, producer_id in self._undecided.items():
            if producer_id != transaction.producer_id:
                return first_offset
        return transaction.last_offset + 1

    def replicated(self, high_watermark: int) -> None:
        """Transactions whose marker lies below are stable now."""
        if self._unreplicated:
            self._unreplicated = {
                first: last for first, last in self._unreplicated.items() if last >= high_watermark
            }

    def __iter__(self) -> Iterator[ProducerState]:
        return iter(self.states.values())


def _is_marker_again(header: BatchHeader, state: ProducerState) -> bool:
    """A marker that was written already comes again when its coordinator lost the answer; it
    may."""
    is_over = state.transaction_start == NO_OFFSET or header.producer_epoch == _MAX_EPOCH
    return header.producer_epoch == state.epoch and is_over


def _stale_epoch(header: BatchHeader, state: ProducerState) -> KafkaError:
    return KafkaError(
        Error.INVALID_PRODUCER_EPOCH,
        f"producer {header.producer_id} came with epoch {header.producer_epoch};"
        f" the last seen is {state.epoch}",
    )


def _out_of_order(header: BatchHeader, last_sequence: int) -> KafkaError:
    return KafkaError(
        Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"producer {header.producer_id} came with sequence {header.base_sequence};"
        f" the last seen is {last_sequence}",
    )
