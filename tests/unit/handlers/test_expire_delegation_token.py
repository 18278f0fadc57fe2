"""ExpireDelegationToken, and the end of those that nobody ended."""

import pytest

from kafkalite.protocol.errors import Error
from tests.unit.handlers.token_desk import (
    ALICE,
    BOB,
    CAROL,
    DAY_MS,
    create,
    desk,
    expire,
    renew,
)

HOUR_MS = 3_600_000


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("asker", [ALICE, BOB])
def test_it_ends_at_once(version, asker):
    world = desk()
    made = create(world, renewers=[BOB])
    world.connection.principal = asker
    answer = expire(world, made.hmac, version=version)
    assert (answer.error_code, answer.expiry_timestamp_ms) == (Error.NONE, world.clock.now_ms())
    assert world.metadata.image.tokens == {}
    assert expire(world, made.hmac).error_code == Error.DELEGATION_TOKEN_NOT_FOUND


@pytest.mark.parametrize(("period_ms", "left_ms"), [(0, 0), (5, 5), (2**63 - 1, 7 * DAY_MS)])
def test_or_at_another_time_than_it_would(period_ms, left_ms):
    world = desk()
    made = create(world)
    answer = expire(world, made.hmac, period_ms)
    until = made.issue_timestamp_ms + left_ms
    assert (answer.error_code, answer.expiry_timestamp_ms) == (Error.NONE, until)
    assert world.metadata.image.tokens[made.token_id].expiration_timestamp == until


def test_what_has_expired_can_only_go():
    world = desk()
    made = create(world, max_lifetime_ms=10)
    world.clock.jump(11)
    assert expire(world, made.hmac, 5).error_code == Error.DELEGATION_TOKEN_EXPIRED
    assert expire(world, made.hmac, -1).error_code == Error.NONE


def test_who_may_not():
    world = desk()
    made = create(world, max_lifetime_ms=10)
    world.clock.jump(11)
    world.connection.principal = CAROL
    for period_ms in (-1, 5):
        answer = expire(world, made.hmac, period_ms)
        assert answer.error_code == Error.DELEGATION_TOKEN_OWNER_MISMATCH
        assert answer.expiry_timestamp_ms == 0
    world.connection.protocol = "PLAINTEXT"
    answer = expire(world, made.hmac)
    assert answer.error_code == Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert answer.expiry_timestamp_ms == -1


def test_without_a_secret_there_are_none():
    answer = expire(desk(delegation_token_secret_key=""), bytes(64))
    assert answer.error_code == Error.DELEGATION_TOKEN_AUTH_DISABLED


# --- by the controller ----------------------------------------------------------------------------


def test_the_controller_takes_away_what_has_expired():
    world = desk()
    short = create(world, max_lifetime_ms=HOUR_MS - 1)
    long = create(world, max_lifetime_ms=HOUR_MS)
    assert world.metadata.image.tokens.keys() == {short.token_id, long.token_id}
    world.clock.advance(HOUR_MS)
    assert world.metadata.image.tokens.keys() == {long.token_id}
    world.clock.advance(HOUR_MS)
    assert world.metadata.image.tokens == {}


def test_thousands_go_at_one_look_and_others_are_found_meanwhile():
    world = desk(delegation_token_expiry_check_interval_ms="1000")
    for _ in range(2_500):
        create(world, max_lifetime_ms=500)
    kept = create(world)
    assert renew(world, kept.hmac).error_code == Error.NONE
    assert len(world.metadata.image.tokens) == 2_501
    world.clock.advance(1_100)
    assert world.metadata.image.tokens.keys() == {kept.token_id}
    assert renew(world, kept.hmac).error_code == Error.NONE


def test_who_has_left_looks_no_more():
    world = desk()
    create(world, max_lifetime_ms=1)
    world.controller.close()
    offset = world.metadata.offset
    world.clock.advance(2 * HOUR_MS)
    assert world.metadata.offset == offset
