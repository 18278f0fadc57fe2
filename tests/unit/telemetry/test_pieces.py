"""A push is read in pieces, none of which is long work for the library, and none is lost."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from kafkalite.telemetry import payload
from kafkalite.telemetry.payload import Unreadable, read
from kafkalite.telemetry.pieces import (
    LARGEST_POINT_BYTES,
    MOST_AROUND_BYTES,
    PIECE_BYTES,
    NoPieces,
    pieces,
)
from tests.unit.telemetry.otlp import SENDER, Push

MOST = 1 << 20
LARGEST = LARGEST_POINT_BYTES + 5 * MOST_AROUND_BYTES


def field(number: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    size, left = bytearray(), len(body)
    while left > 0x7F:
        size.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([number << 3 | 2, *size, left]) + body


def empty(number: int) -> bytes:
    return field(number) * (MOST // 2 - 32)


def one_metric(*parts: bytes) -> bytes:
    return field(1, field(2, field(2, field(1, b"x"), *parts)))


HOSTILE = {
    "resources": empty(1),
    "scopes": field(1, empty(2)),
    "metrics": field(1, field(2, empty(2))),
    "points": one_metric(field(5, empty(1))),
    "attributes": field(1, field(1, empty(1))),
    "metadata": one_metric(empty(12)),
    "one point": one_metric(field(5, field(1, empty(7)))),
    "numbers": b"\x08\x01" * (MOST // 2),
    "no end": field(1, bytes(MOST))[:-1],
    "groups": field(1, b"\x0b" * MOST),
}


def many() -> Push:
    push = Push(group_id="g")
    for number in range(600):
        push.gauge(f"org.apache.kafka.g{number}", number, node_id=number, topic="some topic")
    found = push._scope.metrics.add(name="org.apache.kafka.one").sum
    found.is_monotonic, found.aggregation_temporality = True, 1
    for number in range(900):
        point = found.data_points.add(as_int=number)
        point.attributes.add(key="partition").value.int_value = number
    return push


def found_in(data: bytes) -> Any:
    return read(data, 0, MOST, SENDER, is_told=True, is_forwarded=True)


def test_all_of_a_large_push_is_told_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    data = many().data
    assert len(list(pieces(data))) > 3
    found = found_in(data)
    monkeypatch.setattr(payload, "pieces", lambda data: iter((data,)))
    whole = found_in(data)
    assert found.points == whole.points
    assert len(found.points) == 1_500
    sent = MetricsData.FromString(found.forwarded).resource_metrics
    assert all({"client_id", "group_id"} <= keys_of(each) for each in sent)
    assert metrics_of(sent) == metrics_of(MetricsData.FromString(whole.forwarded).resource_metrics)


def keys_of(resource: Any) -> set[str]:
    return {each.key for each in resource.resource.attributes}


def metrics_of(resources: Any) -> dict[str, list[bytes]]:
    """The points of each metric."""
    found: dict[str, list[bytes]] = {}
    for resource in resources:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                points = getattr(metric, metric.WhichOneof("data")).data_points
                found.setdefault(metric.name, []).extend(
                    each.SerializeToString() for each in points
                )
    return found


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_no_piece_is_long_work(data: bytes) -> None:
    sizes: list[int] = []
    try:
        sizes.extend(len(each) for each in pieces(data))
    except NoPieces:
        with pytest.raises(Unreadable):
            found_in(data)
    assert all(size <= LARGEST for size in sizes)


def test_of_what_is_no_otlp_some_piece_is_none() -> None:
    data = many().data + one_metric(field(5, field(1, b"\x7f")))
    assert len(data) > PIECE_BYTES
    with pytest.raises(Unreadable):
        found_in(data)
