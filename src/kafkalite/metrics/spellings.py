"""How pages spell beans: each by the rules of those whose dashboards are to read it.

Owns three spellings of one name. Strimzi's rules for the JMX exporter drop `PerSec` and add
`_total`; Strimzi's reporter keeps it and adds `_total`; Confluent's rules keep it and add nothing.
Numbers that Apache Kafka has no word for are told on the first page alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, UntypedMetricFamily
from prometheus_client.metrics_core import Metric

from kafkalite.metrics.beans import Bean, Kind, beans

QUANTILES = ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")
PER_SEC, PERCENT = "PerSec", "Percent"

Row = tuple[tuple[str, ...], float]  # values of labels, and the value


@dataclass(slots=True)
class TimesRow:
    """What is known of the times of one API, in milliseconds."""

    labels: tuple[str, ...]
    count: int
    sum_ms: float
    quantiles: tuple[float, ...]  # as QUANTILES


@dataclass(slots=True, frozen=True)
class Style:
    """One page's way."""

    name_of: Callable[[Bean], str]
    label_of: Callable[[str], str]
    quantile_of: Callable[[str], str] = str
    is_typed: bool = True  # whether a counter's name says that it is one
    has_own: bool = False  # whether it tells what is ours


def families(
    style: Style, rows: Mapping[str, list[Row]], times: Mapping[str, list[TimesRow]]
) -> Iterable[Metric]:
    """A page's, each of which has a row; those without labels come first in theirs."""
    for key, bean in beans().items():
        if not bean.domain and not style.has_own:
            continue
        if bean.kind is Kind.TIMES:
            if times.get(key):
                yield _times(style, bean, times[key])
        elif rows.get(key):
            yield _family(style, bean, rows[key])


def _family(style: Style, bean: Bean, rows: list[Row]) -> Metric:
    name = style.name_of(bean)
    labels = [style.label_of(each) for each in bean.labels]
    family: Metric
    if bean.kind is not Kind.COUNTER:
        family = GaugeMetricFamily(name, bean.help, labels=labels)
        sample = name
    elif style.is_typed or not bean.domain:
        name = name.removesuffix("_total")
        family, sample = CounterMetricFamily(name, bean.help, labels=labels), f"{name}_total"
    else:
        family, sample = UntypedMetricFamily(name, bean.help, labels=labels), name
    for values, value in rows:
        # A row of all has none of the labels.
        family.add_sample(sample, dict(zip(labels, values, strict=False)), value)
    return family


def _times(style: Style, bean: Bean, rows: list[TimesRow]) -> Metric:
    name = style.name_of(bean)
    labels = [style.label_of(each) for each in bean.labels]
    family = Metric(name, bean.help, "summary" if style.is_typed else "untyped")
    for row in rows:
        own = dict(zip(labels, row.labels, strict=True))
        for quantile, value in zip(QUANTILES, row.quantiles, strict=True):
            family.add_sample(name, {**own, "quantile": style.quantile_of(quantile)}, value)
        if style.is_typed:
            family.add_sample(f"{name}_sum", own, row.sum_ms)
            family.add_sample(f"{name}_count", own, row.count)
        else:
            family.add_sample(name, own, row.count)
    return family


# --- the three ------------------------------------------------------------------------------------


def _plain(bean: Bean, type_: str, name: str) -> str:
    if not bean.domain:
        return bean.name
    return re.sub(r"[^a-z0-9]", "_", f"kafka_{bean.domain}_{type_}_{name}".lower())


def _strimzi(bean: Bean) -> str:
    name = bean.name
    if name.endswith(PER_SEC):
        name = name.removesuffix(PER_SEC) + "_total"
    elif name.endswith(PERCENT):
        name = name.removesuffix(PERCENT) + "_percent"
    elif name == "connections":
        name = "connections_software"
    return _plain(bean, "raftmetrics" if bean.type == "raft-metrics" else bean.type, name)


def _reporter(bean: Bean) -> str:
    is_rate = bean.kind is Kind.COUNTER and not bean.name.endswith(("-total", "-bytes"))
    return _plain(bean, bean.type, f"{bean.name}_total" if is_rate else bean.name)


def _confluent(bean: Bean) -> str:
    is_sockets = bean.type == "socket-server-metrics"
    name = bean.name
    if bean.key == "KafkaRequestHandlerPool.RequestHandlerAvgIdlePercent":
        name += "_total"
    return _plain(bean, "socketservermetrics" if is_sockets else bean.type, name)


def _snake(label: str) -> str:
    """clientSoftwareName as client_software_name."""
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", label).replace("-", "_").lower()


def _confluent_label(label: str) -> str:
    is_of_sockets = label.startswith("clientSoftware") or label == "networkProcessor"
    return _snake(label) if is_of_sockets else label.replace("-", "_").lower()


STRIMZI = Style(_strimzi, lambda label: label.replace("-", "_"), has_own=True)
REPORTER = Style(
    _reporter, lambda label: label.replace("-", "_").lower(), lambda text: str(float(text))
)
CONFLUENT = Style(_confluent, _confluent_label, is_typed=False)
