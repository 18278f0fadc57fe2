"""What a reset or a restore does to those who have logged in, and to brokers that would have to."""

from __future__ import annotations

import pytest
from kafka import KafkaProducer

from kafkalite.testing.embedded import BrokerFailed, EmbeddedKafka

LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{LOGIN} user_alice="alice-secret";',
}


def test_clients_log_in_again_and_go_on(caplog: pytest.LogCaptureFixture) -> None:
    with EmbeddedKafka(settings=SETTINGS) as kafka:
        producer = KafkaProducer(
            bootstrap_servers=kafka.bootstrap_servers, security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN", sasl_plain_username="alice",
            sasl_plain_password="alice-secret", enable_idempotence=False,
        )  # fmt: skip
        assert producer.send("orders", b"one").get(10).offset == 0
        then = kafka.snapshot()
        assert producer.send("orders", b"two").get(10).offset == 1
        kafka.restore(then)
        assert producer.send("orders", b"three").get(10).offset == 1
        kafka.reset()
        assert producer.send("orders", b"four").get(10).offset == 0
        producer.close()
    assert "failed to log in" not in caplog.text, "it was asked for something before"


def test_brokers_that_would_have_to_log_in_do_not_start() -> None:
    with pytest.raises(BrokerFailed, match="brokers log in at each other"):
        EmbeddedKafka(brokers=3, settings=SETTINGS).start()
