"""The pages of numbers, and one look at the cluster for whoever asks within a moment.

Owns the client that looks, which is one for all pages: dashboards that read side by side cost one
look. What could not be had is told in the log, once for each sentence.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from kafkalite.client.cluster import Cluster
from kafkalite.client.survey import Survey, survey
from kafkalite.metrics.exporter import exporter_families
from kafkalite.metrics.kminion import kminion_families
from kafkalite.metrics.lag import lag_families
from kafkalite.metrics.lag_seconds import Ends

_LOG = logging.getLogger(__name__)
FRESH_SECONDS = 1.0
SENTENCES = 1_000


class Pages:
    """Each page by its path."""

    def __init__(
        self, cluster: Cluster, name: str | None, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        """name: of the cluster, for those that tell several apart; else it is the cluster's id."""
        self._cluster, self._name, self._now_s = cluster, name, now_s
        self._ends = Ends()
        self._lock = threading.Lock()
        self._last: tuple[float, Survey] | None = None
        self._said: set[str] = set()

    PATHS = ("/metrics", "/metrics/kminion")

    def page(self, path: str) -> bytes:
        """ClientFailed when the cluster cannot be asked."""
        with self._lock:
            found = self._look()
            return self._write(path, found)

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
            return _text(kminion_families(found).all())
        name = self._name or found.cluster_id
        return _text(
            [*exporter_families(found).all(), *lag_families(found, self._ends, name).all()]
        )


class _Once(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _text(families: Iterable[Metric]) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Once(list(families)))
    return generate_latest(registry)
