"""Listeners with TLS, on both brokers: Java's stores, certificates of clients, and what is wrong.

Three listeners: SSL with a PKCS #12 store, MUTUAL with a JKS store and certificates required, and
INLINE with texts of PEM and certificates requested.
"""

from __future__ import annotations

import asyncio
import gc
import re
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import aiokafka
import confluent_kafka
import kafka
import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from kafkalite.security.authority import Issued
from kafkalite.testing.embedded import EmbeddedKafka
from tests.compat import brokers
from tests.compat.brokers import Broker
from tests.compat.java_tools import JavaTools
from tests.compat.tls_keys import Keys
from tests.sampled import sampled

LISTENERS = ("SSL", "MUTUAL", "INLINE")
LARGE = b"x" * 1_000_000
VALUES = [b"small", LARGE, b"last"]
PATIENCE_S = 30
TOPICS = "org.apache.kafka.tools.TopicCommand"
PRODUCE = "org.apache.kafka.tools.ConsoleProducer"
CONSUME = "org.apache.kafka.tools.consumer.ConsoleConsumer"

# A client of kafka-python that is kept out leaves its sockets to the garbage collector.
pytestmark = [
    pytest.mark.xdist_group("tls"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]


@dataclass(frozen=True)
class Guarded:
    """A broker with its encrypted listeners."""

    broker: Broker
    keys: Keys
    ports: dict[str, int]

    def at(self, listener: str) -> str:
        return f"127.0.0.1:{self.ports[listener]}"


@pytest.fixture(scope="module")
def keys(tmp_path_factory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"), int(time.time() * 1000))


@pytest.fixture(scope="module")
def guarded(broker_kind: str, keys: Keys, tmp_path_factory) -> Iterator[Guarded]:
    plain, controller, *ports = brokers.free_ports(2 + len(LISTENERS))
    of_listeners = dict(zip(LISTENERS, ports, strict=True))
    opened = {"PLAINTEXT": plain, **of_listeners}
    addresses = ",".join(f"{name}://127.0.0.1:{port}" for name, port in opened.items())
    settings = {
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"{addresses},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": addresses,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,"
        "MUTUAL:SSL,INLINE:SSL",
        "message.max.bytes": "2000000",
        **keys.listeners("\n" if broker_kind == brokers.KAFKALITE else r"\n"),
    }
    folder: Path = tmp_path_factory.mktemp("tls")
    broker = brokers.start(broker_kind, folder, settings, port=plain)
    for port in ports:
        wait_for(port)
    yield Guarded(broker, keys, of_listeners)
    broker.stop()


def wait_for(port: int) -> None:
    """Apache Kafka opens its listeners one after the other."""
    end = time.monotonic() + PATIENCE_S
    while True:
        with suppress(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port)).close()
            return
        assert time.monotonic() < end, "a listener was never opened"
        time.sleep(0.05)


def shown_at(listener: str, keys: Keys) -> Issued | None:
    return keys.client if listener == "MUTUAL" else None


# --- what is written is read ----------------------------------------------------------------------


@pytest.mark.parametrize("listener", LISTENERS)
def test_kafka_python(guarded: Guarded, topic: str, listener: str) -> None:
    context = guarded.keys.context(shown_at(listener, guarded.keys))
    common = {"bootstrap_servers": guarded.at(listener), "security_protocol": "SSL",
              "ssl_context": context}  # fmt: skip
    producer = kafka.KafkaProducer(**common, max_request_size=2_000_000)
    for value in VALUES:
        producer.send(topic, value).get(PATIENCE_S)
    producer.close()
    consumer = kafka.KafkaConsumer(
        topic, **common, auto_offset_reset="earliest", consumer_timeout_ms=PATIENCE_S * 1000
    )
    assert [next(consumer).value for _ in VALUES] == VALUES
    consumer.close()


@pytest.mark.parametrize("listener", LISTENERS)
def test_aiokafka(guarded: Guarded, topic: str, listener: str) -> None:
    context = guarded.keys.context(shown_at(listener, guarded.keys))
    common = {"bootstrap_servers": guarded.at(listener), "security_protocol": "SSL",
              "ssl_context": context}  # fmt: skip

    async def write_and_read() -> list[bytes]:
        async with aiokafka.AIOKafkaProducer(**common, max_request_size=2_000_000) as producer:
            for value in VALUES:
                await producer.send_and_wait(topic, value)
        async with aiokafka.AIOKafkaConsumer(
            topic, **common, auto_offset_reset="earliest"
        ) as consumer:
            return [(await consumer.getone()).value for _ in VALUES]

    assert asyncio.run(asyncio.wait_for(write_and_read(), PATIENCE_S)) == VALUES


@pytest.mark.parametrize("listener", LISTENERS)
def test_confluent(guarded: Guarded, topic: str, listener: str) -> None:
    own = guarded.keys.librdkafka(shown_at(listener, guarded.keys))
    common = {"bootstrap.servers": guarded.at(listener), **own}
    producer = confluent_kafka.Producer({**common, "message.max.bytes": 2_000_000})
    for value in VALUES:
        producer.produce(topic, value)
    assert producer.flush(PATIENCE_S) == 0
    consumer = confluent_kafka.Consumer(
        {**common, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    found: list[bytes] = []
    end = time.monotonic() + PATIENCE_S
    while len(found) < len(VALUES) and time.monotonic() < end:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            found.append(message.value())
    consumer.close()
    assert found == VALUES


@pytest.mark.parametrize("listener", LISTENERS)
def test_java(guarded: Guarded, topic: str, listener: str, tools: JavaTools) -> None:
    config = guarded.keys.java(shown_at(listener, guarded.keys))
    server = ("--bootstrap-server", guarded.at(listener), "--topic", topic)
    large = ("--producer-property", "max.request.size=2000000")
    text = "".join(f"{value.decode()}\n" for value in VALUES)
    tools.run(PRODUCE, *server, "--producer.config", config, *large, text=text)
    said = tools.run(
        CONSUME, *server, "--consumer.config", config, "--from-beginning", "--max-messages",
        str(len(VALUES)), "--timeout-ms", str(PATIENCE_S * 1000),
    )  # fmt: skip
    assert [line for line in said.splitlines() if line in text.split()] == text.split()


# --- who is not let in ----------------------------------------------------------------------------

# Who is kept out. Where a certificate is only requested, Java's clients and librdkafka show
# Apache Kafka none whose issuer it does not name, and come in as nobody. Python's ssl cannot name
# issuers: they show theirs here and are refused, as Apache Kafka refuses those that do.
WRONG = {
    "another root is trusted": ("SSL", None, True),
    "no certificate where one is required": ("MUTUAL", None, False),
    "a certificate of another root": ("MUTUAL", "stranger", False),
    "a certificate that has expired": ("MUTUAL", "late", False),
    "a certificate of another root where one is requested": ("INLINE", "stranger", False),
}


@pytest.fixture(params=sampled(WRONG, "a certificate of another root"))
def wrong(request, guarded: Guarded) -> tuple[str, Issued | None, str | None]:
    """Where somebody comes, what it shows, and what it trusts."""
    listener, shown, trusts_another = WRONG[request.param]
    issued = None if shown is None else getattr(guarded.keys, shown)
    return guarded.at(listener), issued, guarded.keys.other if trusts_another else None


def skip_if_it_chooses(guarded: Guarded, address: str) -> None:
    if address == guarded.at("INLINE") and not guarded.broker.is_kafkalite:
        pytest.skip("it shows Apache Kafka no certificate of an issuer that is not named")


def test_kafka_python_is_kept_out(guarded: Guarded, wrong) -> None:
    address, shown, trusted = wrong
    with pytest.raises(kafka.errors.KafkaTimeoutError):
        kafka.KafkaProducer(
            bootstrap_servers=address, security_protocol="SSL",
            ssl_context=guarded.keys.context(shown, trusted), bootstrap_timeout_ms=1500,
        )  # fmt: skip
    gc.collect()


def test_aiokafka_is_kept_out(guarded: Guarded, wrong) -> None:
    address, shown, trusted = wrong

    async def come() -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=address, security_protocol="SSL",
            ssl_context=guarded.keys.context(shown, trusted),
        )  # fmt: skip
        try:
            await producer.start()
        finally:
            await producer.stop()

    with pytest.raises(aiokafka.errors.KafkaConnectionError):
        asyncio.run(asyncio.wait_for(come(), PATIENCE_S))


def test_confluent_is_kept_out(guarded: Guarded, wrong) -> None:
    address, shown, trusted = wrong
    skip_if_it_chooses(guarded, address)
    errors: list[int] = []
    own = guarded.keys.librdkafka(shown, trusted)
    admin = AdminClient(
        {**own, "bootstrap.servers": address, "error_cb": lambda error: errors.append(error.code())}
    )
    with pytest.raises(confluent_kafka.KafkaException):
        admin.list_topics(timeout=4)
    admin.poll(0)
    # Of TLS 1.3 a client is through when its certificate is looked at.
    error = confluent_kafka.KafkaError
    assert (error._SSL if trusted else error._TRANSPORT) in errors


def test_java_is_kept_out(guarded: Guarded, wrong, tools: JavaTools) -> None:
    address, shown, trusted = wrong
    skip_if_it_chooses(guarded, address)
    config = guarded.keys.java(shown, trusted)
    said = tools.run(TOPICS, "--bootstrap-server", address, "--command-config", config, "--list")
    why = "SSL handshake failed" if trusted else "Failed to process post-handshake messages"
    assert why in said, "both are the SslAuthenticationException"


# --- who speaks something else --------------------------------------------------------------------


@pytest.mark.parametrize("said", [b"\0\0\0\x0a\0\x12\0\0\0\0\0\x01\0\0", b"GET / HTTP/1.1\r\n\r\n"])
def test_a_peer_without_tls_is_closed(guarded: Guarded, said: bytes) -> None:
    link = socket.create_connection(("127.0.0.1", guarded.ports["SSL"]), PATIENCE_S)
    link.sendall(said)
    heard = b""
    try:
        while part := link.recv(4096):
            heard += part
    except ConnectionResetError:
        pass
    link.close()
    assert re.fullmatch(rb"(\x15\x03.\0\x02\x02.)?", heard, re.DOTALL), heard


def test_a_peer_with_tls_at_a_plain_port_is_closed(guarded: Guarded) -> None:
    address = ("127.0.0.1", guarded.broker.port)
    with (
        socket.create_connection(address, PATIENCE_S) as link,
        pytest.raises((ssl.SSLError, ConnectionResetError)),
    ):
        guarded.keys.context(None).wrap_socket(link, server_hostname="localhost")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("listener", LISTENERS)
def test_both_versions_are_served(
    guarded: Guarded, listener: str, version: ssl.TLSVersion
) -> None:
    context = guarded.keys.context(shown_at(listener, guarded.keys))
    context.minimum_version = context.maximum_version = version
    address = ("127.0.0.1", guarded.ports[listener])
    with (
        socket.create_connection(address, PATIENCE_S) as link,
        context.wrap_socket(link, server_hostname="localhost") as encrypted,
    ):
        assert encrypted.version() == version.name.replace("_", ".")


# --- keys that are exchanged ----------------------------------------------------------------------


def shown_by(guarded: Guarded) -> str:
    """The certificate that SSL shows now, as PEM without white space."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    address = ("127.0.0.1", guarded.ports["SSL"])
    with (
        socket.create_connection(address, PATIENCE_S) as link,
        context.wrap_socket(link) as encrypted,
    ):
        found = encrypted.getpeercert(binary_form=True)
    assert found is not None
    return "".join(ssl.DER_cert_to_PEM_cert(found).split())


def alter(guarded: Guarded, store: str) -> None:
    """Names another store; raises KafkaException when that is refused."""
    name = "listener.name.ssl.ssl.keystore.location"
    admin = AdminClient({"bootstrap.servers": guarded.broker.bootstrap})
    entry = ConfigEntry(
        name, str(guarded.keys.folder / store), incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    [asked] = admin.incremental_alter_configs([resource]).values()
    asked.result(PATIENCE_S)


def test_a_store_that_is_named_anew_is_shown_to_who_comes_next(guarded: Guarded) -> None:
    before = shown_by(guarded)
    wanted = "".join(guarded.keys.renewed.split())
    assert before != wanted
    for wrong in ("none.p12", "strange.p12"):
        with pytest.raises(confluent_kafka.KafkaException) as raised:
            alter(guarded, wrong)
        assert raised.value.args[0].code() == confluent_kafka.KafkaError.INVALID_REQUEST
        assert "update of SSLFactory failed" in raised.value.args[0].str()
    assert shown_by(guarded) == before
    try:
        alter(guarded, "renewed.p12")
        wait_until_shown(guarded, wanted)
    finally:  # others trust the one that was there
        alter(guarded, "server.p12")
        wait_until_shown(guarded, before)


def wait_until_shown(guarded: Guarded, wanted: str) -> None:
    """Apache Kafka's network threads take it one after the other."""
    end = time.monotonic() + PATIENCE_S
    while {shown_by(guarded) for _ in range(6)} != {wanted}:
        assert time.monotonic() < end, "another certificate is shown still"
        time.sleep(0.1)


# --- brokers among each other ---------------------------------------------------------------------


def test_brokers_ask_each_other_with_tls(keys: Keys) -> None:
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "security.inter.broker.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": keys.pem_of(keys.server),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": keys.write("root.pem", keys.root),
        "ssl.client.auth": "required",
    }
    with EmbeddedKafka(settings=settings, brokers=3, topics={"t": (6, {})}) as several:
        own = keys.librdkafka(keys.client)
        common = {"bootstrap.servers": several.bootstrap_servers, **own}
        producer = confluent_kafka.Producer({**common, "transactional.id": "t"})
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        for partition in range(6):
            producer.produce("t", b"x", partition=partition)
        producer.commit_transaction(PATIENCE_S)
        consumer = confluent_kafka.Consumer({
            **common, "group.id": "g", "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        })  # fmt: skip
        consumer.subscribe(["t"])
        found = [consumer.poll(PATIENCE_S) for _ in range(6)]
        consumer.close()
        assert [each.value() for each in found] == [b"x"] * 6
