"""Metrics that clients push (KIP-714): asked for by Apache Kafka's tool, pushed by its own client
and by librdkafka, seen on the broker's page; and a conversation by hand with both brokers."""

from __future__ import annotations

import re
import subprocess
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from prometheus_client.parser import text_string_to_metric_families

from kafkalite.jvm import jars, java
from kafkalite.log.names import uuid_text
from kafkalite.metrics.pages import FRESH_SECONDS
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    ZERO_UUID,
    ApiVersionsRequest,
    GetTelemetrySubscriptionsRequest,
    PushTelemetryRequest,
)
from kafkalite.records.batch import Compression
from kafkalite.records.compression import compress
from kafkalite.testing.embedded import EmbeddedKafka
from tests.compat.admin_peer import CLIENT_METRICS, DELETE, SET, Admin
from tests.compat.brokers import Broker
from tests.compat.java_classes import compile_classes
from tests.compat.java_tools import JavaTools
from tests.compat.test_broker_metrics import get
from tests.compat.waiting import eventually
from tests.unit.telemetry.otlp import Push

TOOL = "org.apache.kafka.tools.ClientMetricsCommand"
CLIENT = Path(__file__).parent / "java" / "Client.java"
DASHBOARD = Path(__file__).parents[2] / "grafana" / "clients.json"
CALL_S = 60
TELEMETRY_KEYS = {71, 72}
OTLP = Push().gauge("org.apache.kafka.a", 1.0).data
EXPLODING = bytes(compress(Compression.GZIP, bytes(1 << 21)))
RESERVED = (ZERO_UUID, bytes(15) + b"\1")

pytestmark = pytest.mark.xdist_group("client-metrics")  # a change of one begins all anew


# --- by hand, on both -----------------------------------------------------------------------------


@pytest.fixture
def subscribed(broker: Broker, unique: Any) -> Iterator[Admin]:
    """One whose clients are asked for a metric, as seldom as can be."""
    with closing(Admin(broker)) as admin:
        name = unique("subscription")
        steps = (("metrics", SET, "org.apache.kafka.a"), ("interval.ms", SET, "3600000"))
        assert admin.alter(CLIENT_METRICS, name, *steps).error_code == Error.NONE
        yield admin
        forget(admin, name, "metrics", "interval.ms")


def forget(admin: Admin, name: str, *keys: str) -> None:
    admin.alter(CLIENT_METRICS, name, *((key, DELETE, None) for key in keys))


class Instance:
    """A client by hand, on a connection of its own."""

    def __init__(self, broker: Broker) -> None:
        self.admin = Admin(broker)
        eventually(broker, lambda: self._ask().requested_metrics == ["org.apache.kafka.a"])
        asked = self._ask()
        self.id, self.subscription = asked.client_instance_id, asked.subscription_id
        self.first = asked

    def _ask(self) -> Any:
        """As another one each time."""
        return self.admin.ask(GetTelemetrySubscriptionsRequest(), 0)

    def get(self) -> Error:
        asked = self.admin.ask(GetTelemetrySubscriptionsRequest(client_instance_id=self.id), 0)
        return Error(asked.error_code)

    def push(self, metrics: bytes = OTLP, **fields: Any) -> Error:
        given = {"client_instance_id": self.id, "subscription_id": self.subscription, **fields}
        answer = self.admin.ask(PushTelemetryRequest(metrics=metrics, **given), 0)
        return Error(answer.error_code)


@pytest.fixture
def instance(subscribed: Admin) -> Iterator[Instance]:
    instance = Instance(subscribed.broker)
    yield instance
    instance.admin.close()


def test_what_a_client_is_told(instance: Instance) -> None:
    first = instance.first
    assert first.accepted_compression_types == [4, 3, 1, 2]
    assert (first.push_interval_ms, first.telemetry_max_bytes) == (300_000, 1 << 20)
    assert (first.delta_temporality, first.throttle_time_ms) == (True, 0)
    assert instance.id not in RESERVED


