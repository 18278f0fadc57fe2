"""TLS, logins and access rules together, on both brokers, as clients in one secured cluster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiokafka
import confluent_kafka
import kafka
import pytest
from aiokafka.errors import TopicAuthorizationFailedError as RefusedByAiokafka
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from kafka.errors import TopicAuthorizationFailedError as RefusedByKafkaPython

from tests.compat import brokers
from tests.compat.tls_keys import Keys
from tests.compat.waiting import PATIENCE_S

USERS = ("admin", "alice", "bob")
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
DENIED = confluent_kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED
pytestmark = [
    pytest.mark.xdist_group("tls"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]


@dataclass(frozen=True)
class Cluster:
    """A broker that everybody reaches by SASL_SSL alone; the admin may do everything."""

    bootstrap: str
    keys: Keys
    admins: list[AdminClient]

    def confluent(self, user: str) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.bootstrap, "security.protocol": "SASL_SSL",
            "ssl.ca.location": self.keys.trusted, "sasl.mechanism": "PLAIN",
            "sasl.username": user, "sasl.password": f"{user}-secret",
        }  # fmt: skip

    def python(self, user: str) -> dict[str, Any]:
        return {
            "bootstrap_servers": self.bootstrap, "security_protocol": "SASL_SSL",
            "ssl_context": self.keys.context(None), "sasl_mechanism": "PLAIN",
            "sasl_plain_username": user, "sasl_plain_password": f"{user}-secret",
        }  # fmt: skip

    @property
    def admin(self) -> AdminClient:
        """One for all: what it was asked ends with it."""
        if not self.admins:
            self.admins.append(AdminClient(self.confluent("admin")))
        return self.admins[0]


@pytest.fixture(scope="module")
def cluster(broker_kind: str, tmp_path_factory) -> Iterator[Cluster]:
    keys = Keys(tmp_path_factory.mktemp("keys"), int(time.time() * 1000))
    plain, controller, port = brokers.free_ports(3)
    opened = f"PLAINTEXT://127.0.0.1:{plain},OUTSIDE://127.0.0.1:{port}"
    users = " ".join(f'user_{name}="{name}-secret"' for name in USERS)
    settings = {
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"{opened},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": opened,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
        "OUTSIDE:SASL_SSL",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.outside.plain.sasl.jaas.config": f"{MODULE} {users};",
        "ssl.keystore.location": str(keys.folder / "server.p12"),
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.password": "of-tests-only",
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:admin;User:ANONYMOUS",
    }
    folder: Path = tmp_path_factory.mktemp("secured")
    broker = brokers.start(broker_kind, folder, settings, port=plain)
    yield Cluster(f"127.0.0.1:{port}", keys, [])
    broker.stop()


@pytest.fixture
def topic(cluster: Cluster, unique: Callable[[str], str]) -> str:
    """One to which alice may write, and nobody else."""
    name = unique("orders")
    [made] = cluster.admin.create_topics([NewTopic(name, 1)]).values()
    made.result(PATIENCE_S)
    allow(cluster, ResourceType.TOPIC, name, AclOperation.WRITE)
    return name


def allow(cluster: Cluster, kind: ResourceType, name: str, operation: AclOperation) -> None:
    rule = AclBinding(
        kind, name, ResourcePatternType.LITERAL, "User:alice", "*", operation,
        AclPermissionType.ALLOW,
    )  # fmt: skip
    for made in cluster.admin.create_acls([rule]).values():
        made.result(PATIENCE_S)
    time.sleep(0.2)  # Apache Kafka's broker follows its controller


def send(cluster: Cluster, user: str, topic: str) -> confluent_kafka.KafkaError | None:
    said: list[confluent_kafka.KafkaError | None] = []
    producer = confluent_kafka.Producer(cluster.confluent(user))
    producer.produce(topic, b"one", on_delivery=lambda error, _: said.append(error))
    producer.flush(PATIENCE_S)
    return said[0]


def test_confluent_is_let_in_and_refused(cluster: Cluster, topic: str) -> None:
    assert send(cluster, "alice", topic) is None
    refused = send(cluster, "bob", topic)
    assert refused is not None
    assert refused.code() == DENIED


def test_kafka_python_is_let_in_and_refused(cluster: Cluster, topic: str) -> None:
    producer = kafka.KafkaProducer(**cluster.python("alice"))
    assert producer.send(topic, b"one").get(PATIENCE_S).offset == 0
    producer.close()
    producer = kafka.KafkaProducer(**cluster.python("bob"), max_block_ms=PATIENCE_S * 1000)
    with pytest.raises(RefusedByKafkaPython):
        producer.send(topic, b"one").get(PATIENCE_S)
    producer.close()


def test_aiokafka_is_let_in_and_refused(cluster: Cluster, topic: str) -> None:
    async def write(user: str) -> int:
        async with aiokafka.AIOKafkaProducer(**cluster.python(user)) as producer:
            return int((await producer.send_and_wait(topic, b"one")).offset)

    assert asyncio.run(write("alice")) == 0
    with pytest.raises(RefusedByAiokafka):
        asyncio.run(write("bob"))


def test_a_member_needs_its_topic_and_its_group(
    cluster: Cluster, topic: str, unique: Callable[[str], str]
) -> None:
    group = unique("clerks")
    assert send(cluster, "alice", topic) is None
    allow(cluster, ResourceType.TOPIC, topic, AclOperation.READ)
    assert read(cluster, topic, group) == confluent_kafka.KafkaError.GROUP_AUTHORIZATION_FAILED
    allow(cluster, ResourceType.GROUP, group, AclOperation.READ)
    assert read(cluster, topic, group) == b"one"


def read(cluster: Cluster, topic: str, group: str) -> bytes | int | None:
    """The first record that alice reads as a member, or why she is not one."""
    own = {"group.id": group, "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({**cluster.confluent("alice"), **own})
    consumer.subscribe([topic])
    try:
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        error = message.error()
        return message.value() if error is None else int(error.code())
    finally:
        consumer.close()


def test_who_is_connected_feels_a_change(cluster: Cluster, topic: str) -> None:
    producer = confluent_kafka.Producer(cluster.confluent("alice"))
    said: list[confluent_kafka.KafkaError | None] = []
    producer.produce(topic, b"one", on_delivery=lambda error, _: said.append(error))
    producer.flush(PATIENCE_S)
    own = AclBindingFilter(
        ResourceType.TOPIC, topic, ResourcePatternType.ANY, None, None, AclOperation.ANY,
        AclPermissionType.ANY,
    )  # fmt: skip
    for gone in cluster.admin.delete_acls([own]).values():
        assert len(gone.result(PATIENCE_S)) == 1
    time.sleep(0.2)
    producer.produce(topic, b"two", on_delivery=lambda error, _: said.append(error))
    producer.flush(PATIENCE_S)
    assert [error and error.code() for error in said] == [None, DENIED]
