"""Logins as connections lead them: in turn, refused, again, and what is out of turn."""

import logging
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import FetchRequest, MetadataRequest, ProduceRequest
from kafkalite.security.client_login import Login
from kafkalite.server.limits import SWEEP_MS
from kafkalite.server.login import LOGIN_MS, MOST_LONG_BYTES
from tests.unit.server.logins import DELAY_MS, LISTENER, PASSWORD, PLAIN, Client, add_user, broker

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
INVALID = "Authentication failed during {} due to invalid credentials with SASL mechanism {}"


@pytest.fixture
def world():
    world = broker()
    for mechanism in MECHANISMS[1:]:
        add_user(world, "alice", mechanism)
    yield world
    world.close()


def principal_of(world):
    [connection] = world.broker.server._connections
    return connection.info.principal


# --- the way in -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("version", [0, 1, 2])
def test_who_logs_in_is_served_under_its_name(world, mechanism, version):
    client = Client(world)
    assert client.versions().error_code == 0
    answer = client.log_in(Login(mechanism, "alice", PASSWORD), version)
    assert (answer.error_code, answer.session_lifetime_ms) == (Error.NONE, 0)
    assert client.metadata().cluster_id
    assert principal_of(world) == "User:alice"


def test_a_handshake_may_be_the_first_of_all(world):
    assert Client(world).log_in().error_code == 0


