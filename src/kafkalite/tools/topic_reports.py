"""Which topics there are, and what `kafka-topics --describe` tells of them."""

from __future__ import annotations

import base64
import binascii
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    ZERO_UUID,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeTopicPartitionsRequest,
    ListPartitionReassignmentsRequest,
    MetadataRequest,
)
from kafkalite.tools.asking import Asking
from kafkalite.tools.failures import Failure, illegal_argument, refused
from kafkalite.tools.java_maps import in_copied_order, in_map_order
from kafkalite.tools.options import Given

TIMEOUT_MS = 60_000
PARTITIONS_AT_ONCE = 2000
TOPIC = 2  # of the kinds of things that have settings
DEFAULT_SOURCE = 5
_LONGEST_UUID = 24  # in characters
PARTITION_REPORTS = (
    "under-replicated-partitions", "under-min-isr-partitions", "at-min-isr-partitions",
    "unavailable-partitions",
)  # fmt: skip
_AUTHORIZATION = (Error.CLUSTER_AUTHORIZATION_FAILED, Error.UNSUPPORTED_VERSION)


@dataclass(slots=True)
class Partition:
    """What is told of one partition; the replicas of a move are None while there is none."""

    topic: str
    partition: int
    leader: int
    replicas: list[int]
    isr: list[int]
    elr: list[int] | None
    last_known_elr: list[int] | None
    move: Any | None = None

    @property
    def factor(self) -> int:
        return len(self.replicas) - (len(self.move.adding_replicas) if self.move else 0)

    def line(self) -> str:
        leader = "none" if self.leader < 0 else str(self.leader)
        parts = [
            f"\tTopic: {self.topic}", f"Partition: {self.partition}", f"Leader: {leader}",
            f"Replicas: {_joined(self.replicas)}", f"Isr: {_joined(self.isr)}",
        ]  # fmt: skip
        if self.move is not None:
            parts.append(f"Adding Replicas: {_joined(self.move.adding_replicas)}")
            parts.append(f"Removing Replicas: {_joined(self.move.removing_replicas)}")
        parts.append(f"Elr: {_joined(self.elr)}")
        parts.append(f"LastKnownElr: {_joined(self.last_known_elr)}")
        return "\t".join(parts)


@dataclass(slots=True)
class Topic:
    name: str
    topic_id: bytes
    partitions: list[Partition]


def topic_filter(text: str) -> re.Pattern[str]:
    """A list of topics as Apache Kafka's tools read it: a regular expression, with commas too."""
    pattern = text.strip().replace(",", "|").replace(" ", "").strip("\"'")
    try:
        return re.compile(pattern)
    except re.error:
        message = f"{pattern} is an invalid regex."
        raise Failure("java.lang.RuntimeException", message) from None


def all_topics(asking: Asking) -> list[Any]:
    """Every topic of the metadata."""
    answer = asking.any("listTopics", MetadataRequest(topics=None, allow_auto_topic_creation=False))
    return [each for each in answer.topics if each.error_code == Error.NONE]


def topic_names(given: Given, asking: Asking) -> list[str]:
    """Those that are asked for by name."""
    text = given.one("topic")
    without_internal = given.has("exclude-internal")
    topics = all_topics(asking)
    wanted = None if text is None else topic_filter(text)
    return sorted(
        each.name
        for each in topics
        if (wanted is None or wanted.fullmatch(each.name))
        and not (each.is_internal and without_internal)
    )


def require_some(given: Given, names: Sequence[str]) -> None:
    text = given.one("topic")
    if text and not names and not given.has("if-exists"):
        raise illegal_argument(f"Topic '{text}' does not exist as expected")


def describe(given: Given, asking: Asking) -> None:
    topic_id = _topic_id(given)
    if topic_id is not None:
        topics = _of_id(given, asking, topic_id)
    else:
        names = topic_names(given, asking)
        require_some(given, names)
        limit = given.one("partition-size-limit-per-response")
        topics = described(asking, names, PARTITIONS_AT_ONCE if limit is None else limit)
    configs = _configs(asking, [topic.name for topic in topics])
    answer = asking.any("describeCluster", DescribeClusterRequest())
    living = {each.broker_id for each in answer.brokers}
    _add_moves(asking, topics)
    for topic in topics:
        _print(given, topic, configs[topic.name], living)


def _print(given: Given, topic: Topic, configs: Mapping[str, Any], living: set[int]) -> None:
    reports = [name for name in PARTITION_REPORTS if given.has(name)]
    changed = [
        f"{name}={config.value or ''}"
        for name, config in configs.items()
        if config.config_source != DEFAULT_SOURCE
    ]
    only_changed = given.has("topics-with-overrides")
    if not reports and (changed or not only_changed):
        about = "" if topic.topic_id == ZERO_UUID else f"\tTopicId: {uuid_text(topic.topic_id)}"
        print(
            f"Topic: {topic.name}{about}\tPartitionCount: {len(topic.partitions)}"
            f"\tReplicationFactor: {topic.partitions[0].factor}\tConfigs: {','.join(changed)}"
        )
    if only_changed:
        return
    least = int(configs["min.insync.replicas"].value) if "min.insync.replicas" in configs else None
    for each in topic.partitions:
        if not reports or any(_is_in(report, each, least, living) for report in reports):
            print(each.line())


