"""Values of a broker's and a topic's settings: layers, synonyms, rules over several keys."""

import re

import pytest

from kafkalite.config import (
    BrokerConfig,
    InvalidSetting,
    RefusedSettings,
    Source,
    Verdict,
    broker_config,
    check_topic_settings,
    given_for_topic,
    judge,
    parse_properties,
    topic_value,
)
from kafkalite.config.dynamic import check_change
from kafkalite.config.listeners import BROKER, CONTROLLER, parse_listeners, protocol_map

# The file that Apache Kafka ships as config/server.properties: its keys, our comments.
SHIPPED = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,\\
    SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""

VOTERS, MAP = "controller.quorum.voters", "listener.security.protocol.map"
BOTH = "PLAINTEXT://:9092,CONTROLLER://:9093"
SSL = "CONTROLLER:SSL,PLAINTEXT:PLAINTEXT"


def test_takes_the_shipped_file():
    config, ignored = broker_config(parse_properties(SHIPPED))
    assert [str(each) for each in config.listeners] == ["PLAINTEXT://:9092"]
    assert config.log_dirs == ["/tmp/kraft-combined-logs"]
    assert config.advertised_listeners["PLAINTEXT"].host == "localhost"
    assert "num.io.threads" in {each.key for each in ignored}
    assert all(each.reason for each in ignored)


@pytest.mark.parametrize(
    ("key", "value", "verdict", "reason"),
    [
        ("log.retention.hours", "24", Verdict.HONOURED, ""),
        ("num.io.threads", "8", Verdict.IGNORED, "thread pools"),
        ("zookeeper.connect", "z:2181", Verdict.IGNORED, "there is no ZooKeeper"),
        ("acme.plugin.colour", "red", Verdict.IGNORED, "no such setting"),
        ("log.retention.hour", "24", Verdict.REFUSED, "nearest is log.retention.hours"),
        ("retention.ms", "24", Verdict.REFUSED, "nearest is log.retention.ms"),
        ("confluent.license.topic.replication.factor", "1", Verdict.IGNORED, "Confluent's own"),
        ("logs.dir", "/var/log", Verdict.IGNORED, "data lies in log.dirs"),
        ("super.users", "User:admin", Verdict.IGNORED, "there is no authorizer"),
        ("partitions", "3", Verdict.IGNORED, "nearest is num.partitions"),
        ("authorizer.class", "x", Verdict.REFUSED, "nearest is authorizer.class.name"),
        ("num.partitions", "none", Verdict.REFUSED, "Not a number of type INT"),
        ("leader.replication.throttled.rate", "1", Verdict.IGNORED, "set it with AlterConfigs"),
    ],
)
def test_judges_each_key(key, value, verdict, reason):
    (judgement,) = judge({key: value})
    assert judgement.verdict is verdict
    assert reason in judgement.reason


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ssl.key.password", "of-tests-only"),
        ("ssl.key.pasword", "of-tests-only"),
        ("listener.name.outside.plain.sasl.jaas.confg", 'user_alice="of-tests-only";'),
        ("my.plugins.api.token", "of-tests-only"),
        ("ssl.key.password", "of-tests-only\udcff"),
    ],
)
def test_a_secret_is_not_shown(key, value):
    """Also under a name that is misspelt, and where it is no text."""
    for each in judge({key: value}):
        assert "of-tests-only" not in each.text + each.reason


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("listener.name.OUTSIDE.ssl.client.auth", "required",
         "small letters: listener.name.outside.ssl.client.auth"),
        ("listener.name.outside.PLAIN.connections.max.reauth.ms", "1000",
         "small letters: listener.name.outside.plain.connections.max.reauth.ms"),
        ("sasl.jaas.config", "secret", "for one mechanism"),
        ("listener.name.outside.sasl.jaas.config", "secret", "for one mechanism"),
        ("listener.name.outside.num.partitions", "3", "num.partitions is for all"),
        ("listener.name.outside.max.connections", "3", None),
        ("listener.name.outside.ssl.client.auth", "required", None),
        ("listener.name.outside.plain.connections.max.reauth.ms", "1000", None),
        ("listener.name.outside.plain.sasl.jaas.config", "secret", None),
    ],
)  # fmt: skip
def test_a_setting_under_a_name_that_nobody_looks_up_is_not_honoured(key, value, why):
    """Apache Kafka passes over them, too; what kept nobody out must not read as if it did."""
    (judgement,) = judge({key: value})
    assert judgement.verdict is (Verdict.HONOURED if why is None else Verdict.IGNORED)
    assert why is None or why in judgement.reason
    assert "secret" not in judgement.text


