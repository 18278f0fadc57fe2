"""A login between brokers: its requests in order, who is refused, and a new one before it ends."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import confluent_kafka
import pytest

from kafkalite.env.background import InlineBackground
from kafkalite.peers.login import Entry
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    SaslAuthenticateResponse,
    SaslHandshakeResponse,
)
from kafkalite.security.client_login import Login
from kafkalite.security.mechanisms import Challenge, LoggedIn
from kafkalite.security.scram import BY_NAME, ScramExchange
from kafkalite.testing.embedded import BrokerFailed, EmbeddedKafka
from tests.unit.peers.world import FakeLink, World, found, greeting

SCRAM = BY_NAME["SCRAM-SHA-256"]
PLAIN_ENTRY = Entry(Login("PLAIN", "broker", "hunter2"), Random(1), InlineBackground())


def greeted(world: World) -> FakeLink:
    link = world.network.succeed()
    link.answer(greeting())
    return link


def let_in(link: FakeLink, session_ms: int = 0) -> None:
    link.answer(SaslHandshakeResponse(mechanisms=["PLAIN"]))
    link.answer(SaslAuthenticateResponse(session_lifetime_ms=session_ms))


def names(link: FakeLink) -> list[str]:
    return [type(request).__name__.removesuffix("Request") for _, request in link.requests]


def test_nothing_is_asked_before_it_is_let_in() -> None:
    world = World(PLAIN_ENTRY)
    asked = world.ask("a")
    link = greeted(world)
    assert names(link) == ["SaslHandshake"]
    link.answer(SaslHandshakeResponse(mechanisms=["PLAIN"]))
    assert names(link) == ["SaslAuthenticate"]
    assert link.requests[0][1].auth_bytes == b"\0broker\0hunter2"
    link.answer(SaslAuthenticateResponse())
    assert names(link) == ["FindCoordinator"]
    link.answer(found("a"))
    assert asked.value.coordinators[0].key == "a"


def test_scram_comes_to_an_end_with_a_real_server() -> None:
    login = Login("SCRAM-SHA-256", "broker", "hunter2")
    salted = SCRAM.salted("hunter2", b"salt", 4096)
    stored, server_key = SCRAM.keys(salted)
    credential = SimpleNamespace(
        salt=b"salt", stored_key=stored, server_key=server_key, iterations=4096
    )
    server = ScramExchange(
        SCRAM, lambda user: credential, Random(2), b"s", lambda token_id: None
    )
    world = World(Entry(login, Random(1), InlineBackground()))
    asked = world.ask("a")
    link = greeted(world)
    link.answer(SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]))
    for kind in (Challenge, LoggedIn):
        step = server.take(bytes(link.requests[0][1].auth_bytes))
        assert isinstance(step, kind)
        link.answer(SaslAuthenticateResponse(auth_bytes=step.token))
    link.answer(found("a"))
    assert asked.value.coordinators[0].key == "a"


@pytest.mark.parametrize("answers", [
    [SaslHandshakeResponse(error_code=33, mechanisms=["SCRAM-SHA-512"])],
    [
        SaslHandshakeResponse(mechanisms=["PLAIN"]),
        SaslAuthenticateResponse(error_code=58, error_message="Invalid username or password"),
    ],
])  # fmt: skip
def test_who_is_refused_is_told_once_and_tries_again(
    answers: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    world = World(PLAIN_ENTRY)
    for _ in range(3):
        asked = world.ask("a")
        link = greeted(world)
        for answer in answers:
            link.answer(answer)
        assert isinstance(asked.value, KafkaError)
        assert asked.value.code is Error.NETWORK_EXCEPTION
        world.clock.advance(1_000)
    assert caplog.text.count("failed authentication") == 1
    assert "hunter2" not in caplog.text


def test_a_login_that_is_about_to_end_is_made_anew_on_another_connection() -> None:
    world = World(PLAIN_ENTRY)
    first = world.ask("a")
    link = greeted(world)
    let_in(link, session_ms=10_000)
    world.clock.advance(9_000)
    later = world.ask("b")  # behind what is under way
    assert names(link) == ["FindCoordinator"]
    link.answer(found("a"))
    assert first.value.coordinators[0].key == "a"
    assert not link.is_open
    link = greeted(world)
    let_in(link, session_ms=10_000)
    link.answer(found("b"))
    assert later.value.coordinators[0].key == "b"


def test_an_answer_of_a_worker_that_comes_too_late_is_nobodys() -> None:
    class Late:
        def __init__(self) -> None:
            self.jobs: list[Any] = []

        def submit(self, job: Any, done: Any) -> None:
            self.jobs.append((job, done))

    late = Late()
    world = World(Entry(Login("PLAIN", "broker", "hunter2"), Random(1), late))
    asked = world.ask("a")
    link = greeted(world)
    let_in(link)
    link.abort()
    assert isinstance(asked.value, KafkaError)
    world.clock.advance(1_000)
    again = world.ask("b")
    for job, done in late.jobs[:1]:
        done(job())
    assert not again.is_resolved


# --- brokers of a test ----------------------------------------------------------------------------

USERS = {"alice": "a-secret"}


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
@pytest.mark.parametrize("security", ["sasl_plaintext", "sasl_ssl"])
def test_several_brokers_log_in_at_each_other(security: str, mechanism: str) -> None:
    rules = ["User:alice all topic *", "User:alice all transactional_id *"]
    with EmbeddedKafka(
        security=security, mechanism=mechanism, users=USERS, acls=rules, brokers=3,
        topics={"t": 6}, settings={"connections.max.reauth.ms": 1_000},
    ) as kafka:  # fmt: skip
        told = {**kafka.client_config("confluent"), "transactional.id": "t"}
        producer = confluent_kafka.Producer(told)
        producer.init_transactions(20)
        for _ in range(2):
            producer.begin_transaction()
            for partition in range(6):
                producer.produce("t", b"x", partition=partition)
            producer.commit_transaction(20)
        assert len(kafka.records("t", count=12)) == 12


SETTINGS = {
    "listeners": "INSIDE://127.0.0.1:0",
    "listener.security.protocol.map": "INSIDE:SASL_PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
}
KEY_OF_PLAIN = "listener.name.inside.plain.sasl.jaas.config"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def test_a_server_properties_says_as_whom() -> None:
    jaas = f'{MODULE} username="b" password="s" user_b="s" user_alice="a-secret";'
    with EmbeddedKafka(settings={**SETTINGS, KEY_OF_PLAIN: jaas}, brokers=2, topics={"t": 2}) as it:
        told = {
            "bootstrap.servers": it.bootstrap_servers, "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": "a-secret",
        }  # fmt: skip
        producer = confluent_kafka.Producer({**told, "transactional.id": "t"})
        producer.init_transactions(20)
        producer.begin_transaction()
        for partition in range(2):
            producer.produce("t", b"x", partition=partition)
        producer.commit_transaction(20)


@pytest.mark.parametrize(("changes", "why"), [
    ({KEY_OF_PLAIN: f'{MODULE} user_b="s";'}, f"{KEY_OF_PLAIN}: brokers log in at each other"),
    ({"sasl.mechanism.inter.broker.protocol": "GSSAPI", KEY_OF_PLAIN: f'{MODULE} user_b="s";'},
     "sasl.mechanism.inter.broker.protocol: .*GSSAPI is not served"),
])  # fmt: skip
def test_several_that_could_not_log_in_do_not_start(changes: dict[str, str], why: str) -> None:
    with pytest.raises(BrokerFailed, match=why):
        EmbeddedKafka(settings={**SETTINGS, **changes}, brokers=2).start()

