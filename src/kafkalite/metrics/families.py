"""Families of series, filled row by row: what the tables of names have in common."""

from __future__ import annotations

from dataclasses import dataclass, field

from prometheus_client.core import GaugeMetricFamily


@dataclass(slots=True)
class Families:
    """All of one page, in the order in which they were begun."""

    _found: dict[str, GaugeMetricFamily] = field(default_factory=dict)

    def begin(self, name: str, help_text: str, *labels: str) -> None:
        """A family that is told also when it has no row."""
        self._found[name] = GaugeMetricFamily(name, help_text, labels=labels)

    def add(self, name: str, value: float, *labels: object) -> None:
        self._found[name].add_metric([str(each) for each in labels], value)

    def all(self) -> list[GaugeMetricFamily]:
        return list(self._found.values())
