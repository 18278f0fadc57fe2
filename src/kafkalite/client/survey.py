"""What a cluster is at one moment, as any Kafka tells it: brokers, topics, offsets and groups.

Owns which requests that takes: one for the metadata, and per broker the offsets of what it leads,
its log directories and the groups that it coordinates. A broker that does not answer, or does not
let this client look, leaves its part out; what is missing is told beside what was found. Changes
nothing, and creates no topic.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, islice
from typing import Any, TypeVar

from kafkalite.client.cluster import ClientFailed, Cluster
from kafkalite.coordinators.groups.consumer_protocol import read_assignment
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    ConsumerGroupDescribeRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    DescribeLogDirsRequest,
    ListGroupsRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetFetchRequest,
)

EARLIEST, LATEST = -2, -1
GROUPS_AT_ONCE = 100
TOPICS_AT_ONCE = 500
CONSUMER_TYPE = "consumer"  # of groups of the newer protocol, in lower case
OF_CONSUMERS = ("consumer", "")  # types of protocols whose members read topics
_TOPIC = 2  # of the types of resources
_CLEANUP = "cleanup.policy"

Place = tuple[str, int]  # topic and partition
T = TypeVar("T")


@dataclass(slots=True)
class Broker:
    node_id: int
    host: str
    port: int
    rack: str | None


@dataclass(slots=True)
class Partition:
    """None is what nobody told."""

    leader: int
    replicas: list[int]
    in_sync: list[int]
    begins: int | None = None
    ends: int | None = None


@dataclass(slots=True)
class Topic:
    name: str
    is_internal: bool
    partitions: dict[int, Partition]
    cleanup_policy: str | None = None


@dataclass(slots=True)
class Member:
    """Who is in a group, and which partitions are assigned to it."""

    client_id: str
    host: str
    assigned: dict[str, list[int]]


@dataclass(slots=True)
class Group:
    group_id: str
    coordinator: int
    kind: str  # classic, consumer, …; empty where brokers do not tell yet
    protocol_type: str
    protocol: str = ""  # the assignor
    state: str = ""
    members: list[Member] = field(default_factory=list)
    committed: dict[Place, int] = field(default_factory=dict)


@dataclass(slots=True)
class Survey:
    """All of it. `missing` says in a sentence each what could not be had."""

    at_ms: int
    cluster_id: str
    controller: int
    brokers: list[Broker]
    topics: dict[str, Topic]
    groups: dict[str, Group] = field(default_factory=dict)
    log_bytes: dict[tuple[int, str, int], int] = field(default_factory=dict)  # broker, partition
    missing: list[str] = field(default_factory=list)

    def end(self, place: Place) -> int | None:
        topic = self.topics.get(place[0])
        partition = None if topic is None else topic.partitions.get(place[1])
        return None if partition is None else partition.ends


def survey(
    cluster: Cluster,
    names: Collection[str] | None = None,
    *,
    with_groups: bool = True,
    with_offsets: bool = True,
    with_settings: bool = True,
    with_sizes: bool | None = None,
) -> Survey:
    """All topics or some, and with them groups, offsets, settings and sizes, which come with
    settings unless it is said. What is no topic's name is left out. ClientFailed when nobody
    answers at all."""
    topics = None if names is None else [MetadataRequest.Topic(name=name) for name in names]
    answer = cluster.ask_any(MetadataRequest(topics=topics, allow_auto_topic_creation=False))
    for each in answer.brokers:
        cluster.learn(each.node_id, (each.host, each.port))
    found = Survey(
        at_ms=int(1000 * time.time()),
        cluster_id=answer.cluster_id or "",
        controller=answer.controller_id,
        brokers=[Broker(each.node_id, each.host, each.port, each.rack) for each in answer.brokers],
        topics={
            each.name: _topic(each)
            for each in sorted(answer.topics, key=lambda each: str(each.name))
            if each.error_code == Error.NONE
        },
    )
    looking = _Looking(cluster, found)
    if with_groups:
        looking.at_groups()
    if with_offsets:
        looking.at_offsets()
    if with_settings:
        looking.at_policies()
    if with_settings if with_sizes is None else with_sizes:
        looking.at_log_dirs(topics)
    return found


def _topic(answer: Any) -> Topic:
    partitions = {
        each.partition_index: Partition(each.leader_id, each.replica_nodes, each.isr_nodes)
        for each in sorted(answer.partitions, key=lambda each: int(each.partition_index))
    }
    return Topic(answer.name, answer.is_internal, partitions)


@dataclass(slots=True)
class _Looking:
    """The questions after the first. Offsets are asked for after what was committed, so that no
    group is ahead of an end."""

    cluster: Cluster
    found: Survey

    def _ask(self, what: str, node_id: int, request: Any) -> Any | None:
        return self._had(what, partial(self.cluster.ask, node_id, request))

    def _had(self, what: str, ask: Callable[[], Any]) -> Any | None:
        try:
            answer = ask()
        except ClientFailed as failure:
            self.found.missing.append(f"{what}: {failure}")
            return None
        code = Error(getattr(answer, "error_code", Error.NONE))
        if code is not Error.NONE:
            self.found.missing.append(f"{what}: {code.name}: {code.message}")
            return None
        return answer

    # --- offsets ----------------------------------------------------------------------------------

    def at_offsets(self) -> None:
        led: dict[int, list[Place]] = {}
        for topic in self.found.topics.values():
            for index, partition in topic.partitions.items():
                if partition.leader >= 0:
                    led.setdefault(partition.leader, []).append((topic.name, index))
        for node_id, places in led.items():
            for (topic_name, index), offset in self._offsets(node_id, places, EARLIEST):
                self.found.topics[topic_name].partitions[index].begins = offset
            for (topic_name, index), offset in self._offsets(node_id, places, LATEST):
                self.found.topics[topic_name].partitions[index].ends = offset

    def _offsets(
        self, node_id: int, places: list[Place], moment: int
    ) -> Iterator[tuple[Place, int]]:
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsRequest.Topic(name=name, partitions=[
                    ListOffsetsRequest.Partition(partition_index=index, timestamp=moment)
                    for _, index in group
                ])
                for name, group in groupby(places, key=lambda place: place[0])
            ],
        )  # fmt: skip
        answer = self._ask(f"the offsets at broker {node_id}", node_id, request)
        for topic in [] if answer is None else answer.topics:
            for each in topic.partitions:
                if each.error_code == Error.NONE:
                    yield (topic.name, each.partition_index), each.offset

    # --- groups -----------------------------------------------------------------------------------

    def at_groups(self) -> None:
        for broker in self.found.brokers:
            request = ListGroupsRequest(states_filter=[], types_filter=[])
            answer = self._ask(f"the groups at broker {broker.node_id}", broker.node_id, request)
            for each in [] if answer is None else answer.groups:
                self.found.groups[each.group_id] = Group(
                    each.group_id, broker.node_id, each.group_type.lower(), each.protocol_type,
                    state=each.group_state,
                )  # fmt: skip
        for coordinator, groups in _by_coordinator(self.found.groups.values()):
            newer = [each.group_id for each in groups if each.kind == CONSUMER_TYPE]
            self._describe(coordinator, newer, ConsumerGroupDescribeRequest, "group_ids", _newer)
            older = [each.group_id for each in groups if each.kind in ("", "classic")]
            self._describe(coordinator, older, DescribeGroupsRequest, "groups", _older)
            for group in groups:
                self._look_at_commits(group)

    def _describe(
        self,
        coordinator: int,
        group_ids: list[str],
        kind: type[Any],
        field_name: str,
        fill: Callable[[Group, Any], None],
    ) -> None:
        for some in _batches(group_ids, GROUPS_AT_ONCE):
            request = kind(**{field_name: some})
            answer = self._ask(f"groups of broker {coordinator}", coordinator, request)
            for each in [] if answer is None else answer.groups:
                if each.error_code == Error.NONE:
                    fill(self.found.groups[each.group_id], each)

    def _look_at_commits(self, group: Group) -> None:
        request = OffsetFetchRequest(group_id=group.group_id, topics=None)
        answer = self._ask(f"the offsets of group {group.group_id}", group.coordinator, request)
        for topic in [] if answer is None else answer.topics:
            for each in topic.partitions:
                if each.error_code == Error.NONE and each.committed_offset >= 0:
                    group.committed[topic.name, each.partition_index] = each.committed_offset

    # --- settings and sizes -----------------------------------------------------------------------

    def at_policies(self) -> None:
        for some in _batches(self.found.topics, TOPICS_AT_ONCE):
            request = DescribeConfigsRequest(resources=[
                DescribeConfigsRequest.Resource(
                    resource_type=_TOPIC, resource_name=name, configuration_keys=[_CLEANUP]
                )
                for name in some
            ])  # fmt: skip
            answer = self._had("settings of topics", partial(self.cluster.ask_any, request))
            for each in [] if answer is None else answer.results:
                if each.error_code == Error.NONE:
                    values = {config.name: config.value for config in each.configs}
                    self.found.topics[each.resource_name].cleanup_policy = values.get(_CLEANUP)

    def at_log_dirs(self, some: list[Any] | None) -> None:
        asked = None if some is None else [
            DescribeLogDirsRequest.Topic(topic=topic.name, partitions=list(topic.partitions))
            for topic in self.found.topics.values()
        ]  # fmt: skip
        for broker in self.found.brokers:
            what = f"the log directories of broker {broker.node_id}"
            answer = self._ask(what, broker.node_id, DescribeLogDirsRequest(topics=asked))
            for each in [] if answer is None else answer.results:
                for topic in each.topics:
                    for partition in topic.partitions:
                        place = (broker.node_id, topic.name, partition.partition_index)
                        held = self.found.log_bytes.get(place, 0)
                        self.found.log_bytes[place] = held + partition.partition_size


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    left = iter(items)
    while batch := list(islice(left, size)):
        yield batch


def _by_coordinator(groups: Iterable[Group]) -> Iterator[tuple[int, list[Group]]]:
    by_node: dict[int, list[Group]] = {}
    for group in groups:
        by_node.setdefault(group.coordinator, []).append(group)
    yield from by_node.items()


def _newer(group: Group, answer: Any) -> None:
    group.state, group.protocol = answer.group_state, answer.assignor_name
    group.protocol_type = group.protocol_type or OF_CONSUMERS[0]
    group.members = [
        Member(each.client_id, each.client_host, {
            topic.topic_name: list(topic.partitions) for topic in each.assignment.topic_partitions
        })
        for each in answer.members
    ]  # fmt: skip


def _older(group: Group, answer: Any) -> None:
    group.state, group.protocol = answer.group_state, answer.protocol_data
    group.protocol_type = answer.protocol_type
    is_of_consumers = answer.protocol_type in OF_CONSUMERS
    group.members = [
        Member(each.client_id, each.client_host, _assigned(each) if is_of_consumers else {})
        for each in answer.members
    ]


def _assigned(member: Any) -> dict[str, list[int]]:
    assignment = read_assignment(bytes(member.member_assignment))
    if assignment is None:
        return {}
    return {each.topic: list(each.partitions) for each in assignment.assigned_partitions}
