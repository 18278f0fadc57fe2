"""The pages of numbers of brokers in this process, and one text for whoever asks within a moment.

Owns which page spells what. The look is taken on the brokers' loop, in slices; the text is written
by whoever asks, on a thread of their own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import chain

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector

from kafkalite.metrics.exporter import exporter_families
from kafkalite.metrics.inside import ApiTimes, Inside
from kafkalite.metrics.kminion import kminion_families
from kafkalite.metrics.lag import lag_families
from kafkalite.metrics.lag_seconds import Ends
from kafkalite.metrics.pages import FRESH_SECONDS, text
from kafkalite.metrics.pushed import pushed_families
from kafkalite.metrics.spellings import (
    CONFLUENT,
    QUANTILES,
    REPORTER,
    STRIMZI,
    Row,
    Style,
    TimesRow,
    families,
)
from kafkalite.server.timing import STAGES

MS_PER_NS = 1e-6
DISK = {"read_bytes": "linux-disk-read-bytes", "write_bytes": "linux-disk-write-bytes"}
IO_FILE = "/proc/self/io"
_STYLES: dict[str, Style] = {
    "/metrics": STRIMZI, "/metrics/confluent": CONFLUENT, "/metrics/reporter": REPORTER
}  # fmt: skip
KMINION = "/metrics/kminion"


class BrokerPages:
    """Each page by its path, of one broker."""

    PATHS = (*_STYLES, KMINION)

    def __init__(
        self, look: Callable[[], Inside], now_s: Callable[[], float] = time.monotonic
    ) -> None:
        """look: takes down what is so now; what it raises goes to who asks."""
        self._take_look, self._now_s = look, now_s
        self._ends = Ends()
        self._lock = threading.Lock()
        self._last: tuple[float, Inside] | None = None
        self._writing = threading.Lock()
        self._texts: dict[str, tuple[float, bytes]] = {}  # and when that was begun
        self._process = ProcessCollector(registry=None)

    def look(self) -> Inside:
        """Sees where partitions end, also when nobody asks: lag in seconds needs it."""
        with self._lock:
            now_s = self._now_s()
            if self._last is None or not 0 <= now_s - self._last[0] < FRESH_SECONDS:
                found = self._take_look()
                self._ends.note(found.survey)
                self._last = (self._now_s(), found)
            return self._last[1]

    def page(self, path: str) -> bytes:
        """Written by one at a time, for all who have asked before it was begun: of thousands of
        partitions that takes seconds of the processor, which the loop needs, too."""
        asked_s = self._now_s()
        with self._writing:
            begun_s, page = self._texts.get(path, (0.0, b""))
            if not page or begun_s <= asked_s - FRESH_SECONDS:
                begun_s = self._now_s()
                page = self._write(path)
                self._texts[path] = begun_s, page
            return page

    def _write(self, path: str) -> bytes:
        found = self.look()
        if path == KMINION:
            return text(kminion_families(found.survey).all())
        return text(self._families(path, found))

    def _families(self, path: str, found: Inside) -> Iterable[Metric]:
        rows = {**found.rows, **_disk_rows()}
        times: dict[str, list[TimesRow]] = {}
        for each in _with_all_fetches(found.times):
            for name, row in _times_rows(each):
                times.setdefault(name, []).append(row)
        pages: list[Iterable[Metric]] = [
            families(_STYLES[path], rows, times), self._process.collect(),
        ]  # fmt: skip
        if path == "/metrics":
            survey = found.survey
            pages += [
                _own_times(found.times),
                pushed_families(found.pushed),
                exporter_families(survey).all(),
                lag_families(survey, self._ends, survey.cluster_id).all(),
            ]
        elif path == "/metrics/confluent":
            survey = found.survey
            pages.append(lag_families(survey, self._ends, survey.cluster_id).all())
        return chain.from_iterable(pages)


# --- times ----------------------------------------------------------------------------------------


def _with_all_fetches(found: list[ApiTimes]) -> list[ApiTimes]:
    """Apache Kafka tells of all fetches beside those of consumers and followers."""
    both = [each for each in found if each.request in ("FetchConsumer", "FetchFollower")]
    if not both:
        return found
    sums = [sum(column) for column in zip(*(each.sums_ns for each in both), strict=True)]
    samples = [sample for each in both for sample in each.samples]
    return [*found, ApiTimes("Fetch", samples, sums, sum(each.timed for each in both))]


def _times_rows(found: ApiTimes) -> Iterable[tuple[str, TimesRow]]:
    for stage, name in enumerate(STAGES):
        columns = [sample[stage] for sample in found.samples]
        yield f"RequestMetrics.{name}TimeMs", _row(found, found.sums_ns[stage], columns)
    throttle = STAGES.index("Throttle")  # of a client's silence, not of the request
    totals = [sum(sample) - sample[throttle] for sample in found.samples]
    total_ns = sum(found.sums_ns) - found.sums_ns[throttle]
    yield "RequestMetrics.TotalTimeMs", _row(found, total_ns, totals)


def _row(found: ApiTimes, sum_ns: int, values: list[int]) -> TimesRow:
    quantiles = tuple(value * MS_PER_NS for value in percentiles(values))
    return TimesRow((found.request,), found.timed, sum_ns * MS_PER_NS, quantiles)


def percentiles(values: list[int]) -> list[int]:
    """Those of QUANTILES; of nothing it is nought."""
    if not values:
        return [0] * len(QUANTILES)
    ordered = sorted(values)
    return [ordered[min(int(float(each) * len(ordered)), len(ordered) - 1)] for each in QUANTILES]


def _own_times(found: list[ApiTimes]) -> Iterable[Metric]:
    """Means can be had of sums and counts."""
    name = "kafkalite_request_seconds"
    family = Metric(name, "Time of requests by stage; of a sample of them where they are many.",
                    "summary")  # fmt: skip
    for each in found:
        for stage, sum_ns in zip(STAGES, each.sums_ns, strict=True):
            labels = {"request": each.request, "stage": stage}
            family.add_sample(f"{name}_sum", labels, sum_ns / 1e9)
            family.add_sample(f"{name}_count", labels, each.timed)
    yield family
    every = GaugeMetricFamily(
        "kafkalite_request_samples", "Samples that percentiles are of.", labels=["request"]
    )
    for each in found:
        every.add_metric([each.request], len(each.samples))
    yield every


def _disk_rows() -> dict[str, list[Row]]:
    """What this process had of disks, where the system tells."""
    rows: dict[str, list[Row]] = {}
    with suppress(OSError), open(IO_FILE) as file:
        for line in file:
            name, _, value = line.partition(": ")
            if name in DISK:
                rows[f"KafkaServer.{DISK[name]}"] = [((), float(value))]
    return rows
