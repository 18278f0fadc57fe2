"""Members of consumer groups on the stage: what they send, and what they make of the answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kafkalite.coordinators.groups import events
from kafkalite.coordinators.groups.consumer_group import MemberState
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    OffsetCommitRequest,
)
from tests.unit.coordinators.stage import GROUP, Stage, StageTopics

Owned = dict[bytes, list[int]]


@dataclass(slots=True)
class Consumer:
    """One incarnation of a client; it owns what it was last told, or more while it clings."""

    name: str
    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    epoch: int = 0
    topics: list[str] | None = field(default_factory=lambda: ["orders"])
    regex: str | None = None
    assignor: str | None = None
    assignment: Owned = field(default_factory=dict)
    owned: Owned = field(default_factory=dict)
    is_clinging: bool = False
    rebalance_timeout_ms: int = 60_000


def written(topics: StageTopics, partitions: dict[bytes, Any]) -> str:
    """`orders 0 1, letters 0`, or nothing."""
    parts = []
    for topic_id, indexes in partitions.items():
        view = topics.by_id(topic_id)
        name = "a lost topic" if view is None else view.name
        parts.append(f"{name} {' '.join(str(index) for index in sorted(indexes))}")
    return ", ".join(sorted(parts)) or "nothing"


def consumer(stage: Stage, name: str) -> Consumer:
    found = stage.consumers.get(name)
    if found is None:
        found = stage.consumers[name] = new_consumer(stage, name)
    return found


def new_consumer(stage: Stage, name: str) -> Consumer:
    """Another start of the program: a new member id."""
    stage.incarnations[name] = stage.incarnations.get(name, 0) + 1
    member_id = f"{name}-{stage.incarnations[name]}"
    stage.names[member_id] = name
    return Consumer(name, member_id)


def enters(stage: Stage, who: Consumer) -> None:
    who.epoch, who.owned = 0, {}
    beats(stage, who, is_full=True)


def beats(stage: Stage, who: Consumer, *, is_full: bool = False) -> None:
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id=who.member_id,
        member_epoch=who.epoch,
        instance_id=who.instance_id,
        rack_id=who.rack_id,
        rebalance_timeout_ms=who.rebalance_timeout_ms if is_full else -1,
        subscribed_topic_names=who.topics if is_full else None,
        subscribed_topic_regex=who.regex if is_full else None,
        server_assignor=who.assignor,
        topic_partitions=[
            ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in who.owned.items()
        ],
    )
    event = events.ConsumerHeartbeat(request, 1, who.name, "/127.0.0.1")
    stage.submit(event, lambda answer: _tell(stage, who, answer))


def _tell(stage: Stage, who: Consumer, answer: Any) -> None:
    if isinstance(answer, KafkaError):
        stage.tell_code(who.name, "heartbeat", answer.code)
        return
    who.epoch = answer.member_epoch
    told = f"{who.name}: epoch {answer.member_epoch}"
    if answer.assignment is not None:
        who.assignment = {
            one.topic_id: list(one.partitions) for one in answer.assignment.topic_partitions
        }
        told += f", has {written(stage.topics, who.assignment)}"
        if not who.is_clinging:
            who.owned = dict(who.assignment)
    stage.say(told)


def lets_go(who: Consumer) -> None:
    who.is_clinging = False
    who.owned = dict(who.assignment)


def commits(stage: Stage, who: Consumer, place: str, offset: int, epoch: int | None) -> None:
    topic, index = place.rsplit("-", 1)
    view = stage.topics.by_name(topic)
    assert view is not None
    request = OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=who.epoch if epoch is None else epoch,
        member_id=who.member_id,
        topics=[
            OffsetCommitRequest.Topic(
                name=topic,
                topic_id=view.topic_id,
                partitions=[
                    OffsetCommitRequest.Partition(
                        partition_index=int(index), committed_offset=offset
                    )
                ],
            )
        ],
    )

    def tell(answer: Any) -> None:
        code = answer.code if isinstance(answer, KafkaError) else Error.NONE
        stage.tell_code(who.name, f"commit of {place}", code)

    stage.submit(events.CommitOffsets(request, 9), tell)


def looks_closer(stage: Stage) -> None:
    """What ConsumerGroupDescribe says."""

    def tell(answer: Any) -> None:
        group = answer[0]
        if group.error_code != Error.NONE:
            stage.tell_code("admin", "describe", group.error_code)
            return
        stage.say(
            f"group: {group.group_state}, epoch {group.group_epoch}"
            f" of {group.assignment_epoch}, {group.assignor_name}"
        )
        for one in group.members:
            held = {part.topic_id: part.partitions for part in one.assignment.topic_partitions}
            target = {
                part.topic_id: part.partitions for part in one.target_assignment.topic_partitions
            }
            kind = "classic " if one.member_type == 0 else ""
            stage.say(
                f"group: {kind}{stage.named(one.member_id)} in epoch {one.member_epoch} has"
                f" {written(stage.topics, held)} of {written(stage.topics, target)}"
            )

    stage.submit(events.DescribeConsumerGroups([GROUP]), tell)


def describe(stage: Stage, kind: str, key: Any, value: Any) -> str:
    """A record of a consumer group, as a line of a scene."""
    if kind == "Metadata":
        return f"group epoch {value.epoch}"
    if kind == "TargetAssignmentMetadata":
        return f"target epoch {value.assignment_epoch}"
    if kind == "RegularExpression":
        return f"regex {key.regular_expression} is {' '.join(value.topics) or 'nothing'}"
    if kind == "PartitionMetadata":
        return "the topics are noted"
    who = stage.named(key.member_id)
    if kind == "MemberMetadata":
        topics = " ".join(value.subscribed_topic_names) or value.subscribed_topic_regex or "nothing"
        classic = " as a classic member" if value.classic_member_metadata else ""
        return f"member {who} subscribes to {topics}{classic}"
    if kind == "TargetAssignmentMember":
        target = {one.topic_id: one.partitions for one in value.topic_partitions}
        return f"target of {who} is {written(stage.topics, target)}"
    held = {one.topic_id: one.partitions for one in value.assigned_partitions}
    told = f"{who} in epoch {value.member_epoch} {MemberState(value.state).name.lower()}"
    told += f" has {written(stage.topics, held)}"
    given = {one.topic_id: one.partitions for one in value.partitions_pending_revocation}
    return f"{told}, gives back {written(stage.topics, given)}" if given else told
