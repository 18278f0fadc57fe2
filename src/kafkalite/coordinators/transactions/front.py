"""The way into the transaction coordinator: from an id to the shard that answers for it.

Owns the shards of `__transaction_state` on this broker, their errands, and the question that a
partition's leader asks before a transactional append (KIP-890). Knows no request of the protocol.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.ports import Partition
from kafkalite.coordinators.shards import Shards
from kafkalite.coordinators.transactions import events
from kafkalite.coordinators.transactions.errands import Errands
from kafkalite.coordinators.transactions.markers import Marker, Markers, Outcomes
from kafkalite.coordinators.transactions.peer import Admission, Peer, Refusals
from kafkalite.coordinators.transactions.producer_ids import ProducerIds
from kafkalite.coordinators.transactions.shard import (
    STRETCH_MS,
    STRETCH_WORK,
    Settings,
    TransactionShard,
)
from kafkalite.env import Env
from kafkalite.env.later import Later
from kafkalite.env.slicing import Pace
from kafkalite.protocol.errors import Error, KafkaError

TRANSACTIONS_TOPIC = "__transaction_state"
RETRY_MS = 20
RETRY_FOR_MS = 100

# While the coordinator cannot tell, old clients are sent an error that they are sure to retry.
CANNOT_TELL = (
    Error.NETWORK_EXCEPTION,
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_COORDINATOR,
)

log = logging.getLogger(__name__)


class Transactions:
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
        self._env = env
        self._leader_of = leader_of
        self._peer_of = peer_of
        self.producer_ids = producer_ids
        self._admissions: dict[_Asking, None] = {}  # to be asked again after a pause
        self.markers = markers
        self.errands = Errands(env.clock, leader_of, peer_of)
        self.shards = Shards(
            env, TRANSACTIONS_TOPIC, partition_count,
            lambda _partition: TransactionShard(settings, pace), self._deliver, supply=self._supply,
        )

    def gained(self, index: int, partition: Partition) -> None:
        self.shards.gained(index, partition)

    def lost(self, index: int) -> None:
        self.shards.lost(index)

    def stop(self) -> None:
        """Ends what is under way: nobody is asked again."""
        self.errands.stop()
        self.producer_ids.stop()
        admissions, self._admissions = self._admissions, {}
        for admission in admissions:
            admission.give_up()

    def submit(self, transactional_id: str, event: Any) -> Later[Any]:
        """The shard's answer, or a KafkaError."""
        return self.shards.submit(transactional_id, event)

    def list(self) -> Later[list[Any]]:
        return self.shards.submit_all(events.List)

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
        if self.shards.partition_count() == 0:
            return None
        index = self.shards.partition_for(transactional_id)
        leader = self._leader_of(TRANSACTIONS_TOPIC, index)
        return None if leader is None else self._peer_of(leader)

    # --- as other brokers, and this one, ask it ---------------------------------------------------

    def admit(self, admission: Admission) -> Later[Refusals]:
        who = admission.transactional_id, admission.producer_id, admission.producer_epoch
        event: events.AddPartitions | events.VerifyPartitions
        if admission.is_adding:
            event = events.AddPartitions(*who, admission.partitions, client_version=2)
        else:
            event = events.VerifyPartitions(*who, admission.partitions)
        return self.submit(admission.transactional_id, event).map(partial(_refusals, admission))

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
        self._env.clock.call_later(RETRY_MS, callback)

    def now_ms(self) -> int:
        return self._env.clock.monotonic_ms()

    def _supply(self, need: Any, event: Any) -> Later[Any]:
        assert need is events.PRODUCER_ID, need
        return self.producer_ids.take().map(
            lambda taken: taken
            if isinstance(taken, KafkaError)
            else replace(event, new_producer_id=taken)
        )

    def _deliver(self, index: int, sent: events.WriteMarkers) -> None:
        runtime, transaction = self.shards.runtimes[index], sent.transaction
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
            return KafkaError(Error.INVALID_PRODUCER_EPOCH)
        is_adding = self._admission.is_adding
        if error.code == Error.TRANSACTION_ABORTABLE and not self._knows_abortable:
            return KafkaError(Error.INVALID_TXN_STATE, "Partition was not added to the transaction")
        is_busy = error.code == Error.CONCURRENT_TRANSACTIONS and not is_adding
        if error.code in CANNOT_TELL or is_busy:
            return KafkaError(
                Error.NOT_ENOUGH_REPLICAS,
                "Unable to verify the partition has been added to the transaction. "
                f"Underlying error: {Error(error.code).name}",
            )
        return error


def _refusals(admission: Admission, answer: Any) -> Refusals:
    """What a shard's answer means for each partition."""
    if isinstance(answer, KafkaError):
        return dict.fromkeys(admission.partitions, answer)
    if admission.is_adding:
        return {}
    absent = [where for where in admission.partitions if where not in answer]
    return {where: KafkaError(Error.TRANSACTION_ABORTABLE) for where in absent}


def transaction_settings(config: BrokerConfig, server_version: Callable[[], int]) -> Settings:
    """The broker's configuration, as the transaction coordinator reads it."""
    return Settings(
        config.get_int("transactional.id.expiration.ms"),
        config.get_int("transaction.remove.expired.transaction.cleanup.interval.ms"),
        server_version,
    )
