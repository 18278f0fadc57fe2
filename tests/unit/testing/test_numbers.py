"""The numbers of an EmbeddedKafka: where they are told, and when no more."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from typing import Any

import pytest

from kafkalite.testing.arguments import metrics_address
from kafkalite.testing.embedded import BrokerFailed, EmbeddedKafka


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


def test_a_broker_tells_its_numbers_from_start_to_stop() -> None:
    kafka = EmbeddedKafka(topics={"t": 2}, metrics=True)
    with kafka:
        url = kafka.metrics_url
        assert get(f"{url}/health/ready") == "ready\n"
        assert 'kafka_log_log_size{partition="1",topic="t"} 0.0' in get(f"{url}/metrics")
        kafka.restart()
        assert kafka.metrics_url == url
        assert "kafka_server_replicamanager_leadercount 2.0" in get(f"{url}/metrics")
        kafka.reset()
        assert "kafka_server_kafkaserver_brokerstate 3.0" in get(f"{url}/metrics")
    with pytest.raises(urllib.error.URLError):
        get(f"{url}/health/live")


def test_each_of_several_brokers_has_its_own() -> None:
    with EmbeddedKafka(brokers=2, metrics="127.0.0.1:0") as kafka:
        first, second = (get(f"{kafka.metrics_url}/metrics?broker={each}") for each in (1, 2))
    assert "kafka_controller_kafkacontroller_activecontrollercount 1.0" in first
    assert "kafka_controller_kafkacontroller_activecontrollercount 0.0" in second
    assert "kafka_brokers 2.0" in second


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        kafka = EmbeddedKafka(metrics=f"127.0.0.1:{port}")
        with pytest.raises(BrokerFailed, match=f"metrics=127.0.0.1:{port}"):
            kafka.start()
        assert not kafka.is_running
    with kafka:
        assert kafka.metrics_url == f"http://127.0.0.1:{port}"


def test_without_them_there_is_no_address() -> None:
    with pytest.raises(ValueError, match="no numbers without metrics"):
        _ = EmbeddedKafka().metrics_url


@pytest.mark.parametrize(
    ("given", "address"),
    [(None, None), (False, None), (True, ("127.0.0.1", 0)), ("[::1]:9", ("::1", 9))],
)
def test_where_they_are_told(given: Any, address: tuple[str, int] | None) -> None:
    assert metrics_address(given) == address


@pytest.mark.parametrize(
    "given", ["", "9404", ":9404", "here:", "here:-1", "here:65536", "x:\u0661"]
)
def test_what_is_no_address(given: str) -> None:
    with pytest.raises(ValueError, match="expected HOST:PORT"):
        metrics_address(given)
    wrong: Any = 9404
    with pytest.raises(TypeError, match="expected True or HOST:PORT"):
        metrics_address(wrong)
