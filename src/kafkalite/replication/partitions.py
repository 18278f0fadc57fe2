"""The replicas on this broker, by topic name and by topic id, opened and closed as metadata says.

Owns the map from names to partitions and nothing about their contents. Invariant: a partition is
in the map exactly while its log is open.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.replication.partition import Idle, Partition
from kafkalite.replication.traffic import Traffics


class Partitions:
    """Every partition that this broker has a replica of."""

    def __init__(self, node_id: int, traffics: Traffics | None = None) -> None:
        """traffics: where what goes through their topics is to be counted."""
        self.node_id = node_id
        self.traffics = traffics
        self._by_name: dict[tuple[str, int], Partition] = {}
        self._names: dict[bytes, str] = {}
        # Ours by the cluster's metadata, but no log of theirs could be opened.
        self.offline: set[tuple[str, int]] = set()
        # Topics that are deleted and whose partitions are still to be closed: served no more.
        self._closing: set[bytes] = set()

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def topic_name(self, topic_id: bytes) -> str | None:
        return None if topic_id in self._closing else self._names.get(topic_id)

    def get(self, topic: str, index: int) -> Partition | None:
        """The partition, if it is served."""
        partition = self._by_name.get((topic, index))
        if self._closing and partition is not None and partition.topic_id in self._closing:
            return None
        return partition

    def held(self, topic: str, index: int) -> Partition | None:
        """The partition, also when it is only to be closed."""
        return self._by_name.get((topic, index))

    def find(self, topic: str, index: int) -> Partition:
        """The partition, or the error that a client expects for a missing one."""
        partition = self.get(topic, index)
        if partition is None:
            is_offline = (topic, index) in self.offline
            raise KafkaError(
                Error.KAFKA_STORAGE_ERROR if is_offline else Error.UNKNOWN_TOPIC_OR_PARTITION
            )
        return partition

    def add(self, partition: Partition) -> None:
        self._by_name[partition.topic, partition.index] = partition
        if self.traffics is not None:
            partition.traffic = self.traffics.of(partition.topic_id, partition.topic)
        self._names[partition.topic_id] = partition.topic
        self.offline.discard((partition.topic, partition.index))

    def remove(self, topic: str, index: int) -> Partition | None:
        """Take a partition out of service; those who wait on it are told, or look again."""
        partition = self._by_name.pop((topic, index), None)
        if partition is None:
            return None
        partition.role = Idle(partition.leader_epoch)
        partition.give_up(KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION))
        return partition

    def close_topic(self, topic_id: bytes) -> None:
        """Serves nothing of a topic any more, also what is opened late, before its partitions are
        closed one by one."""
        self._closing.add(topic_id)

    def forget_topic(self, topic_id: bytes) -> None:
        self._names.pop(topic_id, None)
        self._closing.discard(topic_id)
        if self.traffics is not None:
            self.traffics.forget(topic_id)
