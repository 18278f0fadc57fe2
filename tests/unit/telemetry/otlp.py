"""Pushes as clients make them."""

from __future__ import annotations

from typing import Any

from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from kafkalite.telemetry.payload import Sender

DELTA, CUMULATIVE = 1, 2
SENDER = Sender("app", "BwcHBwcHBwcHBwcHBwcHBw", "apache-kafka-java", "4.3.1")


class Push:
    """Metrics of one resource."""

    def __init__(self, **attributes: str) -> None:
        self.metrics = MetricsData()
        resource = self.metrics.resource_metrics.add()
        _put(resource.resource.attributes, attributes)
        self._scope = resource.scope_metrics.add()

    def gauge(self, name: str, value: float, **attributes: Any) -> Push:
        point = self._scope.metrics.add(name=name).gauge.data_points.add(as_double=value)
        _put(point.attributes, attributes)
        return self

    def sum(
        self, name: str, value: int, temporality: int = DELTA, *, rises: bool = True,
        **attributes: Any,
    ) -> Push:  # fmt: skip
        found = self._scope.metrics.add(name=name).sum
        found.aggregation_temporality = temporality
        found.is_monotonic = rises
        _put(found.data_points.add(as_int=value).attributes, attributes)
        return self

    def histogram(self, name: str, count: int, total: float) -> Push:
        found = self._scope.metrics.add(name=name).histogram
        found.aggregation_temporality = DELTA
        found.data_points.add(count=count, sum=total)
        return self

    @property
    def data(self) -> bytes:
        return bytes(self.metrics.SerializeToString())


def _put(attributes: Any, values: dict[str, Any]) -> None:
    for key, value in values.items():
        kind = {bool: "bool_value", int: "int_value", float: "double_value"}.get(
            type(value), "string_value"
        )
        setattr(attributes.add(key=key).value, kind, value)
