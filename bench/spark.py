"""Spark reading a million records from both brokers: batch scan, stream, `to-lake` and `audit`.

    python -m bench --suites spark

Four measures: a batch scan and an available-now stream that touch every byte and keep nothing,
then `to-lake` into Delta and `audit` of what it wrote, which must find no fault. The goal: scan and
stream at least as fast as from Apache Kafka. Driver, executors and brokers share this machine, so
only the ratios are worth comparing.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from bench.pair import OURS, THEIRS, Run, Target
from bench.rows import Row
from kafkalite import spark as kafkalite_spark
from kafkalite.pipelines import Audit, KafkaSource, ToLake
from kafkalite.pipelines.common.admin import KafkaAdmin

SUITE = "spark"
TOPIC = "bench-spark"
RECORDS, QUICK_RECORDS = 1_000_000, 200_000
PARTITIONS = 4
VALUE_BYTES = 100
BATCHES = 4
# Each with its goal, as a ratio to Apache Kafka.
MEASURES = {"batch scan": 1.0, "available-now stream": 1.0, "to-lake (Delta)": None, "audit": None}
# Where the time of to-lake goes, in Spark's own words; sums over all batches.
PHASES = ("triggerExecution", "addBatch", "queryPlanning", "walCommit", "commitOffsets",
          "latestOffset")  # fmt: skip


@dataclass(slots=True)
class Round:
    """One round with one broker: seconds of each measure, and what they were spent on."""

    seconds: dict[str, float]
    phases_ms: Counter[str]
    cpu_seconds: float  # of the broker, for the scan and the stream


def measure(run: Run, targets: list[Target]) -> Iterator[Row]:
    records = QUICK_RECORDS if run.is_quick else RECORDS
    rounds = measure_rounds(run, targets, records)
    yield from rows_of(rounds, records)


def measure_rounds(run: Run, targets: list[Target], records: int) -> dict[str, list[Round]]:
    config = {"spark.driver.memory": "2g", "spark.log.level": "OFF"}
    spark = kafkalite_spark.session(master="local[2]", app="bench", config=config)
    spark.sparkContext.setLogLevel("OFF")
    for target in targets:
        fill(spark, target.bootstrap, records)
    return run.turns(targets, lambda target: one_round(spark, target, records), SUITE)


def rows_of(rounds: dict[str, list[Round]], records: int) -> Iterator[Row]:
    for name, goal in MEASURES.items():
        ours, theirs = (
            [records / each.seconds[name] for each in rounds[side]] for side in (OURS, THEIRS)
        )
        yield Row(SUITE, name, "records/s", ours, theirs, goal=goal)
    # What a busy machine does not change: two reads of all records.
    cpu = {
        side: [each.cpu_seconds / records / 2 * 1e6 for each in found]
        for side, found in rounds.items()
    }
    name = "processor time of the broker"
    yield Row(SUITE, name, "µs/record", cpu[OURS], cpu[THEIRS], is_rate=False)
    for phase in PHASES:
        ours, theirs = (
            [float(each.phases_ms[phase]) for each in rounds[side]] for side in (OURS, THEIRS)
        )
        yield Row(SUITE, f"to-lake, {phase}", "ms", ours, theirs, is_rate=False)


def fill(spark: SparkSession, address: str, records: int) -> None:
    """The same records for each broker, by Spark's own sink."""
    with KafkaAdmin(spark, {"bootstrap.servers": address}) as admin:
        admin.create_topic(TOPIC, PARTITIONS, {})
    rows = spark.range(0, records, numPartitions=PARTITIONS).select(
        sf.col("id").cast("string").alias("key"),
        sf.rpad(sf.col("id").cast("string"), VALUE_BYTES, "x").alias("value"),
    )
    writer = rows.write.format("kafka").option("kafka.bootstrap.servers", address)
    writer.option("topic", TOPIC).save()


def one_round(spark: SparkSession, target: Target, records: int) -> Round:
    """All measures, one after the other."""
    source = KafkaSource(target.bootstrap, (TOPIC,))
    cpu_before = target.cpu_seconds()
    bounded = source.with_options(maxOffsetsPerTrigger=str(records // BATCHES))
    took = [_seconds(lambda: scan(spark, source)), _seconds(lambda: stream(spark, bounded))]
    cpu_seconds = target.cpu_seconds() - cpu_before
    with tempfile.TemporaryDirectory() as folder:
        lake = ToLake(spark, bounded, f"{folder}/lake")
        with _phases(spark) as phases:
            took.append(_seconds(lake.run))
        reports: list[Any] = []
        audit = Audit(spark, source, lake.path)
        took.append(_seconds(lambda: reports.append(audit.run())))
    assert reports[0].faults == [], reports[0].faults
    assert sum(each.lake for each in reports[0].buckets) == records
    return Round(dict(zip(MEASURES, took, strict=True)), phases, cpu_seconds)


def scan(spark: SparkSession, source: KafkaSource) -> None:
    source.batch(spark).write.format("noop").mode("overwrite").save()


def stream(spark: SparkSession, source: KafkaSource) -> None:
    with tempfile.TemporaryDirectory() as folder:
        writer = source.stream(spark).writeStream.format("noop")
        writer = writer.option("checkpointLocation", folder)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()


@contextmanager
def _phases(spark: SparkSession) -> Iterator[Counter[str]]:
    """Sums up what Spark reports of each batch of the queries that run meanwhile."""
    from pyspark.sql.streaming.listener import StreamingQueryListener

    found: Counter[str] = Counter()

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None:  # noqa: N802
            pass

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802
            found.update(event.progress.durationMs)

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
            found["ended"] = 1

    listener = Listener()
    spark.streams.addListener(listener)
    yield found
    # Reports come some time after what they report.
    for _ in range(100):
        if found["ended"]:
            break
        time.sleep(0.1)
    spark.streams.removeListener(listener)
    del found["ended"]


def _seconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
