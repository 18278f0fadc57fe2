"""What clients push is read within bounds, in every compression, and spelt for Prometheus."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from kafkalite.records.batch import Compression
from kafkalite.records.compression import compress
from kafkalite.telemetry import payload
from kafkalite.telemetry.payload import Key, Payload, Unreadable, can_read, label, read, spelt
from tests.unit.telemetry.otlp import CUMULATIVE, SENDER, Push

MOST = 1 << 20
OWN = dict(SENDER.labels)


def told(data: bytes, compression: int = 0, most: int = MOST) -> Payload:
    return read(data, compression, most, SENDER, is_told=True, is_forwarded=False)


def values(found: Payload) -> dict[tuple[str, bool], float]:
    return {each.key[:2]: each.value for each in found.points}


def labels(key: Key) -> dict[str, str]:
    return {name: value for name, value in key[2] if name not in OWN}


def test_the_library_is_there() -> None:
    assert can_read()


@pytest.mark.parametrize("codec", list(Compression))
def test_every_compression_is_read(codec: Compression) -> None:
    data = Push().gauge("org.apache.kafka.a.b", 2.5).data
    found = told(bytes(compress(codec, data)), codec)
    assert values(found) == {("org_apache_kafka_a_b", False): 2.5}


def test_what_each_kind_of_metric_tells() -> None:
    push = Push(group_id="g").gauge("org.apache.kafka.idle", 0.5, node_id=3, is_on=True)
    push.sum("org.apache.kafka.sent.total", 7).sum("org.apache.kafka.open", 2, rises=False)
    push.histogram("org.apache.kafka.wait", 4, 12.0)
    found = told(push.data)
    assert values(found) == {
        ("org_apache_kafka_idle", False): 0.5, ("org_apache_kafka_sent", True): 7,
        ("org_apache_kafka_open", False): 2, ("org_apache_kafka_wait_count", True): 4,
        ("org_apache_kafka_wait_sum", True): 12,
    }  # fmt: skip
    assert labels(found.points[0].key) == {"group_id": "g", "node_id": "3", "is_on": "true"}
    assert [each.is_delta for each in found.points] == [False, True, True, True, True]
    assert not told(Push().sum("a", 1, CUMULATIVE).data).points[0].is_delta


def test_who_pushes_is_what_the_broker_knows() -> None:
    push = Push(client_id="somebody else").gauge("org.apache.kafka.a", 1, client_instance_id="x")
    (point,) = told(push.data).points
    assert OWN.items() <= dict(point.key[2]).items()


@pytest.mark.parametrize(
    ("data", "compression"),
    [(b"\xff\xff", 0), (b"no gzip", 1), (b"no zstd", 4), (b"\x0a\x05ab", 0)],
    ids=["no OTLP", "no gzip", "no zstd", "cut off"],
)
def test_what_cannot_be_read(data: bytes, compression: int) -> None:
    with pytest.raises(Unreadable):
        told(data, compression)


def test_what_explodes_out_of_its_compression() -> None:
    with pytest.raises(Unreadable, match="1000 bytes"):
        told(gzip.compress(bytes(1_000_000)), Compression.GZIP, most=1_000)


def test_very_many_resources_are_refused() -> None:
    with pytest.raises(Unreadable, match="resources"):
        told(b"\x0a\x00" * (payload.MOST_RESOURCES + 1))


def test_javas_clients_push_a_resource_for_each_metric() -> None:
    data = b"".join(Push().gauge(f"org.apache.kafka.a{number}", 1).data for number in range(1_900))
    found = read(data, 0, MOST, SENDER, is_told=True, is_forwarded=True)
    assert (len(found.points), found.left_out) == (1_900, 0)
    assert len(MetricsData.FromString(found.forwarded).resource_metrics) == 1_900


def test_of_very_many_points_some_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload, "MOST_POINTS", 3)
    push = Push()
    for number in range(5):
        push.gauge("org.apache.kafka.a", 1, number=number)
    push.gauge("a" * (payload.LONGEST + 1), 1)
    found = told(push.data)
    assert (len(found.points), found.left_out) == (3, 3)


def test_no_number_is_told_where_there_is_none() -> None:
    push = Push().gauge("a", float("nan")).gauge("b", float("inf"))
    gauge = push._scope.metrics.add(name="c").gauge
    gauge.data_points.add()
    gauge.data_points.add(as_int=1, flags=payload.NO_VALUE)
    push._scope.metrics.add(name="no data")
    assert told(push.data).points == []


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("org.apache.kafka.producer.x", "org_apache_kafka_producer_x"),
        ("kafka_server_brokerstate", "pushed_kafka_server_brokerstate"),
        ("5 ü\n", "pushed_5___"),
        ("", "pushed_"),
    ],
)
def test_no_name_of_a_client_is_one_of_the_brokers(name: str, shown: str) -> None:
    assert spelt(name) == shown


def test_no_two_families_of_a_page_have_one_name() -> None:
    found = told(Push().gauge("a.total", 1).sum("a", 2).data)
    assert values(found) == {("pushed_a", False): 1, ("pushed_a", True): 2}


@pytest.mark.parametrize(
    ("key", "shown"), [("node.id", "node_id"), ("__name__", "name__"), ("5", "_5"), ("_", "_")]
)
def test_labels_are_spelt(key: str, shown: str) -> None:
    assert label(key) == shown


def test_what_goes_on_says_who_pushed_it() -> None:
    push = Push(client_id="somebody else", group_id="g").gauge("a", 1)
    found = read(push.data, 0, MOST, SENDER, is_told=False, is_forwarded=True)
    assert found.points == []
    (resource,) = MetricsData.FromString(found.forwarded).resource_metrics
    shown: dict[str, Any] = {
        each.key: each.value.string_value for each in resource.resource.attributes
    }
    assert shown == {**OWN, "group_id": "g"}
    assert resource.scope_metrics[0].metrics[0].name == "a"


def test_where_nobody_wants_them_they_are_only_taken_out_of_their_compression() -> None:
    found = read(b"\xff", 0, MOST, SENDER, is_told=False, is_forwarded=False)
    assert (found.points, found.forwarded) == ([], b"")
    with pytest.raises(Unreadable):
        read(b"\xff", Compression.GZIP, MOST, SENDER, is_told=False, is_forwarded=False)
