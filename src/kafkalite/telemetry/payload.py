"""What a client pushed, as numbers: OTLP's metrics, taken out of their compression and read.

Owns the reading, which is for a worker, its bounds, and how names and attributes are spelt for
Prometheus. Invariant: what a client says of itself hides nothing that the broker knows of it, and
no name of its own is one of the broker's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, Any

from kafkalite.env.dataclasses import dataclass, field
from kafkalite.records.compression import decompress
from kafkalite.records.errors import CorruptRecords
from kafkalite.telemetry.pieces import NoPieces, field_of, pieces

if TYPE_CHECKING:
    from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

LIBRARY = "opentelemetry-proto"
MOST_POINTS = 2_000  # of one push
MOST_METRICS = 10_000  # of one push that are looked at
MOST_RESOURCES = 10_000  # Java's clients push one for each metric
MOST_LABELS = 16  # of one point, and as many of what they have in common
LONGEST = 200  # name or value
OF_KAFKA = "org_apache_kafka_"
OTHERS = "pushed_"
DELTA = 1  # of temporalities: what was added since the push before
NO_VALUE = 1  # a flag
RESOURCES = 1  # a field
_PLAIN = ("string_value", "int_value", "double_value")
_NO_LETTER = re.compile("[^a-zA-Z0-9_]")

Labels = tuple[tuple[str, str], ...]
Key = tuple[str, bool, Labels]  # the name, whether it only rises, the labels


class Unreadable(Exception):
    """It is no OTLP, or not compressed as it says, or too large."""


@dataclass(slots=True, frozen=True)
class Sender:
    """What the broker knows of who pushes."""

    client_id: str
    instance_id: str
    software_name: str
    software_version: str

    @property
    def labels(self) -> Labels:
        return (
            ("client_id", self.client_id[:LONGEST]),
            ("client_instance_id", self.instance_id),
            ("client_software_name", self.software_name[:LONGEST]),
            ("client_software_version", self.software_version[:LONGEST]),
        )


@dataclass(slots=True, frozen=True)
class Point:
    key: Key
    value: float
    is_delta: bool


@dataclass(slots=True)
class Payload:
    """One push."""

    points: list[Point] = field(default_factory=list)
    left_out: int = 0  # points
    forwarded: bytes = b""  # the same for who is told of everything


def can_read() -> bool:
    """Whether the library for OTLP is there."""
    try:
        return find_spec("opentelemetry.proto.metrics.v1.metrics_pb2") is not None
    except ImportError:
        return False


def read(
    packed: bytes, compression: int, most_bytes: int, sender: Sender, *, is_told: bool,
    is_forwarded: bool,
) -> Payload:  # fmt: skip
    """Raises Unreadable."""
    payload = Payload()
    try:
        data = decompress(compression, packed, max_bytes=most_bytes)
    except CorruptRecords as error:
        raise Unreadable(str(error)) from None
    if not (is_told or is_forwarded):
        return payload
    own, looks = dict(sender.labels), iter(range(MOST_METRICS))
    forwarded: list[bytes] = []  # one behind the other they are one message
    for metrics in _parsed(data):
        if is_told:
            _take_points(payload, metrics, own, looks)
        if is_forwarded:
            forwarded.append(_addressed(metrics, sender.labels))
    payload.forwarded = b"".join(forwarded)
    return payload


def _parsed(data: bytes) -> Iterator[MetricsData]:
    """All of it, one piece after the other."""
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

    resources = 0
    try:
        for piece in pieces(data):
            found: MetricsData = MetricsData.FromString(piece)
            resources += len(found.resource_metrics)
            if resources > MOST_RESOURCES:
                raise Unreadable(f"it is of more than {MOST_RESOURCES} resources")
            yield found
    except (DecodeError, NoPieces) as error:
        raise Unreadable(str(error)) from None


def _addressed(metrics: MetricsData, labels: Labels) -> bytes:
    """With who pushed them, which clients leave to the broker to say."""
    names = {name for name, _ in labels}
    addressed = bytearray()
    for each in metrics.resource_metrics:
        attributes = each.resource.attributes
        others = [one for one in attributes if one.key not in names]
        del attributes[:]
        attributes.extend(others)
        for name, value in labels:
            attributes.add(key=name).value.string_value = value
        # One by one: of little that comes much may go on.
        addressed += field_of(RESOURCES, each.SerializeToString())
    return bytes(addressed)


# --- points ---------------------------------------------------------------------------------------


def _take_points(
    payload: Payload, metrics: MetricsData, own: dict[str, str], looks: Iterator[int]
) -> None:
    for (common, metric), _ in zip(_metrics(metrics), looks, strict=False):
        kind = metric.WhichOneof("data")
        if kind is None:
            continue
        data = getattr(metric, kind)
        room = MOST_POINTS - len(payload.points) if len(metric.name) <= LONGEST else 0
        points = data.data_points[: max(room, 0)]
        payload.left_out += len(data.data_points) - len(points)
        is_delta = getattr(data, "aggregation_temporality", None) == DELTA
        for each in points:
            labels = tuple(sorted({**common, **dict(_labels(each.attributes)), **own}.items()))
            for name, rises, value in _numbers(spelt(metric.name), kind, data, each):
                payload.points.append(Point((name, rises, labels), value, is_delta))


def _metrics(metrics: MetricsData) -> Iterator[tuple[dict[str, str], Any]]:
    """Each with the labels of what it is about."""
    for each in metrics.resource_metrics:
        common = dict(_labels(each.resource.attributes))
        for scope in each.scope_metrics:
            for metric in scope.metrics:
                yield common, metric


def _numbers(name: str, kind: str, data: Any, point: Any) -> Iterator[tuple[str, bool, float]]:
    """What a point tells, and whether that only rises."""
    if point.flags & NO_VALUE:
        return
    if kind in ("gauge", "sum"):
        rises = kind == "sum" and data.is_monotonic
        which = point.WhichOneof("value")
        value = math.nan if which is None else float(getattr(point, which))
        if math.isfinite(value):
            # Also where it falls: a page has no two families of one name.
            yield name.removesuffix("_total"), rises, value
    elif math.isfinite(point.sum):  # what means can be had of
        yield f"{name}_count", True, float(point.count)
        yield f"{name}_sum", True, float(point.sum)


def spelt(name: str) -> str:
    """As Prometheus takes it; what is no name of Kafka's says that it was pushed."""
    plain = _NO_LETTER.sub("_", name)
    return plain if plain.startswith(OF_KAFKA) else OTHERS + plain


def _labels(attributes: Iterable[Any]) -> Iterator[tuple[str, str]]:
    for each in islice(attributes, MOST_LABELS):
        kind = each.value.WhichOneof("value")
        if not 0 < len(each.key) <= LONGEST:
            continue
        if kind == "bool_value":
            yield label(each.key), "true" if each.value.bool_value else "false"
        elif kind in _PLAIN:
            yield label(each.key), str(getattr(each.value, kind))[:LONGEST]


def label(key: str) -> str:
    plain = _NO_LETTER.sub("_", key).lstrip("_")
    return plain if plain[:1].isalpha() else f"_{plain}"
