"""JoinGroup: versions, the refusals at the door, and what the reply waits for."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import JoinGroupRequest
from tests.unit.handlers.group_desk import Desk, versions
from tests.unit.handlers.group_member import join, join_request


@pytest.mark.parametrize("version", versions("JoinGroup"))
def test_a_lone_member_leads_its_group_in_every_version(version: int) -> None:
    desk = Desk()
    request = join_request()
    if version >= 4:
        first = desk.ask(request, version)
        assert first.error_code == Error.MEMBER_ID_REQUIRED
        request.member_id = first.member_id
    later = desk.send(request, version)
    assert not later.is_resolved
    desk.clock.advance(0)
    joined = later.value
    assert (joined.error_code, joined.generation_id) == (Error.NONE, 1)
    assert joined.leader == joined.member_id
    assert [member.member_id for member in joined.members] == [joined.member_id]
    assert joined.member_id.startswith("ana-")


@pytest.mark.parametrize("timeout_ms", [5_999, 1_800_001])
def test_a_session_timeout_out_of_bounds_is_refused(timeout_ms: int) -> None:
    response = Desk().ask(join_request("m", session_timeout_ms=timeout_ms), 9)
    assert response.error_code == Error.INVALID_SESSION_TIMEOUT
    assert response.member_id == "m"


@pytest.mark.parametrize("version", [0, 5, 9])
def test_a_group_without_a_name_is_refused(version: int) -> None:
    request = JoinGroupRequest(group_id="", session_timeout_ms=10_000)
    response = Desk().ask(request, version)
    assert response.error_code == Error.INVALID_GROUP_ID
    assert response.protocol_name == ("" if version < 7 else None)


def test_another_broker_may_coordinate_the_group() -> None:
    desk = Desk()
    desk.stop_coordinating()
    assert desk.ask(join_request(), 9).error_code == Error.NOT_COORDINATOR


def test_without_its_own_timeout_a_member_has_its_session_to_rebalance() -> None:
    desk = Desk()
    later = desk.send(join_request(), 0)
    desk.clock.advance(0)
    group = desk.groups.runtimes[desk.groups.partition_for("readers")].shard
    assert later.is_resolved
    assert group is not None
    member = group.state.groups["readers"].members[later.value.member_id]  # type: ignore[attr-defined]
    assert member.rebalance_timeout_ms == member.session_timeout_ms == 10_000


def test_an_id_that_no_reply_could_carry_is_refused() -> None:
    request = join_request()
    request.group_instance_id = "i" * 32_750
    response = Desk().ask(request, 9)
    assert (response.error_code, response.member_id) == (Error.UNKNOWN_SERVER_ERROR, "")


def test_a_full_group_takes_nobody_else_and_says_so() -> None:
    desk = Desk(group_max_size="1")
    member_id = join(desk)
    newcomer = desk.ask(join_request(), 9)
    assert newcomer.error_code in (Error.MEMBER_ID_REQUIRED, Error.GROUP_MAX_SIZE_REACHED)
    refused = desk.ask(join_request(newcomer.member_id), 9)
    assert refused.error_code == Error.GROUP_MAX_SIZE_REACHED
    again = desk.send(join_request(member_id), 9)
    desk.clock.advance(0)
    assert again.value.error_code == Error.NONE
