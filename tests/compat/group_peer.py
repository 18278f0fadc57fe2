"""Members of groups by hand: each request with the version and the numbers a test chooses.

A member has a connection of its own, so its join or sync may wait while others speak. Answers are
error codes and what came with them, so that a test compares values.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from bench.raw_client import RawClient, decode_reply, frame_of, make_topic
from kafkalite.protocol import codec, messages
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    IncrementalAlterConfigsRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    ListGroupsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from tests.compat.brokers import Broker

PATIENCE_S = 20
NOT_READY = (
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_COORDINATOR,
)
GROUP_RESOURCE = 32
SESSION_MS = 6_000  # the least that both brokers take

Partitions = Mapping[str, list[int]]


def response_class(request: Any) -> Any:
    return getattr(messages, type(request).__name__.removesuffix("Request") + "Response")


def subscription(topics: list[str], owned: Partitions | None = None) -> bytes:
    message = ConsumerProtocolSubscription(
        topics=topics,
        owned_partitions=[
            ConsumerProtocolSubscription.OwnedPartition(topic=topic, partitions=indexes)
            for topic, indexes in (owned or {}).items()
        ],
    )
    return b"\0\1" + codec.encode(message, 1)


def assignment(partitions: Partitions) -> bytes:
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.AssignedPartition(topic=topic, partitions=indexes)
            for topic, indexes in partitions.items()
        ]
    )
    return b"\0\1" + codec.encode(message, 1)


def read_assignment(data: bytes) -> dict[str, list[int]]:
    if not data:
        return {}
    message, _ = codec.decode_prefix(ConsumerProtocolAssignment, 1, data, 2)
    return {one.topic: sorted(one.partitions) for one in message.assigned_partitions}


@dataclass(slots=True)
class GroupPeer:
    """Everything about one group that is nobody's membership."""

    broker: Broker
    group_id: str
    client: RawClient = field(init=False)
    members: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.client = RawClient(self.broker.host, self.broker.port)
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=[self.group_id])
        self.patiently(lambda: Error(self.ask(request, 4).coordinators[0].error_code))
        # Found is not loaded: a group that does not exist is only told by one that is.
        probe = HeartbeatRequest(group_id=self.group_id, generation_id=0, member_id="probe")
        self.patiently(lambda: Error(self.ask(probe, 4).error_code))
        self.patiently(lambda: self.fetch("probe", 0)[0])

    def close(self) -> None:
        self.client.close()
        for member in self.members:
            member.client.close()

    def patiently(self, ask: Callable[[], Error]) -> Error:
        deadline = time.monotonic() + PATIENCE_S
        while (code := ask()) in NOT_READY and time.monotonic() < deadline:
            time.sleep(0.02)
        return code

    def ask(self, request: Any, version: int) -> Any:
        return self.client.call(request, version, response_class(request))

    def topic(self, name: str, partitions: int = 4) -> str:
        """It keeps records of any age: retention passes over the shared brokers now and then."""
        make_topic(self.client, name, partitions, retention_ms="-1")
        return name

    def known_topic(self, name: str) -> str:
        """One of four partitions, which the group coordinator knows, too."""
        self.topic(name)
        if not self.broker.is_kafkalite:
            time.sleep(1)  # its coordinator hears of a topic some time after everyone else
        return name

    def topic_id(self, name: str) -> bytes:
        request = MetadataRequest(topics=[MetadataRequest.Topic(name=name)])
        found: bytes = self.ask(request, 12).topics[0].topic_id
        return found

    def classic(self, **options: Any) -> ClassicPeer:
        member = ClassicPeer(self, RawClient(self.broker.host, self.broker.port), **options)
        self.members.append(member)
        return member

    def consumer(self, name: str, **options: Any) -> ConsumerPeer:
        client = RawClient(self.broker.host, self.broker.port)
        member = ConsumerPeer(self, client, name, **options)
        self.members.append(member)
        return member

    # -- offsets and administration ----------------------------------------------------------

    def commit(
        self,
        topic: str,
        index: int,
        offset: int,
        member_id: str = "",
        epoch: int = -1,
        instance_id: str | None = None,
        metadata: str = "",
        version: int = 9,
    ) -> Error:
        partition = OffsetCommitRequest.Partition(
            partition_index=index, committed_offset=offset, committed_metadata=metadata
        )
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=epoch,
            member_id=member_id,
            group_instance_id=instance_id,
            topics=[OffsetCommitRequest.Topic(name=topic, partitions=[partition])],
        )
        return Error(self.ask(request, version).topics[0].partitions[0].error_code)

    def fetch(
        self, topic: str, index: int, member_id: str | None = None, epoch: int = -1
    ) -> tuple[Error, int, str]:
        wanted = OffsetFetchRequest.GroupTopic(name=topic, partition_indexes=[index])
        group = OffsetFetchRequest.Group(
            group_id=self.group_id, member_id=member_id, member_epoch=epoch, topics=[wanted]
        )
        found = self.ask(OffsetFetchRequest(groups=[group]), 9).groups[0]
        if found.error_code:
            return Error(found.error_code), -1, ""
        one = found.topics[0].partitions[0]
        return Error(one.error_code), one.committed_offset, one.metadata

    def delete_offset(self, topic: str, index: int) -> Error:
        partition = OffsetDeleteRequest.Partition(partition_index=index)
        wanted = OffsetDeleteRequest.Topic(name=topic, partitions=[partition])
        answer = self.ask(OffsetDeleteRequest(group_id=self.group_id, topics=[wanted]), 0)
        return Error(answer.error_code or answer.topics[0].partitions[0].error_code)

    def configure(self, name: str, value: str | None) -> None:
        """Sets or unsets a setting of the group."""
        kinds = IncrementalAlterConfigsRequest
        config = kinds.Config(name=name, config_operation=value is None, value=value)
        resource = kinds.Resource(
            resource_type=GROUP_RESOURCE, resource_name=self.group_id, configs=[config]
        )
        answer = self.ask(kinds(resources=[resource]), 1)
        assert answer.responses[0].error_code == Error.NONE, answer

    def delete(self) -> Error:
        answer = self.ask(DeleteGroupsRequest(groups_names=[self.group_id]), 2)
        return Error(answer.results[0].error_code)

    def listed(self, states: list[str] | None = None, types: list[str] | None = None) -> Any:
        """State and type of this group as it is listed, or None."""
        request = ListGroupsRequest(states_filter=states or [], types_filter=types or [])
        for group in self.ask(request, 5).groups:
            if group.group_id == self.group_id:
                return group.group_state, group.group_type, group.protocol_type
        return None

    def describe(self, version: int = 6) -> Any:
        return self.ask(DescribeGroupsRequest(groups=[self.group_id]), version).groups[0]

    def describe_consumers(self) -> Any:
        request = ConsumerGroupDescribeRequest(group_ids=[self.group_id])
        return self.ask(request, 1).groups[0]


