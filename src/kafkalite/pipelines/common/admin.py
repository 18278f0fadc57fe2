"""The Kafka admin client that Spark's connector carries, called through the driver's JVM.

Owns the few questions that pipelines ask of a cluster besides reading and writing: topic ids, ends
of partitions, committed offsets. Anything that talks to a cluster here works with any Kafka.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

from kafkalite.pipelines.common.causes import cause_of, cure_of
from kafkalite.pipelines.common.offsets import Offsets, TopicPartition
from kafkalite.pipelines.common.outcomes import PipelineError

TIMEOUT_S = 60


_OF_THE_TOPIC = "DYNAMIC_TOPIC_CONFIG"


class ClusterError(PipelineError):
    """The cluster refused or did not answer; the message is its address and the client's words."""


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    topic_id: str
    partitions: int


# Settings of a topic that say what is kept of it; they go to a copy even where the topic has them
# from its broker, whose copy may be on a broker that has others.
DECISIVE = ("cleanup.policy", "retention.ms", "retention.bytes", "max.message.bytes")


class KafkaAdmin:
    """A thin cover over `org.apache.kafka.clients.admin.Admin`."""

    def __init__(self, spark: SparkSession, client_options: Mapping[str, str]) -> None:
        assert spark.sparkContext._jvm is not None
        self._jvm: Any = spark.sparkContext._jvm
        self._gateway: Any = spark.sparkContext._gateway
        self._kafka = self._jvm.org.apache.kafka
        self._address = client_options.get("bootstrap.servers", "")
        level = client_options.get("isolation.level", "read_uncommitted").upper()
        with self._told():
            self._isolation = self._kafka.common.IsolationLevel.valueOf(level)
        properties = self._jvm.java.util.Properties()
        for name, value in client_options.items():
            properties.setProperty(name, value)
        with self._told():
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

    def matching(self, pattern: str) -> list[str]:
        return self.fitting(pattern, self.topic_names())

    def fitting(self, pattern: str, names: Iterable[str]) -> list[str]:
        """Names in which Spark's source finds the pattern: in Java's dialect, and anywhere."""
        try:
            compiled = self._jvm.java.util.regex.Pattern.compile(pattern)
        except (Py4JJavaError, IllegalArgumentException) as error:
            said = cause_of(str(error))
            raise ValueError(f"the pattern {pattern!r} is none of Java's: {said}") from None
        return [name for name in names if compiled.matcher(name).find()]

    def cluster_id(self) -> str:
        return str(self._get(self._admin.describeCluster().clusterId()))

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

    def add_partitions(self, name: str, count: int) -> None:
        more = self._kafka.clients.admin.NewPartitions.increaseTo(count)
        self._get(self._admin.createPartitions(self._map({name: more})).all())

    def settings(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        """Of each topic what was set for it, and the decisive settings wherever they are from."""
        kind = self._kafka.common.config.ConfigResource.Type.TOPIC
        asked = [self._kafka.common.config.ConfigResource(kind, name) for name in names]
        found = self._get(self._admin.describeConfigs(self._list(asked)).all())
        return {
            resource.name(): {
                entry.name(): entry.value()
                for entry in found[resource].entries().toArray()
                if entry.value() is not None
                and (entry.name() in DECISIVE or entry.source().name() == _OF_THE_TOPIC)
            }
            for resource in asked
        }

    def alter_settings(self, name: str, configs: Mapping[str, str]) -> None:
        admin = self._kafka.clients.admin
        kind = self._kafka.common.config.ConfigResource.Type.TOPIC
        operations = self._jvm.java.util.ArrayList()
        for key, value in configs.items():
            entry = admin.ConfigEntry(key, value)
            operations.add(admin.AlterConfigOp(entry, admin.AlterConfigOp.OpType.SET))
        asked = self._jvm.java.util.HashMap()
        asked.put(self._kafka.common.config.ConfigResource(kind, name), operations)
        self._get(self._admin.incrementalAlterConfigs(asked).all())

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
        options = self._kafka.clients.admin.ListOffsetsOptions(self._isolation)
        found = self._get(self._admin.listOffsets(asked, options).all())
        return {
            (entry.getKey().topic(), entry.getKey().partition()): entry.getValue().offset()
            for entry in found.entrySet()
        }

    def _get(self, future: Any) -> Any:
        with self._told():
            return future.get(TIMEOUT_S, self._jvm.java.util.concurrent.TimeUnit.SECONDS)

    def _list(self, items: Iterable[Any]) -> Any:
        new = self._jvm.java.util.ArrayList()
        for item in items:
            new.add(item)
        return new

    def _map(self, items: Mapping[str, Any]) -> Any:
        new = self._jvm.java.util.HashMap()
        for name, value in items.items():
            new.put(name, value)
        return new

    @contextmanager
    def _told(self) -> Iterator[None]:
        """The Java client's own words and the address, without the Java stack."""
        try:
            yield
        except Py4JJavaError as error:
            cause = error.java_exception.getCause() or error.java_exception
            said = str(cause.toString())
            raise ClusterError(f"{self._address}: {said}{cure_of(said)}") from None
