"""The way into the transaction coordinator: from an id to the shard that answers for it.

Owns the shards of `__transaction_state` on this broker, their errands, and the question that a
partition's leader asks before a transactional append (KIP-890). Knows no request of the protocol.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.events import Event
from kafkalite.coordinators.shards import Shards
from kafkalite.coordinators.transactions import events
from kafkalite.coordinators.transactions.marker_delivery import Errands
from kafkalite.coordinators.transactions.markers import Marker, Markers, Outcomes
from kafkalite.coordinators.transactions.peer import Admission, Peer, Refusals
from kafkalite.coordinators.transactions.producer_ids import ProducerIds
from kafkalite.coordinators.transactions.shard import (
    STRETCH_MS,
    STRETCH_WORK,
    Settings,
    TransactionShard,
)
from kafkalite.coordinators.transactions.transaction import TopicPartition
from kafkalite.env import Env
from kafkalite.env.later import Later
from kafkalite.env.slicing import Pace
from kafkalite.protocol.errors import Error, KafkaError

TRANSACTIONS_TOPIC = "__transaction_state"
RETRY_MS = 20
RETRY_FOR_MS = 100
# Told, never raised: one of each is for all partitions.
FENCED = KafkaError(Error.INVALID_PRODUCER_EPOCH)
NOT_ADDED = KafkaError(Error.INVALID_TXN_STATE, "Partition was not added to the transaction")

log = logging.getLogger(__name__)


class Transactions(Shards):
    """The transaction coordinator of one broker."""

    def __init__(
        self,
        env: Env,
        settings: Settings,
        *,
        producer_ids: ProducerIds,
        partition_count: Callable[[], int],
        leader_of: Callable[[str, int], int | None],
        markers: Markers,
        peer_of: Callable[[int], Peer | None],
    ) -> None:
        pace = Pace(STRETCH_MS, STRETCH_WORK)  # of the shards together
        super().__init__(
            env, TRANSACTIONS_TOPIC, partition_count, lambda: TransactionShard(settings, pace),
            deliver=self._deliver, supply=self._supply,
        )  # fmt: skip
        self._leader_of = leader_of
        self._peer_of = peer_of
        self.producer_ids = producer_ids
        self._admissions: dict[_Asking, None] = {}  # to be asked again after a pause
        self.markers = markers
        self.errands = Errands(env.clock, leader_of, peer_of)

    def stop(self) -> None:
        """Ends what is under way: nobody is asked again."""
        self.errands.stop()
        self.producer_ids.stop()
        admissions, self._admissions = self._admissions, {}
        for admission in admissions:
            admission.give_up()

    def ask(self, admission: Admission, *, knows_abortable: bool) -> Later[Refusals]:
        """Asks whichever broker coordinates the transaction; the answer names the partitions that
        the producer may not write to, with the error that it is told."""
        if not admission.transactional_id:
            refusal = KafkaError(Error.INVALID_REQUEST)
            return Later.of(dict.fromkeys(admission.partitions, refusal))
        asking = _Asking(self, admission, knows_abortable)
        asking.ask()
        return asking.later

    def coordinator_of(self, transactional_id: str) -> Peer | None:
        """The broker that answers for a transactional id, if there is one now."""
        if self.partition_count() == 0:
            return None
        index = self.partition_for(transactional_id)
        leader = self._leader_of(TRANSACTIONS_TOPIC, index)
        return None if leader is None else self._peer_of(leader)

    # --- as other brokers, and this one, ask it ---------------------------------------------------

    def admit(self, admission: Admission) -> Later[Refusals]:
        who = admission.transactional_id, admission.producer_id, admission.producer_epoch
        if admission.is_adding:
            adding = events.AddPartitions(*who, admission.partitions, client_version=2)
            return self.submit(adding.transactional_id, adding).map(partial(_unadded, admission))
        asking = events.VerifyPartitions(*who, admission.partitions)
        return self.submit(asking.transactional_id, asking).map(partial(_absent, admission))

    def write_markers(self, marker: Marker) -> Later[Outcomes]:
        return self.markers.write(marker)

    # --- asking again -----------------------------------------------------------------------------

    def ask_again(self, asking: _Asking) -> None:
        """After a pause; a stop does not wait for it."""
        self._admissions[asking] = None

        def ask() -> None:
            if asking in self._admissions:
                del self._admissions[asking]
                asking.ask_again()

        self.retry(ask)

    def retry(self, callback: Callable[[], None]) -> None:
        self.env.clock.call_later(RETRY_MS, callback)

    def now_ms(self) -> int:
        return self.env.clock.monotonic_ms()

    def _supply(
        self, need: object, event: Event[object]
    ) -> Later[Event[object] | KafkaError]:
        assert need is events.PRODUCER_ID, need
        assert isinstance(event, events.MayNeedProducerId), event

        def complete(taken: int | KafkaError) -> Event[object] | KafkaError:
            if isinstance(taken, KafkaError):
                return taken
            return replace(event, new_producer_id=taken)

        return self.producer_ids.take().map(complete)

    def _deliver(self, index: int, sent: object) -> None:
        assert isinstance(sent, events.WriteMarkers), sent
        runtime, transaction = self.runtimes[index], sent.transaction
        shard = runtime.shard
        written = events.MarkersWritten(
            transaction.transactional_id, transaction.producer_id, transaction.producer_epoch,
            transaction.updated_ms,
        )
        self.errands.run(
            transaction, runtime.partition.leader_epoch,
            is_wanted=lambda: runtime.shard is shard, report=lambda: runtime.submit(written),
        )


class _Asking:
    """One question to the coordinator, asked again while the transaction before is ending."""

    __slots__ = ("_admission", "_deadline_ms", "_knows_abortable", "_transactions", "later")

    def __init__(
        self, transactions: Transactions, admission: Admission, knows_abortable: bool
    ) -> None:
        self._transactions = transactions
        self._admission = admission
        self._knows_abortable = knows_abortable
        self._deadline_ms = transactions.now_ms() + RETRY_FOR_MS
        self.later: Later[Refusals] = Later()

    def ask_again(self) -> None:
        """Nobody is there any more whom a mistake of ours could be told but who waits."""
        try:
            self.ask()
        except Exception as error:
            if self.later.is_resolved:
                raise
            self._mistaken(error)

    def _mistaken(self, error: Exception) -> None:
        log.error("%r could not be asked", self._admission.transactional_id, exc_info=error)
        self.give_up()

    def ask(self) -> None:
        coordinator = self._transactions.coordinator_of(self._admission.transactional_id)
        if coordinator is None:
            self._refuse_all(Error.COORDINATOR_NOT_AVAILABLE)
        else:
            coordinator.admit(self._admission).then(self._answered, self._mistaken)

    def _answered(self, refusals: Refusals) -> None:
        is_late = self._transactions.now_ms() >= self._deadline_ms
        is_busy = any(one.code == Error.CONCURRENT_TRANSACTIONS for one in refusals.values())
        if is_busy and self._admission.is_adding and not is_late:
            self._transactions.ask_again(self)
            return
        self.later.resolve({where: self._told(one) for where, one in refusals.items()})

    def give_up(self) -> None:
        self._refuse_all(Error.NOT_COORDINATOR)

    def _refuse_all(self, code: Error) -> None:
        refusal = self._told(KafkaError(code))
        self.later.resolve(dict.fromkeys(self._admission.partitions, refusal))

    def _told(self, error: KafkaError) -> KafkaError:
        """What the producer is told of a refusal."""
        if error.code == Error.PRODUCER_FENCED:
            return FENCED
        if error.code == Error.TRANSACTION_ABORTABLE and not self._knows_abortable:
            return NOT_ADDED
        return error


def _unadded(admission: Admission, refusal: KafkaError | None) -> Refusals:
    return {} if refusal is None else dict.fromkeys(admission.partitions, refusal)


def _absent(
    admission: Admission, present: frozenset[TopicPartition] | KafkaError
) -> Refusals:
    if isinstance(present, KafkaError):
        return _unadded(admission, present)
    absent = [where for where in admission.partitions if where not in present]
    return {where: KafkaError(Error.TRANSACTION_ABORTABLE) for where in absent}


def transaction_settings(config: BrokerConfig, server_version: Callable[[], int]) -> Settings:
    """The broker's configuration, as the transaction coordinator reads it."""
    return Settings(
        config.get_int("transactional.id.expiration.ms"),
        config.get_int("transaction.remove.expired.transaction.cleanup.interval.ms"),
        server_version,
    )
