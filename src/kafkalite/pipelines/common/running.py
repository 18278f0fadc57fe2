"""Runs a streaming query of a pipeline: plan, watch, stop cleanly, and name what went wrong.

Owns the life of one query. What a batch does is the pipeline's; what is done already is Spark's
checkpoint's. Invariant: a batch that ends without an error has passed the check for lost records,
and its sink has shown what it has of it. One run at a time: it holds the lease of its checkpoint.
"""

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from kafkalite.pipelines.common.admin import KafkaAdmin
from kafkalite.pipelines.common.causes import cause_of, cure_of
from kafkalite.pipelines.common.checkpoint import NOTES, Checkpoint
from kafkalite.pipelines.common.files import Folder
from kafkalite.pipelines.common.ledger import Account, Ledger
from kafkalite.pipelines.common.losses import Guard
from kafkalite.pipelines.common.offsets import Offsets, Range, between, count, parse
from kafkalite.pipelines.common.outcomes import PipelineError
from kafkalite.pipelines.common.ownership import Lease, claim, held
from kafkalite.pipelines.common.progress import Fetched, Progress, Rate, Reading, Stages, Watch
from kafkalite.pipelines.common.source import (
    KafkaSource,
    refuse_missing,
    resolve,
    starting_offsets,
)
from kafkalite.pipelines.common.stopping import StopRequest

POLL_S = 1
# A batch under way is awaited this long after a request to stop; then it is redone on restart.
STOP_GRACE_POLLS = 120


class _Stopped(Exception):
    """A batch was not begun, because somebody asked to stop."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One micro-batch: its number within the query, and the offsets that it holds."""

    id: int
    query_id: str
    ranges: tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class Trigger:
    """When batches run. `continuous` is one after another without a pause, until stopped."""

    kind: str = "available-now"
    interval: str = "10 seconds"

    def options(self) -> dict[str, Any]:
        choices: dict[str, dict[str, Any]] = {
            "available-now": {"availableNow": True},
            "interval": {"processingTime": self.interval},
            "continuous": {"processingTime": "0 seconds"},
        }
        if self.kind not in choices:
            raise ValueError(f"no trigger {self.kind!r}; there are {', '.join(choices)}")
        return choices[self.kind]


Write = Callable[[DataFrame, Batch], Account]
Note = Callable[[DataFrame, Batch], None]
# Told of each step of a batch as it is reached: "planned", "written", "noted".
Observe = Callable[[str, Batch], None]


@dataclass(slots=True)
class StreamJob:
    """A source, a checkpoint, and what to do with each batch."""

    spark: SparkSession
    command: str
    sink: str
    source: KafkaSource
    checkpoint: str
    write: Write
    trigger: Trigger = field(default_factory=Trigger)
    keep_going: bool = False
    observe: Observe = lambda step, batch: None
    note: Note | None = None
    # Under the lease: before the first batch, and after the last one.
    begin: Callable[[], None] = lambda: None
    end: Callable[[], None] = lambda: None
    # What the checkpoint is of, where that is not the sink by its name.
    owner_sink: str = ""

    @property
    def name(self) -> str:
        return f"{self.command} {self.sink}"

    def run(self, watch: Watch | None = None, stop: StopRequest | None = None) -> Progress:
        """Runs until the trigger ends it, a stop is requested, or an error is raised."""
        notes = Folder(self.spark, f"{self.checkpoint}/{NOTES}")
        with (
            held(lease_of(self.spark, notes, self.name)) as lease,
            KafkaAdmin(self.spark, self.source.client_options) as admin,
        ):
            owner = {"command": self.command, "sink": self.owner_sink or self.sink}
            claim(notes, owner, is_used=False)
            run = _Run(self, admin, stop or StopRequest(), lease, notes)
            return run.run(watch)


def sink_of_checkpoint(spark: SparkSession, path: str, checkpoint: str) -> str:
    """How a checkpoint names its table: however the path is spelt, and wherever both move to."""
    table, kept = Folder(spark, path).url, Folder(spark, checkpoint).url
    return "the table around it" if kept == f"{table}/_checkpoint" else table


def lease_of(spark: SparkSession, notes: Folder, what: str) -> Lease:
    """The lease of a folder, for this process and for the JVM that writes for it."""
    jvm: Any = spark.sparkContext._jvm
    return Lease(notes, what, (os.getpid(), jvm.java.lang.ProcessHandle.current().pid()))


