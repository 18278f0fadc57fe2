"""The image's entry: which variables are settings, and what `serve` is told."""

import os
import socket
import subprocess
import sys

import pytest

from kafkalite.cli._properties import broker_config
from kafkalite.cli.container import (
    DATA_FOLDER,
    LISTEN,
    given,
    serve_arguments,
    settings,
    unknown,
)
from kafkalite.config import BrokerConfig, InvalidSetting


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("KAFKA_LOG_RETENTION_MS", "log.retention.ms"),
        ("KAFKA_LISTENERS", "listeners"),
        ("KAFKA_ODD__NAME_OF___IT", "odd_name.of-it"),
    ],
)
def test_variables_are_named_as_in_apache_kafkas_image(variable: str, name: str) -> None:
    assert dict(settings({variable: "7"})) == {name: "7"}


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("KAFKA_PORT", "tcp://10.0.0.1:9092"),
        ("KAFKA_PORT_9092_TCP", "tcp://10.0.0.1:9092"),
        ("KAFKA_PORT_9092_TCP_ADDR", "10.0.0.1"),
        ("KAFKA_SERVICE_HOST", "10.0.0.1"),
        ("KAFKA_SERVICE_PORT_CLIENTS", "9092"),
        ("KAFKA_BROKER_SIDE", "tcp://10.0.0.1:9092"),
        ("KAFKA_HEAP_OPTS", "-Xmx1G"),
        ("KAFKA_OPTS", "-Dx=y"),
        ("KAFKA_JMX_PORT", "9999"),
        ("KAFKALITE_JARS", "/jars"),
        ("PATH", "/bin"),
    ],
)
def test_other_variables_are_left_alone(variable: str, value: str) -> None:
    assert list(settings({variable: value})) == []


def test_it_listens_to_all_and_keeps_its_data_in_the_volume() -> None:
    assert serve_arguments({}) == ["--listen", LISTEN, "--data-dir", DATA_FOLDER]


@pytest.mark.parametrize(
    ("arguments", "listens", "has_folder"),
    [
        ("", True, True),
        ("--memory", True, False),
        ("--data-dir /x --topic a:3", True, False),
        ("--listen 0.0.0.0:9 --memory", False, False),
        ("--override log.dir=/x --override num.partitions=3", True, False),
        ("--override listeners=PLAINTEXT://:9092", False, True),
        ("-c plain", True, True),
        ("-c full", False, False),
        ("--config=full --memory", False, False),
    ],
)
def test_what_the_arguments_say_takes_the_place_of_defaults(
    arguments: str, listens: bool, has_folder: bool, tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain").write_text("num.partitions=3\n")
    (tmp_path / "full").write_text("listeners=PLAINTEXT://:9092\nlog.dirs=/x\n")
    call = serve_arguments({}, given(arguments.split()))
    assert ("--listen" in call, "--data-dir" in call) == (listens, has_folder)


@pytest.mark.parametrize("arguments", ["--memory", "-c full"])
def test_it_serves_as_the_arguments_say(arguments: str, tmp_path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        (tmp_path / "full").write_text(f"listeners=PLAINTEXT://{where}\nlog.dirs=data\n")
        done = subprocess.run(
            [sys.executable, "-m", "kafkalite", "container", *arguments.split()],
            cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False,
            env={**os.environ, "KAFKA_LISTENERS": "" if "-c" in arguments else f"A://{where}",
                 "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "A:PLAINTEXT,PLAINTEXT:PLAINTEXT",
                 "KAFKA_INTER_BROKER_LISTENER_NAME": "" if "-c" in arguments else "A"},
        )  # fmt: skip
    assert done.returncode == 1
    assert f"('127.0.0.1', {where.split(':')[1]})" in done.stderr  # where it was to listen
    assert (tmp_path / "data").is_dir() == ("-c" in arguments)


def test_settings_take_the_place_of_defaults() -> None:
    environment = {"KAFKA_LISTENERS": "PLAINTEXT://:19092", "KAFKA_LOG_DIRS": "/data"}
    assert serve_arguments(environment) == [
        "--override",
        "listeners=PLAINTEXT://:19092",
        "--override",
        "log.dirs=/data",
    ]


# --- what files of compose have -------------------------------------------------------------------

APACHE = {
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": (
        "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT"
    ),
}
TWO = "PLAINTEXT://kafka:29092,PLAINTEXT_HOST://localhost:9092"
TESTCONTAINERS = {  # of .NET: the list ends with a comma
    "KAFKA_LISTENERS": "PLAINTEXT://:9092,BROKER://:9093,CONTROLLER://:9094",
    "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://127.0.0.1:49153,BROKER://172.17.0.2:9093,",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": (
        "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
    ),
    "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER",
    "KAFKA_BROKER_ID": "1",
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@127.0.0.1:9094",
    "KAFKA_LOG_FLUSH_INTERVAL_MESSAGES": "9223372036854775807",
    "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw",
}
BITNAMI = {
    "KAFKA_CFG_NODE_ID": "0",
    "KAFKA_CFG_PROCESS_ROLES": "controller,broker",
    "KAFKA_CFG_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "KAFKA_CFG_ADVERTISED_LISTENERS": "PLAINTEXT://:9092",
    "KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "KAFKA_CFG_CONTROLLER_QUORUM_VOTERS": "0@kafka:9093",
    "KAFKA_CFG_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_KRAFT_CLUSTER_ID": "abcdefghijklmnopqrstuv",
    "KAFKA_CFG_MAX_REQUEST_SIZE": "5242880",
    "ALLOW_PLAINTEXT_LISTENER": "yes",
}
CONFLUENT = {
    "KAFKA_BROKER_ID": "1",
    "KAFKA_ZOOKEEPER_CONNECT": "zookeeper:2181",
    "KAFKA_ADVERTISED_LISTENERS": TWO,
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT",
    "KAFKA_METRIC_REPORTERS": "io.confluent.metrics.reporter.ConfluentMetricsReporter",
    "KAFKA_CONFLUENT_LICENSE_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_CONFLUENT_BALANCER_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_CONFLUENT_SCHEMA_REGISTRY_URL": "http://schema-registry:8081",
    "KAFKA_JMX_HOSTNAME": "localhost",
    "CONFLUENT_METRICS_ENABLE": "true",
}
WURSTMEISTER = {
    "KAFKA_ADVERTISED_HOST_NAME": "10.0.0.7",
    "KAFKA_ADVERTISED_PORT": "9094",
    "KAFKA_CREATE_TOPICS": "orders:3:1,compacted:1:1:compact,\n  plain",
    "KAFKA_ZOOKEEPER_CONNECT": "zookeeper:2181",
}