def _is_in(report: str, partition: Partition, least: int | None, living: set[int]) -> bool:
    if report == "under-replicated-partitions":
        return partition.factor > len(partition.isr)
    if report == "unavailable-partitions":
        return partition.leader not in living
    if report == "under-min-isr-partitions":
        return partition.leader < 0 or (least is not None and least > len(partition.isr))
    return least is not None and least == len(partition.isr)


def _topic_id(given: Given) -> bytes | None:
    text = given.one("topic-id")
    if text is None:
        return None
    found = uuid_of(text)
    return None if found == ZERO_UUID else found


def uuid_of(text: str) -> bytes:
    if len(text) == 1:
        raise illegal_argument("Input byte[] should at least have 2 bytes for base64 bytes")
    if len(text) > _LONGEST_UUID:
        prefix = text[:_LONGEST_UUID]
        message = f"Input string with prefix `{prefix}` is too long to be decoded as a base64 UUID"
        raise illegal_argument(message)
    if wrong := re.search(r"[^A-Za-z0-9_=-]", text):
        [byte] = struct.unpack("b", wrong[0].encode("latin-1", "replace"))
        raise illegal_argument(f"Illegal base64 character {byte:x}")
    try:
        found = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        raise illegal_argument(f"Illegal base64 text: {text}") from None
    if len(found) != 16:
        raise illegal_argument(
            f"Input string `{text}` decoded as {len(found)} bytes, which is not equal to the "
            "expected 16 bytes of a base64-encoded UUID"
        )
    return found


def uuid_text(topic_id: bytes) -> str:
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")


def _of_id(given: Given, asking: Asking, topic_id: bytes) -> list[Topic]:
    """The topic of an id; the metadata tells no eligible leaders."""
    found = [each for each in all_topics(asking) if each.topic_id == topic_id]
    if not found and not given.has("if-exists"):
        text = given.one("topic-id")
        raise illegal_argument(f"TopicId '{text}' does not exist as expected")
    return [_topic(each.name, each.topic_id, each.partitions, knows_elr=False) for each in found]


def described(
    asking: Asking, names: Sequence[str], at_once: int = PARTITIONS_AT_ONCE
) -> list[Topic]:
    """Topics with their partitions, in the order in which Apache Kafka's client has them."""
    answers: dict[str, Any] = {}
    cursor = None
    while names:
        request = DescribeTopicPartitionsRequest(
            topics=[
                DescribeTopicPartitionsRequest.Topic(name=name)
                for name in names
                if cursor is None or name >= cursor.topic_name
            ],
            response_partition_limit=at_once, cursor=cursor,
        )  # fmt: skip
        answer = asking.any("describeTopicPartitions", request)
        for each in answer.topics:
            if each.error_code != Error.NONE:
                raise refused(each.error_code)
            known = answers.setdefault(each.name, each)
            if known is not each:
                known.partitions += each.partitions
        if answer.next_cursor is None:
            break
        cursor = DescribeTopicPartitionsRequest.Cursor(
            topic_name=answer.next_cursor.topic_name,
            partition_index=answer.next_cursor.partition_index,
        )
    ordered = in_map_order(in_copied_order(in_map_order(names, len(names))), len(names))
    return [
        _topic(name, answers[name].topic_id, answers[name].partitions, knows_elr=True)
        for name in ordered
        if name in answers
    ]


def _topic(name: str, topic_id: bytes, partitions: Iterable[Any], *, knows_elr: bool) -> Topic:
    found = [
        Partition(
            name, each.partition_index, each.leader_id, each.replica_nodes, each.isr_nodes,
            (each.eligible_leader_replicas or []) if knows_elr else None,
            (each.last_known_elr or []) if knows_elr else None,
        )
        for each in partitions
    ]  # fmt: skip
    return Topic(name, topic_id, sorted(found, key=lambda each: each.partition))


def _configs(asking: Asking, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """All settings of each topic, in the order in which Apache Kafka's client has them."""
    if not names:
        return {}
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsRequest.Resource(
                resource_type=TOPIC, resource_name=name, configuration_keys=None
            )
            for name in names
        ]
    )
    found = {}
    for each in asking.any("describeConfigs", request).results:
        if each.error_code != Error.NONE:
            raise refused(each.error_code, each.error_message)
        configs = {config.name: config for config in each.configs}
        found[each.resource_name] = {name: configs[name] for name in in_map_order(configs)}
    return found


def _add_moves(asking: Asking, topics: Sequence[Topic]) -> None:
    """To the partitions that are being moved."""
    request = ListPartitionReassignmentsRequest(
        topics=[
            ListPartitionReassignmentsRequest.Topic(
                name=topic.name,
                partition_indexes=[each.partition for each in topic.partitions],
            )
            for topic in topics
        ]
    )
    answer = asking.controller(
        "listPartitionReassignments", request, lambda answer: [answer.error_code]
    )
    if answer.error_code in _AUTHORIZATION:
        return
    if answer.error_code != Error.NONE:
        raise refused(answer.error_code, answer.error_message)
    moves = {
        (topic.name, each.partition_index): each
        for topic in answer.topics
        for each in topic.partitions
    }
    for topic in topics:
        for each in topic.partitions:
            each.move = moves.get((topic.name, each.partition))


def _joined(brokers: Iterable[int] | None) -> str:
    return "N/A" if brokers is None else ",".join(map(str, brokers))
