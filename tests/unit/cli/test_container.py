"""The image's entry: which variables are settings, and what `serve` is told."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kafkalite.cli._properties import broker_config
from kafkalite.cli.container import given, serve_arguments
from kafkalite.config import BrokerConfig, InvalidSetting, parse_properties
from kafkalite.container.clusters import name_cluster
from kafkalite.container.prepared import LISTENERS, cluster_id, prepare
from kafkalite.container.properties import properties_text
from kafkalite.container.topics import topics
from kafkalite.container.variables import settings, unknown, with_files_read, with_secrets_read

VOLUME = "/var/lib/kafka/data"


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("KAFKA_LOG_RETENTION_MS", "log.retention.ms"),
        ("KAFKA_LISTENERS", "listeners"),
        ("KAFKA_ODD__NAME_OF___IT", "odd_name.of-it"),
        (
            "KAFKA_LISTENER_NAME_SECURE_SCRAM-SHA-512_SASL_JAAS_CONFIG",
            "listener.name.secure.scram-sha-512.sasl.jaas.config",
        ),
        ("KAFKA_CFG_NODE_ID", "node.id"),
        ("NODE_ID", "node.id"),
        ("BROKER_ID", "broker.id"),
        ("KAFKA_MAX_MESSAGE_BYTES", "message.max.bytes"),
        ("KAFKA_CFG_SEGMENT_BYTES", "log.segment.bytes"),
        ("KAFKA_LOGS_DIRS", "log.dirs"),
        ("KAFKA_SSL_KEYSTORE_PASSWORD", "ssl.keystore.password"),
    ],
)
def test_variables_are_named_as_in_other_images(variable: str, name: str) -> None:
    assert settings({variable: "7"}) == {name: "7"}


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
        ("KAFKA_LOG4J_ROOT_LOGLEVEL", "WARN"),
        ("KAFKA_TOOLS_LOG4J_LOGLEVEL", "WARN"),
        ("KAFKA_CONFLUENT_SUPPORT_METRICS_ENABLE", "false"),
        ("KAFKA_REST_BOOTSTRAP_SERVERS", "a:1"),
        ("KAFKA_KRAFT_CLUSTER_ID", "abc"),
        ("KAFKALITE_JARS", "/jars"),
        ("ZOOKEEPER_CONNECT", "zookeeper:2181"),
        ("PATH", "/bin"),
    ],
)
def test_other_variables_are_left_alone(variable: str, value: str) -> None:
    assert settings({variable: value}) == {}


def test_it_listens_to_all_and_keeps_its_data_in_the_volume() -> None:
    prepared = prepare({}, {}, {VOLUME})
    assert prepared.settings == {"listeners": LISTENERS, "log.dirs": VOLUME}
    assert prepared.notes == []
    assert serve_arguments(prepared) == [
        "--override",
        f"listeners={LISTENERS}",
        "--override",
        f"log.dirs={VOLUME}",
    ]


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
    found = prepare({}, {}, (), given(arguments.split())).settings
    assert ("listeners" in found, "log.dirs" in found) == (listens, has_folder)


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kafkalite", "container", *arguments], cwd=folder, check=False,
        capture_output=True, text=True, timeout=60, env={**os.environ, **environment},
    )  # fmt: skip


@pytest.mark.parametrize("arguments", ["--memory", "-c full"])
def test_it_serves_as_the_arguments_say(arguments: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        (tmp_path / "full").write_text(f"listeners=PLAINTEXT://{where}\nlog.dirs=data\n")
        done = run(
            tmp_path, *arguments.split(),
            KAFKA_LISTENERS="" if "-c" in arguments else f"A://{where}",
            KAFKA_LISTENER_SECURITY_PROTOCOL_MAP="A:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            KAFKA_INTER_BROKER_LISTENER_NAME="" if "-c" in arguments else "A",
        )  # fmt: skip
    assert done.returncode == 1
    assert f"('127.0.0.1', {where.split(':')[1]})" in done.stderr  # where it was to listen
    assert (tmp_path / "data").is_dir() == ("-c" in arguments)


def test_what_it_has_configured_is_what_it_serves(tmp_path: Path) -> None:
    file = tmp_path / "kafka.properties"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        said = {"KAFKA_LISTENERS": f"PLAINTEXT://{where}", "KAFKA_LOG_DIRS": "data",
                "KAFKA_BROKERS": "a:1", "CLUSTER_ID": "MkU3OEVBNTcwNTJENDM2Qk"}  # fmt: skip
        done = run(tmp_path, "--configure", str(file), **said)
        assert done.returncode == 0
        assert parse_properties(file.read_text())["listeners"] == f"PLAINTEXT://{where}"
        assert not (tmp_path / "data").exists()
        file.write_text(file.read_text().replace("log.dirs=data", "log.dirs=other"))
        begun = run(tmp_path, "--configured", str(file), **said)
    assert begun.returncode == 1
    assert "brokers" in done.stderr
    assert "brokers" not in begun.stderr  # said once
    meta = parse_properties((tmp_path / "other" / "meta.properties").read_text())
    assert meta["cluster.id"] == "MkU3OEVBNTcwNTJENDM2Qk"
    assert not (tmp_path / "data").exists()


def test_nothing_is_configured_of_what_no_broker_would_start_with(tmp_path: Path) -> None:
    file = tmp_path / "kafka.properties"
    done = run(tmp_path, "--configure", str(file), KAFKA_NUM_PARTITIONS="many")
    assert done.returncode == 1
    assert "num.partitions" in done.stderr
    assert not file.exists()


def test_a_file_of_settings_is_read_as_it_was_meant() -> None:
    odd = {"a": "1", "b": " two\nlines\\ and = :", "c.d": "täxt", "e": "#"}
    assert parse_properties(properties_text(odd)) == odd


def test_settings_take_the_place_of_defaults() -> None:
    environment = {"KAFKA_LISTENERS": "PLAINTEXT://:19092", "KAFKA_LOG_DIRS": "/data"}
    prepared = prepare(environment, {}, {VOLUME})
    assert prepared.settings == {"listeners": "PLAINTEXT://:19092", "log.dirs": "/data"}
    assert prepared.notes == [
        "data lies in /data and goes with this container: no volume is mounted there"
    ]


def test_the_environment_counts_before_a_mounted_file() -> None:
    file = {"num.partitions": "3", "log.dirs": "/data", "listeners": "PLAINTEXT://:1"}
    found = prepare({"KAFKA_NUM_PARTITIONS": "4"}, file, {"/data"}).settings
    assert found == {**file, "num.partitions": "4"}


def test_a_variable_may_name_a_file_that_holds_its_value() -> None:
    secrets = {"/run/secrets/size": "77\n"}
    found = with_files_read(
        {"KAFKA_CFG_MESSAGE_MAX_BYTES_FILE": "/run/secrets/size", "KAFKA_MESSAGE_MAX_BYTES": "1"},
        secrets.__getitem__,
    )
    assert settings(found) == {"message.max.bytes": "77"}
    with pytest.raises(InvalidSetting, match="KAFKA_NODE_ID_FILE: /no/such cannot be read: No s"):
        with_files_read({"KAFKA_NODE_ID_FILE": "/no/such"}, lambda path: Path(path).read_text())


@pytest.mark.parametrize(
    "variable", "KAFKA_CA_FILE KAFKA_LOG4J_CONFIG_FILE KAFKA_CONF_FILE MY_NODE_ID_FILE".split()
)
def test_a_file_of_somebody_elses_is_not_read(variable: str) -> None:
    foreign = {variable: "/no/such"}
    assert with_files_read(foreign, lambda path: Path(path).read_text()) == foreign
    assert served(foreign)[0].get_int("num.partitions") == 1


@pytest.mark.parametrize(
    "variable",
    "KAFKA_CLUSTER_ID KAFKA_CREATE_TOPICS KAFKA_SEGMENT_BYTES KAFKA_CLIENT_PASSWORDS"
    " KAFKA_INTER_BROKER_USER KAFKA_SSL_KEY_CREDENTIALS KAFKA_ADVERTISED_HOST_NAME".split(),
)
def test_whatever_is_taken_may_come_out_of_a_file(variable: str) -> None:
    assert with_files_read({f"{variable}_FILE": "/a"}, {"/a": "x\n"}.__getitem__) == {variable: "x"}


@pytest.mark.parametrize(
    "where",
    [
        {"KAFKA_ADVERTISED_LISTENERS": "OUT://kafka:9092,SSL://kafka:9093"},
        {"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "OUT:PLAINTEXT,IN:SASL_SSL"},
    ],
)
def test_keys_lie_in_the_folder_of_secrets(where: dict[str, str]) -> None:
    named = {
        "KAFKA_SSL_KEYSTORE_FILENAME": "kafka.jks",
        "KAFKA_SSL_KEYSTORE_CREDENTIALS": "store",
        "KAFKA_SSL_KEY_CREDENTIALS": "key",
        "KAFKA_SSL_TRUSTSTORE_FILENAME": " ",
    }
    files = {"/etc/kafka/secrets/store": "one\n", "/etc/kafka/secrets/key": "two"}
    found = with_secrets_read({**where, **named}, files.__getitem__)
    assert found["KAFKA_SSL_KEYSTORE_LOCATION"] == "/etc/kafka/secrets/kafka.jks"
    assert found["KAFKA_SSL_KEYSTORE_PASSWORD"] == "one"
    assert found["KAFKA_SSL_KEY_PASSWORD"] == "two"
    assert "KAFKA_SSL_TRUSTSTORE_LOCATION" not in found
    assert with_secrets_read(named, files.__getitem__) == named, "nothing is encrypted"


def test_a_secret_that_is_not_there_is_told() -> None:
    named = {"KAFKA_ADVERTISED_LISTENERS": "SSL://kafka:9093", "KAFKA_SSL_KEY_CREDENTIALS": "no"}
    with pytest.raises(InvalidSetting, match=r"KAFKA_SSL_KEY_CREDENTIALS: .*/secrets/no cannot be"):
        with_secrets_read(named, lambda path: Path(path).read_text())


@pytest.mark.parametrize("setting", ["log.dirs", "log.dir"])
def test_a_directory_that_cannot_be_written_is_told_in_one_sentence(
    tmp_path: Path, setting: str
) -> None:
    (tmp_path / "file").touch()
    settings_file = tmp_path / "kafka.properties"
    settings_file.write_text(f"{setting}={tmp_path}/file/data\n")
    done = subprocess.run(
        [sys.executable, "-m", "kafkalite", "container", "--configured", settings_file],
        env={**os.environ, "CLUSTER_ID": "abc"}, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1, done.stderr
    assert f"{tmp_path}/file/data cannot be written (Not a directory)" in done.stderr


def test_a_new_cluster_has_the_id_that_is_named_and_an_old_one_keeps_its_own(
    tmp_path: Path,
) -> None:
    named = cluster_id({"KAFKA_KRAFT_CLUSTER_ID": "abc", "CLUSTER_ID": "def"})
    assert named == "def"
    assert cluster_id({"KAFKA_KRAFT_CLUSTER_ID": "abc", "CLUSTER_ID": " "}) == "abc"
    name_cluster(f"{tmp_path}/a,{tmp_path}/b", named)
    name_cluster(f"{tmp_path}/a", "other")
    name_cluster(f"{tmp_path}/c", None)
    for folder in "ab":
        text = (tmp_path / folder / "meta.properties").read_text()
        assert parse_properties(text) == {"version": "1", "cluster.id": "def"}
    assert not (tmp_path / "c").exists()


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
    arguments = serve_arguments(prepare(environment, {}, {VOLUME}))
    options = list(zip(arguments[::2], arguments[1::2], strict=True))
    overrides = tuple(value for name, value in options if name == "--override")
    config, _ = broker_config(None, None, None, False, overrides)
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
    assert dict(unknown(settings(BITNAMI))) == {"max.request.size": None}
    assert settings({"KAFKA_CFG_NUM_PARTITIONS": "3", "KAFKA_NUM_PARTITIONS": "1"}) == {
        "num.partitions": "3"
    }


def test_a_list_that_ends_with_a_comma_is_taken() -> None:
    assert addresses(TESTCONTAINERS) == (
        ["PLAINTEXT://:9092", "BROKER://:9093"],
        ["PLAINTEXT://127.0.0.1:49153", "BROKER://172.17.0.2:9093"],
    )


def test_older_images_address_and_topics_are_taken() -> None:
    assert addresses(WURSTMEISTER) == (["PLAINTEXT://0.0.0.0:9092"], ["PLAINTEXT://10.0.0.7:9094"])
    own = {**WURSTMEISTER, "KAFKA_PORT": "7000", "KAFKA_ADVERTISED_PORT": ""}
    assert addresses(own) == (["PLAINTEXT://0.0.0.0:7000"], ["PLAINTEXT://10.0.0.7:7000"])
    kubernetes = {**WURSTMEISTER, "KAFKA_PORT": "tcp://10.0.0.1:9092"}
    assert addresses(kubernetes)[0] == ["PLAINTEXT://0.0.0.0:9092"]
    assert served(WURSTMEISTER)[1] == [
        "orders:3",
        "compacted:1:cleanup.policy=compact",
        "plain",
    ]


def test_an_empty_value_is_not_set() -> None:
    assert settings({"KAFKA_NUM_PARTITIONS": "", "KAFKA_LISTENERS": " ", "NODE_ID": ""}) == {}


def test_what_no_broker_knows_stops_nothing_and_is_named() -> None:
    foreign = {"KAFKA_BROKERS": "kafka:9092", "KAFKA_RETENTION_MS": "1", "KAFKA_NUM_PARTITION": "3"}
    assert served(foreign)[0].get_int("num.partitions") == 1
    assert prepare(foreign, {}, {VOLUME}).notes == [
        "not of a broker's settings, and ignored: brokers (the nearest is broker.id), "
        "num.partition (the nearest is num.partitions), "
        "retention.ms (the nearest is log.retention.ms)"
    ]


@pytest.mark.parametrize(
    "variable",
    "KAFKA_BROKERS KAFKA_PARTITIONS KAFKA_REPLICATION_FACTOR KAFKA_RETENTION_MS"
    " KAFKA_CLEANUP_POLICY KAFKA_LOG_RETENTION KAFKA_FETCH_MESSAGE_MAX_BYTES"
    " KAFKA_CFG_MAX_REQUEST_SIZE KAFKA_CONFLUENT_LICENSE_TOPIC_REPLICATION_FACTOR".split(),
)
def test_no_unknown_name_keeps_a_container_from_starting(variable: str) -> None:
    assert served({variable: "1"})[0].get_int("num.partitions") == 1


def test_topics_are_written_in_many_ways() -> None:
    assert list(topics({"CREATE_TOPICS": '"test-topic:1:1"'})) == [("test-topic:1", "")]
    spread = {"KAFKA_CREATE_TOPICS": " a:2:1;\n b:3:1 ;", "KAFKA_CREATE_TOPICS_SEPARATOR": ";"}
    assert list(topics(spread)) == [("a:2", ""), ("b:3", "")]
    assert prepare({"KAFKA_CREATE_TOPICS": "a:1:3"}, {}, {VOLUME}).notes == [
        "a has one replica, not 3"
    ]


def test_a_container_in_two_networks_is_told_by_its_first_address() -> None:
    two = {**TESTCONTAINERS, "KAFKA_ADVERTISED_LISTENERS": "BROKER://172.17.0.2 172.18.0.3:9093"}
    assert addresses(two)[1] == ["BROKER://172.17.0.2:9093"]
    [note] = prepare(two, {}, {VOLUME}).notes
    assert note == (
        "BROKER://172.17.0.2 172.18.0.3:9093 names several hosts, and clients are told the first"
    )


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("KAFKA_AUTHORIZER_CLASS_NAME", "kafka.security.authorizer.AclAuthorizer"),
        ("KAFKA_AUTHORIZER_CLASSNAME", "x"),
        ("KAFKA_LISTENERS", "SASL_SSL://:9092"),
        ("KAFKA_ADVERTISED_LISTENERS", "SASL_SSL://kafka:9092"),
        ("KAFKA_CONTROLLER_QUORUM_VOTERS", "1@kafka-1:9093,2@kafka-2:9093"),
    ],
)
def test_a_promise_that_cannot_be_kept_stops_it_still(variable: str, value: str) -> None:
    with pytest.raises(InvalidSetting):
        served({variable: value})


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("KAFKA_CLIENT_USERS", "app"),
        ("KAFKA_CLIENT_PASSWORDS", "pw"),
        ("KAFKA_INTER_BROKER_USER", "broker"),
        ("KAFKA_CERTIFICATE_PASSWORD", "pw"),
    ],
)
def test_a_variable_that_asks_for_a_protection_is_refused_by_its_name(
    variable: str, value: str
) -> None:
    with pytest.raises(InvalidSetting, match=rf"{re.escape(variable)}: .*ALLOW_INSECURE=true"):
        served({variable: value})
    assert served({variable: value, "KAFKA_KAFKALITE_ALLOW_INSECURE": "true"})
    assert served({variable: " "})
