"""What a broker tells of everything in its directory, in the protocol's own messages and records.

Owns the questions. Answers become plain values under a label each, so that those of two brokers
can be compared one by one and counted. Records are read by librdkafka, which has no line of code
in common with either broker.
"""

from __future__ import annotations

import time
from hashlib import sha256
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    ApiVersionsRequest,
    ConsumerGroupDescribeRequest,
    DescribeAclsRequest,
    DescribeClientQuotasRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    DescribeLogDirsRequest,
    DescribeProducersRequest,
    DescribeShareGroupOffsetsRequest,
    DescribeTransactionsRequest,
    DescribeUserScramCredentialsRequest,
    ListConfigResourcesRequest,
    ListGroupsRequest,
    ListOffsetsRequest,
    ListTransactionsRequest,
    MetadataRequest,
    OffsetFetchRequest,
    ShareGroupDescribeRequest,
    StreamsGroupDescribeRequest,
)
from tests.out_and_in.asking import HOST, PATIENCE_S, SHARE, Asker, worst

Answers = dict[str, Any]
Observation = dict[str, Answers]

TOPIC_KIND, BROKER_KIND, CLIENT_METRICS_KIND, GROUP_KIND = 2, 4, 16, 32
DYNAMIC_SOURCES = (1, 2, 3, 7, 8)  # of a topic, a broker, all brokers, client metrics, a group
EARLIEST, LATEST, LARGEST_TIME = -2, -1, -3
ANY = 1
INTERNAL = ("__consumer_offsets", "__share_group_state", "__transaction_state")
PREPARED = ("PrepareCommit", "PrepareAbort")


