"""ListGroups and DescribeGroups: what tools see of groups.

Owns nothing and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from kafkalite.coordinators.groups.classic_group import ClassicGroup, ClassicState
from kafkalite.coordinators.groups.consumer_group import ConsumerGroup, ConsumerMember
from kafkalite.coordinators.groups.events import (
    DescribeConsumerGroups,
    DescribeGroups,
    ListGroups,
)
from kafkalite.coordinators.groups.foreign import ForeignGroup
from kafkalite.coordinators.groups.state import Group, GroupsState
from kafkalite.coordinators.groups.target import preferred_assignor
from kafkalite.coordinators.groups.turn import Turn
from kafkalite.env.slicing import InSteps, Steps, finish
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
STEP_GROUPS = 100
STEP_DESCRIBED = 20  # groups have members

D = TypeVar("D")


def list_groups(state: GroupsState, turn: Turn, event: ListGroups) -> None:
    """The filters are in lower case; an empty filter lets everything through."""
    steps = _list(list(state.groups.values()), event)
    turn.reply(InSteps(steps) if len(state.groups) > STEP_GROUPS else finish(steps))


def _list(groups: list[Group], event: ListGroups) -> Steps[list[ListGroupsResponse.Group]]:
    listed = []
    for number, group in enumerate(groups):
        if number % STEP_GROUPS == STEP_GROUPS - 1:
            yield
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
    return listed


def describe_groups(state: GroupsState, turn: Turn, event: DescribeGroups) -> None:
    describe = partial(_describe, state, version=event.version)
    turn.reply(_described(describe, event.group_ids))


def _described(describe: Callable[[str], D], group_ids: list[str]) -> list[D] | InSteps:
    """A group at a time when they are many: each is as it is when its turn comes."""
    if len(group_ids) <= STEP_DESCRIBED:
        return [describe(group_id) for group_id in group_ids]

    def steps() -> Steps[list[D]]:
        described = []
        for number, group_id in enumerate(group_ids):
            if number % STEP_DESCRIBED == STEP_DESCRIBED - 1:
                yield
            described.append(describe(group_id))
        return described

    return InSteps(steps())


def _describe(state: GroupsState, group_id: str, version: int) -> DescribeGroupsResponse.Group:
    group = state.groups.get(group_id)
    if isinstance(group, ClassicGroup):
        return _describe_classic(group)
    if isinstance(group, ForeignGroup) and group.is_newer:
        code = group.refusal().code
        return DescribeGroupsResponse.Group(group_id=group_id, error_code=code)
    described = DescribeGroupsResponse.Group(group_id=group_id, group_state=ClassicState.DEAD.value)
    if version >= GROUP_ID_NOT_FOUND_SINCE:
        what = "not found" if group is None else "is not a classic group"
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
    turn.reply(_described(partial(_describe_consumer, state), event.group_ids))


def _describe_consumer(state: GroupsState, group_id: str) -> ConsumerGroupDescribeResponse.Group:
    group = state.consumer_group(group_id)
    if group is None:
        known = state.groups.get(group_id)
        if isinstance(known, ForeignGroup) and known.is_newer:
            code = known.refusal().code
            return ConsumerGroupDescribeResponse.Group(group_id=group_id, error_code=code)
        what = "not found" if known is None else "is not a consumer group"
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
