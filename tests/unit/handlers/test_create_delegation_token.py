"""CreateDelegationToken: for oneself, for another one, and who gets none."""

import hashlib
import hmac

import pytest

from kafkalite.coordinators.cluster.changes import Changes
from kafkalite.coordinators.cluster.image import Image
from kafkalite.coordinators.cluster.image_records import records_of
from kafkalite.protocol.errors import Error
from kafkalite.security.acl import acl_of
from tests.unit.handlers.test_acls import create as allow
from tests.unit.handlers.token_desk import (
    ALICE,
    BOB,
    CAROL,
    DAY_MS,
    GUARDED,
    ROOT,
    SECRET,
    WEEK_MS,
    create,
    desk,
)

REFUSED = (-1, -1, -1, "", b"")  # by the broker itself
UNMADE = (0, 0, 0, "", b"")  # by the controller


def told(answer):
    return (
        answer.issue_timestamp_ms, answer.expiry_timestamp_ms, answer.max_timestamp_ms,
        answer.token_id, bytes(answer.hmac),
    )  # fmt: skip


@pytest.mark.parametrize("version", range(4))
def test_who_has_logged_in_is_given_one(version):
    world = desk()
    now_ms = world.clock.now_ms()
    answer = create(world, version, renewers=[BOB])
    assert answer.error_code == Error.NONE
    assert (answer.principal_type, answer.principal_name) == ("User", "alice")
    requester = answer.token_requester_principal_name
    assert requester == ("alice" if version > 2 else "")
    proof = hmac.new(SECRET.encode(), answer.token_id.encode(), hashlib.sha512).digest()
    assert told(answer) == (now_ms, now_ms + DAY_MS, now_ms + WEEK_MS, answer.token_id, proof)
    [record] = world.metadata.image.tokens.values()
    assert (record.owner, record.requester, record.renewers) == (ALICE, ALICE, [BOB])
    assert record.token_id == answer.token_id


def test_a_token_is_in_a_snapshot_and_its_proof_is_nowhere():
    world = desk()
    answer = create(world)
    copy = Image()
    for record in records_of(world.metadata.image):
        copy.apply(record, Changes())
        assert bytes(answer.hmac) not in repr(record).encode("latin-1", "replace")
    assert copy.tokens == world.metadata.image.tokens


@pytest.mark.parametrize(
    ("asked_ms", "settings", "expiry_ms", "latest_ms"),
    [
        (1_000, {}, 1_000, 1_000),
        (2 * DAY_MS, {}, DAY_MS, 2 * DAY_MS),
        (2**63 - 1, {}, DAY_MS, WEEK_MS),
        (0, {"delegation_token_max_lifetime_ms": "5"}, 5, 5),
        (0, {"delegation_token_expiry_time_ms": "7"}, 7, WEEK_MS),
    ],
)
def test_it_holds_no_longer_than_it_may(asked_ms, settings, expiry_ms, latest_ms):
    world = desk(**settings)
    now_ms = world.clock.now_ms()
    answer = create(world, max_lifetime_ms=asked_ms)
    assert answer.expiry_timestamp_ms == now_ms + expiry_ms
    assert answer.max_timestamp_ms == now_ms + latest_ms


def test_a_time_without_end_is_the_last_there_is():
    longest = str(2**63 - 1)
    world = desk(
        delegation_token_max_lifetime_ms=longest, delegation_token_expiry_time_ms=longest
    )
    answer = create(world)
    assert (answer.error_code, answer.max_timestamp_ms) == (Error.NONE, 2**63 - 1)


@pytest.mark.parametrize(
    ("protocol", "principal", "is_by_token", "may"),
    [
        ("PLAINTEXT", "User:ANONYMOUS", False, False),
        ("PLAINTEXT", ALICE, False, False),
        ("SSL", "User:ANONYMOUS", False, False),
        ("SSL", "User:CN=alice", False, True),
        ("SASL_PLAINTEXT", ALICE, False, True),
        ("SASL_SSL", ALICE, True, False),
    ],
)
def test_who_may_ask(protocol, principal, is_by_token, may):
    world = desk(principal)
    world.connection.protocol, world.connection.is_by_token = protocol, is_by_token
    answer = create(world)
    if may:
        assert answer.error_code == Error.NONE
    else:
        assert answer.error_code == Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert told(answer) == REFUSED
        assert world.metadata.image.tokens == {}
    assert f"{answer.principal_type}:{answer.principal_name}" == principal


def test_without_a_secret_there_are_none():
    world = desk(delegation_token_secret_key="")
    answer = create(world)
    assert answer.error_code == Error.DELEGATION_TOKEN_AUTH_DISABLED
    assert told(answer) == UNMADE
    assert answer.principal_name == "alice"


def test_at_an_old_level_of_metadata_there_are_none():
    world = desk()
    world.metadata.image.features["metadata.version"] = 13
    assert create(world).error_code == Error.UNSUPPORTED_VERSION


def test_renewers_are_users():
    world = desk()
    answer = create(world, renewers=[BOB, "Group:all"])
    assert (answer.error_code, told(answer)) == (Error.INVALID_PRINCIPAL_TYPE, REFUSED)


def test_an_owner_without_a_type_is_none():
    answer = create(desk(), owner_principal_type=None, owner_principal_name="bob")
    assert answer.error_code == Error.UNKNOWN_SERVER_ERROR
    assert (answer.principal_name, answer.token_requester_principal_name) == ("ANONYMOUS",) * 2


def test_for_another_one_needs_a_rule():
    world = desk(ROOT, **{name.replace(".", "_"): value for name, value in GUARDED.items()})
    allow(world, acl_of(f"{ALICE} create_tokens user {BOB}"))
    world.connection.principal = ALICE
    answer = create(world, owner=BOB)
    assert answer.error_code == Error.NONE
    assert (answer.principal_name, answer.token_requester_principal_name) == ("bob", "alice")
    [record] = world.metadata.image.tokens.values()
    assert (record.owner, record.requester) == (BOB, ALICE)
    answer = create(world, owner=CAROL)
    assert answer.error_code == Error.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert (told(answer), answer.principal_name) == (REFUSED, "carol")
    assert create(world, owner=ALICE).error_code == Error.NONE, "oneself is no other one"


def test_without_an_authorizer_anybody_may_for_anybody():
    assert create(desk(), owner=BOB).principal_name == "bob"
