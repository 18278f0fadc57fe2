"""DescribeUserScramCredentials: mechanisms and iterations, and nothing else."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
)

Alter = AlterUserScramCredentialsRequest
Describe = DescribeUserScramCredentialsRequest


@pytest.fixture
def filled(world):
    for mechanism, name in ((1, "u"), (2, "u"), (1, "v")):
        upsertion = Alter.Upsertion(
            name=name, mechanism=mechanism, iterations=4096, salt=b"s", salted_password=b"p"
        )
        world.ask(Alter(upsertions=[upsertion]), 0)
    return world


def describe(world, names):
    users = None if names is None else [Describe.User(name=name) for name in names]
    response = world.ask(Describe(users=users), 0)
    assert response.error_code == Error.NONE
    return {
        each.user: (each.error_code, [info.mechanism for info in each.credential_infos])
        for each in response.results
    }


@pytest.mark.parametrize("names", [None, [], ["u", "v"]])
def test_all_users_or_those_named(filled, names):
    assert describe(filled, names) == {"u": (Error.NONE, [1, 2]), "v": (Error.NONE, [1])}


def test_unknown_and_doubled_users(filled):
    assert describe(filled, ["nix", "u", "u"]) == {
        "nix": (Error.RESOURCE_NOT_FOUND, []),
        "u": (Error.DUPLICATE_RESOURCE, []),
    }
