"""Changes of settings while a broker runs: what is refused, and what a stored mistake costs."""

import logging

import pytest

from kafkalite.config import BrokerConfig, InvalidSetting
from kafkalite.config.dynamic import check_change
from kafkalite.env.clock import ManualClock
from kafkalite.server.quotas import ConnectionQuotas, Refusal

CLASS = "org.apache.kafka.common.metrics.JmxReporter"
SHUTTING_OUT = [
    ("max.connection.creation.rate", "0", "Invalid max.connection.creation.rate 0"),
    ("max.connections", "0", "Invalid max.connections 0"),
    ("listener.name.plaintext.max.connections", "0", "Invalid max.connections 0"),
    ("max.connections.per.ip", "0", "can be set to zero only if"),
    ("max.connections.per.ip.overrides", "127.0.0.1:abc", 'For input string: "abc"'),
    ("max.connections.per.ip.overrides", "127.0.0.1", "Error parsing configuration property"),
    ("max.connections.per.ip.overrides", "a/b:5", "contains invalid addresses : a/b"),
    ("listeners", "X://127.0.0.1:1", "No security protocol defined for listener X"),
    ("listeners", "SSL://127.0.0.1:1", "advertised.listeners listener names must be"),
    ("listeners", "PLAINTEXT://127.0.0.1:1,SSL://127.0.0.1:2", "opens its listeners when it"),
    ("listener.security.protocol.map", "PLAINTEXT:SSL", "Security protocol cannot be updated"),
    ("advertised.listeners", "PLAINTEXT://127.0.0.1:1", "Cannot update these configs dynamically"),
]
REFUSED = [
    ("log.roll.ms", "0", "log.roll.ms must be greater than or equal to 1"),
    ("log.retention.ms", "0", "log.retention.ms must be unlimited"),
    ("log.cleaner.dedupe.buffer.size", "1048576", "must be at least 1MB per cleaner thread"),
    ("log.cleaner.threads", "3", "cannot be increased to more than double the current value 1"),
    ("num.io.threads", "17", "should not be greater than double the current value 8"),
    ("num.io.threads", "3", "should be at least half the current value 8"),
    ("cordoned.log.dirs", "/nowhere", "Missing entries : /nowhere"),
    ("cordoned.log.dirs", "*,a", "it must not contain other values"),
    ("principal.builder.class", "a.B", "Class a.B could not be found"),
    ("principal.builder.class", CLASS, "must implement KafkaPrincipalSerde"),
    ("ssl.engine.factory.class", "a.B", "Class a.B could not be found"),
    ("metric.reporters", "a.B", "Validation of dynamic config update of"),
    ("group.consumer.assignment.interval.ms", "15001", "must be less than or equal to"),
    ("log.local.retention.bytes", "-3", "Value must be at least -2"),
    ("ssl.keystore.location", "/a", "only per-listener using the listener prefix"),
    ("node.id", "2", "Cannot update these configs dynamically: [node.id]"),
]


@pytest.mark.parametrize(("name", "value", "message"), SHUTTING_OUT + REFUSED)
def test_refuses_what_a_running_broker_cannot_become(name, value, message):
    with pytest.raises(InvalidSetting) as refused:
        check_change(BrokerConfig(), {name: value}, is_per_broker=True)
    assert message in str(refused.value)


@pytest.mark.parametrize(("name", "value", "message"), SHUTTING_OUT)
def test_what_was_stored_shuts_nobody_out(name, value, message, caplog):
    config = BrokerConfig()
    before = config.listeners
    with caplog.at_level(logging.ERROR):
        config.set_dynamic({}, {name: value, "log.retention.bytes": "7"})
    assert config.listeners == before
    quotas = ConnectionQuotas(config, ManualClock())
    assert quotas.enter("PLAINTEXT", "127.0.0.1") is None
    assert config.get_int("log.retention.bytes") == 7, "the good one beside it has its effect"


def test_a_stored_listener_is_never_moved():
    config = BrokerConfig({"listeners": "PLAINTEXT://127.0.0.1:9092"})
    config.set_dynamic({}, {"listeners": "PLAINTEXT://127.0.0.1:1"})
    assert [str(each) for each in config.listeners] == ["PLAINTEXT://127.0.0.1:9092"]


def test_a_bad_value_beside_good_ones_is_left_out_alone(caplog):
    config = BrokerConfig()
    config.set_dynamic(
        {"log.roll.ms": "0", "log.retention.bytes": "7", "log.segment.bytes": "x", "a": "b"},
        {"max.connections.per.ip": "0", "log.preallocate": "TRUE", "node.id": "2"},
    )
    assert config.dynamic_layer(is_per_broker=False) == {"log.retention.bytes": "7", "a": "b"}
    assert config.dynamic_layer(is_per_broker=True) == {"log.preallocate": "TRUE"}
    named = [
        name
        for name in ("log.roll.ms", "log.segment.bytes", "max.connections.per.ip", "node")
        if f"the stored setting {name}" in caplog.text
    ]
    assert len(named) == 4, "each is named in the log"
    caplog.clear()
    config.set_dynamic({"log.roll.ms": "0"}, {})
    assert not caplog.text, "and once"


def test_a_value_that_kafka_takes_unseen_stops_nobody_from_asking():
    config = BrokerConfig()
    config.set_dynamic({"config.providers": "a,,b"}, {})
    assert config.get("config.providers") == []


def test_overrides_count_for_their_address():
    config = BrokerConfig()
    config.set_dynamic({"max.connections.per.ip.overrides": " 10.0.0.1 : 1 ,::1:2,"}, {})
    quotas = ConnectionQuotas(config, ManualClock())
    refusal = Refusal("max.connections.per.ip")
    assert [quotas.enter("PLAINTEXT", "10.0.0.1") for _ in range(2)] == [None, refusal]
    assert [quotas.enter("PLAINTEXT", "::1") for _ in range(3)] == [None, None, refusal]
    config.set_dynamic({"max.connections.per.ip.overrides": "localhost:0"}, {})
    assert ConnectionQuotas(config, ManualClock()).enter("PLAINTEXT", "127.0.0.1") == refusal
