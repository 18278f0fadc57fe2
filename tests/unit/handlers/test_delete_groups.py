"""DeleteGroups: empty ones go, others say why not, each by itself."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import DeleteGroupsRequest
from tests.unit.handlers.group_desk import Desk, versions
from tests.unit.handlers.group_member import GROUP, join, leave
from tests.unit.handlers.test_offset_commit import commit, committed, orders


@pytest.mark.parametrize("version", versions("DeleteGroups"))
def test_an_empty_group_goes_with_its_offsets_in_every_version(version: int) -> None:
    desk = Desk()
    desk.ask(commit(orders(desk, 1)), 9)
    response = desk.ask(DeleteGroupsRequest(groups_names=[GROUP, "none", GROUP]), version)
    codes = {one.group_id: one.error_code for one in response.results}
    assert codes == {GROUP: Error.NONE, "none": Error.GROUP_ID_NOT_FOUND}
    assert len(response.results) == 2
    assert committed(desk, 1) == (-1, "")


def test_a_group_with_members_stays() -> None:
    desk = Desk()
    member_id = join(desk)
    request = DeleteGroupsRequest(groups_names=[GROUP])
    assert desk.ask(request, 2).results[0].error_code == Error.NON_EMPTY_GROUP
    assert leave(desk, member_id) == Error.NONE
    assert desk.ask(request, 2).results[0].error_code == Error.NONE
