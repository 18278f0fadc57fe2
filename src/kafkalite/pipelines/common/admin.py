"""The Kafka admin client that Spark's connector carries, called through the driver's JVM.

Owns the few questions that pipelines ask of a cluster besides reading and writing: topic ids, ends
of partitions, committed offsets. Anything that talks to a cluster here works with any Kafka.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from kafkalite.pipelines.common.offsets import Offsets, TopicPartition

TIMEOUT_S = 60


class ClusterError(RuntimeError):
    """The cluster refused or did not answer; the message is the client's."""


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    topic_id: str
    partitions: int


class KafkaAdmin:
    """A thin cover over `org.apache.kafka.clients.admin.Admin`."""

    def __init__(self, spark: SparkSession, client_options: Mapping[str, str]) -> None:
        assert spark.sparkContext._jvm is not None
        self._jvm: Any = spark.sparkContext._jvm
        self._gateway: Any = spark.sparkContext._gateway
        self._kafka = self._jvm.org.apache.kafka
        properties = self._jvm.java.util.Properties()
        for name, value in client_options.items():
            properties.setProperty(name, value)
        with _told():
            self._admin = self._kafka.clients.admin.AdminClient.create(properties)

    def __enter__(self) -> "KafkaAdmin":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._admin.close()

    def topic_names(self) -> list[str]:
        """All but the internal ones."""
        return sorted(self._get(self._admin.listTopics().names()))

    def topics(self, names: Iterable[str]) -> dict[str, Topic]:
        """Those of these topics that exist."""
        found = {}
        futures = self._admin.describeTopics(self._list(names)).topicNameValues()
        for name in list(futures):
            try:
                about = self._get(futures[name])
            except ClusterError as refused:
                if "UnknownTopicOrPartition" not in str(refused):
                    raise
                continue
            found[name] = Topic(name, str(about.topicId().toString()), about.partitions().size())
        return found

    def create_topic(self, name: str, partitions: int, configs: Mapping[str, str]) -> None:
        optional = self._jvm.java.util.Optional
        new = self._kafka.clients.admin.NewTopic(name, optional.of(partitions), optional.empty())
        new.configs(self._map(configs))
        self._get(self._admin.createTopics(self._list([new])).all())

    def starts(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return self._list_offsets(partitions, self._kafka.clients.admin.OffsetSpec.earliest())

    def ends(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return self._list_offsets(partitions, self._kafka.clients.admin.OffsetSpec.latest())

    def all_partitions(self, names: Iterable[str]) -> list[TopicPartition]:
        return [
            (topic.name, partition)
            for topic in self.topics(names).values()
            for partition in range(topic.partitions)
        ]

    def groups(self) -> list[str]:
        listings = self._get(self._admin.listConsumerGroups().all())
        return sorted(listing.groupId() for listing in listings.toArray())

    def committed(self, group: str) -> Offsets:
        futures = self._admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata()
        found = self._get(futures)
        return {
            (entry.getKey().topic(), entry.getKey().partition()): entry.getValue().offset()
            for entry in found.entrySet()
            if entry.getValue() is not None
        }

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """As an empty group commits: no member, no generation."""
        new = self._jvm.java.util.HashMap()
        for (topic, partition), offset in offsets.items():
            key = self._kafka.common.TopicPartition(topic, partition)
            new.put(key, self._kafka.clients.consumer.OffsetAndMetadata(offset))
        self._get(self._admin.alterConsumerGroupOffsets(group, new).all())

    def bytes_per_offset(self, partitions: Iterable[TopicPartition]) -> float | None:
        """What a record takes on the brokers' disks, compressed as it is; None when unknown."""
        wanted = list(partitions)
        ends, starts = self.ends(wanted), self.starts(wanted)
        spanned = sum(ends[each] - starts[each] for each in wanted)
        sizes = self._sizes()
        known = sum(sizes.get(each, 0) for each in wanted)
        return known / spanned if spanned and known else None

    def _sizes(self) -> dict[TopicPartition, int]:
        """The largest replica of each partition."""
        nodes = self._get(self._admin.describeCluster().nodes())
        brokers = self._jvm.java.util.ArrayList()
        for node in nodes.toArray():
            brokers.add(node.id())
        try:
            by_broker = self._get(self._admin.describeLogDirs(brokers).allDescriptions())
        except ClusterError:
            # Needs the cluster's Describe permission, which a reader seldom has.
            return {}
        sizes: dict[TopicPartition, int] = {}
        for folders in by_broker.values():
            for folder in folders.values():
                for entry in folder.replicaInfos().entrySet():
                    key = (entry.getKey().topic(), entry.getKey().partition())
                    sizes[key] = max(sizes.get(key, 0), entry.getValue().size())
        return sizes

    def _list_offsets(self, partitions: Iterable[TopicPartition], spec: Any) -> Offsets:
        asked = self._jvm.java.util.HashMap()
        for topic, partition in partitions:
            asked.put(self._kafka.common.TopicPartition(topic, partition), spec)
        found = self._get(self._admin.listOffsets(asked).all())
        return {
            (entry.getKey().topic(), entry.getKey().partition()): entry.getValue().offset()
            for entry in found.entrySet()
        }

    def _get(self, future: Any) -> Any:
        with _told():
            return future.get(TIMEOUT_S, self._jvm.java.util.concurrent.TimeUnit.SECONDS)

    def _list(self, items: Iterable[Any]) -> Any:
        new = self._jvm.java.util.ArrayList()
        for item in items:
            new.add(item)
        return new

    def _map(self, items: Mapping[str, str]) -> Any:
        new = self._jvm.java.util.HashMap()
        for name, value in items.items():
            new.put(name, value)
        return new


@contextmanager
def _told() -> Iterator[None]:
    """The Java client's own words, without the Java stack."""
    try:
        yield
    except Py4JJavaError as error:
        cause = error.java_exception.getCause() or error.java_exception
        raise ClusterError(str(cause.toString())) from None
