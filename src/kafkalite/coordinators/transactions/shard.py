"""The transaction coordinator of one partition of `__transaction_state`.

Owns the transactions whose ids fall into the partition, decides what may happen to them and when
their time is up. Never writes a marker itself: it sends the errand once the decision is committed.
Invariant: the transactions are the fold of the log; a prepared one always has its errand under way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kafkalite.coordinators.effects import Effects, Producer, Record, Timer
from kafkalite.coordinators.transactions import events
from kafkalite.coordinators.transactions.ending import outcome_of
from kafkalite.coordinators.transactions.records import (
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
from kafkalite.protocol.errors import Error, KafkaError

log = logging.getLogger(__name__)

TRANSACTION_VERSION = 2
_EXPIRY = "expire ids"


@dataclass(slots=True)
class Settings:
    """What a transaction shard is told of the broker's configuration."""

    id_expiration_ms: int
    expiry_interval_ms: int
    server_version: Callable[[], int]


@dataclass(slots=True)
class TransactionShard:
    """Transactions by their ids. `next_producer_id` raises KafkaError when none is at hand."""

    settings: Settings
    next_producer_id: Callable[[], int]
    transactions: dict[str, Transaction] = field(default_factory=dict)
    _is_expiry_armed: bool = False

    # --- the shard protocol -----------------------------------------------------------------

    def decide(self, event: Any, now_ms: int) -> Effects:
        return _DECISIONS[type(event)](self, event, now_ms)

    def replay(self, record: Record) -> None:
        assert record.key is not None, "a record of __transaction_state without a key"
        if isinstance(record.decoded, Transaction):
            self.transactions[record.decoded.transactional_id] = record.decoded
            return
        transactional_id = read_key(record.key)
        if transactional_id is None:
            log.warning("skipped a record of unknown type in __transaction_state")
        elif record.value is None:
            self.transactions.pop(transactional_id, None)
        else:
            self.transactions[transactional_id] = read_value(transactional_id, record.value)

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
        if current is None:
            current = self._new(event, now_ms)
        elif not _may_initialize(current, event):
            raise KafkaError(Error.PRODUCER_FENCED)
        if current.state in PREPARED:
            raise KafkaError(Error.CONCURRENT_TRANSACTIONS)
        if current.state is State.ONGOING:
            return self._fence(current, now_ms, KafkaError(Error.CONCURRENT_TRANSACTIONS))
        initialized = self._initialized(current, event, now_ms)
        return Effects(
            [record_of(initialized)],
            reply=events.ProducerIdentity(initialized.producer_id, initialized.producer_epoch),
            timers=[] if self._is_expiry_armed else [self._expiry_timer()],
        )

    def add_partitions(self, event: events.AddPartitions, now_ms: int) -> Effects:
        current = self._owned(event)
        is_ongoing = current.state is State.ONGOING
        if is_ongoing and set(event.partitions) <= set(current.partitions):
            return Effects(reply=None)
        ongoing = current.with_partitions(event.partitions, event.client_version, now_ms)
        timers = [] if is_ongoing else _timeout(ongoing, now_ms)
        return Effects([record_of(ongoing)], reply=None, timers=timers)

    def verify_partitions(self, event: events.VerifyPartitions, now_ms: int) -> Effects:
        current = self._owned(event)
        return Effects(reply=frozenset(event.partitions) & frozenset(current.partitions))

    def end_transaction(self, event: events.EndTransaction, now_ms: int) -> Effects:
        current = self.transactions.get(event.transactional_id)
        if current is None:
            raise KafkaError(Error.INVALID_PRODUCER_ID_MAPPING)
        if outcome_of(current, event).is_done_already:
            return Effects(reply=_identity_after(current, event.client_version))
        prepared = current.prepared(
            is_commit=event.is_commit,
            client_version=event.client_version,
            next_producer_id=self._successor(current, event.client_version),
            now_ms=now_ms,
        )
        reply = _identity_after(prepared.completed(now_ms), event.client_version)
        return _prepare(prepared, reply)

    def send_markers(self, event: events.Prepared, now_ms: int) -> Effects:
        current = self._prepared(event)
        return Effects(sends=[events.WriteMarkers(current)] if current is not None else [])

    def complete(self, event: events.MarkersWritten, now_ms: int) -> Effects:
        current = self._prepared(event)
        if current is None:
            return Effects(reply=None)
        return Effects([record_of(current.completed(now_ms))], reply=None)

    def time_out(self, event: events.TimedOut, now_ms: int) -> Effects:
        current = self.transactions.get(event.transactional_id)
        if current is None or current.state is not State.ONGOING or current.is_two_phase:
            return Effects()
        if current.started_ms + current.timeout_ms > now_ms:
            return Effects(timers=_timeout(current, now_ms))
        log.info(
            "aborting the transaction of %r: open for more than %d ms",
            current.transactional_id, current.timeout_ms,
        )
        return self._fence(current, now_ms, None)

    def expire_ids(self, event: events.ExpireIds, now_ms: int) -> Effects:
        oldest_ms = now_ms - self.settings.id_expiration_ms
        expired = [
            tombstone_of(transaction.transactional_id)
            for transaction in self.transactions.values()
            if transaction.state in SETTLED and transaction.updated_ms <= oldest_ms
        ]
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

    def _new(self, event: events.InitProducerId, now_ms: int) -> Transaction:
        return Transaction(
            event.transactional_id, self.next_producer_id(), NO_EPOCH, event.timeout_ms,
            State.EMPTY, now_ms,
        )

    def _initialized(
        self, current: Transaction, event: events.InitProducerId, now_ms: int
    ) -> Transaction:
        expected = event.expected_epoch
        if current.is_exhausted and expected in (None, current.producer_epoch):
            return current.rotated(
                self.next_producer_id(), event.timeout_ms,
                is_continued=expected is not None, now_ms=now_ms,
            )
        return current.initialized(event.timeout_ms, expected, now_ms)

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

    def _prepared(self, event: events.Prepared | events.MarkersWritten) -> Transaction | None:
        """The transaction that the event is about, unless it has moved on."""
        current = self.transactions.get(event.transactional_id)
        if current is None or current.state not in PREPARED:
            return None
        is_same = (current.producer_id, current.producer_epoch) == (
            event.producer_id, event.producer_epoch,
        )
        return current if is_same else None

    def _successor(self, current: Transaction, client_version: int) -> int:
        """The producer id to go on with when the epochs of this one end with the transaction."""
        if client_version < TRANSACTION_VERSION or not current.is_exhausted:
            return NO_PRODUCER_ID
        return self.next_producer_id()

    def _fence(self, current: Transaction, now_ms: int, reply: Any) -> Effects:
        version = self.settings.server_version()
        fenced = current.fenced(version, self._successor(current, version), now_ms)
        return _prepare(fenced, reply)

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


def _prepare(prepared: Transaction, reply: Any) -> Effects:
    return Effects(
        [record_of(prepared)],
        reply=reply,
        timers=[Timer(prepared.transactional_id, None)],
        on_committed=events.Prepared(
            prepared.transactional_id, prepared.producer_id, prepared.producer_epoch
        ),
    )


def _timeout(transaction: Transaction, now_ms: int) -> list[Timer]:
    """Its own timer, due when its time is up; none for a transaction that others coordinate."""
    if transaction.is_two_phase:
        return []
    left_ms = max(0, transaction.started_ms + transaction.timeout_ms - now_ms)
    key = transaction.transactional_id
    return [Timer(key, left_ms, events.TimedOut(key))]


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
    events.Prepared: TransactionShard.send_markers,
    events.MarkersWritten: TransactionShard.complete,
    events.TimedOut: TransactionShard.time_out,
    events.ExpireIds: TransactionShard.expire_ids,
    events.Describe: TransactionShard.describe,
    events.List: TransactionShard.list,
}