@pytest.mark.parametrize("codec", list(Compression))
def test_a_push_in_each_compression(instance: Instance, codec: Compression) -> None:
    assert instance.push(bytes(compress(codec, OTLP)), compression_type=codec) == Error.NONE
    assert instance.push() == Error.THROTTLING_QUOTA_EXCEEDED


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"client_instance_id": RESERVED[0]}, Error.INVALID_REQUEST),
        ({"client_instance_id": RESERVED[1]}, Error.INVALID_REQUEST),
        ({"subscription_id": 12345}, Error.UNKNOWN_SUBSCRIPTION_ID),
        ({"compression_type": 5}, Error.UNSUPPORTED_COMPRESSION_TYPE),
        ({"compression_type": -1}, Error.UNSUPPORTED_COMPRESSION_TYPE),
        ({"metrics": bytes((1 << 20) + 1)}, Error.TELEMETRY_TOO_LARGE),
        ({"metrics": EXPLODING, "compression_type": 1}, Error.INVALID_RECORD),
        ({"metrics": b"no gzip", "compression_type": 1}, Error.INVALID_RECORD),
        ({"metrics": b"no zstd", "compression_type": 4}, Error.INVALID_RECORD),
        ({"metrics": b""}, Error.NONE),
    ],
    ids=[
        "nobody", "one", "subscription", "codec 5", "codec -1", "too large", "explodes",
        "no gzip", "no zstd", "nothing",
    ],
)  # fmt: skip
def test_what_is_refused(instance: Instance, fields: dict[str, Any], code: Error) -> None:
    assert instance.push(**fields) == code


def test_who_comes_too_early(instance: Instance) -> None:
    assert instance.get() == Error.THROTTLING_QUOTA_EXCEEDED
    assert instance.push(subscription_id=1) == Error.UNKNOWN_SUBSCRIPTION_ID
    assert instance.get() == Error.NONE  # it is told at once what is wanted now
    assert instance.get() == Error.THROTTLING_QUOTA_EXCEEDED
    assert instance.push() == Error.THROTTLING_QUOTA_EXCEEDED  # that was one, all the same


def test_who_goes(instance: Instance) -> None:
    assert instance.push() == Error.NONE
    assert instance.push(terminating=True) == Error.NONE
    assert instance.push(terminating=True) == Error.INVALID_REQUEST
    assert instance.push() == Error.INVALID_REQUEST


def test_who_comes_again_on_another_connection_is_new(
    instance: Instance, subscribed: Admin
) -> None:
    assert instance.push(terminating=True) == Error.NONE
    instance.admin.close()
    instance.admin = Admin(subscribed.broker)
    until_s = time.monotonic() + CALL_S  # the broker may see the end of the first one later
    while (code := instance.get()) != Error.NONE and time.monotonic() < until_s:
        assert code == Error.THROTTLING_QUOTA_EXCEEDED
        time.sleep(0.05)
    assert code == Error.NONE
    assert instance.push() == Error.NONE


def test_a_subscription_for_some(instance: Instance, subscribed: Admin, unique: Any) -> None:
    name = unique("own")
    match = f"client_instance_id={uuid_text(instance.id)}"
    steps = (("metrics", SET, "own"), ("match", SET, match))
    assert subscribed.alter(CLIENT_METRICS, name, *steps).error_code == Error.NONE
    try:
        for _ in range(100):
            asked = instance.admin.ask(
                GetTelemetrySubscriptionsRequest(client_instance_id=instance.id), 0
            )
            if asked.error_code == Error.NONE:
                break
        assert sorted(asked.requested_metrics) == ["org.apache.kafka.a", "own"]
    finally:
        forget(subscribed, name, "metrics", "match")


# --- clients that push ----------------------------------------------------------------------------


class Collector:
    """Takes OTLP over HTTP, as who collects metrics does."""

    def __init__(self) -> None:
        self.given: list[MetricsData] = []
        given = self.given

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                given.append(
                    MetricsData.FromString(self.rfile.read(int(self.headers["Content-Length"])))
                )
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1/metrics"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def instances(self) -> set[tuple[str, str]]:
        """Client ids and software."""
        resources = [each.resource for one in self.given for each in one.resource_metrics]
        said = [{one.key: one.value.string_value for one in each.attributes} for each in resources]
        return {(each["client_id"], each["client_software_name"]) for each in said}


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    collector = Collector()
    yield collector
    collector.stop()


