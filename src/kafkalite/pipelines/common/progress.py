"""How far a run is, also while a batch is under way.

Owns the figures that are shown. What is done and what is left is what Spark's source said with the
last batch. What the batch under way has read is Spark's count of its tasks that are through; where
the tasks run in the driver's JVM, as by default, their Kafka consumers tell of the others as well.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from kafkalite.pipelines.common.ledger import Ledger
from kafkalite.pipelines.common.losses import Loss
from kafkalite.pipelines.common.offsets import Offsets

# A rate is of this time: long enough to be calm, short enough to tell of a change.
WINDOW_S = 30.0
SAMPLE_S = 1.0


@dataclass(slots=True)
class Progress:
    """How far a run is. `total` is what lay ahead when it began, by offsets.

    `losses` are what a run that keeps going passed over; they are written down as well. `ledger` is
    the account of what it did, `was_stopped` that it was told to end.
    """

    total: int
    rows: int = 0
    batches: int = 0
    rows_per_s: float = 0.0
    # Offsets of each partition that are not committed yet.
    behind: Offsets = field(default_factory=dict)
    # The batch under way, and what its tasks have read so far.
    batch: int | None = None
    reading: int = 0
    # On the disks of the brokers, where they tell.
    bytes_per_row: float | None = None
    # Seconds since 1970.
    committed_at: float | None = None
    reached: Offsets = field(default_factory=dict)
    losses: list[Loss] = field(default_factory=list)
    ledger: Ledger = field(default_factory=lambda: Ledger("", "", ""))
    was_stopped: bool = False

    @property
    def lag(self) -> int:
        return sum(self.behind.values())

    @property
    def is_behind(self) -> bool:
        """Whether something is left of what lay ahead when it began."""
        return self.lag > 0

    @property
    def bytes_per_s(self) -> float | None:
        return None if self.bytes_per_row is None else self.rows_per_s * self.bytes_per_row

    @property
    def seconds_left(self) -> float | None:
        """Until nothing is left, at this rate; None while there is none."""
        left = max(0, self.lag - self.reading)
        return left / self.rows_per_s if self.rows_per_s else None


Watch = Callable[[Progress], None]


class Rate:
    """Rows per second of the last `WINDOW_S`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen = deque([(clock(), 0)])

    def of(self, rows: int) -> float:
        """The rate, now that so many rows came in all."""
        now = self._clock()
        self._seen.append((now, rows))
        while len(self._seen) > 2 and now - self._seen[1][0] >= WINDOW_S:
            self._seen.popleft()
        since, before = self._seen[0]
        # A batch that is through is counted a moment after its tasks are.
        return max(0.0, (rows - before) / (now - since)) if now > since else 0.0


@dataclass(frozen=True, slots=True)
class Stage:
    """What Spark tells of tasks that run now: of which work, how far they are."""

    number: int
    description: str
    rows: int
    tasks: int
    done: int

    def __str__(self) -> str:
        return f"stage {self.number}, {self.done:,} of {self.tasks:,} tasks, {self.rows:,} rows"


class Stages:
    """The stages that run now in a session."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        self._store = context._jsc.sc().statusStore()

    def running(self) -> list[Stage]:
        """The newest first; nothing when the session is on its way out."""
        try:
            active = self._store.activeStages()
            return [_stage(active.apply(place)) for place in range(active.size())]
        except Py4JError:
            return []


def _stage(said: Any) -> Stage:
    described = said.description()
    return Stage(
        said.stageId(),
        str(described.get()) if described.isDefined() else "",
        said.inputRecords(),
        said.numTasks(),
        said.numCompleteTasks(),
    )


class Fetched:
    """Records that the consumers of tasks in this JVM have fetched since it began."""

    _NAMES = "kafka.consumer:type=consumer-fetch-manager-metrics,client-id=consumer-*-executor-*"

    def __init__(self, spark: SparkSession) -> None:
        self._gateway: Any = spark.sparkContext._gateway
        jvm: Any = spark.sparkContext._jvm
        self._object = jvm.java.lang.Object
        self._server = jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer()
        # Its class is the JVM's own; what it promises may be called.
        promised = jvm.java.lang.Class.forName("javax.management.MBeanServer").getMethods()
        self._methods = {each.getName(): each for each in promised}
        self._names = jvm.javax.management.ObjectName(self._NAMES)
        # By consumer: Spark closes those that it has no more use for.
        self._known: dict[str, int] = {}

    def total(self) -> int:
        for name in self._call("queryNames", self._names, None).toArray():
            try:
                fetched = self._call("getAttribute", name, "records-consumed-total")
            except Py4JError:
                continue
            self._known[str(name.toString())] = int(fetched)
        return sum(self._known.values())

    def _call(self, method: str, *given: Any) -> Any:
        words = self._gateway.new_array(self._object, len(given))
        for place, each in enumerate(given):
            words[place] = each
        return self._methods[method].invoke(self._server, words)


class Reading:
    """What the tasks of one query have read of the batch under way."""

    def __init__(self, stages: Callable[[], list[Stage]], fetched: Callable[[], int]) -> None:
        self._stages = stages
        self._fetched = fetched
        self._batch: int | None = None
        self._most = 0
        # Fetched in all, when last looked, and before the batch.
        self._last = self._before = fetched()

    def of(self, run_id: str, batch: int | None, size: int) -> int:
        """Of a batch of so many offsets. By the stage that has read most: those after the first may
        read the same again."""
        if batch != self._batch:
            self._batch, self._most, self._before = batch, 0, self._last
        self._last = self._fetched()
        if batch is None:
            return 0
        marks = (f"runId = {run_id}", f"batch = {batch}")
        rows = [
            stage.rows
            for stage in self._stages()
            if all(mark in stage.description.split("\n") for mark in marks)
        ]
        self._most = min(size, max(self._most, self._last - self._before, *rows, 0))
        return self._most


@contextmanager
def watched(
    spark: SparkSession, what: str, tell: Callable[[Stage], None], every_s: float = SAMPLE_S
) -> Iterator[None]:
    """Tells of the newest stage of the work within, for jobs that are no stream."""
    stages, ended = Stages(spark), threading.Event()

    def look() -> None:
        while not ended.wait(every_s):
            mine = [stage for stage in stages.running() if stage.description == what]
            if mine:
                tell(mine[0])

    looking = threading.Thread(target=look, name="progress", daemon=True)
    spark.sparkContext.setJobDescription(what)
    looking.start()
    try:
        yield
    finally:
        ended.set()
        looking.join()
        context: Any = spark.sparkContext
        context.setLocalProperty("spark.job.description", None)
