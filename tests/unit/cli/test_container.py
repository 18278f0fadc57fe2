"""The image's entry: which variables are settings, and what `serve` is told."""

import pytest

from kafkalite.cli.container import DATA_FOLDER, LISTEN, serve_arguments, settings


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


def test_settings_take_the_place_of_defaults() -> None:
    environment = {"KAFKA_LISTENERS": "PLAINTEXT://:19092", "KAFKA_LOG_DIRS": "/data"}
    assert serve_arguments(environment) == [
        "--override",
        "listeners=PLAINTEXT://:19092",
        "--override",
        "log.dirs=/data",
    ]
