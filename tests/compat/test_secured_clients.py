"""Each library with what `EmbeddedKafka.client_config` tells it, on both brokers: TLS, certificates
of clients, and logins.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from pathlib import Path

import aiokafka
import confluent_kafka
import kafka
import pytest

from kafkalite.testing.keys import Keys
from tests.compat.java_tools import JavaTools
from tests.compat.native_tools import NativeTools
from tests.compat.secured_broker import SecuredBroker, secured_broker
from tests.sampled import sampled

PATIENCE_S = 30
WAYS = {
    "ssl": ("SSL", "", False),
    "mutual": ("SSL", "", True),
    "plain": ("SASL_SSL", "PLAIN", False),
    "scram": ("SASL_SSL", "SCRAM-SHA-512", False),
    "open-scram": ("SASL_PLAINTEXT", "SCRAM-SHA-256", False),
}
TOPICS = "org.apache.kafka.tools.TopicCommand"
PRODUCE = "org.apache.kafka.tools.ConsoleProducer"
CONSUME = "org.apache.kafka.tools.consumer.ConsoleConsumer"
pytestmark = [
    pytest.mark.xdist_group("tls"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]


@pytest.fixture(scope="module", params=sampled(WAYS, "mutual", "scram"))
def secured(request, broker_kind: str, tmp_path_factory) -> Iterator[SecuredBroker]:
    protocol, mechanism, is_mutual = WAYS[request.param]
    folder = tmp_path_factory.mktemp("secured")
    with secured_broker(
        broker_kind, folder, protocol, mechanism, is_mutual=is_mutual
    ) as found:
        yield found


def test_kafka_python(secured: SecuredBroker, topic: str) -> None:
    told = secured.client_config("kafka-python")
    producer = kafka.KafkaProducer(**told)
    producer.send(topic, b"one").get(PATIENCE_S)
    producer.close()
    consumer = kafka.KafkaConsumer(
        topic, **told, auto_offset_reset="earliest", consumer_timeout_ms=PATIENCE_S * 1000
    )
    assert next(consumer).value == b"one"
    consumer.close()


def test_aiokafka(secured: SecuredBroker, topic: str) -> None:
    told = secured.client_config("aiokafka", "bob" if secured.secured.users else None)

    async def write_and_read() -> bytes:
        async with aiokafka.AIOKafkaProducer(**told) as producer:
            await producer.send_and_wait(topic, b"one")
        async with aiokafka.AIOKafkaConsumer(
            topic, **told, auto_offset_reset="earliest"
        ) as consumer:
            return (await consumer.getone()).value

    assert asyncio.run(asyncio.wait_for(write_and_read(), PATIENCE_S)) == b"one"
    gc.collect()  # of the transports that it leaves


def test_confluent(secured: SecuredBroker, topic: str) -> None:
    told = secured.client_config("confluent")
    producer = confluent_kafka.Producer(told)
    producer.produce(topic, b"one")
    assert producer.flush(PATIENCE_S) == 0
    consumer = confluent_kafka.Consumer(
        {**told, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    end, found = time.monotonic() + PATIENCE_S, None
    while found is None and time.monotonic() < end:
        found = consumer.poll(1)
    consumer.close()
    assert found is not None
    assert found.value() == b"one"


def test_our_own_tools(
    secured: SecuredBroker, topic: str, tools: JavaTools, tmp_path: Path
) -> None:
    config, ours = secured.java_file(tmp_path), NativeTools(lambda: tools)
    server = ("--bootstrap-server", secured.bootstrap, "--command-config", config)
    ours.run(PRODUCE, *server, "--topic", topic, text="one\ntwo\n")
    ends = ("--from-beginning", "--max-messages", "2", "--timeout-ms", str(PATIENCE_S * 1000))
    said = ours.run(CONSUME, *server, "--topic", topic, *ends)
    assert [line for line in said.splitlines() if line in ("one", "two")] == ["one", "two"]
    assert topic in ours.run(TOPICS, *server, "--list").splitlines()


def test_who_is_refused_hears_the_same_from_both(
    secured: SecuredBroker, tools: JavaTools, tmp_path: Path
) -> None:
    wrong = {}
    if secured.secured.mechanism:
        line = secured.client_config("java")["sasl.jaas.config"]
        wrong["sasl.jaas.config"] = line.replace("alice-secret", "wrong")
    else:
        (tmp_path / "strange.pem").write_text(Keys("", ()).root)
        wrong["ssl.truststore.location"] = str(tmp_path / "strange.pem")
    config = secured.java_file(tmp_path, **wrong)
    words = ("--bootstrap-server", secured.bootstrap, "--command-config", config, "--list")
    ours = NativeTools(lambda: tools)
    [theirs], [own] = (
        [line for line in run(TOPICS, *words).splitlines() if line.startswith("Error while")]
        for run in (tools.run, ours.run)
    )
    assert own == theirs


def test_java(secured: SecuredBroker, topic: str, tools: JavaTools, tmp_path) -> None:
    config = secured.java_file(tmp_path)
    server = ("--bootstrap-server", secured.bootstrap, "--topic", topic)
    tools.run(PRODUCE, *server, "--producer.config", config, text="one\ntwo\n")
    said = tools.run(
        CONSUME, *server, "--consumer.config", config, "--from-beginning", "--max-messages", "2",
        "--timeout-ms", str(PATIENCE_S * 1000),
    )  # fmt: skip
    assert [line for line in said.splitlines() if line in ("one", "two")] == ["one", "two"]
