"""Heartbeat: alive, unknown, and what is said while the coordinator loads."""

import pytest

from kafkalite.coordinators.asked import State
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import HeartbeatRequest
from tests.unit.handlers.group_desk import Desk, versions
from tests.unit.handlers.group_member import GROUP, join


@pytest.mark.parametrize("version", versions("Heartbeat"))
def test_a_member_in_its_generation_is_well_in_every_version(version: int) -> None:
    desk = Desk()
    request = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=join(desk))
    assert desk.ask(request, version).error_code == Error.NONE
    request.generation_id = 2
    assert desk.ask(request, version).error_code == Error.ILLEGAL_GENERATION


def test_an_unknown_member_is_told_so() -> None:
    request = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="nobody")
    assert Desk().ask(request, 4).error_code == Error.UNKNOWN_MEMBER_ID


def test_all_is_well_while_the_coordinator_loads() -> None:
    desk = Desk()
    for runtime in desk.groups.runtimes.values():
        runtime.state = State.LOADING
    request = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="m")
    assert desk.ask(request, 4).error_code == Error.NONE


def test_a_group_without_a_name_is_refused() -> None:
    assert Desk().ask(HeartbeatRequest(), 4).error_code == Error.INVALID_GROUP_ID
