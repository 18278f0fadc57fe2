"""ListGroups and DescribeGroups: what tools see of groups.

Owns nothing and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from kafkalite.coordinators.groups.classic_group import ClassicGroup, ClassicState
from kafkalite.coordinators.groups.consumer_group import ConsumerMember, Target
from kafkalite.coordinators.groups.events import (
    DescribeConsumerGroups,
    DescribeGroups,
    DescribeShareGroups,
    DescribeStreamsGroups,
    ListGroups,
)
from kafkalite.coordinators.groups.other_kinds import ForeignGroup
from kafkalite.coordinators.groups.share_assignor import NAME as SHARE_ASSIGNOR
from kafkalite.coordinators.groups.share_group import ShareMember
from kafkalite.coordinators.groups.state import Group, GroupsState
from kafkalite.coordinators.groups.streams_description import describe_streams_group
from kafkalite.coordinators.groups.target import preferred_assignor
from kafkalite.coordinators.groups.turn import Turn
from kafkalite.env.slicing import InSteps, Steps, begun, finish, in_steps
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    ConsumerGroupDescribeResponse,
    DescribeGroupsResponse,
    ListGroupsResponse,
    ShareGroupDescribeResponse,
    StreamsGroupDescribeResponse,
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
    turn.reply(begun(_described(describe, event.group_ids)))


def _described(describe: Callable[[str], Steps[D]], group_ids: list[str]) -> Steps[list[D]]:
    """Each group is as it is when its turn comes."""
    described: list[D] = []
    for group_id in group_ids:
        if described and len(described) % STEP_DESCRIBED == 0:
            yield
        described.append((yield from describe(group_id)))
    return described


def _describe(
    state: GroupsState, group_id: str, version: int
) -> Steps[DescribeGroupsResponse.Group]:
    group = state.groups.get(group_id)
    if isinstance(group, ClassicGroup):
        return (yield from _describe_classic(group))
    if isinstance(group, ForeignGroup) and group.is_newer:
        code = group.refusal().code
        return DescribeGroupsResponse.Group(group_id=group_id, error_code=code)
    described = DescribeGroupsResponse.Group(group_id=group_id, group_state=ClassicState.DEAD.value)
    if version >= GROUP_ID_NOT_FOUND_SINCE:
        what = "not found" if group is None else "is not a classic group"
        described.error_code = Error.GROUP_ID_NOT_FOUND
        described.error_message = f"Group {group_id} {what}."
    return described


def _describe_classic(group: ClassicGroup) -> Steps[DescribeGroupsResponse.Group]:
    is_stable = group.state is ClassicState.STABLE
    protocol = group.protocol_name or ""
    described = DescribeGroupsResponse.Group(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol if is_stable else "",
    )
    # What will be another by the next step. Whose metadata would it be, while the members still
    # vote for a protocol?
    held = [
        (member, member.metadata(protocol) if is_stable else b"", member.assignment)
        for member in group.members.values()
    ]
    described.members = yield from in_steps(
        DescribeGroupsResponse.Member(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            member_metadata=metadata,
            member_assignment=assignment,
        )
        for member, metadata, assignment in held
    )
    return described


def _why_not(state: GroupsState, group_id: str, kind: str) -> tuple[Error, str | None]:
    """Why there is no group of this kind to describe, and in which words."""
    known = state.groups.get(group_id)
    if isinstance(known, ForeignGroup) and known.is_newer:
        return known.refusal().code, None
    what = "not found" if known is None else f"is not a {kind} group"
    return Error.GROUP_ID_NOT_FOUND, f"Group {group_id} {what}."


# -- consumer groups -------------------------------------------------------------------------


def describe_consumer_groups(state: GroupsState, turn: Turn, event: DescribeConsumerGroups) -> None:
    turn.reply(begun(_described(partial(_describe_consumer, state), event.group_ids)))


def _describe_consumer(
    state: GroupsState, group_id: str
) -> Steps[ConsumerGroupDescribeResponse.Group]:
    group = state.consumer_group(group_id)
    if group is None:
        code, message = _why_not(state, group_id, "consumer")
        return ConsumerGroupDescribeResponse.Group(
            group_id=group_id, error_code=code, error_message=message
        )
    assignors = state.settings.consumer_assignors
    described = ConsumerGroupDescribeResponse.Group(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=preferred_assignor(group.members.values(), assignors),
    )
    members, targets = list(group.members.values()), dict(group.targets)
    for count, member in enumerate(members):
        if count and count % STEP_DESCRIBED == 0:
            yield
        target = targets.get(member.member_id, {})
        described.members.append((yield from _described_member(state, member, target)))
    return described


def _described_member(
    state: GroupsState, member: ConsumerMember, target: Target
) -> Steps[ConsumerGroupDescribeResponse.Member]:
    return ConsumerGroupDescribeResponse.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.subscribed_topics),
        subscribed_topic_regex=member.subscribed_regex,
        assignment=(yield from _described_assignment(state, _held(member))),
        target_assignment=(yield from _described_assignment(state, target.items())),
        member_type=CLASSIC_MEMBER if member.classic is not None else CONSUMER_MEMBER,
    )


def _held(member: ConsumerMember) -> Iterator[tuple[bytes, Sequence[int]]]:
    """What it has, and what it has yet to give back, topic by topic."""
    assigned, pending = member.assigned, member.pending_revocation
    for topic_id, epochs in assigned.items():
        yield topic_id, (*epochs, *pending.get(topic_id, ()))
    for topic_id, epochs in pending.items():
        if topic_id not in assigned:
            yield topic_id, tuple(epochs)


def _described_assignment(
    state: GroupsState, partitions: Iterable[tuple[bytes, Sequence[int]]]
) -> Steps[ConsumerGroupDescribeResponse.Assignment]:
    topics = yield from in_steps(_described_topic(state, *one) for one in partitions)
    return ConsumerGroupDescribeResponse.Assignment(
        topic_partitions=[topic for topic in topics if topic is not None]
    )


def _described_topic(
    state: GroupsState, topic_id: bytes, indexes: Sequence[int]
) -> ConsumerGroupDescribeResponse.TopicPartitions | None:
    view = state.topics.by_id(topic_id)
    if view is None:
        return None
    return ConsumerGroupDescribeResponse.TopicPartitions(
        topic_id=topic_id, topic_name=view.name, partitions=list(indexes)
    )


# -- share groups ----------------------------------------------------------------------------


def describe_share_groups(state: GroupsState, turn: Turn, event: DescribeShareGroups) -> None:
    turn.reply(begun(_described(partial(_describe_share, state), event.group_ids)))


def _describe_share(
    state: GroupsState, group_id: str
) -> Steps[ShareGroupDescribeResponse.Group]:
    group = state.share_group(group_id)
    if group is None:
        code, message = _why_not(state, group_id, "share")
        return ShareGroupDescribeResponse.Group(
            group_id=group_id, error_code=code, error_message=message
        )
    described = ShareGroupDescribeResponse.Group(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=SHARE_ASSIGNOR,
    )
    described.members = yield from in_steps(
        _described_share_member(state, member) for member in list(group.members.values())
    )
    return described


def _described_share_member(
    state: GroupsState, member: ShareMember
) -> ShareGroupDescribeResponse.Member:
    kind = ShareGroupDescribeResponse
    views = [(state.topics.by_id(each), indexes) for each, indexes in member.assigned.items()]
    topics = [
        kind.TopicPartitions(
            topic_id=view.topic_id, topic_name=view.name, partitions=list(indexes)
        )
        for view, indexes in views
        if view is not None
    ]
    return kind.Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.subscribed_topics),
        assignment=kind.Assignment(topic_partitions=topics),
    )


# -- streams groups --------------------------------------------------------------------------


def describe_streams_groups(state: GroupsState, turn: Turn, event: DescribeStreamsGroups) -> None:
    turn.reply(begun(_described(partial(_describe_streams, state), event.group_ids)))


def _describe_streams(
    state: GroupsState, group_id: str
) -> Steps[StreamsGroupDescribeResponse.Group]:
    group = state.streams_group(group_id)
    if group is not None:
        return (yield from describe_streams_group(group))
    code, message = _why_not(state, group_id, "streams")
    return StreamsGroupDescribeResponse.Group(
        group_id=group_id, error_code=code, error_message=message
    )
