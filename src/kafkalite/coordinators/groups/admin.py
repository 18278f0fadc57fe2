"""ListGroups and DescribeGroups: what tools see of groups.

Owns nothing and changes nothing.
"""

from __future__ import annotations

from kafkalite.coordinators.groups.classic_group import ClassicGroup, ClassicState
from kafkalite.coordinators.groups.events import DescribeGroups, ListGroups
from kafkalite.coordinators.groups.state import GroupsState
from kafkalite.coordinators.groups.turn import Turn
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import DescribeGroupsResponse, ListGroupsResponse

# From this version on a group that does not exist is an error; before, it is a dead group.
GROUP_ID_NOT_FOUND_SINCE = 6


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
    described = DescribeGroupsResponse.Group(
        group_id=group_id, group_state=ClassicState.DEAD.value
    )
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
