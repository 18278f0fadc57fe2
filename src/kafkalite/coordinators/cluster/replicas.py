"""The replicas of one broker, kept as the metadata says: opened, closed, given roles and settings.

Owns the way from the image to `Partitions` and logs. Changes come as the cluster's subscriber, so a
topic is there on every path when the reply to its creation goes out, and gone when that to its
deletion does. Invariant: this broker has a partition open exactly while the image gives it a
replica and the replica's disk works.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Protocol

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster.cluster import Cluster
from kafkalite.coordinators.cluster.image import BROKER, TOPIC, Changes, PartitionState, Topic
from kafkalite.coordinators.cluster.log_configs import log_config
from kafkalite.log.config import LogConfig
from kafkalite.log.manager import LogManager
from kafkalite.log.partition_log import PartitionLog
from kafkalite.protocol.errors import KafkaError
from kafkalite.replication.partition import Leadership, Partition
from kafkalite.replication.partitions import Partitions

logger = logging.getLogger(__name__)


class Coordinator(Protocol):
    """Who keeps its state in a topic of Kafka's own, a shard for each partition led here."""

    def gained(self, index: int, partition: Partition) -> None: ...

    def lost(self, index: int) -> None: ...


class Replicas:
    """What one broker holds of the cluster."""

    def __init__(
        self,
        cluster: Cluster,
        config: BrokerConfig,
        partitions: Partitions,
        logs: LogManager,
        coordinators: Mapping[str, Coordinator] | None = None,
    ) -> None:
        self.coordinators = coordinators or {}
        self.cluster = cluster
        self.config = config
        self.partitions = partitions
        self.logs = logs
        self.node_id = partitions.node_id

    def start(self) -> None:
        """Opens every replica that the image gives this broker, and follows changes from here on.

        Logs without a topic in the image are what a deletion left behind, or what lost its
        metadata: nobody can tell, so they are set aside and not removed.
        """
        for topic in self.cluster.image.topics.values():
            for state in topic.partitions.values():
                self._follow(topic, state)
        for log in self.logs.logs:
            known = self.cluster.image.partition(log.topic, log.partition)
            if known is None or self.node_id not in known.replicas:
                self.logs.set_aside(log)
        self.cluster.subscribe(self.changed)

    def stop(self) -> None:
        """Follows no more changes."""
        self.cluster.unsubscribe(self.changed)

    def config_of(self, topic: str) -> LogConfig:
        """The settings of a topic's logs, as they now are."""
        overrides = self.cluster.image.config(TOPIC, topic)
        return log_config(self.config, overrides) if overrides else self.config.derived(_plain)

    def changed(self, changes: Changes) -> None:
        """Brings this broker's replicas to what the metadata now says."""
        for topic in changes.deleted.values():
            self._delete(topic)
        for topic_id, index in changes.partitions:
            found = self.cluster.image.by_id.get(topic_id)
            if found is not None:
                self._follow(found, found.partitions[index])
        if changes.configs:
            self._take_settings(changes)

    # --- one partition ----------------------------------------------------------------------------

    def _follow(self, topic: Topic, state: PartitionState) -> None:
        partition = self.partitions.get(topic.name, state.index)
        if self.node_id not in state.replicas:
            if partition is not None:
                self._close(topic.name, state.index)
        elif partition is None:
            self._open(topic, state)
        elif state.partition_epoch > partition.leadership.partition_epoch:
            self._lead(partition, state)

    def _open(self, topic: Topic, state: PartitionState) -> None:
        try:
            log = self._log_of(topic, state)
        except KafkaError as error:
            logger.error("%s-%d is offline: %s", topic.name, state.index, error)
            self.partitions.offline.add((topic.name, state.index))
            return
        log.config = self.config_of(topic.name)
        partition = Partition(topic.name, state.index, topic.topic_id, self.node_id, log)
        self.partitions.add(partition)
        self._lead(partition, state)

    def _log_of(self, topic: Topic, state: PartitionState) -> PartitionLog:
        """The log that is there, or a new one in the directory that was chosen for it."""
        directory_id = dict(zip(state.replicas, state.directories, strict=False)).get(self.node_id)
        path = next(
            (each.path for each in self.logs.directories if each.directory_id == directory_id),
            None,
        )
        settings = self.config_of(topic.name)
        return self.logs.create(
            topic.name, state.index, topic.topic_id, settings, directory=path
        )

    def _lead(self, partition: Partition, state: PartitionState) -> None:
        was_epoch = partition.leader_epoch if partition.is_leader else None
        partition.leadership = leadership_of(state)
        is_new_epoch = partition.is_leader and was_epoch != partition.leader_epoch
        if is_new_epoch:
            self._hold(partition.log)
            partition.begin_epoch()
        coordinator = self.coordinators.get(partition.topic)
        if coordinator is not None and is_new_epoch:
            coordinator.gained(partition.index, partition)
        elif coordinator is not None and was_epoch is not None and not partition.is_leader:
            coordinator.lost(partition.index)
        partition.wake()

    def _hold(self, log: PartitionLog) -> None:
        """No record is acknowledged before the topic and the epoch that it belongs to last."""
        if not log.is_durable_on_append:
            log.durability.hold()
            self.cluster.once_durable(log.durability.release)

    def _close(self, topic: str, index: int) -> None:
        """Nothing of ours any more: out of service at once, its files a while later."""
        coordinator = self.coordinators.get(topic)
        if coordinator is not None:
            coordinator.lost(index)
        self.partitions.remove(topic, index)
        self.logs.delete(topic, index, self.cluster.once_durable)

    def _delete(self, topic: Topic) -> None:
        for index in topic.partitions:
            partition = self.partitions.get(topic.name, index)
            if partition is not None and partition.topic_id == topic.topic_id:
                self._close(topic.name, index)
            self.partitions.offline.discard((topic.name, index))
        self.partitions.forget_topic(topic.topic_id)

    # --- settings ---------------------------------------------------------------------------------

    def _take_settings(self, changes: Changes) -> None:
        own = (BROKER, str(self.node_id))
        if own in changes.configs or (BROKER, "") in changes.configs:
            self.cluster.apply_dynamic_config(self.config, self.node_id)
            topics = {partition.topic for partition in self.partitions}
        else:
            topics = {name for kind, name in changes.configs if kind == TOPIC}
        for name in sorted(topics):
            found = self.cluster.image.topics.get(name)
            if found is None:
                continue
            settings = self.config_of(name)
            for index in found.partitions:
                partition = self.partitions.get(name, index)
                if partition is not None:
                    partition.log.config = settings


def _plain(config: BrokerConfig) -> LogConfig:
    """The settings of every topic that has none of its own."""
    return log_config(config, {})


def leadership_of(state: PartitionState) -> Leadership:
    """What a partition is told of its role."""
    return Leadership(
        state.leader,
        state.leader_epoch,
        state.partition_epoch,
        list(state.replicas),
        list(state.isr),
    )
