"""Sessions of those who came in with something that expires: delegation tokens, OAUTHBEARER."""

from __future__ import annotations

import random
from base64 import b64encode

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    CreateDelegationTokenRequest,
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
)
from kafkalite.security.client_login import Login
from kafkalite.security.delegation import token_hmac
from tests.unit.handlers.whole_broker import WholeBroker
from tests.unit.security.signing import unsecured
from tests.unit.server.logins import SETTINGS, Client

SECRET = "the-secret"
MINUTE_MS = 60_000
JAAS = "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


def world_of(**settings):
    return WholeBroker(SETTINGS | {
        "delegation.token.secret.key": SECRET,
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,OAUTHBEARER",
        JAAS: f'{MODULE} required unsecuredValidatorAllowableClockSkewMs="5000";',
        **{name.replace("_", "."): value for name, value in settings.items()},
    })  # fmt: skip


@pytest.fixture
def world():
    world = world_of()
    yield world
    world.close()


def give(world, holds_ms, token_id="an-id", owner="User:alice"):
    now_ms = world.now_ms
    record = DelegationTokenRecord(
        owner=owner, requester=owner, renewers=[], issue_timestamp=now_ms,
        max_timestamp=now_ms + holds_ms, expiration_timestamp=now_ms + holds_ms,
        token_id=token_id,
    )  # fmt: skip
    world.context.metadata.image.tokens[token_id] = record


def by_token(client, token_id="an-id"):
    """The last answer of a login by a delegation token."""
    assert client.handshake("SCRAM-SHA-256").error_code == 0
    password = b64encode(token_hmac(SECRET, token_id)).decode()
    first, go_on = Login("SCRAM-SHA-256", token_id, password).begin(random.Random(7))
    exchange = go_on.__self__  # type: ignore[attr-defined]
    exchange._bare += ",tokenauth=true"
    challenge = client.authenticate(first + b",tokenauth=true")
    if challenge is None or challenge.error_code:
        return challenge
    answer = client.authenticate(go_on(bytes(challenge.auth_bytes)))
    assert go_on(bytes(answer.auth_bytes)) is None
    return answer


def by_bearer(client, world, holds_s, name="alice", **more):
    now_s = world.now_ms / 1000
    said = {"sub": name, "iat": now_s - 10, "exp": now_s + holds_s, **more}
    assert client.handshake("OAUTHBEARER").error_code == 0
    return client.authenticate(f"n,,\x01auth=Bearer {unsecured(said)}\x01\x01".encode())


def info_of(world):
    [connection] = world.broker.server._connections
    return connection.info


def test_a_token_lets_in_its_owner_who_may_not_ask_for_more(world):
    give(world, MINUTE_MS)
    client = Client(world)
    assert by_token(client).session_lifetime_ms == MINUTE_MS
    assert (info_of(world).principal, info_of(world).is_by_token) == ("User:alice", True)
    answer = client.ask(CreateDelegationTokenRequest(max_lifetime_ms=-1), 3)
    assert answer.error_code == Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_whoever_has_a_password_is_given_one_and_uses_it(world):
    client = Client(world)
    client.log_in()
    made = client.ask(CreateDelegationTokenRequest(max_lifetime_ms=-1), 3)
    assert made.error_code == Error.NONE
    assert bytes(made.hmac) == token_hmac(SECRET, made.token_id)
    other = Client(world, 50_001)
    assert by_token(other, made.token_id).error_code == Error.NONE
    assert other.metadata().cluster_id


def test_a_session_ends_when_its_token_expires(world, caplog):
    give(world, MINUTE_MS)
    client = Client(world)
    by_token(client)
    world.clock.advance(MINUTE_MS)
    assert client.metadata().cluster_id
    world.clock.advance(1)
    assert client.metadata() is None
    assert "did not log in again in time" in caplog.text


