"""DescribeDelegationToken: who sees which tokens."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.security.acl import acl_of
from tests.unit.handlers.test_acls import create as allow
from tests.unit.handlers.token_desk import (
    ALICE,
    BOB,
    CAROL,
    GUARDED,
    ROOT,
    create,
    describe,
    desk,
)

SETTINGS = {name.replace(".", "_"): value for name, value in GUARDED.items()}


@pytest.fixture
def world():
    """With a token of each; that of alice may be renewed by bob, root asked for that of bob."""
    world = desk(ROOT, **SETTINGS)
    create(world, owner=BOB)
    create(world, owner=CAROL)
    world.connection.principal = ALICE
    create(world, renewers=[BOB])
    return world


def owners(answer):
    assert answer.error_code == Error.NONE
    return [each.principal_name for each in answer.tokens]


@pytest.mark.parametrize("version", range(4))
def test_all_is_told_of_a_token(version):
    world = desk()
    made = create(world, renewers=[BOB, CAROL])
    [token] = describe(world, version=version).tokens
    assert (token.principal_type, token.principal_name) == ("User", "alice")
    assert token.token_requester_principal_name == ("alice" if version > 2 else "")
    assert (token.token_id, bytes(token.hmac)) == (made.token_id, bytes(made.hmac))
    times = (token.issue_timestamp, token.expiry_timestamp, token.max_timestamp)
    assert times == (made.issue_timestamp_ms, made.expiry_timestamp_ms, made.max_timestamp_ms)
    assert [each.principal_name for each in token.renewers] == ["bob", "carol"]


def test_whose_it_is_and_who_may_renew_it_see_it(world):
    assert owners(describe(world)) == ["alice"]
    world.connection.principal = BOB
    assert owners(describe(world)) == ["bob", "alice"]
    world.connection.principal = "User:nobody"
    assert owners(describe(world)) == []


def test_so_does_who_may_by_a_rule(world):
    token_id = next(iter(world.metadata.image.tokens))
    world.connection.principal = ROOT
    assert owners(describe(world)) == ["bob", "carol", "alice"]
    allow(world, acl_of(f"User:dave describe delegation_token {token_id}"),
          acl_of(f"User:dave describe_tokens user {CAROL}"))  # fmt: skip
    world.connection.principal = "User:dave"
    assert owners(describe(world)) == ["bob", "carol"]


@pytest.mark.parametrize(
    ("asked", "found"),
    [([], []), ([ALICE], ["alice"]), ([BOB], ["bob", "alice"]),
     ([CAROL, ALICE], ["carol", "alice"]), ([ROOT], ["bob", "carol"]),
     (["Group:alice"], []), (["User:nobody"], [])],
)  # fmt: skip
def test_of_some_owners(world, asked, found):
    world.connection.principal = ROOT
    assert owners(describe(world, asked)) == found


def test_who_may_not_ask_is_told_so(world):
    world.connection.is_by_token = True
    answer = describe(world)
    assert answer.error_code == Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert answer.tokens == []


def test_without_a_secret_there_are_none():
    answer = describe(desk(delegation_token_secret_key=""))
    assert answer.error_code == Error.DELEGATION_TOKEN_AUTH_DISABLED


def test_many_are_told_in_steps():
    world = desk()
    made = [create(world).token_id for _ in range(200)]
    assert [each.token_id for each in describe(world).tokens] == made
