"""SyncGroup: the leader's assignment comes back, and what is checked before."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import SyncGroupRequest
from tests.unit.handlers.group_desk import Desk, versions
from tests.unit.handlers.group_member import GROUP, join, sync


@pytest.mark.parametrize("version", versions("SyncGroup"))
def test_a_stable_member_gets_its_assignment_again_in_every_version(version: int) -> None:
    desk = Desk()
    request = SyncGroupRequest(
        group_id=GROUP,
        generation_id=1,
        member_id=join(desk),
        protocol_type="consumer",
        protocol_name="range",
    )
    response = desk.ask(request, version)
    assert (response.error_code, response.assignment) == (Error.NONE, b"all")
    if version >= 5:
        assert (response.protocol_type, response.protocol_name) == ("consumer", "range")


def test_from_version_5_on_the_protocol_must_be_named() -> None:
    desk = Desk()
    request = SyncGroupRequest(group_id=GROUP, generation_id=1, member_id=join(desk))
    assert desk.ask(request, 5).error_code == Error.INCONSISTENT_GROUP_PROTOCOL
    assert desk.ask(request, 4).error_code == Error.NONE


def test_a_wrong_generation_is_refused() -> None:
    desk = Desk()
    assert sync(desk, join(desk), generation=2).error_code == Error.ILLEGAL_GENERATION


def test_a_group_without_a_name_is_refused() -> None:
    assert Desk().ask(SyncGroupRequest(), 0).error_code == Error.INVALID_GROUP_ID
