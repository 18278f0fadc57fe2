"""The transaction coordinator of one partition of `__transaction_state`.

Owns the transactions whose ids fall into the partition, decides what may happen to them and when
their time is up. Never writes a marker itself: it sends the errand once the decision is committed.
Invariant: the transactions are the fold of the log; a prepared one has its errand under way, unless
a leader has refused a marker of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from kafkalite.coordinators.effects import Effects, Producer, Record, Timer
from kafkalite.coordinators.events import Event
from kafkalite.coordinators.transactions import events
from kafkalite.coordinators.transactions.ending import outcome_of, refuse_while_it_ends
from kafkalite.coordinators.transactions.records import (
    OLD_VALUE_VERSION,
    VALUE_VERSION,
    UnreadableValue,
    read_key,
    read_value,
    record_of,
    tombstone_of,
)
from kafkalite.coordinators.transactions.transaction import (
    LAST_CLIENT_EPOCH,
    NO_EPOCH,
    NO_PRODUCER_ID,
    PREPARED,
    SETTLED,
    State,
    Transaction,
)
from kafkalite.env.dataclasses import dataclass, field
from kafkalite.env.slicing import Pace
from kafkalite.protocol.errors import Error, KafkaError

log = logging.getLogger(__name__)

TRANSACTION_VERSION = 2
# Ids that are looked at in each stretch of time; a tombstone costs as much as so many looks. All of
# it takes some 6 ms.
STRETCH_MS, STRETCH_WORK, TOMBSTONE_WORK = 10, 5_000, 6
_EXPIRY = "expire ids"


@dataclass(slots=True)
class Settings:
    """What a transaction shard is told of the broker's configuration."""

    id_expiration_ms: int
    expiry_interval_ms: int
    server_version: Callable[[], int]