class _Run:
    def __init__(
        self, job: StreamJob, admin: KafkaAdmin, stop: StopRequest, lease: Lease, notes: Folder
    ) -> None:
        self._job = job
        self._admin = admin
        self._stop = stop
        self._checkpoint = Checkpoint(job.spark, job.checkpoint)
        self._lease = lease
        self._guard = Guard(admin, notes, job.keep_going)
        self._failure: BaseException | None = None
        self._under_way: int | None = None
        self._size = 0
        self._accounts: dict[int, tuple[Account, tuple[Range, ...]]] = {}
        self._seen: set[int] = set()
        self._reading = Reading(Stages(job.spark).running, Fetched(job.spark).total)
        self._rate = Rate()

    def run(self, watch: Watch | None) -> Progress:
        progress = self._ahead()
        if watch is not None:
            progress.bytes_per_row = self._admin.bytes_per_offset(progress.behind)
        watch = watch or (lambda progress: None)
        self._job.begin()
        query = self._start()
        try:
            while not query.awaitTermination(POLL_S):
                self._collect(query, progress)
                self._sample(query, progress)
                watch(progress)
                if self._stop.requested and self._is_between_batches():
                    query.stop()
        except PySparkException as error:
            if not isinstance(self._failure, _Stopped):
                self._explain(error)
        finally:
            query.stop()
        self._job.end()
        self._collect(query, progress)
        progress.reached = self._checkpoint.done()
        progress.losses = self._guard.noted
        progress.was_stopped = self._stop.requested
        progress.ledger.lost = [str(loss) for loss in progress.losses]
        self._close(progress.ledger, progress.reached)
        watch(progress)
        return progress

    def _close(self, ledger: Ledger, reached: Offsets) -> None:
        """What is left when the source has said how much it read: a batch without that is a gap."""
        ledger.reached = reached
        ledger.committed_to = self._job.checkpoint
        for batch_id, (account, ranges) in sorted(self._accounts.items()):
            ledger.add(account, ranges, read=0)
            if account.written:
                ledger.differences.append(f"Spark did not say what it read for batch {batch_id}")

    def _ahead(self) -> Progress:
        """Refuses to start over lost records, and counts what is to be read."""
        resumes_at = self._checkpoint.resumes_at()
        if resumes_at is not None:
            self._guard.check(resumes_at)
        partitions = resolve(self._job.source, self._admin)
        if not partitions:
            refuse_missing(self._job.source, self._admin)
            raise PipelineError(f"no topic to read: the cluster has none for {self._job.source}")
        if resumes_at is None:
            resumes_at = starting_offsets(self._job.source, self._admin)
            self._guard.check(resumes_at)
        refuse_missing(self._job.source, self._admin)
        behind = _behind(resumes_at, self._admin.ends(partitions))
        job = self._job
        ledger = Ledger(job.command, str(job.source), job.sink, job.source.isolation)
        return Progress(sum(behind.values()), behind=behind, ledger=ledger)

    def _start(self) -> StreamingQuery:
        job = self._job
        source = job.source.with_options(failOnDataLoss=str(not job.keep_going).lower())
        writer = source.stream(job.spark).writeStream.queryName(job.name)
        writer = writer.option("checkpointLocation", job.checkpoint)
        return writer.trigger(**job.trigger.options()).foreachBatch(self._each_batch).start()

    def _each_batch(self, df: DataFrame, batch_id: int) -> None:
        try:
            if self._stop.requested:
                raise _Stopped
            self._under_way = batch_id
            self._write(df, batch_id)
        except BaseException as error:
            # Spark gives back a text; the caller is to have the error itself.
            self._failure = error
            raise

    def _write(self, df: DataFrame, batch_id: int) -> None:
        starts = self._checkpoint.starts(batch_id)
        ranges = between(starts, self._checkpoint.ends(batch_id) or {})
        lost = self._guard.check(starts, ranges)
        query_id = self._checkpoint.query_id()
        assert query_id is not None, "Spark writes its metadata before the first batch"
        batch = Batch(batch_id, query_id, tuple(ranges))
        self._size = count(ranges)
        self._job.observe("planned", batch)
        self._lease.check()
        account = self._job.write(df, batch)
        self._guard.check_again(ranges, lost)
        self._job.observe("written", batch)
        if self._job.note is not None:
            self._job.note(df, batch)
        self._accounts[batch_id] = account, batch.ranges
        self._job.observe("noted", batch)

    def _is_between_batches(self) -> bool:
        done = self._checkpoint.last_done()
        is_done = self._under_way is None or (done is not None and done >= self._under_way)
        # Spark tells what it read of a batch a moment after it is through.
        if is_done and not self._accounts:
            return True
        return self._stop.waited_more_than(STOP_GRACE_POLLS)

    def _collect(self, query: StreamingQuery, progress: Progress) -> None:
        for each in query.recentProgress:
            if each["batchId"] in self._seen or "addBatch" not in each["durationMs"]:
                continue
            self._seen.add(each["batchId"])
            if each["batchId"] in self._accounts:
                account, ranges = self._accounts.pop(each["batchId"])
                progress.ledger.add(account, ranges, each["numInputRows"])
            progress.committed_at = time.time()
            progress.behind = _left(each["sources"][0]) or progress.behind
            if not each["numInputRows"]:
                continue
            progress.batches += 1
            progress.rows += each["numInputRows"]

    def _sample(self, query: StreamingQuery, progress: Progress) -> None:
        """What is not committed yet."""
        is_through = self._under_way is None or self._under_way in self._seen
        progress.batch = None if is_through else self._under_way
        progress.reading = self._reading.of(str(query.runId), progress.batch, self._size)
        progress.rows_per_s = self._rate.of(progress.rows + progress.reading)

    def _explain(self, error: PySparkException) -> NoReturn:
        """Raises what really happened: our own error, lost records, or Spark's in one line."""
        failure = self._failure or error
        if not isinstance(failure, PySparkException | Py4JError):
            raise failure
        planned = self._checkpoint.last_planned()
        if planned is not None:
            self._guard.check(self._checkpoint.starts(planned), self._checkpoint.ranges(planned))
        cause = cause_of(str(failure))
        raise PipelineError(
            f"{cause} (reading {self._job.source} at {self._job.source.bootstrap_servers}, "
            f"writing {self._job.sink}){cure_of(cause)}"
        ) from failure


def _left(source: dict[str, Any]) -> Offsets:
    """Offsets behind the end, as Spark's source reports it per batch."""
    reached, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
    return _behind(reached, latest) if reached else {}


def _behind(reached: Offsets, ends: Offsets) -> Offsets:
    return {each: max(0, end - reached.get(each, 0)) for each, end in ends.items()}


def _offsets(said: Any) -> Offsets:
    # A progress gives JSON or what is in it, depending on how it was come by.
    text = said if isinstance(said, str) else json.dumps(said)
    return {} if text == "null" else parse(text)