@pytest.mark.parametrize("version", [0, 1])
def test_a_handshake_tells_what_there_is_in_the_order_of_a_java_set(world, version):
    client = Client(world)
    told = client.handshake("PLAIN", version).mechanisms
    assert told == ["PLAIN", "SCRAM-SHA-512", "SCRAM-SHA-256"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_after_the_first_version_of_the_handshake_tokens_go_as_they_are(world, mechanism):
    client = Client(world)
    client.handshake(mechanism, 0)
    token: bytes | None
    token, go_on = Login(mechanism, "alice", PASSWORD).begin(random.Random(1))
    while token is not None:
        client.say(token)
        answer = client.token()
        assert answer is not None
        token = go_on(answer)
    assert client.metadata().cluster_id


def test_versions_may_be_asked_for_until_they_have_been_told(world):
    client = Client(world)
    assert client.versions(3, "no name!").error_code == Error.INVALID_REQUEST
    assert client.versions().error_code == 0
    assert client.versions() is None
    assert client.link.is_ended


# --- refusals -------------------------------------------------------------------------------------


def test_a_wrong_password_is_told_after_a_while_and_then_the_connection_ends(world, caplog):
    client = Client(world)
    assert client.log_in(Login("PLAIN", "alice", "wrong-" + PASSWORD)) is None
    answer = client.late_answer()
    assert answer.error_code == Error.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == "Authentication failed: Invalid username or password"
    assert client.link.is_ended
    [line] = caplog.messages
    for part in ("203.0.113.7", "'alice'", "PLAIN", LISTENER, "Invalid username or password"):
        assert part in line
    assert PASSWORD not in line


@pytest.mark.parametrize("mechanism", MECHANISMS[1:])
@pytest.mark.parametrize("user", ["alice", "nobody"])
def test_scram_tells_neither_what_was_wrong_nor_who_is_there(world, mechanism, user):
    client = Client(world)
    assert client.log_in(Login(mechanism, user, "wrong")) is None
    answer = client.late_answer()
    assert answer.error_code == Error.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == INVALID.format("authentication", mechanism)


def test_an_unknown_mechanism_is_told_of_with_those_there_are(world):
    client = Client(world)
    assert client.handshake("GSSAPI") is None
    answer = client.late_answer()
    assert answer.error_code == Error.UNSUPPORTED_SASL_MECHANISM
    assert sorted(answer.mechanisms) == sorted(MECHANISMS)
    assert client.link.is_ended


def test_without_a_delay_it_is_told_at_once():
    world = broker(connection_failed_authentication_delay_ms="0")
    client = Client(world)
    assert client.log_in(Login("PLAIN", "alice", "wrong")).error_code
    world.clock.advance(SWEEP_MS)
    assert client.link.is_ended
    world.close()


def test_who_is_refused_is_not_heard_meanwhile(world):
    client = Client(world)
    client.log_in(Login("PLAIN", "alice", "wrong"))
    client.say(b"\0alice\0" + PASSWORD.encode())
    assert not client.link.is_reading
    world.clock.advance(DELAY_MS + SWEEP_MS)
    assert client.link.is_ended


def test_who_goes_before_it_is_told_leaves_nothing_behind(world):
    client = Client(world)
    client.log_in(Login("PLAIN", "alice", "wrong"))
    client.link.abort()
    world.clock.advance(DELAY_MS)
    assert client.link.replies()[1:] == []


def test_a_token_that_breaks_the_mechanism_ends_the_connection_at_once(world):
    client = Client(world)
    client.handshake("SCRAM-SHA-256")
    challenge = client.authenticate(b"n,,n=alice,r=abc")
    nonce = bytes(challenge.auth_bytes).partition(b",")[0]
    assert client.authenticate(b"c=biws," + nonce + b",p=AAAA") is None
    assert client.link.is_ended


# --- out of turn ----------------------------------------------------------------------------------


@pytest.mark.parametrize("greeted", [False, True])
@pytest.mark.parametrize(
    "request_", [MetadataRequest(topics=[]), ProduceRequest(acks=1), FetchRequest()]
)
def test_whatever_else_is_asked_before_a_login_ends_the_connection(world, request_, greeted):
    client = Client(world)
    if greeted:
        client.versions()
    assert client.ask(request_, 12) is None
    assert client.link.is_ended


def test_a_token_before_a_mechanism_ends_the_connection(world):
    client = Client(world)
    assert client.authenticate(b"\0alice\0" + PASSWORD.encode()) is None
    assert client.link.is_ended


@pytest.mark.parametrize(
    "first", [b"", b"\0", b"\x60\x82\x01\x02GSSAPI token", b"n,,n=alice,r=x", b"\xff" * 100]
)
def test_what_is_no_request_ends_the_connection(world, first, caplog):
    client = Client(world)
    client.say(first)
    assert client.link.is_ended
    [line] = caplog.messages
    assert "failed to log in" in line


def test_another_request_among_tokens_is_told_that_it_is_out_of_turn(world):
    client = Client(world)
    client.handshake()
    assert client.ask(MetadataRequest(topics=[MetadataRequest.Topic(name="t")]), 9) is None
    answer = client.late_answer()
    assert [each.error_code for each in answer.topics] == [Error.ILLEGAL_SASL_STATE]
    assert client.link.is_ended


def test_a_large_one_among_tokens_is_not_even_read(world):
    client = Client(world)
    client.handshake()
    topics = [MetadataRequest.Topic(name=f"topic-{number}") for number in range(2_000)]
    assert client.ask(MetadataRequest(topics=topics), 9) is None
    assert client.link.is_ended


def test_a_second_handshake_is_out_of_turn(world):
    client = Client(world)
    client.handshake()
    assert client.handshake() is None
    assert client.late_answer().error_code == Error.ILLEGAL_SASL_STATE


@pytest.mark.parametrize("logged_in", [False, True])
def test_frames_are_small_until_somebody_has_logged_in(world, logged_in, caplog):
    client = Client(world)
    if logged_in:
        client.log_in()
    client.say(b"x" * 600_000)
    assert client.link.is_ended
    assert ("sasl.server.max.receive.size" in caplog.text) is not logged_in


def test_a_message_of_scram_may_be_as_long_as_a_request(world):
    client = Client(world)
    client.handshake("SCRAM-SHA-512")
    nonce = b"x" * 500_000
    assert nonce in client.authenticate(b"n,,n=alice,r=" + nonce).auth_bytes


def test_long_challenges_have_so_much_memory_until_their_clients_have_ended(world, caplog):
    size, clients = 400_000, []
    for port in range(30):
        client = Client(world, 40_000 + port)
        client.handshake("SCRAM-SHA-256")
        client.authenticate(b"n,,n=alice,r=" + b"x" * size)
        clients.append(client)
    heard = [each for each in clients if not each.link.is_ended]
    assert len(heard) == MOST_LONG_BYTES // size
    assert "long challenges" in caplog.text
    assert Client(world).log_in(Login("SCRAM-SHA-256", "alice", PASSWORD)).error_code == 0
    heard[0].link.abort()
    again = Client(world, 41_000)
    again.handshake("SCRAM-SHA-256")
    assert again.authenticate(b"n,,n=alice,r=" + b"x" * size).error_code == 0


@pytest.mark.parametrize(("head", "name"), [(b"GET / HTTP/1.1", "HTTP"), (b"\x16\x03\x01", "TLS")])
def test_another_protocol_is_told_in_its_own_words(world, head, name, caplog):
    client = Client(world)
    client.send(head.ljust(20))
    assert client.link.is_ended
    assert client.link.sent
    assert f"it speaks {name} to a listener of SASL_PLAINTEXT" in caplog.text


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_who_does_not_come_to_an_end_is_cut_off(world, steps):
    client = Client(world)
    if steps:
        client.versions()
    if steps > 1:
        client.handshake()
    world.clock.advance(LOGIN_MS - SWEEP_MS)
    assert not client.link.is_ended
    world.clock.advance(3 * SWEEP_MS)
    assert client.link.is_ended


def test_who_has_logged_in_stays(world):
    client = Client(world)
    client.log_in()
    for _ in range(20):
        world.clock.advance(LOGIN_MS // 10)
        client.metadata()
    assert not client.link.is_ended


def test_thousands_that_stall_cost_their_few_bytes_and_few_lines(world, caplog):
    clients = [Client(world, 1_000 + number) for number in range(2_000)]
    for client in clients:
        client.send((500_000).to_bytes(4, "big") + b"\0" * 10)
    assert world.broker.server._common.memory.used <= 2_000 * 20
    world.clock.advance(LOGIN_MS + 2 * SWEEP_MS)
    assert all(client.link.is_ended for client in clients)
    assert len(caplog.messages) < 100


def test_one_who_is_in_asks_for_a_login_out_of_turn(world):
    client = Client(world)
    client.log_in()
    assert client.handshake().error_code == Error.ILLEGAL_SASL_STATE
    assert client.handshake().mechanisms == []
    answer = client.authenticate(b"\0alice\0" + PASSWORD.encode())
    assert answer.error_code == Error.ILLEGAL_SASL_STATE
    assert "after successful authentication" in answer.error_message
    assert client.metadata().cluster_id


# --- users that come and go -----------------------------------------------------------------------


def test_another_password_holds_from_the_next_login_on(world):
    inside = Client(world)
    inside.log_in(Login("SCRAM-SHA-256", "alice", PASSWORD))
    add_user(world, "alice", "SCRAM-SHA-256", "new")
    assert inside.metadata().cluster_id
    assert Client(world).log_in(Login("SCRAM-SHA-256", "alice", PASSWORD)) is None
    assert Client(world).log_in(Login("SCRAM-SHA-256", "alice", "new")).error_code == 0


# --- once more ------------------------------------------------------------------------------------


SESSION_MS = 10_000


@pytest.fixture
def strict():
    world = broker(connections_max_reauth_ms=str(SESSION_MS))
    add_user(world, "alice", "SCRAM-SHA-256")
    yield world
    world.close()


@pytest.mark.parametrize(("version", "told"), [(0, 0), (1, SESSION_MS), (2, SESSION_MS)])
def test_a_login_that_holds_for_a_while_says_so(strict, version, told):
    client = Client(strict)
    assert client.log_in(version=version).session_lifetime_ms == told


def test_who_logs_in_again_in_time_goes_on(strict):
    client = Client(strict)
    client.log_in()
    for _ in range(5):
        strict.clock.advance(SESSION_MS - 1_000)
        assert client.log_in().session_lifetime_ms == SESSION_MS
        assert client.metadata().cluster_id
    strict.clock.advance(SESSION_MS)
    assert client.metadata().cluster_id
    strict.clock.advance(1)
    assert client.metadata() is None
    assert client.link.is_ended


def test_it_may_be_too_late_and_still_be_the_next_request(strict):
    client = Client(strict)
    client.log_in()
    strict.clock.advance(2 * SESSION_MS)
    assert client.log_in().error_code == 0
    assert client.metadata().cluster_id


def test_twice_within_a_second_is_once_too_often(strict):
    client = Client(strict)
    client.log_in()
    assert client.log_in().error_code == 0, "the first again"
    strict.clock.advance(999)
    assert client.handshake().error_code == Error.ILLEGAL_SASL_STATE
    strict.clock.advance(1)
    assert client.log_in().error_code == 0


def test_nobody_becomes_somebody_else(strict, caplog):
    client = Client(strict)
    client.log_in()
    assert client.log_in(Login("PLAIN", "bob", PASSWORD)) is None
    answer = client.late_answer()
    assert answer.error_code == Error.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == (
        "Cannot change principals during re-authentication from User.alice: User.bob"
    )
    assert client.link.is_ended
    assert "'bob'" in caplog.text


def test_another_mechanism_is_heard_of_by_the_connections_end(strict):
    client = Client(strict)
    client.log_in()
    assert client.handshake("SCRAM-SHA-256").error_code == 0
    assert client.authenticate(b"n,,n=alice,r=abc") is None
    assert client.late_answer() is None
    assert client.link.is_ended


def test_an_unknown_mechanism_the_second_time_ends_the_connection_at_once(strict):
    client = Client(strict)
    client.log_in()
    assert client.handshake("GSSAPI") is None
    assert client.link.is_ended


def test_a_wrong_password_the_second_time(strict):
    client = Client(strict)
    scram = Login("SCRAM-SHA-256", "alice", PASSWORD)
    client.log_in(scram)
    assert client.log_in(Login("SCRAM-SHA-256", "alice", "wrong")) is None
    told = client.late_answer().error_message
    assert told == INVALID.format("re-authentication", "SCRAM-SHA-256")


def test_requests_that_come_among_tokens_are_not_carried_out(strict):
    client = Client(strict)
    client.log_in()
    client.handshake()
    assert client.metadata() is None
    assert client.late_answer() is not None
    assert client.link.is_ended


# --- whatever comes -------------------------------------------------------------------------------


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(max_size=60), max_size=5), st.sampled_from((None, *MECHANISMS)))
def test_no_bytes_let_anybody_in_nor_raise(world, frames, mechanism):
    client = Client(world)
    if mechanism is not None:
        client.handshake(mechanism, 0)
    for each in frames:
        client.say(each)
    inside = world.broker.server._connections
    assert [each.info.principal for each in inside] == ["User:ANONYMOUS"] * len(inside)
    client.link.abort()


def test_no_secret_is_in_any_line(world, caplog):
    caplog.set_level(logging.DEBUG)
    for mechanism in MECHANISMS:
        Client(world).log_in(Login(mechanism, "alice", PASSWORD + "x"))
        Client(world).log_in(Login(mechanism, "alice", PASSWORD))
    client = Client(world)
    client.handshake("PLAIN", 0)
    client.say(PASSWORD.encode())
    client = Client(world)
    client.say(b"\0alice\0" + PASSWORD.encode())
    world.clock.advance(DELAY_MS)
    assert caplog.messages
    assert PASSWORD not in caplog.text
    assert PLAIN.user in caplog.text
