"""LeaveGroup: one member in old versions, many in new ones, each with its own error."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import LeaveGroupRequest
from tests.unit.handlers.group_desk import Desk, versions
from tests.unit.handlers.group_member import GROUP, join

Member = LeaveGroupRequest.Member


@pytest.mark.parametrize("version", versions("LeaveGroup"))
def test_a_member_leaves_once_in_every_version(version: int) -> None:
    desk = Desk()
    member_id = join(desk)
    request = LeaveGroupRequest(
        group_id=GROUP, member_id=member_id, members=[Member(member_id=member_id)]
    )
    for code in (Error.NONE, Error.UNKNOWN_MEMBER_ID):
        response = desk.ask(request, version)
        found = response.members[0] if version >= 3 else response
        assert found.error_code == code


def test_one_unknown_member_does_not_fail_the_others() -> None:
    desk = Desk()
    member_id = join(desk)
    members = [Member(member_id="nobody"), Member(member_id=member_id)]
    response = desk.ask(LeaveGroupRequest(group_id=GROUP, members=members), 5)
    codes = [one.error_code for one in response.members]
    assert codes == [Error.UNKNOWN_MEMBER_ID, Error.NONE]


def test_the_members_of_an_unknown_group_are_unknown() -> None:
    request = LeaveGroupRequest(group_id="none", members=[Member(member_id="a")])
    response = Desk().ask(request, 5)
    assert response.error_code == Error.NONE
    assert response.members[0].error_code == Error.UNKNOWN_MEMBER_ID


def test_a_group_without_a_name_is_refused() -> None:
    assert Desk().ask(LeaveGroupRequest(), 5).error_code == Error.INVALID_GROUP_ID