@dataclass(slots=True)
class TransactionShard:
    """Transactions by their ids."""

    settings: Settings
    # That of all shards of the broker.
    pace: Pace = field(default_factory=lambda: Pace(STRETCH_MS, STRETCH_WORK))
    transactions: dict[str, Transaction] = field(default_factory=dict)
    # Ids whose transaction a newer broker wrote: kept in the log, and not served.
    unreadable: set[str] = field(default_factory=set)
    _is_expiry_armed: bool = False

    # --- the shard protocol -----------------------------------------------------------------

    def mark(self, event: Event[object]) -> object:
        """All but this is the fold of the log."""
        return self._is_expiry_armed

    def decide(self, event: Event[object], now_ms: int) -> Effects:
        if self.unreadable and event.subject in self.unreadable:
            raise KafkaError(Error.NOT_COORDINATOR)
        return _DECISIONS[type(event)](self, event, now_ms)

    def replay(self, record: Record) -> None:
        assert record.key is not None, "a record of __transaction_state without a key"
        if isinstance(record.decoded, Transaction):
            self.transactions[record.decoded.transactional_id] = record.decoded
            return
        transactional_id = read_key(record.key)
        if transactional_id is None:
            log.warning("skipped a record of unknown type in __transaction_state")
            return
        self.transactions.pop(transactional_id, None)
        self.unreadable.discard(transactional_id)
        if record.value is None:
            return
        try:
            self.transactions[transactional_id] = read_value(transactional_id, record.value)
        except UnreadableValue as newer:
            self.unreadable.add(transactional_id)
            log.error(
                "transactional id %r has a record that this broker cannot read (%s): it is kept"
                " and the id is not served; a newer broker wrote it and can",
                transactional_id, newer,
            )  # fmt: skip

    def replay_end_transaction(self, producer: Producer, committed: bool) -> None:
        """Nothing: this log's records are never part of a transaction themselves."""

    def loaded(self, now_ms: int) -> Effects:
        """Go on where the predecessor stopped: finish the prepared, watch the ongoing."""
        effects = Effects()
        for transaction in self.transactions.values():
            if transaction.state in PREPARED:
                effects.sends.append(events.WriteMarkers(transaction))
            elif transaction.state is State.ONGOING:
                effects.timers += _timeout(transaction, now_ms)
        if self.transactions:
            effects.timers.append(self._expiry_timer())
        return effects

    # --- decisions --------------------------------------------------------------------------

    def init_producer_id(self, event: events.InitProducerId, now_ms: int) -> Effects:
        current = self.transactions.get(event.transactional_id)
        refuse_while_it_ends(current)
        if current is not None and not _may_initialize(current, event):
            raise KafkaError(Error.PRODUCER_FENCED)
        if current is not None and current.state is State.ONGOING:
            return self._fence(event, current, now_ms, KafkaError(Error.CONCURRENT_TRANSACTIONS))
        if _lacks_producer_id(event, current is None or _must_rotate(current, event)):
            return Effects(needs=events.PRODUCER_ID)
        initialized = _initialized(current, event, now_ms)
        return Effects(
            [self._record(initialized)],
            reply=events.ProducerIdentity(initialized.producer_id, initialized.producer_epoch),
            timers=[] if self._is_expiry_armed else [self._expiry_timer()],
        )

    def add_partitions(self, event: events.AddPartitions, now_ms: int) -> Effects:
        refuse_while_it_ends(self.transactions.get(event.transactional_id))
        current = self._owned(event)
        is_ongoing = current.state is State.ONGOING
        if is_ongoing and set(event.partitions) <= set(current.partitions):
            return Effects(reply=None)
        ongoing = current.with_partitions(event.partitions, event.client_version, now_ms)
        timers = [] if is_ongoing else _timeout(ongoing, now_ms)
        return Effects([self._record(ongoing)], reply=None, timers=timers)

    def verify_partitions(self, event: events.VerifyPartitions, now_ms: int) -> Effects:
        current = self._owned(event)
        return Effects(reply=frozenset(event.partitions) & frozenset(current.partitions))

    def end_transaction(self, event: events.EndTransaction, now_ms: int) -> Effects:
        current = self.transactions.get(event.transactional_id)
        if current is None:
            raise KafkaError(Error.INVALID_PRODUCER_ID_MAPPING)
        if outcome_of(current, event).is_done_already:
            return Effects(reply=_identity_after(current, event.client_version))
        if _lacks_producer_id(event, _ends_with_epochs(current, event.client_version)):
            return Effects(needs=events.PRODUCER_ID)
        prepared = current.prepared(
            is_commit=event.is_commit,
            client_version=event.client_version,
            next_producer_id=_successor(event, current, event.client_version),
            now_ms=now_ms,
        )
        reply = _identity_after(prepared.completed(now_ms), event.client_version)
        return self._prepare(prepared, reply)

    def complete(self, event: events.MarkersWritten, now_ms: int) -> Effects:
        current = self.transactions.get(event.transactional_id)
        if current is None or current.state not in PREPARED:
            return Effects(reply=None)  # it has moved on
        prepared = current.producer_id, current.producer_epoch, current.updated_ms
        if prepared != (event.producer_id, event.producer_epoch, event.prepared_ms):
            return Effects(reply=None)  # it has come to the next one
        return Effects([self._record(current.completed(now_ms))], reply=None)

    def time_out(self, event: events.TimedOut, now_ms: int) -> Effects:
        current = self.transactions.get(event.transactional_id)
        if current is None or current.state is not State.ONGOING or current.is_two_phase:
            return Effects()
        if current.started_ms != event.started_ms:
            return Effects(reply=None, timers=_timeout(current, now_ms))  # the one before was meant
        log.info(
            "aborting the transaction of %r: open for more than %d ms",
            current.transactional_id,
            current.timeout_ms,
        )
        return self._fence(event, current, now_ms, None)

    def expire_ids(self, event: events.ExpireIds, now_ms: int) -> Effects:
        """A slice at a time, each for itself: between two of them requests are served."""
        ids = tuple(self.transactions) if event.ids is None else event.ids
        oldest_ms = now_ms - self.settings.id_expiration_ms
        expired: list[Record] = []
        self.pace.at(now_ms)
        position = event.begin
        while position < len(ids) and self.pace.left > 0:
            found = self.transactions.get(ids[position])
            position += 1
            self.pace.left -= 1
            if found is not None and found.state in SETTLED and found.updated_ms <= oldest_ms:
                expired.append(tombstone_of(found.transactional_id))
                self.pace.left -= TOMBSTONE_WORK
        if position < len(ids):
            rest = events.ExpireIds(ids, position)
            timers = [Timer(_EXPIRY, self.pace.pause_ms(now_ms), rest)]
            return Effects(expired, atomic=False, timers=timers)
        self._is_expiry_armed = len(expired) < len(self.transactions)
        timers = [self._expiry_timer()] if self._is_expiry_armed else []
        return Effects(expired, atomic=False, timers=timers)

    def describe(self, event: events.Describe, now_ms: int) -> Effects:
        current = self.transactions.get(event.transactional_id)
        if current is None:
            raise KafkaError(Error.TRANSACTIONAL_ID_NOT_FOUND)
        return Effects(reply=current)

    def list(self, event: events.List, now_ms: int) -> Effects:
        return Effects(reply=list(self.transactions.values()))

    # --- parts of decisions -----------------------------------------------------------------

    def _owned(self, event: events.AddPartitions | events.VerifyPartitions) -> Transaction:
        """The transaction, if this producer may still add to it."""
        current = self.transactions.get(event.transactional_id)
        if current is None or current.producer_id != event.producer_id:
            raise KafkaError(Error.INVALID_PRODUCER_ID_MAPPING)
        if current.producer_epoch != event.producer_epoch:
            raise KafkaError(Error.PRODUCER_FENCED)
        if current.state in PREPARED:
            raise KafkaError(Error.CONCURRENT_TRANSACTIONS)
        return current

    def _fence(
        self, event: events.MayNeedProducerId, current: Transaction, now_ms: int, reply: object
    ) -> Effects:
        version = self.settings.server_version()
        if _lacks_producer_id(event, _ends_with_epochs(current, version)):
            return Effects(needs=events.PRODUCER_ID)
        fenced = current.fenced(version, _successor(event, current, version), now_ms)
        return self._prepare(fenced, reply)

    def _prepare(self, prepared: Transaction, reply: object) -> Effects:
        """Decided, and its markers go out once that is committed."""
        return Effects(
            [self._record(prepared)],
            reply=reply,
            timers=[Timer(prepared.transactional_id, None)],
            sends=[events.WriteMarkers(prepared)],
        )

    def _record(self, transaction: Transaction) -> Record:
        """In the version that the finalized features allow."""
        is_old = self.settings.server_version() == 0
        return record_of(transaction, OLD_VALUE_VERSION if is_old else VALUE_VERSION)

    def _expiry_timer(self) -> Timer:
        self._is_expiry_armed = True
        return Timer(_EXPIRY, self.settings.expiry_interval_ms, events.ExpireIds())