def test_one_may_log_in_again_with_another_token(world):
    give(world, MINUTE_MS)
    give(world, 10 * MINUTE_MS, "longer")
    client = Client(world)
    by_token(client)
    world.clock.advance(MINUTE_MS - 1)
    assert by_token(client, "longer").error_code == Error.NONE
    world.clock.advance(MINUTE_MS)
    assert client.metadata().cluster_id


def test_what_has_expired_and_is_still_there_lets_in_for_no_time(world):
    give(world, -1)
    client = Client(world)
    answer = by_token(client)
    assert (answer.error_code, answer.session_lifetime_ms) == (Error.NONE, 0)
    assert client.metadata() is None
    assert client.link.is_ended


def test_a_token_that_went_lets_nobody_in_and_whoever_is_in_goes_on(world):
    give(world, MINUTE_MS)
    client = Client(world)
    by_token(client)
    world.context.metadata.image.apply(
        RemoveDelegationTokenRecord(token_id="an-id"), world.broker.controller.shard.changes
    )
    assert client.metadata().cluster_id
    other = Client(world, 50_001)
    assert by_token(other) is None
    answer = other.late_answer()
    assert answer.error_code == Error.SASL_AUTHENTICATION_FAILED
    assert "due to invalid credentials with SASL mechanism SCRAM-SHA-256" in answer.error_message


@pytest.mark.parametrize(("most_ms", "told_ms"), [(5_000, 5_000), (10 * MINUTE_MS, MINUTE_MS)])
@pytest.mark.parametrize("kind", ["token", "bearer"])
def test_a_session_is_as_long_as_settings_and_token_allow(most_ms, told_ms, kind):
    world = world_of(connections_max_reauth_ms=str(most_ms))
    client = Client(world)
    if kind == "token":
        give(world, MINUTE_MS)
        answer = by_token(client)
    else:
        answer = by_bearer(client, world, MINUTE_MS // 1000)
    assert answer.session_lifetime_ms == told_ms
    world.clock.advance(told_ms + 1)
    assert client.metadata() is None
    world.close()


# --- OAUTHBEARER ----------------------------------------------------------------------------------


def test_a_bearer_is_let_in_until_the_token_expires(world):
    client = Client(world)
    assert by_bearer(client, world, 60).session_lifetime_ms == MINUTE_MS
    assert (info_of(world).principal, info_of(world).is_by_token) == ("User:alice", False)
    assert client.metadata().cluster_id
    world.clock.advance(MINUTE_MS + 1)
    assert client.metadata() is None


def test_a_token_within_the_skew_lets_in_for_no_time(world):
    client = Client(world)
    assert by_bearer(client, world, -1).session_lifetime_ms == 0
    assert client.metadata() is None


def test_a_bearer_logs_in_again_as_itself(world):
    client = Client(world)
    by_bearer(client, world, 60)
    world.clock.advance(MINUTE_MS - 1)
    assert by_bearer(client, world, 60).error_code == Error.NONE
    world.clock.advance(MINUTE_MS - 1)
    assert by_bearer(client, world, 60, "bob") is None
    assert "Cannot change principals" in client.late_answer().error_message


def test_a_refused_token_is_told_and_then_the_refusal(world, caplog):
    client = Client(world)
    answer = by_bearer(client, world, -60)
    assert (answer.error_code, bytes(answer.auth_bytes)) == (0, b'{"status":"invalid_token"}')
    assert client.authenticate(b"\x01") is None
    answer = client.late_answer()
    assert answer.error_code == Error.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == '{"status":"invalid_token"}'
    [line] = caplog.messages
    assert "OAUTHBEARER" in line
    assert "it has expired" in line
    assert "eyJ" not in line, "no token is in it"


def test_a_token_that_says_nothing_ends_the_connection(world):
    client = Client(world)
    client.handshake("OAUTHBEARER")
    assert client.authenticate(b"n,,\x01auth=Bearer e30.e30.\x01\x01") is None
    assert client.link.is_ended