def served(environment: dict[str, str]) -> tuple[BrokerConfig, list[str]]:
    """The broker that these variables make, and the topics that it begins with."""
    arguments = serve_arguments(environment)
    options = list(zip(arguments[::2], arguments[1::2], strict=True))
    listen = dict(options).get("--listen")
    overrides = tuple(value for name, value in options if name == "--override")
    config, _ = broker_config(None, listen, dict(options).get("--data-dir"), False, overrides)
    return config, [value for name, value in options if name == "--topic"]


def addresses(environment: dict[str, str]) -> tuple[list[str], list[str]]:
    config, _ = served(environment)
    return (
        [str(each) for each in config.listeners],
        [str(each) for each in config.advertised_listeners.values()],
    )


def test_listeners_are_those_that_are_advertised_on_every_address() -> None:
    one = {**APACHE, "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:29092"}
    assert addresses(one) == (["PLAINTEXT://0.0.0.0:29092"], ["PLAINTEXT://localhost:29092"])
    assert addresses({**APACHE, "KAFKA_ADVERTISED_LISTENERS": TWO}) == (
        ["PLAINTEXT://0.0.0.0:29092", "PLAINTEXT_HOST://0.0.0.0:9092"],
        TWO.split(","),
    )


def test_confluents_variables_are_taken_and_its_own_components_passed_over() -> None:
    assert addresses(CONFLUENT)[1] == TWO.split(",")


def test_bitnamis_variables_are_taken() -> None:
    config, _ = served(BITNAMI)
    assert config.node_id == 0
    assert addresses(BITNAMI) == (["PLAINTEXT://:9092"], [])
    assert list(unknown(settings(BITNAMI))) == ["max.request.size"]
    assert dict(settings({"KAFKA_CFG_NUM_PARTITIONS": "3", "KAFKA_NUM_PARTITIONS": "1"})) == {
        "num.partitions": "3"
    }


def test_a_list_that_ends_with_a_comma_is_taken() -> None:
    assert addresses(TESTCONTAINERS) == (
        ["PLAINTEXT://:9092", "BROKER://:9093"],
        ["PLAINTEXT://127.0.0.1:49153", "BROKER://172.17.0.2:9093"],
    )


def test_older_images_address_and_topics_are_taken() -> None:
    assert addresses(WURSTMEISTER) == (["PLAINTEXT://0.0.0.0:9094"], ["PLAINTEXT://10.0.0.7:9094"])
    assert served(WURSTMEISTER)[1] == [
        "orders:3",
        "compacted:1:cleanup.policy=compact",
        "plain",
    ]


def test_an_empty_value_is_not_set() -> None:
    assert list(settings({"KAFKA_NUM_PARTITIONS": "", "KAFKA_LISTENERS": " "})) == []


def test_what_no_broker_knows_stops_nothing_and_is_named() -> None:
    foreign = {"KAFKA_BROKERS": "kafka:9092", "KAFKA_RETENTION_MS": "1", "KAFKA_NUM_PARTITION": "3"}
    assert served(foreign)[0].get_int("num.partitions") == 1
    assert sorted(unknown(settings(foreign))) == [
        "brokers (the nearest is broker.id)",
        "num.partition (the nearest is num.partitions)",
        "retention.ms (the nearest is log.retention.ms)",
    ]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("KAFKA_AUTHORIZER_CLASS_NAME", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
        ("KAFKA_AUTHORIZER_CLASSNAME", "x"),
        ("KAFKA_CFG_SSL_CLIENT_AUTH", "required"),
        ("KAFKA_LISTENERS", "SASL_SSL://:9092"),
        ("KAFKA_ADVERTISED_LISTENERS", "SASL_SSL://kafka:9092"),
        ("KAFKA_CONTROLLER_QUORUM_VOTERS", "1@kafka-1:9093,2@kafka-2:9093"),
    ],
)
def test_a_promise_that_cannot_be_kept_stops_it_still(variable: str, value: str) -> None:
    with pytest.raises(InvalidSetting):
        served({variable: value})
