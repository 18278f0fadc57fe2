"""Spark reading a million records from kafkalite and from Apache Kafka, in turns within one run.

    python -m bench.spark                      # starts both brokers itself
    python -m bench.spark --records 200000 --rounds 3
    python -m bench.spark kafkalite=127.0.0.1:9092 kafka=127.0.0.1:9192

Four measures: a batch scan and an available-now stream that touch every byte and keep nothing,
then `to-lake` into Delta and `audit` of what it wrote. A figure is the best of the rounds, in
records per second; the ratio is the first broker's to the last one's. For `to-lake` the table says
where the time went, as Spark's own progress reports do. The goal: scan and stream at least as fast
as from Apache Kafka. Driver, executors and brokers share this machine, so only the ratios are
worth comparing.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from kafkalite import spark as kafkalite_spark
from kafkalite.pipelines import Audit, KafkaSource, ToLake
from kafkalite.pipelines.common.admin import KafkaAdmin
from tests.compat import brokers
from tests.compat.brokers import BROKERS

TOPIC = "bench-spark"
PARTITIONS = 4
VALUE_BYTES = 100
BATCHES = 4
MEASURES = ("batch scan", "available-now stream", "to-lake (Delta)", "audit")


@dataclass(slots=True)
class Target:
    """A broker that is measured, and its best seconds of each measure."""

    name: str
    address: str
    best: dict[str, float] = field(default_factory=dict)
    phases_ms: Counter[str] = field(default_factory=Counter)

    def note(self, measure: str, seconds: float) -> bool:
        """Whether it is the best so far."""
        is_best = seconds < self.best.get(measure, float("inf"))
        if is_best:
            self.best[measure] = seconds
        return is_best


def fill(spark: SparkSession, target: Target, records: int) -> None:
    """The same records for each broker, by Spark's own sink."""
    with KafkaAdmin(spark, {"bootstrap.servers": target.address}) as admin:
        admin.create_topic(TOPIC, PARTITIONS, {})
    rows = spark.range(0, records, numPartitions=PARTITIONS).select(
        sf.col("id").cast("string").alias("key"),
        sf.rpad(sf.col("id").cast("string"), VALUE_BYTES, "x").alias("value"),
    )
    writer = rows.write.format("kafka").option("kafka.bootstrap.servers", target.address)
    writer.option("topic", TOPIC).save()


def scan(spark: SparkSession, source: KafkaSource) -> None:
    source.batch(spark).write.format("noop").mode("overwrite").save()


def stream(spark: SparkSession, source: KafkaSource) -> None:
    with tempfile.TemporaryDirectory() as folder:
        writer = source.stream(spark).writeStream.format("noop")
        writer = writer.option("checkpointLocation", folder)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()


def measure(spark: SparkSession, target: Target, records: int) -> None:
    """One round of all measures."""
    source = KafkaSource(target.address, (TOPIC,))
    target.note(MEASURES[0], _seconds(lambda: scan(spark, source)))
    bounded = source.with_options(maxOffsetsPerTrigger=str(records // BATCHES))
    target.note(MEASURES[1], _seconds(lambda: stream(spark, bounded)))
    with tempfile.TemporaryDirectory() as folder:
        lake = ToLake(spark, bounded, f"{folder}/lake")
        with _phases(spark) as phases:
            took = _seconds(lake.run)
        if target.note(MEASURES[2], took):
            target.phases_ms = phases
        reports: list[Any] = []
        audit = Audit(spark, source, lake.path)
        target.note(MEASURES[3], _seconds(lambda: reports.append(audit.run())))
        assert reports[0].faults == [], reports[0].faults
        assert sum(each.lake for each in reports[0].buckets) == records


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


def show(targets: list[Target], records: int) -> None:
    first = targets[0]
    print(f"{records:,} records of {VALUE_BYTES} bytes, {PARTITIONS} partitions, best round")
    print(f"{'':24}" + "".join(f"{each.name:>24}" for each in targets) + f"{'ratio':>8}")
    for name in MEASURES:
        rates = [records / each.best[name] for each in targets]
        cells = "".join(f"{rate:>18,.0f} rec/s" for rate in rates)
        print(f"{name:24}{cells}{rates[0] / rates[-1]:>8.2f}")
    print("\nwhere the time of to-lake went, in ms over all batches")
    for phase, _ in first.phases_ms.most_common():
        cells = "".join(f"{each.phases_ms[phase]:>24,}" for each in targets)
        print(f"{phase:24}{cells}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("targets", nargs="*", metavar="NAME=HOST:PORT")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        started = [] if arguments.targets else _start(Path(folder))
        targets = started or [Target(*text.split("=", 1)) for text in arguments.targets]
        try:
            run(targets, arguments.records, arguments.rounds)
        finally:
            if started:
                brokers.stop_all(Path(folder))


def _start(folder: Path) -> list[Target]:
    return [Target(kind, brokers.shared(kind, folder).bootstrap) for kind in BROKERS]


def run(targets: list[Target], records: int, rounds: int) -> None:
    config = {"spark.driver.memory": "2g", "spark.log.level": "OFF"}
    spark = kafkalite_spark.session(master="local[2]", app="bench", config=config)
    spark.sparkContext.setLogLevel("OFF")
    for target in targets:
        fill(spark, target, records)
    for target in targets:  # warms up the JIT compiler, for which no broker is to pay
        scan(spark, KafkaSource(target.address, (TOPIC,)))
    for number in range(rounds):
        # Each goes first in turn.
        for target in targets[number % len(targets) :] + targets[: number % len(targets)]:
            measure(spark, target, records)
    show(targets, records)


if __name__ == "__main__":
    main()
