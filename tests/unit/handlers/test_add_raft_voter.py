"""AddRaftVoter: a controller that is to come to a quorum of one."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import AddRaftVoterRequest

DIRECTORY = b"\2" * 16


def add(world, version=1, **given):
    listener = AddRaftVoterRequest.Listener(name="CONTROLLER", host="localhost", port=9)
    wanted = {
        "voter_id": 7, "voter_directory_id": DIRECTORY, "listeners": [listener],
        "timeout_ms": 1_000, "cluster_id": None,
    }  # fmt: skip
    return world.ask(AddRaftVoterRequest(**{**wanted, **given}), version)


@pytest.mark.parametrize("version", [0, 1])
def test_one_voter_stays_alone(world, version):
    answer = add(world, version)
    assert answer.error_code == Error.UNSUPPORTED_VERSION
    assert answer.error_message == (
        "Cluster doesn't support adding voter because the kraft.version feature is 0"
    )


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"voter_id": -1}, Error.INVALID_REQUEST),
        ({"voter_directory_id": bytes(16)}, Error.INVALID_REQUEST),
        ({"listeners": []}, Error.INVALID_REQUEST),
        ({"cluster_id": "another"}, Error.INCONSISTENT_CLUSTER_ID),
        ({"voter_id": 1}, Error.DUPLICATE_VOTER),
        ({}, Error.UNSUPPORTED_VERSION),
    ],
)
def test_refusals_where_the_log_names_the_voters(world, given, code):
    world.controller.shard.view.kraft_version = 1
    world.controller.shard.view.voters = {1: DIRECTORY}
    assert add(world, **given).error_code == code


def test_what_is_wrong_is_told_in_apache_kafkas_words(world):
    other = AddRaftVoterRequest.Listener(name="X", host="h", port=9)
    assert add(world, listeners=[other]).error_message == (
        "Add voter request didn't include the endpoint"
        " (Endpoints(endpoints={ListenerName(X)=h/<unresolved>:9}))"
        " for the default listener ListenerName(CONTROLLER)"
    )
    assert add(world, cluster_id="zzz").error_message == (
        f'The given id "zzz" doesn\'t match the cluster id "{world.context.cluster_id}"'
    )
