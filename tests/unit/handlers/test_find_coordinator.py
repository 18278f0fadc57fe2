"""FindCoordinator: which broker, for which key, and the topic that is made on demand."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import FindCoordinatorRequest
from tests.unit.handlers.group_desk import NODE, Desk, versions


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


@pytest.mark.parametrize(
    ("key_type", "key", "version"), [(9, "x", 6), (2, "g:t:0", 5), (2, "no-colons", 6)]
)
def test_a_key_that_is_none_is_refused(key_type: int, key: str, version: int) -> None:
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
    found = Desk().ask(request, version).coordinators[0]
    assert (found.error_code, found.node_id) == (Error.INVALID_REQUEST, -1)
