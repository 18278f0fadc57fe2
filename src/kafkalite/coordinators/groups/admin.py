"""ListGroups and DescribeGroups: what tools see of groups.

Owns nothing and changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkalite.coordinators.groups.classic_group import ClassicGroup, ClassicState
from kafkalite.coordinators.groups.consumer_group import ConsumerGroup, ConsumerMember
from kafkalite.coordinators.groups.events import (
    DescribeConsumerGroups,
    DescribeGroups,
    ListGroups,
)
from kafkalite.coordinators.groups.state import GroupsState
from kafkalite.coordinators.groups.target import preferred_assignor
from kafkalite.coordinators.groups.turn import Turn
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    ConsumerGroupDescribeResponse,
    DescribeGroupsResponse,
    ListGroupsResponse,
)

# From this version on a group that does not exist is an error; before, it is a dead group.
GROUP_ID_NOT_FOUND_SINCE = 6
CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1


def list_groups(state: GroupsState, turn: Turn, event: ListGroups) -> None:
    """The filters are in lower case; an empty filter lets everything through."""
    listed = []
    for group in state.groups.values():
        if event.states and group.state.value.lower() not in event.states:
            continue
        if event.types and group.type_name.lower() not in event.types:
            continue
        listed.append(
            ListGroupsResponse.Group(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                group_state=group.state.value,
                group_type=group.type_name,
            )
        )
    turn.reply(listed)


def describe_groups(state: GroupsState, turn: Turn, event: DescribeGroups) -> None:
    turn.reply([_describe(state, group_id, event.version) for group_id in event.group_ids])


def _describe(state: GroupsState, group_id: str, version: int) -> DescribeGroupsResponse.Group:
    group = state.classic_group(group_id)
    if group is not None:
        return _describe_classic(group)
    described = DescribeGroupsResponse.Group(group_id=group_id, group_state=ClassicState.DEAD.value)
    if version >= GROUP_ID_NOT_FOUND_SINCE:
        is_other_kind = group_id in state.groups
        what = "is not a classic group" if is_other_kind else "not found"
        described.error_code = Error.GROUP_ID_NOT_FOUND
        described.error_message = f"Group {group_id} {what}."
    return described


def _describe_classic(group: ClassicGroup) -> DescribeGroupsResponse.Group:
    is_stable = group.state is ClassicState.STABLE
    protocol = group.protocol_name or ""
    return DescribeGroupsResponse.Group(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol if is_stable else "",
        members=[
            DescribeGroupsResponse.Member(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                # Whose metadata would it be, while the members still vote for a protocol?
                member_metadata=member.metadata(protocol) if is_stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )


# -- consumer groups -------------------------------------------------------------------------


def describe_consumer_groups(state: GroupsState, turn: Turn, event: DescribeConsumerGroups) -> None:
    turn.reply([_describe_consumer(state, group_id) for group_id in event.group_ids])


def _describe_consumer(state: GroupsState, group_id: str) -> ConsumerGroupDescribeResponse.Group:
    group = state.consumer_group(group_id)
    if group is None:
        what = "is not a consumer group" if group_id in state.groups else "not found"
        return ConsumerGroupDescribeResponse.Group(
            group_id=group_id,
            error_code=Error.GROUP_ID_NOT_FOUND,
            error_message=f"Group {group_id} {what}.",
        )
    assignors = state.settings.consumer_assignors
    return ConsumerGroupDescribeResponse.Group(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=preferred_assignor(group.members.values(), assignors),
        members=[_described_member(state, group, member) for member in group.members.values()],
    )


def _described_member(
    state: GroupsState, group: ConsumerGroup, member: ConsumerMember
) -> ConsumerGroupDescribeResponse.Member:
    held: dict[bytes, list[int]] = {}
    for topic_id, partition in member.holds():
        held.setdefault(topic_id, []).append(partition)
    target = group.targets.get(member.member_id, {})
    return ConsumerGroupDescribeResponse.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.subscribed_topics),
        subscribed_topic_regex=member.subscribed_regex,
        assignment=_described_assignment(state, held),
        target_assignment=_described_assignment(state, target),
        member_type=CLASSIC_MEMBER if member.classic is not None else CONSUMER_MEMBER,
    )


def _described_assignment(
    state: GroupsState, partitions: Mapping[bytes, Sequence[int]]
) -> ConsumerGroupDescribeResponse.Assignment:
    described = ConsumerGroupDescribeResponse.Assignment()
    for topic_id, indexes in partitions.items():
        view = state.topics.by_id(topic_id)
        if view is not None:
            described.topic_partitions.append(
                ConsumerGroupDescribeResponse.TopicPartitions(
                    topic_id=topic_id, topic_name=view.name, partitions=list(indexes)
                )
            )
    return described