@dataclass(slots=True)
class ClassicPeer:
    """A classic member and what it remembers."""

    group: GroupPeer
    client: RawClient
    instance_id: str | None = None
    member_id: str = ""
    generation: int = -1
    protocols: dict[str, bytes] = field(default_factory=lambda: {"range": b"me"})
    protocol_type: str = "consumer"
    session_ms: int = SESSION_MS
    rebalance_ms: int = 10_000

    def send(self, request: Any, version: int) -> None:
        self.client.send(frame_of(request, version, 0))

    def receive(self, request_class: Any, version: int) -> Any:
        answer_class = response_class(request_class())
        return decode_reply(self.client.receive(), answer_class, version)

    def ask(self, request: Any, version: int) -> Any:
        return self.client.call(request, version, response_class(request))

    def send_join(self, version: int = 9) -> None:
        request = JoinGroupRequest(
            group_id=self.group.group_id,
            session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=self.rebalance_ms,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=self.protocol_type,
            protocols=[
                JoinGroupRequest.Protocol(name=name, metadata=metadata)
                for name, metadata in self.protocols.items()
            ],
        )
        self.send(request, version)

    def joined(self, version: int = 9) -> JoinGroupResponse:
        answer: JoinGroupResponse = self.receive(JoinGroupRequest, version)
        if answer.error_code == Error.NONE:
            self.member_id, self.generation = answer.member_id, answer.generation_id
        return answer

    def begin_join(self) -> None:
        """Gets an id when it needs one, and sends the join that waits."""
        if self.instance_id is None and not self.member_id:
            self.send_join()
            answer = self.joined()
            assert answer.error_code == Error.MEMBER_ID_REQUIRED, answer
            self.member_id = answer.member_id
        self.send_join()

    def join(self) -> JoinGroupResponse:
        self.begin_join()
        return self.joined()

    def send_sync(self, assignments: Mapping[str, bytes] | None = None) -> None:
        request = SyncGroupRequest(
            group_id=self.group.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=self.protocol_type,
            protocol_name=next(iter(self.protocols)),
            assignments=[
                SyncGroupRequest.Assignment(member_id=member_id, assignment=data)
                for member_id, data in (assignments or {}).items()
            ],
        )
        self.send(request, 5)

    def synced(self) -> tuple[Error, bytes]:
        answer: SyncGroupResponse = self.receive(SyncGroupRequest, 5)
        return Error(answer.error_code), bytes(answer.assignment)

    def sync(self, assignments: Mapping[str, bytes] | None = None) -> tuple[Error, bytes]:
        self.send_sync(assignments)
        return self.synced()

    def heartbeat(self) -> Error:
        request = HeartbeatRequest(
            group_id=self.group.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        return Error(self.ask(request, 4).error_code)

    def leave(self, *, by_instance: bool = False) -> Error:
        member = LeaveGroupRequest.Member(
            member_id="" if by_instance else self.member_id, group_instance_id=self.instance_id
        )
        answer = self.ask(LeaveGroupRequest(group_id=self.group.group_id, members=[member]), 5)
        return Error(answer.error_code or answer.members[0].error_code)

    def commit(self, topic: str, index: int, offset: int, generation: int | None = None) -> Error:
        epoch = self.generation if generation is None else generation
        return self.group.commit(topic, index, offset, self.member_id, epoch, self.instance_id)


@dataclass(slots=True)
class ConsumerPeer:
    """A member of a consumer group; it owns what it says it owns."""

    group: GroupPeer
    client: RawClient
    member_id: str
    topics: list[str] | None = None
    regex: str | None = None
    instance_id: str | None = None
    assignor: str | None = None
    epoch: int = 0
    heartbeat_interval_ms: int = -1
    owned: dict[bytes, list[int]] = field(default_factory=dict)

    def beat(self, epoch: int | None = None, *, is_full: bool = False) -> Error:
        """A heartbeat; what it is told to have it has from then on."""
        epoch = self.epoch if epoch is None else epoch
        is_full = is_full or epoch == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group.group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.instance_id,
            rebalance_timeout_ms=10_000 if is_full else -1,
            subscribed_topic_names=self.topics if is_full else None,
            subscribed_topic_regex=self.regex if is_full else None,
            server_assignor=self.assignor,
            topic_partitions=[
                ConsumerGroupHeartbeatRequest.TopicPartitions(
                    topic_id=topic_id, partitions=indexes
                )
                for topic_id, indexes in ({} if epoch == 0 else self.owned).items()
            ],
        )
        answer = self.client.call(request, 1, response_class(request))
        if answer.error_code == Error.NONE:
            self.epoch = answer.member_epoch
            self.heartbeat_interval_ms = answer.heartbeat_interval_ms
            if answer.assignment is not None:
                self.owned = {
                    one.topic_id: sorted(one.partitions)
                    for one in answer.assignment.topic_partitions
                }
        return Error(answer.error_code)

    @property
    def partitions(self) -> list[int]:
        return sorted(index for indexes in self.owned.values() for index in indexes)

    def commit(self, topic: str, index: int, offset: int, epoch: int | None = None) -> Error:
        epoch = self.epoch if epoch is None else epoch
        return self.group.commit(topic, index, offset, self.member_id, epoch)


@contextmanager
def group_on(broker: Broker, group_id: str) -> Iterator[GroupPeer]:
    peer = GroupPeer(broker, group_id)
    try:
        yield peer
    finally:
        peer.close()


def settle(*members: ConsumerPeer, rounds: int = 200) -> None:
    """Heartbeats in turn until every member is in the same epoch and nothing moves."""
    quiet = 0
    for _ in range(rounds):
        before = [(member.epoch, member.partitions) for member in members]
        for member in members:
            assert member.beat() == Error.NONE
        after = [(member.epoch, member.partitions) for member in members]
        quiet = quiet + 1 if before == after and len({epoch for epoch, _ in after}) == 1 else 0
        # Apache Kafka waits a second between two assignments.
        if quiet >= 3 and members[0].group.describe_consumers().group_state == "Stable":
            return
        time.sleep(0.02)
    raise AssertionError(f"they do not settle: {after}")