def test_a_refused_key_keeps_a_broker_from_starting():
    with pytest.raises(RefusedSettings) as refusal:
        broker_config({"log.retention.hour": "1", "num.partitions": "2"})
    assert [each.key for each in refusal.value.judgements] == ["log.retention.hour"]


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "nonroutable meta-address"),
        ({"advertised.listeners": "OTHER://h:9092"}, "No security protocol defined"),
        ({"advertised.listeners": "SSL://h:9092"}, "which listeners does not open"),
        ({"listeners": "CONTROLLER://:9093"}, "at least one listener"),
        ({"listeners": "PLAINTEXT://:1,PLAINTEXT://:2"}, "different name"),
        ({"listeners": "PLAINTEXT://:1,SSL://:1"}, "different port"),
        ({"listeners": "localhost:9092"}, "Unable to parse localhost:9092"),
        ({"listeners": "PLAINTEXT://:70000"}, "between 0 and 65535"),
        ({"node.id": "1", "broker.id": "2"}, "differ"),
        ({"log.dirs": "/a,/b", "metadata.log.dir": "/c"}, "must be one of the log directories"),
        ({"process.roles": "broker"}, "controller.quorum.bootstrap.servers must contain"),
        ({"process.roles": "broker", VOTERS: "9@a:1,8@b:1"}, "name several controllers"),
        ({"process.roles": "broker", "node.id": "9", VOTERS: "9@a:1"}, "must not be included"),
        ({"process.roles": "broker", VOTERS: "9@a:1", "listeners": BOTH}, "just the broker role"),
        ({"process.roles": "broker", VOTERS: "9@a:1", MAP: SSL}, "PLAINTEXT alone"),
        ({"process.roles": "controller"}, "must contain at least one value"),
        ({"process.roles": "controller", "listeners": BOTH}, "must only contain KRaft"),
        ({"controller.quorum.voters": "1@a:1,2@b:1"}, "names 2@b:1"),
        ({"node.id": "3", "controller.quorum.voters": "1@a:1"}, "its own node 3"),
        ({"log.cleaner.min.compaction.lag.ms": "5", "log.cleaner.max.compaction.lag.ms": "4"}, ">"),
    ],
)
def test_refuses_what_does_not_fit_together(properties, message):
    (judgement,) = [each for each in judge(properties) if each.verdict is Verdict.REFUSED]
    assert message in judgement.reason


def test_listeners_may_be_ipv6_and_named():
    config = BrokerConfig(
        {
            "listeners": "INTERNAL://[::1]:0,OUT://0.0.0.0:9094",
            "listener.security.protocol.map": "INTERNAL:PLAINTEXT,OUT:SASL_SSL",
        }
    )
    assert [str(each) for each in config.listeners] == ["INTERNAL://[::1]:0", "OUT://0.0.0.0:9094"]
    assert config.listeners[1].protocol == "SASL_SSL"


def test_a_listener_is_for_clients_or_for_controllers():
    texts, protocols = ["PLAINTEXT://:1", "controller://:2"], protocol_map("PLAINTEXT:PLAINTEXT")
    listeners = parse_listeners("listeners", texts, protocols, {"CONTROLLER"})
    assert [(each.name, each.kind) for each in listeners] == [
        ("PLAINTEXT", BROKER),
        ("CONTROLLER", CONTROLLER),
    ]
    config = BrokerConfig({"listeners": ",".join(texts)})
    assert [each.name for each in config.listeners] == ["PLAINTEXT"]


def test_layers_win_in_kafkas_order():
    config = BrokerConfig({"message.max.bytes": "1"})
    assert config.get_int("message.max.bytes") == 1
    config.set_dynamic({"message.max.bytes": "2"}, {})
    assert config.get_int("message.max.bytes") == 2
    config.set_dynamic({"message.max.bytes": "2"}, {"message.max.bytes": "3"})
    assert config.get_int("message.max.bytes") == 3
    assert [(each.text, each.source) for each in config.given("message.max.bytes")] == [
        ("3", Source.DYNAMIC_BROKER),
        ("2", Source.DYNAMIC_DEFAULT_BROKER),
        ("1", Source.STATIC_BROKER),
        ("1048588", Source.DEFAULT),
    ]


def test_a_bad_dynamic_value_changes_nothing():
    config = BrokerConfig()
    with pytest.raises(InvalidSetting):
        check_change(config, {"listeners": "nonsense"}, is_per_broker=True)
    assert config.listeners[0].port == 9092


def test_units_of_retention_stand_for_one_thing():
    assert topic_value(BrokerConfig(), {}, "retention.ms") == 168 * 3_600_000
    assert topic_value(BrokerConfig({"log.retention.minutes": "2"}), {}, "retention.ms") == 120_000
    config = BrokerConfig({"log.retention.minutes": "2", "log.retention.ms": "7"})
    assert topic_value(config, {}, "retention.ms") == 7
    assert topic_value(config, {"retention.ms": "-1"}, "retention.ms") == -1
    assert [each.name for each in given_for_topic(config, {}, "retention.ms")] == [
        "log.retention.ms",
        "log.retention.minutes",
        "log.retention.hours",
    ]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"retention.msec": "1"}, "Unknown topic config name: retention.msec"),
        ({"retention.ms": "x"}, "Invalid value x for configuration retention.ms"),
        ({"retention.ms": "-2"}, "Value must be at least -1"),
        (
            {"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "8"},
            "conflict topic config setting min.compaction.lag.ms (9) > max.compaction.lag.ms (8)",
        ),
        ({"remote.storage.enable": "true"}, "Tiered Storage functionality is disabled"),
        ({"leader.replication.throttled.replicas": "1"}, "[partitionId]:[brokerId]"),
    ],
)
def test_refuses_topic_settings_as_kafka_does(overrides, message):
    with pytest.raises(InvalidSetting, match=re.escape(message)):
        check_topic_settings(BrokerConfig(), overrides)
