"""FindCoordinator: which broker, for which key, and the topic that is made on demand."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import FindCoordinatorRequest
from tests.unit.handlers.group_desk import NODE, Desk, versions
from tests.unit.handlers.group_member import join_request


@pytest.mark.parametrize("version", versions("FindCoordinator"))
def test_a_group_is_coordinated_here_in_every_version(version: int) -> None:
    request = FindCoordinatorRequest(key="readers", key_type=0, coordinator_keys=["readers"])
    response = Desk().ask(request, version)
    found = response.coordinators[0] if version >= 4 else response
    assert (found.error_code, found.node_id, found.port) == (Error.NONE, NODE, 9092)


def test_many_keys_are_answered_in_their_order() -> None:
    keys = [f"group-{number}" for number in range(5)]
    response = Desk().ask(FindCoordinatorRequest(key_type=0, coordinator_keys=keys), 6)
    assert [one.key for one in response.coordinators] == keys


@pytest.mark.parametrize(
    ("key_type", "key", "topic"),
    [
        (1, "transfers", "__transaction_state"),
        (2, "g:AAAAAAAAAAAAAAAAAAAAAQ:0", "__share_group_state"),
    ],
)
def test_the_internal_topic_is_made_when_it_is_first_asked_for(
    key_type: int, key: str, topic: str
) -> None:
    desk = Desk()
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
    for _ in range(2):
        assert desk.ask(request, 6).coordinators[0].error_code == Error.NONE
    assert desk.cluster.created == [topic]


def test_a_new_group_waits_for_whoever_has_asked_for_its_coordinator() -> None:
    desk = Desk(gathers=True)
    for port in (50_001, 50_002):
        desk.send(FindCoordinatorRequest(key="readers"), 3, port)
    first = desk.send(join_request(), 3)
    desk.clock.advance(100)
    second = desk.send(join_request(), 3)
    desk.clock.advance(59)
    assert not first.is_resolved
    desk.clock.advance(1)
    assert first.value.generation_id == second.value.generation_id == 1


@pytest.mark.parametrize(
    ("key_type", "key", "version"), [(9, "x", 6), (2, "g:t:0", 5), (2, "no-colons", 6)]
)
def test_a_key_that_is_none_is_refused(key_type: int, key: str, version: int) -> None:
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
    found = Desk().ask(request, version).coordinators[0]
    assert (found.error_code, found.node_id) == (Error.INVALID_REQUEST, -1)


@pytest.mark.parametrize(("key_type", "has_text"), [(9, True), (2, False)])
def test_why_is_told_of_a_kind_that_nobody_knows(key_type: int, has_text: bool) -> None:
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["x"])
    assert bool(Desk().ask(request, 5).coordinators[0].error_message) == has_text
