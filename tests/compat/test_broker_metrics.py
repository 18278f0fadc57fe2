"""A broker's own numbers: they are what stock clients did, and answer what dashboards ask.

Prometheus itself evaluates the expressions where it is installed (Debian's package `prometheus`);
elsewhere the names that they ask for are looked up on the pages.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

from kafkalite.metrics.pages import FRESH_SECONDS
from kafkalite.testing.embedded import EmbeddedKafka
from tests.compat.test_metrics import Series, series

HERE = Path(__file__).parent
GRAFANA = HERE.parents[1] / "grafana"
EXPRESSIONS = HERE / "dashboards" / "expressions.txt"
RECORDS, VALUE = 30, b"x" * 100
PATIENCE_S = 60
LEAST_SHARE = 0.95
SELECTORS = {
    "@S": 'namespace="myproject",strimzi_io_cluster="my-cluster"',
    "@P": 'namespace="myproject",strimzi_io_cluster="my-cluster",'
    'kubernetes_pod_name=~"my-cluster-kafka-0"',
    "@T": 'topic=~".+",topic!=""',
    "@B": 'job="kafka-broker",env="test",instance=~".+"',
    "@C": 'job="kafka-controller",env="test",instance=~".+"',
}
# Each with the reason why there is none.
WITHOUT_ANSWER = {
    "commit_latency_avg": "how long a record of the metadata takes to last is not measured",
    "fetch_records_rate": "no other controller fetches the metadata's log",
    "acceptorblockedpercent": "for how long a listener takes nobody is not measured",
    "minfetchrate": "fetchers of replicas count no rate",
    "maxlag": "a follower does not know where its leader's log ends",
}


# Of a login that fails, or of who has to wait, there is a number when there was one.
RARE = {
    "kafka_server_socket_server_metrics_failed_authentication_total",
    "kafka_server_fetch_throttle_time", "kafka_server_produce_throttle_time",
    "kafka_server_request_throttle_time",
}  # fmt: skip
PUSHED = "clients.json"  # is about what clients push, which none of these here does


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        return str(answer.read().decode())


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(topics={"orders": 3, "counted": 3, "lines": 1}, metrics=True) as kafka:
        yield kafka


def page(kafka: EmbeddedKafka, path: str = "/metrics") -> Series:
    time.sleep(FRESH_SECONDS)  # what was looked at a moment ago would be told again
    return series(get(kafka.metrics_url + path))


def produce_with_librdkafka(kafka: EmbeddedKafka, topic: str = "orders") -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "client.id": "rd"})
    for number in range(RECORDS):
        producer.produce(topic, VALUE, partition=number % 3)
    assert producer.flush(PATIENCE_S) == 0


def produce_with_kafka_python(kafka: EmbeddedKafka) -> None:
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, linger_ms=0)
    try:
        for _ in range(RECORDS):
            producer.send("lines", VALUE).get(PATIENCE_S)  # a request each
    finally:
        producer.close()


@contextmanager
def reading(kafka: EmbeddedKafka, group: str, topic: str = "orders") -> Iterator[None]:
    consumer = Consumer({
        "bootstrap.servers": kafka.bootstrap_servers, "group.id": group,
        "auto.offset.reset": "earliest", "enable.auto.commit": False,
    })  # fmt: skip
    try:
        consumer.subscribe([topic])
        for _ in range(RECORDS):
            message = consumer.poll(PATIENCE_S)
            assert message is not None, "nothing came"
            assert message.error() is None
        consumer.commit(asynchronous=False)
        yield
    finally:
        consumer.close()


def change(before: Series, after: Series, name: str, *labels: str) -> float:
    return after[name].get(labels, 0) - before.get(name, {}).get(labels, 0)


def test_the_numbers_are_what_clients_did(kafka: EmbeddedKafka) -> None:
    before = page(kafka)
    produce_with_librdkafka(kafka, "counted")
    produce_with_kafka_python(kafka)
    with reading(kafka, "readers", "counted"):
        after = page(kafka)
    topics = "kafka_server_brokertopicmetrics"
    assert change(before, after, f"{topics}_messagesin_total", "counted") == RECORDS
    assert change(before, after, f"{topics}_messagesin_total", "lines") == RECORDS
    assert change(before, after, f"{topics}_totalproducerequests_total", "lines") == RECORDS
    sizes = after["kafka_log_log_size"]
    counted = sum(size for (_, topic), size in sizes.items() if topic == "counted")
    assert change(before, after, f"{topics}_bytesin_total", "counted") == counted
    assert change(before, after, f"{topics}_bytesout_total", "counted") == counted
    assert after["kafka_log_log_logendoffset"]["0", "lines"] == RECORDS
    lag = after["kafka_consumergroup_lag"]
    assert [lag["readers", str(index), "counted"] for index in range(3)] == [0, 0, 0]
    produced = sum(
        count - before.get("kafka_network_requestmetrics_requests_total", {}).get(labels, 0)
        for labels, count in after["kafka_network_requestmetrics_requests_total"].items()
        if labels[0] == "Produce"
    )
    errors = "kafka_network_requestmetrics_errors_total"
    assert produced >= RECORDS + 3
    assert change(before, after, errors, "NONE", "Produce") >= produced
    timed = change(before, after, "kafka_network_requestmetrics_totaltimems_count", "Produce")
    assert timed == produced, "few enough for each to be timed"


def test_what_is_connected_and_what_groups_do(kafka: EmbeddedKafka) -> None:
    produce_with_librdkafka(kafka)
    consumer = KafkaConsumer(
        "orders", bootstrap_servers=kafka.bootstrap_servers, group_id="python",
        auto_offset_reset="earliest", consumer_timeout_ms=20_000,
    )  # fmt: skip
    try:
        next(consumer)
        found = page(kafka)
    finally:
        consumer.close()
    software = found["kafka_server_socket_server_metrics_connections_software"]
    assert any("python" in name for name, *_ in software), software
    counts = found["kafka_server_socket_server_metrics_connection_count"]
    assert sum(counts.values()) == sum(software.values()) > 0
    assert found["kafkalite_groups"]["Stable", "classic"] >= 1
    assert found["kafka_consumergroup_members"][("python",)] == 1
    assert 0 <= found["kafkalite_loop_idle_ratio"][()] <= 1


# --- other people's expressions -------------------------------------------------------------------


def expressions() -> Iterator[tuple[str, str, str]]:
    """Page, whose it is, and the expression."""
    path = whose = ""
    for line in EXPRESSIONS.read_text().splitlines():
        head = re.fullmatch(r"\[(\S+)] (.*)", line)
        if head is not None:
            path, whose = head[1], head[2]
        elif line and not line.startswith("#"):
            for name, labels in SELECTORS.items():
                line = line.replace(name, labels)
            yield path, whose, line


def own_expressions() -> Iterator[str]:
    for path in GRAFANA.glob("*.json"):
        if path.name == PUSHED:
            continue
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"]:
                yield target["expr"].replace("$instance", ".+")
    for expression in re.findall(r"^ +expr: (.*)$", (GRAFANA / "alerts.yml").read_text(), re.M):
        yield re.sub(r" (?:[<>]|[!=]=) [0-9.]+$", "", expression)


_NAME = re.compile(r"\b(?:kafka|kafkalite|kminion|process)_[a-z0-9_]+")


def names_in(expression: str) -> set[str]:
    return set(_NAME.findall(re.sub(r'"[^"]*"', "", expression)))


def has_reason(expression: str) -> bool:
    return any(part in expression for part in WITHOUT_ANSWER)


def test_the_names_that_dashboards_ask_for_are_on_their_pages(kafka: EmbeddedKafka) -> None:
    produce_with_librdkafka(kafka)
    with reading(kafka, "named"):
        found = {path: page(kafka, path) for path in {path for path, *_ in expressions()}}
    missing = [
        (whose, name)
        for path, whose, expression in expressions()
        for name in names_in(expression)
        if name not in found[path] and not has_reason(expression)
    ]
    assert missing == []
    own = {name for each in own_expressions() for name in names_in(each)}
    assert sorted(own - found["/metrics"].keys() - RARE) == []


def test_what_has_no_answer_is_little() -> None:
    asked = [expression for *_, expression in expressions()]
    without = [each for each in asked if has_reason(each)]
    assert len(without) <= (1 - LEAST_SHARE) * len(asked)


# --- Prometheus -----------------------------------------------------------------------------------

PROMETHEUS = shutil.which("prometheus")
PROMTOOL = shutil.which("promtool")


@pytest.mark.skipif(PROMTOOL is None, reason="Debian's package prometheus is not installed")
def test_promtool_takes_what_is_delivered(kafka: EmbeddedKafka) -> None:
    assert PROMTOOL is not None
    for words in (("check", "config", "prometheus.yml"), ("check", "rules", "alerts.yml")):
        subprocess.run([PROMTOOL, *words], cwd=GRAFANA, check=True, timeout=PATIENCE_S,
                       capture_output=True)  # fmt: skip
    for path in ("/metrics", "/metrics/reporter", "/metrics/confluent", "/metrics/kminion"):
        done = subprocess.run(
            [PROMTOOL, "check", "metrics"], input=get(kafka.metrics_url + path).encode(),
            capture_output=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        # 3: names that it would have chosen otherwise, which are others' choice.
        assert done.returncode in (0, 3), done.stderr


@contextmanager
def prometheus(kafka: EmbeddedKafka, folder: Path) -> Iterator[str]:
    """A Prometheus that scrapes as we deliver it, but more often."""
    assert PROMETHEUS is not None
    target = kafka.metrics_url.removeprefix("http://")
    config = (GRAFANA / "prometheus.yml").read_text()
    config = config.replace("127.0.0.1:9404", target).replace("interval: 15s", "interval: 1s")
    (folder / "prometheus.yml").write_text(config)
    shutil.copy(GRAFANA / "alerts.yml", folder)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [PROMETHEUS, f"--config.file={folder / 'prometheus.yml'}",
             f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address=127.0.0.1:{port}"],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        yield f"http://127.0.0.1:{port}/api/v1/query?query="
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def answered(base: str, expression: str) -> list[Any]:
    answer = json.loads(get(base + urllib.parse.quote(expression)))
    assert answer["status"] == "success", (expression, answer)
    found: list[Any] = answer["data"]["result"]
    return found


def wait_for_scrapes(base: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            ready = answered(base, "count(count_over_time(up[1m]) >= 3 and up == 1)")
        except OSError:
            ready = []
        if ready and int(ready[0]["value"][1]) == 6:
            return
        time.sleep(0.5)
    pytest.fail("Prometheus did not scrape all pages")


@pytest.mark.full
@pytest.mark.skipif(PROMETHEUS is None, reason="Debian's package prometheus is not installed")
def test_prometheus_answers_what_dashboards_ask(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    with prometheus(kafka, tmp_path) as base, reading(kafka, "asked"):
        for _ in range(3):
            produce_with_librdkafka(kafka)
            time.sleep(1)
        wait_for_scrapes(base)
        asked = [*expressions()]
        empty = [(whose, each) for _, whose, each in asked if not answered(base, each)]
        own = [each for each in own_expressions() if not answered(base, each)]
    assert [each for each in empty if not has_reason(each[1])] == []
    assert len(empty) <= (1 - LEAST_SHARE) * len(asked)
    print(f"{len(asked) - len(empty)} of {len(asked)} expressions have a series")
    assert [each for each in own if not names_in(each) & RARE] == []
