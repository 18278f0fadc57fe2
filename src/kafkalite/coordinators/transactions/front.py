"""The way into the transaction coordinator: from an id to the shard that answers for it.

Owns the shards of `__transaction_state` on this broker, their errands, and the question that a
partition's leader asks before a transactional append (KIP-890). Knows no request of the protocol.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.ports import Partition
from kafkalite.coordinators.shards import Shards
from kafkalite.coordinators.transactions import events
from kafkalite.coordinators.transactions.errands import Errands
from kafkalite.coordinators.transactions.markers import Markers
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

# While the coordinator cannot tell, old clients are sent an error that they are sure to retry.
CANNOT_TELL = (
    Error.NETWORK_EXCEPTION,
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_COORDINATOR,
)

Refusals = dict[TopicPartition, KafkaError]


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
        peers: Mapping[int, Transactions],
    ) -> None:
        pace = Pace(STRETCH_MS, STRETCH_WORK)  # of the shards together
        self._env = env
        self._leader_of = leader_of
        self._peers = peers
        self.producer_ids = producer_ids
        self._admissions: dict[_Admission, None] = {}  # to be asked again after a pause
        self.markers = markers
        self.errands = Errands(env.clock, leader_of, _Writers(peers))
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

    def admit(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: tuple[TopicPartition, ...],
        *,
        is_adding: bool,
        knows_abortable: bool,
    ) -> Later[Refusals]:
        """May this producer write to these partitions in its transaction?

        With `is_adding` they join the transaction (transaction version 2); else they must be part
        of it. The answer names those that may not, with the error for the producer.
        """
        if not transactional_id:
            refusal = KafkaError(Error.INVALID_REQUEST)
            return Later.of(dict.fromkeys(partitions, refusal))
        admission = _Admission(
            self, transactional_id, producer_id, producer_epoch, partitions,
            is_adding, knows_abortable,
        )
        admission.ask()
        return admission.later

    def ask_coordinator(self, transactional_id: str, event: Any) -> Later[Any]:
        """Like `submit`, at whichever broker coordinates the id."""
        if self.shards.partition_count() == 0:
            return Later.of(KafkaError(Error.COORDINATOR_NOT_AVAILABLE))
        index = self.shards.partition_for(transactional_id)
        leader = self._leader_of(TRANSACTIONS_TOPIC, index)
        peer = self._peers.get(leader) if leader is not None else None
        if peer is None:
            return Later.of(KafkaError(Error.COORDINATOR_NOT_AVAILABLE))
        return peer.submit(transactional_id, event)

    def ask_again(self, admission: _Admission) -> None:
        """After a pause; a stop does not wait for it."""
        self._admissions[admission] = None

        def ask() -> None:
            if admission in self._admissions:
                del self._admissions[admission]
                admission.ask_again()

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


class _Writers(Mapping[int, Markers]):
    """Each broker's markers, by node id, as its transactions hold them."""

    def __init__(self, peers: Mapping[int, Transactions]) -> None:
        self._peers = peers

    def __getitem__(self, node_id: int) -> Markers:
        return self._peers[node_id].markers

    def __iter__(self) -> Any:
        return iter(self._peers)

    def __len__(self) -> int:
        return len(self._peers)


class _Admission:
    """One question to the coordinator, asked again while the transaction before is ending."""

    __slots__ = (
        "_deadline_ms", "_event", "_is_adding", "_knows_abortable", "_partitions", "_transactions",
        "later",
    )

    def __init__(
        self,
        transactions: Transactions,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: tuple[TopicPartition, ...],
        is_adding: bool,
        knows_abortable: bool,
    ) -> None:
        self._transactions = transactions
        self._partitions = partitions
        self._is_adding = is_adding
        self._knows_abortable = knows_abortable
        self._deadline_ms = transactions.now_ms() + RETRY_FOR_MS
        self.later: Later[Refusals] = Later()
        self._event: events.AddPartitions | events.VerifyPartitions
        if is_adding:
            self._event = events.AddPartitions(
                transactional_id, producer_id, producer_epoch, partitions, client_version=2
            )
        else:
            self._event = events.VerifyPartitions(
                transactional_id, producer_id, producer_epoch, partitions
            )

    def ask_again(self) -> None:
        """Nobody is there any more whom a mistake of ours could be told but who waits."""
        try:
            self.ask()
        except Exception:
            if self.later.is_resolved:
                raise
            log.exception("%r could not be asked again", self._event.transactional_id)
            self.give_up()

    def ask(self) -> None:
        transactional_id = self._event.transactional_id
        self._transactions.ask_coordinator(transactional_id, self._event).then(self._answered)

    def _answered(self, answer: Any) -> None:
        if isinstance(answer, KafkaError):
            is_late = self._transactions.now_ms() >= self._deadline_ms
            if answer.code == Error.CONCURRENT_TRANSACTIONS and self._is_adding and not is_late:
                self._transactions.ask_again(self)
                return
            self._refuse(answer)
        elif self._is_adding:
            self.later.resolve({})
        else:
            absent = [where for where in self._partitions if where not in answer]
            self.later.resolve({where: self._not_part() for where in absent})

    def give_up(self) -> None:
        self._refuse(KafkaError(Error.NOT_COORDINATOR))

    def _refuse(self, error: KafkaError) -> None:
        self.later.resolve(dict.fromkeys(self._partitions, self._for_producer(error)))

    def _not_part(self) -> KafkaError:
        if self._knows_abortable:
            return KafkaError(Error.TRANSACTION_ABORTABLE)
        return KafkaError(Error.INVALID_TXN_STATE, "Partition was not added to the transaction")

    def _for_producer(self, error: KafkaError) -> KafkaError:
        if error.code == Error.PRODUCER_FENCED:
            return KafkaError(Error.INVALID_PRODUCER_EPOCH)
        is_busy = error.code == Error.CONCURRENT_TRANSACTIONS and not self._is_adding
        if error.code in CANNOT_TELL or is_busy:
            return KafkaError(
                Error.NOT_ENOUGH_REPLICAS,
                "Unable to verify the partition has been added to the transaction. "
                f"Underlying error: {Error(error.code).name}",
            )
        return error


def transaction_settings(config: BrokerConfig, server_version: Callable[[], int]) -> Settings:
    """The broker's configuration, as the transaction coordinator reads it."""
    return Settings(
        config.get_int("transactional.id.expiration.ms"),
        config.get_int("transaction.remove.expired.transaction.cleanup.interval.ms"),
        server_version,
    )