def plain(value: Any) -> Any:
    """A message as tuples and numbers; lists of structs in an order that no broker chooses."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if isinstance(value, (list, tuple)):
        return sorted((plain(one) for one in value), key=repr)
    if hasattr(value, "__slots__") and not isinstance(value, (int, str)):
        return tuple((name, plain(getattr(value, name))) for name in value.__slots__)
    return value


class Observer:
    """Asks one broker everything."""

    def __init__(self, port: int) -> None:
        self.asker = Asker(port)

    def close(self) -> None:
        self.asker.close()

    def observe(self) -> Observation:
        """What both brokers can be asked."""
        topics = self.topics()
        groups = self.groups()
        found: Observation = {
            "topics": {name: plain(topic) for name, topic in topics.items()},
            "offsets of partitions": self.offsets(topics),
            "read_uncommitted": self.records(topics, "read_uncommitted"),
            "read_committed": self.records(topics, "read_committed"),
            "producers": self.producers(topics),
            "transactions": self.transactions(),
            "groups": {name: plain(group) for name, group in groups.items()},
            "group offsets": self.committed(groups),
            "members": self.described(groups),
            "configs": self.configs(topics),
            "quotas": self.quotas(),
            "scram": self.scram(),
            "features": self.features(),
            "log dirs": self.log_dirs(),
        }
        return found

    def observe_apache_kafka(self) -> Observation:
        """What Apache Kafka alone serves."""
        share, streams = self.other_groups()
        return {"acls": self.acls(), "share groups": share, "streams groups": streams}

    # -- topics ----------------------------------------------------------------------------

    def topics(self) -> dict[str, Any]:
        """Every topic, once each of its partitions has a leader."""
        request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            topics = self.asker.ask(request, 12).topics
            partitions = [one for topic in topics for one in topic.partitions]
            if all(one.error_code == Error.NONE and one.leader_id >= 0 for one in partitions):
                break
            assert time.monotonic() < deadline, "partitions without a leader: " + repr(
                [(t.name, p.partition_index, p.error_code) for t in topics for p in t.partitions
                 if p.leader_id < 0 or p.error_code])  # fmt: skip
            time.sleep(0.05)
        for topic in topics:
            for one in topic.partitions:
                one.leader_epoch = 0  # each start is an election
        return {topic.name: topic for topic in topics}

    def offsets(self, topics: dict[str, Any]) -> Answers:
        found: Answers = {}
        for what in (EARLIEST, LATEST, LARGEST_TIME):
            for isolation in (0, 1):
                request = ListOffsetsRequest(
                    replica_id=-1, isolation_level=isolation,
                    topics=[
                        ListOffsetsRequest.Topic(name=name, partitions=[
                            ListOffsetsRequest.Partition(
                                partition_index=one.partition_index, timestamp=what
                            )
                            for one in topic.partitions
                        ])
                        for name, topic in topics.items() if name not in INTERNAL
                    ],
                )  # fmt: skip
                answer = self.asker.patiently(
                    request, 7,
                    lambda got: worst([p.error_code for t in got.topics for p in t.partitions]),
                )  # fmt: skip
                for topic in answer.topics:
                    for one in topic.partitions:
                        label = f"{topic.name}-{one.partition_index} {what} at {isolation}"
                        # Each start is an election, and of what compaction took nobody knows.
                        is_known = one.leader_epoch >= 0 and "compacted" not in topic.name
                        one.leader_epoch = 0 if is_known else -1
                        found[label] = plain(one)
        return found

    def records(self, topics: dict[str, Any], isolation: str) -> Answers:
        """A hash over everything in each partition; of a compacted one, what is latest by key."""
        counts = {
            name: len(topic.partitions) for name, topic in topics.items() if name not in INTERNAL
        }
        rows = self._read(counts, isolation)
        return {f"{name}-{index}": _digest(name, rows[name, index]) for name, index in rows}

    def values(self, topic: str, partitions: int) -> list[bytes | None]:
        """The committed values of a topic, partition by partition."""
        rows = self._read({topic: partitions}, "read_committed")
        return [row[3] for place in rows for row in rows[place]]

    def _read(self, counts: dict[str, int], isolation: str) -> dict[tuple[str, int], list[Any]]:
        """All records of topics that have so many partitions."""
        consumer = Consumer({
            "bootstrap.servers": f"{HOST}:{self.asker.port}", "group.id": "nobody",
            "isolation.level": isolation, "enable.partition.eof": True, "check.crcs": True,
            "enable.auto.commit": False, "auto.offset.reset": "earliest", "log_level": 0,
        })  # fmt: skip
        rows: dict[tuple[str, int], list[Any]] = {
            (name, index): [] for name, count in counts.items() for index in range(count)
        }
        consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in rows])
        missing = set(rows)
        deadline = time.monotonic() + PATIENCE_S
        while missing:
            assert time.monotonic() < deadline, f"not read to their ends: {sorted(missing)}"
            for message in consumer.consume(1000, 0.2):
                place = message.topic(), message.partition()
                if message.error():
                    assert message.error().name() == "_PARTITION_EOF", message.error()
                    missing.discard(place)
                else:
                    rows[place].append((
                        message.offset(), message.timestamp(), message.key(), message.value(),
                        message.headers(),
                    ))  # fmt: skip
        consumer.close()
        return rows

    def producers(self, topics: dict[str, Any]) -> Answers:
        request = DescribeProducersRequest(
            topics=[
                DescribeProducersRequest.Topic(
                    name=name, partition_indexes=[one.partition_index for one in topic.partitions]
                )
                for name, topic in topics.items() if name not in INTERNAL
            ]
        )  # fmt: skip
        found: Answers = {}
        for topic in self.asker.ask(request, 0).topics:
            for one in topic.partitions:
                if "compacted" in topic.name:
                    # After a crash what is left of a batch tells the time; its latest is gone.
                    for producer in one.active_producers:
                        producer.last_timestamp = 0
                found[f"{topic.name}-{one.partition_index}"] = plain(one)
        return found

    def log_dirs(self) -> Answers:
        """Which partition lies where."""
        answer = self.asker.ask(DescribeLogDirsRequest(topics=None), 4)
        return {
            f"{topic.name}-{one.partition_index}{' moving' if one.is_future_key else ''}":
            result.log_dir
            for result in answer.results for topic in result.topics for one in topic.partitions
        }  # fmt: skip

    # -- coordinators ----------------------------------------------------------------------

    def transactions(self) -> Answers:
        """Every transactional id, once nothing is half ended."""
        deadline = time.monotonic() + PATIENCE_S
        if not self._await_loaded("__transaction_state"):
            return {}
        while True:
            answer = self.asker.patiently(ListTransactionsRequest(), 1)
            listed = answer.transaction_states
            if not any(one.transaction_state in PREPARED for one in listed):
                break
            assert time.monotonic() < deadline, f"half ended: {listed}"
            time.sleep(0.05)
        ids = [one.transactional_id for one in listed]
        request = DescribeTransactionsRequest(transactional_ids=ids)
        described = self.asker.patiently(
            request, 0, lambda got: worst([one.error_code for one in got.transaction_states])
        )
        return {one.transactional_id: plain(one) for one in described.transaction_states}

    def groups(self) -> dict[str, Any]:
        if not self._await_loaded("__consumer_offsets"):
            return {}
        listed = self.asker.patiently(ListGroupsRequest(), 5).groups
        return {one.group_id: one for one in listed}

    def _await_loaded(self, name: str) -> bool:
        topic = self.topics().get(name)
        if topic is not None:
            self.asker.await_loaded(name, len(topic.partitions))
        return topic is not None

    def committed(self, groups: dict[str, Any]) -> Answers:
        """Stable offsets where nothing is open, and that something is where it is."""
        found: Answers = {}
        for group_id in groups:
            wanted = OffsetFetchRequest.Group(group_id=group_id, topics=None)
            for stable in (False, True):
                request = OffsetFetchRequest(groups=[wanted], require_stable=stable)
                (group,) = self.asker.patiently(
                    request, 8, _first_group
                ).groups
                found[f"{group_id}{' stable' if stable else ''}"] = plain(group)
        return found

    def described(self, groups: dict[str, Any]) -> Answers:
        found: Answers = {}
        for group_id in groups:
            both = (
                (DescribeGroupsRequest(groups=[group_id]), 6),
                (ConsumerGroupDescribeRequest(group_ids=[group_id]), 1),
            )
            for request, version in both:
                (group,) = self.asker.patiently(
                    request, version, _first_group
                ).groups
                found[f"{group_id} v{version}"] = plain(group)
        return found

    # -- administration --------------------------------------------------------------------

    def configs(self, topics: dict[str, Any]) -> Answers:
        """Everything that was set, wherever; not what is as it began."""
        listed = self.asker.ask(ListConfigResourcesRequest(), 1).config_resources
        places = {(one.resource_type, one.resource_name) for one in listed}
        places |= {(TOPIC_KIND, name) for name in topics} | {(BROKER_KIND, "1"), (BROKER_KIND, "")}
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsRequest.Resource(
                    resource_type=kind, resource_name=name, configuration_keys=None
                )
                for kind, name in sorted(places) if kind != 8
            ]
        )  # fmt: skip
        found: Answers = {}
        for result in self.asker.ask(request, 4).results:
            assert result.error_code == Error.NONE, result
            place = f"{result.resource_type} {result.resource_name!r}"
            found[place] = sorted(
                (one.name, one.value, one.config_source, one.is_sensitive)
                for one in result.configs if one.config_source in DYNAMIC_SOURCES
            )  # fmt: skip
        return found

    def quotas(self) -> Answers:
        request = DescribeClientQuotasRequest(components=[], strict=False)
        entries = self.asker.ask(request, 1).entries
        return {repr(plain(one.entity)): plain(one.values) for one in entries or []}

    def scram(self) -> Answers:
        results = self.asker.ask(DescribeUserScramCredentialsRequest(users=None), 0).results
        return {one.user: plain(one) for one in results}

    def features(self) -> Answers:
        answer = self.asker.ask(
            ApiVersionsRequest(client_software_name="out-and-in", client_software_version="1"), 3
        )
        return {one.name: one.max_version_level for one in answer.finalized_features}

    # -- what Apache Kafka alone serves ----------------------------------------------------

    def acls(self) -> Answers:
        request = DescribeAclsRequest(
            resource_type_filter=ANY, resource_name_filter=None, pattern_type_filter=ANY,
            principal_filter=None, host_filter=None, operation=ANY, permission_type=ANY,
        )  # fmt: skip
        answer = self.asker.ask(request, 3)
        return {f"{one.resource_type} {one.resource_name}": plain(one) for one in answer.resources}

    def other_groups(self) -> tuple[Answers, Answers]:
        share: Answers = {}
        streams: Answers = {}
        for group_id, listed in self.groups().items():
            if listed.group_type == "streams":
                wanted = StreamsGroupDescribeRequest(group_ids=[group_id])
                streams[group_id] = plain(self.asker.patiently(wanted, 0, _first_group).groups)
            elif listed.group_type == "share":
                request = ShareGroupDescribeRequest(group_ids=[group_id])
                share[group_id] = plain(self.asker.patiently(request, 1, _first_group).groups)
                share[f"{group_id} offsets"] = self._share_offsets(group_id)
        return share, streams

    def _share_offsets(self, group_id: str) -> Any:
        self.asker.find(f"{group_id}:AAAAAAAAAAAAAAAAAAAAAQ:0", SHARE)
        wanted = DescribeShareGroupOffsetsRequest.Group(group_id=group_id, topics=None)
        request = DescribeShareGroupOffsetsRequest(groups=[wanted])
        answer = self.asker.patiently(
            request, 0,
            lambda got: worst([
                p.error_code for g in got.groups for t in g.topics for p in t.partitions
            ]),
        )  # fmt: skip
        return plain(answer.groups)


def _first_group(answer: Any) -> int:
    return int(answer.groups[0].error_code)


def _digest(topic: str, rows: list[Any]) -> Any:
    if "compacted" in topic:
        latest = {row[2]: row for row in rows}
        rows = sorted(row for row in latest.values() if row[3] is not None)
    text = "".join(f"{row!r}\n" for row in rows)
    return len(rows), sha256(text.encode()).hexdigest()[:16]
