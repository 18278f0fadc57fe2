"""How the replicas of this broker are kept in sync with those of others.

Owns a fetcher for each broker that leads something which is followed here, what leaders ask of the
controller, and the look now and then at followers that lag. Which role a partition has is the
metadata's to say. Invariant: a partition is copied by the fetcher of the broker that it follows,
and by no other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeAlias, TypeVar

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster.alter_partition import AlterPartition as AlterPartitions
from kafkalite.coordinators.cluster.alter_partition import Outcomes, Place, WantedIsr
from kafkalite.coordinators.cluster.changes import Changes
from kafkalite.coordinators.cluster.controller import Controller
from kafkalite.coordinators.cluster.metadata import Metadata
from kafkalite.coordinators.cluster.states import PartitionState
from kafkalite.env import Env
from kafkalite.env.clock import Timer
from kafkalite.env.slicing import Steps, Work
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.replication.acting import lead
from kafkalite.replication.fetcher import Fetcher, Way
from kafkalite.replication.fetching import FetchSettings
from kafkalite.replication.follower import Follower
from kafkalite.replication.leader import NO_EPOCH, Altered, AlterPartition, Leader, Neighbours
from kafkalite.replication.partition import Partition
from kafkalite.replication.partitions import Partitions
from kafkalite.replication.throttle import FOLLOWER, Throttle

logger = logging.getLogger(__name__)

RETRY_MS = 50  # until the controller is asked again that could not be
# Partitions; of those that hear what the controller says, whom many may wait for.
LOOKED_AT_PER_STEP, TOLD_PER_STEP = 64, 16

T = TypeVar("T")
Wanted: TypeAlias = "dict[Partition, AlterPartition]"


class Replicating:
    """Of one broker."""

    def __init__(
        self,
        env: Env,
        config: BrokerConfig,
        partitions: Partitions,
        metadata: Metadata,
        controller: Controller,
        way_to: Callable[[int, int], Way],
    ) -> None:
        """`way_to` gives one to another broker, on which it has so many milliseconds to answer."""
        self._env, self._partitions = env, partitions
        self._metadata, self._controller, self._way_to = metadata, controller, way_to
        self._node_id = partitions.node_id
        self.neighbours = Neighbours(
            max_lag_ms=config.get_int("replica.lag.time.max.ms"),
            fetch_backoff_ms=config.get_int("replica.fetch.backoff.ms"),
        )
        self._settings = FetchSettings(
            max_bytes=config.get_int("replica.fetch.max.bytes"),
            min_bytes=config.get_int("replica.fetch.min.bytes"),
            response_max_bytes=config.get_int("replica.fetch.response.max.bytes"),
            wait_max_ms=config.get_int("replica.fetch.wait.max.ms"),
        )
        self._throttle = Throttle(config, env.clock, FOLLOWER)
        self._timeout_ms = config.get_int("replica.socket.timeout.ms")
        self._fetchers: dict[int, Fetcher] = {}
        self._following: dict[Partition, int] = {}  # and whom
        self._wanted: Wanted = {}  # of the controller
        self._timer: Timer | None = None
        self._is_stopped = False

    # --- life -------------------------------------------------------------------------------------

    def start(self) -> None:
        """Before any role is taken up."""
        self._take_brokers()
        self._metadata.subscribe(self._changed, self._brokers_changed)
        self._look_later()

    def stop(self) -> None:
        """Nothing is copied any more, and the controller is asked nothing."""
        self._is_stopped = True
        self._metadata.unsubscribe(self._changed)
        if self._timer is not None:
            self._timer.cancel()
        for fetcher in self._fetchers.values():
            fetcher.stop()
        self._env.slices.drop(self)

    def role_changed(self, partition: Partition) -> None:
        """It has the role that the metadata says, or a new epoch of it."""
        role = partition.role
        if not isinstance(role, Follower):
            self.gone(partition)
            return
        if self._following.get(partition) != role.leader_id:
            self.gone(partition)
            self._following[partition] = role.leader_id
        # Its leader is asked when it has heard of the change, too, if it is of this process.
        applied = self._metadata.when_applied(self._metadata.offset)
        applied.then(lambda _: self._copy(partition, role.leader_id))

    def gone(self, partition: Partition) -> None:
        """It is not followed here any more."""
        followed = self._following.pop(partition, None)
        fetcher = None if followed is None else self._fetchers.get(followed)
        if fetcher is not None:
            fetcher.remove(partition)

    def _copy(self, partition: Partition, leader_id: int) -> None:
        if self._is_stopped or self._following.get(partition) != leader_id:
            return
        fetcher = self._fetchers.get(leader_id)
        if fetcher is None:
            way = self._way_to(leader_id, self._timeout_ms)
            fetcher = self._fetchers[leader_id] = Fetcher(
                self._env, way, self._node_id, self._own_epoch, self._settings, self._throttle
            )
        fetcher.add(partition)

    # --- the others -------------------------------------------------------------------------------

    def _own_epoch(self) -> int:
        broker = self._metadata.image.brokers.get(self._node_id)
        return NO_EPOCH if broker is None else broker.epoch

    def _brokers_changed(self, changes: Changes) -> None:
        """In the turn in which the image changes: nobody joins who is not up any more."""
        if changes.brokers:
            self._take_brokers()

    def _take_brokers(self) -> None:
        brokers = self._metadata.image.brokers.values()
        up = [each for each in brokers if not each.is_fenced]
        self.neighbours.epochs = {each.broker_id: each.epoch for each in up}
        self.neighbours.stopping = {each.broker_id for each in up if each.in_controlled_shutdown}

    def _changed(self, changes: Changes) -> None:
        for broker_id in changes.brokers:
            fetcher = self._fetchers.get(broker_id)
            if fetcher is not None and broker_id in self.neighbours.epochs:
                fetcher.leader_is_back()
        if changes.brokers:  # who is not up holds back nothing that does not need it
            self._begin(self._settle_all(), lambda _: None)

    def _settle_all(self) -> Steps[None]:
        for count, partition in enumerate(list(self._partitions), 1):
            if isinstance(partition.role, Leader) and partition.role.followers:
                partition.settle()
                partition.wake()
            if count % LOOKED_AT_PER_STEP == 0:
                yield

    # --- in-sync replicas -------------------------------------------------------------------------

    def _look_later(self) -> None:
        delay_ms = max(1, self.neighbours.max_lag_ms // 2)
        self._timer = self._env.clock.call_later(delay_ms, self._look)

    def _look(self) -> None:
        self._begin(self._look_at_all(), lambda _: None)
        self._look_later()

    def _look_at_all(self) -> Steps[None]:
        for count, partition in enumerate(list(self._partitions), 1):
            leader = partition.role
            if isinstance(leader, Leader) and leader.followers:
                moment = partition.moment(self._env.clock.monotonic_ms())
                self.ask(partition, lead(partition, leader.time_passed(moment)))
            if count % LOOKED_AT_PER_STEP == 0:
                yield

    def ask(self, partition: Partition, wanted: Iterable[AlterPartition]) -> None:
        """Asks the controller for other in-sync replicas."""
        for each in wanted:
            names = [broker_id for broker_id, _ in each.isr]
            logger.info("%s-%d asks for %s in sync", partition.topic, partition.index, names)
            self._ask(partition, each)

    def _ask(self, partition: Partition, wanted: AlterPartition) -> None:
        """Together with what others want in this turn."""
        if not self._wanted:
            self._env.clock.call_later(0, self._ask_all)
        self._wanted[partition] = wanted

    def _ask_all(self) -> None:
        wanted, self._wanted = self._wanted, {}
        if not self._is_stopped:
            self._begin(self._chosen(wanted), partial(self._submit, wanted))

    def _begin(self, steps: Steps[T], done: Callable[[T], None]) -> None:
        self._env.slices.begin(Work(steps, done, owner=self))

    def _chosen(self, wanted: Wanted) -> Steps[dict[Place, WantedIsr]]:
        """What is still to be asked for."""
        asked: dict[Place, WantedIsr] = {}
        for count, (partition, one) in enumerate(wanted.items(), 1):
            if isinstance(partition.role, Leader) and partition.role.pending is one:
                asked[partition.topic_id, partition.index] = _isr_of(one)
            if count % LOOKED_AT_PER_STEP == 0:
                yield
        return asked

    def _submit(self, wanted: Wanted, asked: dict[Place, WantedIsr]) -> None:
        if asked:
            event = AlterPartitions(self._node_id, self._own_epoch(), asked)
            self._controller.submit(event).then(partial(self._answered, wanted))

    def _answered(self, wanted: Wanted, answer: Outcomes | KafkaError) -> None:
        if not self._is_stopped:
            self._begin(self._take(wanted, answer), lambda _: None)

    def _take(self, wanted: Wanted, answer: Outcomes | KafkaError) -> Steps[None]:
        for count, (partition, one) in enumerate(wanted.items(), 1):
            leader = partition.role
            if isinstance(leader, Leader):
                outcome = _outcome(answer, (partition.topic_id, partition.index))
                moment = partition.moment(self._env.clock.monotonic_ms())
                if isinstance(outcome, Altered) and leader.pending is one:
                    self.neighbours.altered(len(leader.isr), len(outcome.isr))
                for again in lead(partition, leader.altered(one, outcome, moment)):
                    self._env.clock.call_later(RETRY_MS, partial(self._ask, partition, again))
            if count % TOLD_PER_STEP == 0:
                yield


def _isr_of(wanted: AlterPartition) -> WantedIsr:
    return WantedIsr(wanted.leader_epoch, wanted.partition_epoch, wanted.isr)


def _outcome(answer: Outcomes | KafkaError, place: tuple[bytes, int]) -> Altered | Error:
    if isinstance(answer, KafkaError):
        return Error(answer.code)
    found = answer.get(place, Error.UNKNOWN_SERVER_ERROR)
    if isinstance(found, PartitionState):
        return Altered(found.leader_epoch, found.partition_epoch, found.isr)
    return found
