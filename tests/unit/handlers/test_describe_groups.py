"""DescribeGroups: members, dead groups, and the operations that are allowed."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import DescribeGroupsRequest
from tests.unit.handlers.group_desk import Desk, versions
from tests.unit.handlers.group_member import GROUP, join


@pytest.mark.parametrize("version", versions("DescribeGroups"))
def test_a_group_and_its_member_in_every_version(version: int) -> None:
    desk = Desk()
    member_id = join(desk)
    group = desk.ask(DescribeGroupsRequest(groups=[GROUP]), version).groups[0]
    assert (group.group_state, group.protocol_data) == ("Stable", "range")
    member = group.members[0]
    assert (member.member_id, member.client_host) == (member_id, "/127.0.0.1")
    assert (member.member_assignment, member.member_metadata) == (b"all", b"\0\0\0\0\0\0")


@pytest.mark.parametrize("version", versions("DescribeGroups"))
def test_an_unknown_group_is_dead_and_since_version_6_not_found(version: int) -> None:
    group = Desk().ask(DescribeGroupsRequest(groups=["none"]), version).groups[0]
    assert group.group_state == "Dead"
    assert group.error_code == (Error.GROUP_ID_NOT_FOUND if version >= 6 else Error.NONE)


def test_operations_are_told_when_they_are_asked_for() -> None:
    desk = Desk()
    join(desk)
    request = DescribeGroupsRequest(groups=[GROUP], include_authorized_operations=True)
    allowed = desk.ask(request, 6).groups[0].authorized_operations
    assert {bit for bit in range(32) if allowed >> bit & 1} == {3, 6, 8, 10, 11}
    request.include_authorized_operations = False
    assert desk.ask(request, 6).groups[0].authorized_operations == -(2**31)


def test_a_coordinator_elsewhere_is_told_per_group() -> None:
    desk = Desk()
    desk.stop_coordinating()
    response = desk.ask(DescribeGroupsRequest(groups=["a", "b", "c"]), 6)
    assert {one.group_id: one.error_code for one in response.groups} == dict.fromkeys(
        "abc", Error.NOT_COORDINATOR
    )
