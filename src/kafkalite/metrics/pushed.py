"""What clients pushed, as series of their own page's families."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from kafkalite.telemetry.payload import Key

HELP = "Pushed by clients (KIP-714)."


def pushed_families(pushed: Iterable[tuple[Key, float]]) -> Iterable[Metric]:
    found: dict[tuple[str, bool], Metric] = {}
    for (name, rises, labels), value in pushed:
        family = found.get((name, rises))
        if family is None:
            kind = CounterMetricFamily if rises else GaugeMetricFamily
            family = found[name, rises] = kind(name, HELP)
        family.add_sample(f"{name}_total" if rises else name, dict(labels), value)
    return found.values()
