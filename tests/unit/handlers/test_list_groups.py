"""ListGroups: all shards together, filters, and half a list that is never given."""

import pytest

from kafkalite.coordinators.asked import State
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import ListGroupsRequest
from tests.unit.handlers.group_desk import Desk, versions
from tests.unit.handlers.group_member import join
from tests.unit.handlers.test_offset_commit import commit, orders


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    join(desk)
    for number in range(4):
        desk.ask(commit(orders(desk, 0), group_id=f"simple-{number}"), 9)
    return desk


@pytest.mark.parametrize("version", versions("ListGroups"))
def test_groups_of_all_shards_are_listed_in_every_version(desk: Desk, version: int) -> None:
    response = desk.ask(ListGroupsRequest(), version)
    found = {one.group_id: one.protocol_type for one in response.groups}
    assert found == {"readers": "consumer"} | {f"simple-{number}": "" for number in range(4)}


@pytest.mark.parametrize(
    ("states", "types", "expected"),
    [
        (["stable"], [], 1),
        ([" EMPTY "], [], 4),
        (["Stable", "Empty"], ["Classic"], 5),
        ([], ["consumer"], 0),
        (["nonsense"], [], 0),
    ],
)
def test_filters_ignore_case(
    desk: Desk, states: list[str], types: list[str], expected: int
) -> None:
    response = desk.ask(ListGroupsRequest(states_filter=states, types_filter=types), 5)
    assert len(response.groups) == expected
    assert all(one.group_type == "classic" for one in response.groups)


def test_a_shard_that_loads_fails_the_list(desk: Desk) -> None:
    desk.groups.runtimes[0].state = State.LOADING
    response = desk.ask(ListGroupsRequest(), 5)
    assert response.error_code == Error.COORDINATOR_LOAD_IN_PROGRESS
    assert response.groups == []


def test_a_broker_that_coordinates_nothing_lists_nothing() -> None:
    desk = Desk()
    desk.stop_coordinating()
    assert desk.ask(ListGroupsRequest(), 5).groups == []
