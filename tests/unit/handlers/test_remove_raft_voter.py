"""RemoveRaftVoter: a controller that is to go from a quorum of one."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import RemoveRaftVoterRequest

DIRECTORY = b"\2" * 16
OWN = b"\3" * 16


def remove(world, voter_id=7, directory_id=DIRECTORY):
    request = RemoveRaftVoterRequest(
        cluster_id=None, voter_id=voter_id, voter_directory_id=directory_id
    )
    return world.ask(request, 0)


def test_static_voters_stay(world):
    answer = remove(world)
    assert answer.error_code == Error.UNSUPPORTED_VERSION
    assert answer.error_message == (
        "Cluster doesn't support removing voter because the kraft.version feature is 0"
    )


@pytest.mark.parametrize(
    ("voter_id", "directory_id", "code"),
    [
        (7, DIRECTORY, Error.VOTER_NOT_FOUND),
        (1, DIRECTORY, Error.VOTER_NOT_FOUND),
        (1, OWN, Error.UNSUPPORTED_VERSION),
        (-1, DIRECTORY, Error.INVALID_REQUEST),
        (7, bytes(16), Error.INVALID_REQUEST),
    ],
)
def test_refusals_where_the_log_names_the_voters(world, voter_id, directory_id, code):
    world.controller.shard.view.kraft_version = 1
    world.controller.shard.view.voters = {1: OWN}
    assert remove(world, voter_id, directory_id).error_code == code


def test_who_is_none_is_told_who_they_are(world):
    world.controller.shard.view.kraft_version = 1
    world.controller.shard.view.voters = {1: OWN}
    assert remove(world).error_message == (
        "Cannot remove voter ReplicaKey(id=7, directoryId=AgICAgICAgICAgICAgICAg) from the set of"
        " voters [ReplicaKey(id=1, directoryId=AwMDAwMDAwMDAwMDAwMDAw)]"
    )