@pytest.fixture(scope="module")
def kafka(collector: Collector, tools: JavaTools) -> Iterator[EmbeddedKafka]:
    settings = {"kafkalite.telemetry.url": collector.url}
    with EmbeddedKafka(topics={"t": 1}, metrics=True, settings=settings) as kafka:
        said = tools.run(
            TOOL, "--bootstrap-server", kafka.bootstrap_servers, "--alter", "--name", "all",
            "--metrics", "*", "--interval", "500",
        )  # fmt: skip
        assert "Altered client metrics config for all" in said
        yield kafka


def told(
    kafka: EmbeddedKafka, software: str, prefix: str, least: Collection[str] = ()
) -> dict[str, float]:
    """Series that clients of a kind pushed, once there are some, and these among them."""
    for _ in range(20):
        found: dict[str, float] = {}
        for family in text_string_to_metric_families(get(f"{kafka.metrics_url}/metrics")):
            for sample in family.samples:
                is_of = sample.labels.get("client_software_name") == software
                if is_of and sample.name.startswith(prefix):
                    found[sample.name] = max(sample.value, found.get(sample.name, 0))
        if found and found.keys() >= set(least):
            return found
        time.sleep(FRESH_SECONDS)
    raise AssertionError(f"of {software} there is nothing but {sorted(found)}")


def test_apaches_client_pushes(
    kafka: EmbeddedKafka, collector: Collector, tmp_path: Path
) -> None:
    compile_classes([CLIENT], tmp_path, ["kafka-clients-0.9.0.1"])
    class_path = f"{tmp_path}:{jars.class_path('kafka-clients-4.3.1')}"
    words = ["produce", kafka.bootstrap_servers, "t", "50", "client.id=java", "linger.ms=3000"]
    call = java.command(class_path, "Client", *words, heap="128M")
    call[1:1] = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    subprocess.run(call, capture_output=True, text=True, timeout=CALL_S, check=True)
    found = told(kafka, "apache-kafka-java", "org_apache_kafka_producer_")
    assert found["org_apache_kafka_producer_connection_creation_total"] >= 1
    assert ("java", "apache-kafka-java") in collector.instances()


def test_librdkafka_pushes_what_the_dashboard_asks_for(
    kafka: EmbeddedKafka, collector: Collector
) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "client.id": "rd"})
    consumer = Consumer({
        "bootstrap.servers": kafka.bootstrap_servers, "group.id": "g", "client.id": "rdc",
        "auto.offset.reset": "earliest",
    })  # fmt: skip
    consumer.subscribe(["t"])
    for _ in range(30):
        producer.produce("t", b"v")
        producer.flush(1)
        consumer.poll(0.1)
    asked = set(re.findall(r"\borg_apache_kafka_[a-z_]*[a-z]\b", DASHBOARD.read_text()))
    found = told(kafka, "confluent-kafka-python", "org_apache_kafka_", least=asked)
    consumer.close()
    assert found["org_apache_kafka_consumer_fetch_manager_fetch_latency_avg"] > 0
    software = "confluent-kafka-python"
    assert {("rd", software), ("rdc", software)} <= collector.instances()


def test_what_apaches_tool_says_of_it(kafka: EmbeddedKafka, tools: JavaTools) -> None:
    said = tools.run(TOOL, "--bootstrap-server", kafka.bootstrap_servers, "--describe")
    assert "interval.ms=500" in said
    assert "metrics=*" in said


def test_apis_of_metrics_are_advertised_where_somebody_takes_them(kafka: EmbeddedKafka) -> None:
    host, _, port = kafka.bootstrap_servers.partition(":")
    broker: Any = type("Address", (), {"host": host, "port": int(port)})
    with closing(Admin(broker)) as admin:
        keys = {each.api_key for each in admin.ask(ApiVersionsRequest(), 0).api_keys}
    assert keys >= TELEMETRY_KEYS