def _may_initialize(current: Transaction, event: events.InitProducerId) -> bool:
    """Whether a producer that says who it was may go on under this transactional id (KIP-360)."""
    if event.expected_producer_id is None or current.producer_epoch == NO_EPOCH:
        return True
    if event.expected_producer_id == current.producer_id:
        return True
    was_exhausted = (event.expected_epoch or 0) >= LAST_CLIENT_EPOCH
    return event.expected_producer_id == current.previous_producer_id and was_exhausted


def _lacks_producer_id(event: events.MayNeedProducerId, is_needed: bool) -> bool:
    return is_needed and event.new_producer_id == NO_PRODUCER_ID


def _must_rotate(current: Transaction, event: events.InitProducerId) -> bool:
    """Whether no epoch is left to give out under the producer id."""
    return current.is_exhausted and event.expected_epoch in (None, current.producer_epoch)


def _ends_with_epochs(current: Transaction, client_version: int) -> bool:
    """Whether the epochs of the producer id end with the transaction."""
    return client_version >= TRANSACTION_VERSION and current.is_exhausted


def _successor(
    event: events.MayNeedProducerId, current: Transaction, client_version: int
) -> int:
    """The producer id to go on with after the transaction, when it is another one."""
    is_needed = _ends_with_epochs(current, client_version)
    return event.new_producer_id if is_needed else NO_PRODUCER_ID


def _initialized(
    current: Transaction | None, event: events.InitProducerId, now_ms: int
) -> Transaction:
    if current is None:
        current = Transaction(
            event.transactional_id, event.new_producer_id, NO_EPOCH, event.timeout_ms,
            State.EMPTY, now_ms,
        )
    elif _must_rotate(current, event):
        return current.rotated(
            event.new_producer_id, event.timeout_ms,
            is_continued=event.expected_epoch is not None, now_ms=now_ms,
        )
    return current.initialized(event.timeout_ms, event.expected_epoch, now_ms)


def _timeout(transaction: Transaction, now_ms: int) -> list[Timer]:
    """Its own timer, due when its time is up; none for a transaction that others coordinate.

    The wall clock says how long it was open under a predecessor; it may have been set since.
    """
    if transaction.is_two_phase:
        return []
    left_ms = transaction.started_ms + transaction.timeout_ms - now_ms
    key = transaction.transactional_id
    expiry = events.TimedOut(key, transaction.started_ms)
    return [Timer(key, min(max(0, left_ms), transaction.timeout_ms), expiry)]


def _identity_after(transaction: Transaction, client_version: int) -> events.ProducerIdentity:
    """What EndTxn tells the producer to go on with; older clients keep what they have."""
    if client_version < TRANSACTION_VERSION:
        return events.ProducerIdentity(NO_PRODUCER_ID, NO_EPOCH)
    return events.ProducerIdentity(transaction.producer_id, transaction.producer_epoch)


_DECISIONS: dict[type, Callable[[TransactionShard, Any, int], Effects]] = {
    events.InitProducerId: TransactionShard.init_producer_id,
    events.AddPartitions: TransactionShard.add_partitions,
    events.VerifyPartitions: TransactionShard.verify_partitions,
    events.EndTransaction: TransactionShard.end_transaction,
    events.MarkersWritten: TransactionShard.complete,
    events.TimedOut: TransactionShard.time_out,
    events.ExpireIds: TransactionShard.expire_ids,
    events.Describe: TransactionShard.describe,
    events.List: TransactionShard.list,
}
