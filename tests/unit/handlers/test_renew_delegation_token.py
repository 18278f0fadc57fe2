"""RenewDelegationToken: how long a token holds on, and for whom."""

import pytest

from kafkalite.protocol.errors import Error
from tests.unit.handlers.token_desk import (
    ALICE,
    BOB,
    CAROL,
    DAY_MS,
    WEEK_MS,
    create,
    desk,
    renew,
)


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("asker", [ALICE, BOB])
def test_its_owner_and_its_renewers_have_it_hold_on(version, asker):
    world = desk()
    made = create(world, renewers=[BOB])
    world.clock.advance(1_000)
    world.connection.principal = asker
    answer = renew(world, made.hmac, version=version)
    until = made.issue_timestamp_ms + 1_000 + DAY_MS
    assert (answer.error_code, answer.expiry_timestamp_ms) == (Error.NONE, until)
    [record] = world.metadata.image.tokens.values()
    assert record.expiration_timestamp == until
    assert (record.token_id, record.renewers) == (made.token_id, [BOB])
    assert record.max_timestamp == made.max_timestamp_ms


def test_never_longer_than_it_may():
    world = desk()
    made = create(world)
    for day in range(1, 8):
        world.clock.jump(DAY_MS - 1)
        answer = renew(world, made.hmac, period_ms=2**62)
        expected = min(made.max_timestamp_ms, made.issue_timestamp_ms + (day + 1) * DAY_MS - day)
        assert (answer.error_code, answer.expiry_timestamp_ms) == (Error.NONE, expected)
    assert answer.expiry_timestamp_ms == made.issue_timestamp_ms + WEEK_MS


def test_for_as_long_as_one_asks():
    world = desk()
    answer = renew(world, create(world).hmac, period_ms=5)
    assert answer.expiry_timestamp_ms == world.clock.now_ms() + 5


def test_who_may_not():
    world = desk()
    made = create(world, owner=BOB)
    assert renew(world, made.hmac).error_code == Error.DELEGATION_TOKEN_OWNER_MISMATCH
    world.connection.principal = CAROL
    answer = renew(world, made.hmac)
    assert answer.error_code == Error.DELEGATION_TOKEN_OWNER_MISMATCH
    assert answer.expiry_timestamp_ms == 0
    world.connection.is_by_token = True
    answer = renew(world, made.hmac)
    assert answer.error_code == Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert answer.expiry_timestamp_ms == -1


@pytest.mark.parametrize("guess", [b"", b"x", bytes(64), bytes(100_000)])
def test_a_guess_finds_nothing(guess):
    world = desk()
    create(world)
    assert renew(world, guess).error_code == Error.DELEGATION_TOKEN_NOT_FOUND


def test_what_has_expired_stays_so():
    world = desk()
    made = create(world, max_lifetime_ms=10)
    world.clock.jump(10)
    assert renew(world, made.hmac).error_code == Error.NONE
    world.clock.jump(1)
    assert renew(world, made.hmac).error_code == Error.DELEGATION_TOKEN_EXPIRED


def test_without_a_secret_there_are_none():
    answer = renew(desk(delegation_token_secret_key=""), bytes(64))
    assert answer.error_code == Error.DELEGATION_TOKEN_AUTH_DISABLED
