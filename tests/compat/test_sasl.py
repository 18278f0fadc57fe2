"""Logins, on both brokers: each client with each mechanism, refused alike, and again in time."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from aiokafka import AIOKafkaProducer

from kafkalite.client.addresses import addresses
from kafkalite.client.cluster import Cluster
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import AlterUserScramCredentialsRequest, MetadataRequest
from kafkalite.security.client_login import Login, Security
from kafkalite.security.scram import BY_NAME
from tests.compat import brokers
from tests.compat.brokers import Broker, free_ports
from tests.compat.sasl_talk import (
    CONVERSATIONS,
    DELAY_MS,
    METADATA,
    PASSWORD,
    RIGHT,
    Raw,
    converse,
    shake,
    token,
)
from tests.compat.waiting import eventually
from tests.sampled import sampled

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
SESSION_MS = 3_000
PREFIX = "listener.name.secure"
WAIT_S = 20
MODULE = "org.apache.kafka.common.security.{}.{}LoginModule required"
PLAIN_JAAS = MODULE.format("plain", "Plain")
SCRAM_JAAS = MODULE.format("scram", "Scram")


class Secured:
    """A broker with a listener that has its clients log in, beside one that does not."""

    def __init__(self, broker: Broker, port: int) -> None:
        self.broker, self.port = broker, port
        self.bootstrap = f"127.0.0.1:{port}"

    def add_users(self) -> None:
        upsertion = AlterUserScramCredentialsRequest.Upsertion
        for scram in BY_NAME.values():  # a user stands in a request once
            self._alter(
                upsertion(
                    name="alice", mechanism=scram.number, iterations=4096, salt=b"salt",
                    salted_password=scram.salted(PASSWORD, b"salt", 4096),
                )
            )  # fmt: skip
        logins = [Login(name, "alice", PASSWORD) for name in BY_NAME]
        eventually(self.broker, lambda: all(self.lets_in(login) for login in logins))

    def _alter(self, upsertion: Any) -> None:
        cluster = Cluster(addresses(self.broker.bootstrap))
        answer = cluster.ask_any(AlterUserScramCredentialsRequest(upsertions=[upsertion]))
        assert [each.error_code for each in answer.results] == [Error.NONE]
        cluster.close()

    def lets_in(self, login: Login) -> bool:
        cluster = Cluster(addresses(self.bootstrap), security=Security(login=login))
        try:
            return bool(cluster.ask_any(MetadataRequest(topics=[])).brokers)
        except Exception:  # noqa: BLE001 - whatever it is, it is no login
            return False
        finally:
            cluster.close()


def secured(start_broker: Callable[..., Broker], **more: str) -> Secured:
    plain, port, controller = free_ports(3)
    listeners = f"PLAINTEXT://127.0.0.1:{plain},SECURE://127.0.0.1:{port}"
    settings = {
        "advertised.listeners": listeners,
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,SECURE:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        f"{PREFIX}.plain.sasl.jaas.config": f'{PLAIN_JAAS} user_alice="{PASSWORD}";',
        f"{PREFIX}.scram-sha-256.sasl.jaas.config": f"{SCRAM_JAAS};",
        f"{PREFIX}.scram-sha-512.sasl.jaas.config": f"{SCRAM_JAAS};",
        "connection.failed.authentication.delay.ms": str(DELAY_MS),
        "connections.max.reauth.ms": str(SESSION_MS),
        **more,
    }
    here = {"listeners": listeners}
    there = {
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controller}",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
    }
    kind = start_broker.kind  # type: ignore[attr-defined]
    broker = start_broker({**settings, **(here if kind == "kafkalite" else there)}, port=plain)
    return Secured(broker, port)


@pytest.fixture(scope="module")
def place(broker_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    def start(overrides: dict[str, str], port: int) -> Broker:
        return brokers.start(broker_kind, tmp_path_factory.mktemp("sasl"), overrides, port=port)

    start.kind = broker_kind  # type: ignore[attr-defined]
    found = secured(start)
    found.add_users()
    yield found
    found.broker.stop()


# --- clients --------------------------------------------------------------------------------------


# In a process of its own: one whose constructor fails leaves the sockets of its loop open.
KAFKA_PYTHON = """
import sys
from kafka import KafkaProducer

