"""The pages of numbers, and one look at the cluster for whoever asks within a moment.

Owns the client that looks, which is one for all pages: dashboards that read side by side cost one
look. What could not be had is told in the log, once for each sentence.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from kafkalite.client.cluster import Cluster
from kafkalite.client.survey import Place, Survey, survey
from kafkalite.metrics.burrow import answer, burrow_families
from kafkalite.metrics.exporter import exporter_families
from kafkalite.metrics.kminion import kminion_families
from kafkalite.metrics.lag import lag_families
from kafkalite.metrics.lag_seconds import Ends
from kafkalite.metrics.watched import Watched

_LOG = logging.getLogger(__name__)
FRESH_SECONDS = 1.0
SENTENCES = 1_000


class Pages:
    """Each page by its path."""

    PATHS = ("/metrics", "/metrics/kminion")

    def __init__(
        self, cluster: Cluster, name: str | None, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        """name: of the cluster, for those that tell several apart; else it is the cluster's id."""
        self._cluster, self._name, self._now_s = cluster, name, now_s
        self._ends = Ends()
        self._watched = Watched()
        self._lock = threading.Lock()
        self._last: tuple[float, Survey] | None = None
        self._said: set[str] = set()

    def page(self, path: str) -> bytes:
        """ClientFailed when the cluster cannot be asked."""
        with self._lock:
            found = self._look()
            return self._write(path, found)

    def burrow(self, path: tuple[str, ...]) -> tuple[int, dict[str, Any]]:
        """The answer to a path behind /v3/kafka, and its status code."""
        with self._lock:
            found = self._look()
            return answer(path, self._name_of(found), found, self._watched.windows, found.at_ms)

    def forget(self, group: str) -> None:
        """What a group has committed; its next commit counts as its first."""
        with self._lock:
            self._watched.windows.forget(group)

    def committed(self, group: str, place: Place, offset: int | None, at_ms: int) -> None:
        """What a reader of commits has seen."""
        with self._lock:
            self._watched.committed(group, place, offset, at_ms)

    def look(self) -> None:
        """Sees where partitions end, also when nobody asks: lag in seconds needs it."""
        with self._lock:
            self._look()

    def _look(self) -> Survey:
        now_s = self._now_s()
        if self._last is not None and 0 <= now_s - self._last[0] < FRESH_SECONDS:
            return self._last[1]
        found = survey(self._cluster)
        self._last = (self._now_s(), found)
        self._ends.note(found)
        self._watched.note(found)
        for sentence in found.missing:
            self._say_once(sentence)
        return found

    def _say_once(self, sentence: str) -> None:
        if sentence in self._said:
            return
        if len(self._said) >= SENTENCES:
            self._said.clear()
        self._said.add(sentence)
        _LOG.warning("%s", sentence)

    def _write(self, path: str, found: Survey) -> bytes:
        if path == "/metrics/kminion":
            return text(kminion_families(found).all())
        name = self._name_of(found)
        pages = (
            exporter_families(found),
            lag_families(found, self._ends, name),
            burrow_families(name, found, self._watched.windows, found.at_ms),
        )
        return text([family for page in pages for family in page.all()])

    def _name_of(self, found: Survey) -> str:
        return self._name or found.cluster_id


class _Once(Collector):
    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterable[Metric]:
        return [self._family]


def text(families: Iterable[Metric]) -> bytes:
    """One after the other, so that what has been written need not stay: of thousands of partitions
    that is hundreds of thousands of objects."""
    return b"".join(map(_text_of, families))


def _text_of(family: Metric) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Once(family))
    return generate_latest(registry)