bootstrap, mechanism, password = sys.argv[1:]
try:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism,
        sasl_plain_username="alice", sasl_plain_password=password, bootstrap_timeout_ms=5_000,
    )
    producer.send(f"kafka-python-{mechanism}", b"v").get(5)
    print("written")
except Exception as error:
    print(type(error).__name__)
"""


def kafka_python(place: Secured, mechanism: str, password: str) -> str:
    call = [sys.executable, "-c", KAFKA_PYTHON, place.bootstrap, mechanism, password]
    done = subprocess.run(call, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.strip() or done.stderr


def aiokafka(place: Secured, mechanism: str, password: str) -> str:
    async def write() -> str:
        producer = AIOKafkaProducer(
            bootstrap_servers=place.bootstrap, security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism, sasl_plain_username="alice", sasl_plain_password=password,
            request_timeout_ms=5_000,
        )  # fmt: skip
        try:
            await producer.start()
            await producer.send_and_wait(f"aiokafka-{mechanism}", b"v")
        except Exception as error:  # noqa: BLE001
            return type(error).__name__
        finally:
            await producer.stop()
        return "written"

    return asyncio.run(write())


def confluent(place: Secured, mechanism: str, password: str) -> str:
    errors: list[Any] = []
    producer = confluent_kafka.Producer({
        "bootstrap.servers": place.bootstrap, "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism, "sasl.username": "alice", "sasl.password": password,
        "error_cb": errors.append, "message.timeout.ms": 8_000,
    })  # fmt: skip
    delivered: list[Any] = []
    producer.produce(
        f"confluent-{mechanism}", b"v", on_delivery=lambda error, _: delivered.append(error)
    )
    deadline = time.monotonic() + WAIT_S
    while not delivered and not _is_refused(errors) and time.monotonic() < deadline:
        producer.poll(0.1)
    if _is_refused(errors):
        producer.purge()
        producer.flush(1)
        return next(each.name() for each in errors if _is_refused([each]))
    return "written" if delivered == [None] else str(delivered)


def _is_refused(errors: list[Any]) -> bool:
    names = ("_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_SASL_MECHANISM")
    return any(each.name() in names for each in errors)


CLIENTS = {"kafka-python": kafka_python, "aiokafka": aiokafka, "confluent": confluent}
# What each says of a wrong password, on both brokers.
REFUSALS = {
    "kafka-python": "KafkaTimeoutError",
    "aiokafka": "KafkaConnectionError",
    "confluent": "_AUTHENTICATION",
}


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("client", CLIENTS)
def test_the_right_password_lets_a_client_in(place, client, mechanism):
    assert CLIENTS[client](place, mechanism, PASSWORD) == "written"


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_wrong_password_is_the_same_error_to_a_client(place, client, mechanism):
    assert CLIENTS[client](place, mechanism, "wrong") == REFUSALS[client]


def jaas(mechanism: str, password: str) -> str:
    module = PLAIN_JAAS if mechanism == "PLAIN" else SCRAM_JAAS
    return f'{module} username="alice" password="{password}";'


def java_config(folder: Any, mechanism: str, password: str) -> str:
    path = folder / f"{mechanism}-{password}.properties"
    path.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
        f"sasl.jaas.config={jaas(mechanism, password)}\ndefault.api.timeout.ms=8000\n"
        "request.timeout.ms=5000\n"
    )
    return str(path)


TOPICS = "org.apache.kafka.tools.TopicCommand"


@pytest.mark.xdist_group("java-tools")
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_javas_tools_log_in_and_are_refused(place, tools, tmp_path, mechanism):
    topic = f"java-{mechanism}"
    right, wrong = (java_config(tmp_path, mechanism, each) for each in (PASSWORD, "wrong"))
    words = ("--bootstrap-server", place.bootstrap, "--command-config")
    made = tools.run(TOPICS, *words, right, "--create", "--topic", topic)
    assert f"Created topic {topic}." in made
    told = "Authentication failed during authentication due to invalid credentials with SASL "
    told += f"mechanism {mechanism}"
    if mechanism == "PLAIN":
        told = "Authentication failed: Invalid username or password"
    refused = tools.run(TOPICS, *words, wrong, "--list")
    assert f"Error while executing topic command : {told}" in refused


@pytest.mark.xdist_group("java-tools")
def test_javas_tools_are_told_of_a_mechanism_that_is_not_there(start_other, tools, tmp_path):
    words = ("--bootstrap-server", start_other.bootstrap, "--command-config")
    said = tools.run(TOPICS, *words, java_config(tmp_path, "PLAIN", PASSWORD), "--list")
    assert (
        "Error while executing topic command : Client SASL mechanism 'PLAIN' not enabled in the "
        "server, enabled mechanisms are [SCRAM-SHA-256]"
    ) in said


@pytest.fixture
def start_other(broker_kind: str, start_broker: Callable[..., Broker]) -> Secured:
    def start(overrides: dict[str, str], port: int) -> Broker:
        return start_broker(overrides, port=port)

    start.kind = broker_kind  # type: ignore[attr-defined]
    return secured(start, **{"sasl.enabled.mechanisms": "SCRAM-SHA-256"})


@pytest.mark.parametrize("mechanism", sampled(MECHANISMS, "SCRAM-SHA-512"))
def test_librdkafka_logs_in_again_and_goes_on(place, mechanism):
    producer = confluent_kafka.Producer({
        "bootstrap.servers": place.bootstrap, "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism, "sasl.username": "alice", "sasl.password": PASSWORD,
    })  # fmt: skip
    failed: list[Any] = []

    def delivered(error: Any, _: Any) -> None:
        failed.extend([error] if error else [])

    until = time.monotonic() + 2.5 * SESSION_MS / 1_000
    while time.monotonic() < until:
        producer.produce(f"again-{mechanism}", b"v", on_delivery=delivered)
        producer.poll(0.1)
    assert producer.flush(WAIT_S) == 0
    assert failed == []


# --- conversations, byte by byte ------------------------------------------------------------------


# What Apache Kafka said to each; SASL_RECORD=1 with its broker writes the file anew.
HEARD = Path(__file__).parent / "sasl_conversations.json"


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_a_conversation_goes_as_with_apache_kafka(place, name):
    heard = json.loads(HEARD.read_text()) if HEARD.exists() else {}
    found = list(map(str, converse(place.port, CONVERSATIONS[name])))
    if "SASL_RECORD" in os.environ and not place.broker.is_kafkalite:
        HEARD.write_text(json.dumps(heard | {name: found}, indent=1, sort_keys=True) + "\n")
    else:
        assert found == heard[name]


def test_who_is_unknown_is_told_so_by_apache_kafka_alone(place):
    """Here it gets a challenge as anybody does, and the same refusal at its proof."""
    first = token(b"n,,n=nobody,r=abc")
    heard = converse(place.port, [shake("SCRAM-SHA-256"), first, token(b"c=biws,r=NONCE,p=AAAA")])
    assert ("'error_code': 58" in heard[1]) is not place.broker.is_kafkalite
    assert heard[-1] == "closed"


@pytest.mark.parametrize(("size", "is_taken"), [(200_000, True), (524_000, True), (524_400, False)])
def test_a_message_may_be_as_long_as_the_setting_lets_in(place, size, is_taken):
    """sasl.server.max.receive.size, of both."""
    first = b"n,,n=alice,r=abc,a=" + b"x" * size
    heard = converse(place.port, [shake("SCRAM-SHA-256"), token(first)])
    assert (heard[-1] != "closed") is is_taken
    if is_taken:
        assert "'error_code': 0" in heard[1]


def test_a_session_that_is_over_ends_with_the_next_request(place):
    raw = Raw(place.port)
    raw.ask(*shake("PLAIN")).ask(*token(RIGHT))
    time.sleep(SESSION_MS / 1_000 + 0.2)
    raw.ask(*METADATA)
    assert raw.close()[-2:] == ["closed", "closed"]


def test_a_refusal_comes_after_the_delay(place):
    raw = Raw(place.port).ask(*shake("PLAIN"))
    began = time.monotonic()
    raw.ask(*token(b"\0alice\0no"))
    assert DELAY_MS / 1_000 * 0.9 <= time.monotonic() - began < 5
    assert raw.close()[-1] == "closed"


def test_no_secret_is_in_the_brokers_log(place):
    if place.broker.is_kafkalite:
        assert PASSWORD not in place.broker.log()
