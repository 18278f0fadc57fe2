"""`audit`: do producers, broker and lake hold the same records? What differs is named by offsets.

Owns the bookkeeping of the Kafka paper: counts per topic and ten minutes of log time, per tier.
Each tier is read once and summed up with a checksum of its offsets; only buckets that differ are
compared record by record. What is committed counts. Never changes what it audits, and never passes
what it did not compare.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from kafkalite.pipelines.common.admin import KafkaAdmin
from kafkalite.pipelines.common.checkpoint import NOTES, Checkpoint
from kafkalite.pipelines.common.files import Folder
from kafkalite.pipelines.common.lake import Lake
from kafkalite.pipelines.common.losses import recreated
from kafkalite.pipelines.common.offsets import Offsets, count
from kafkalite.pipelines.common.offsets import between as ranges_between
from kafkalite.pipelines.common.outcomes import PipelineError
from kafkalite.pipelines.common.source import (
    ISOLATION,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    KafkaSource,
    refuse_missing,
    resolve,
    starting_offsets,
)
from kafkalite.pipelines.counts import BUCKET_MS

MISSING, DUPLICATED, ONLY_IN_LAKE = "missing", "duplicated", "only in the lake"
ABORTED = "not committed, but in the lake"
PERCENTILES = (0.5, 0.95, 0.99)

_PLACE = ("topic", "partition", "offset")
# No sum of these overflows: 38 digits hold 10^19 hashes of 64 bits.
_CHECKSUM = "sum(CAST(xxhash64(topic, partition, offset) AS DECIMAL(38, 0)))"


@dataclass(frozen=True, slots=True)
class Bucket:
    """Ten minutes of one topic. None: that tier was not looked at."""

    topic: str
    bucket: datetime
    broker: int
    lake: int
    producer: int | None
    latency_p50_ms: float | None
    latency_p95_ms: float | None
    latency_p99_ms: float | None
    latency_max_ms: float | None


@dataclass(frozen=True, slots=True)
class Finding:
    """Offsets `first` to `last` of one partition, and what is the matter with them."""

    topic: str
    partition: int
    first: int
    last: int
    rows: int
    what: str

    def __str__(self) -> str:
        span = str(self.first) if self.first == self.last else f"{self.first}..{self.last}"
        return f"{self.topic}-{self.partition} offsets {span} {self.what} ({self.rows} rows)"


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome. Rows only in the lake expired or were compacted on the broker: no fault."""

    buckets: list[Bucket]
    findings: list[Finding]
    not_yet_loaded: int = 0
    # Topics that have records, of which the lake has not loaded one.
    not_compared: tuple[str, ...] = ()
    # Topics that are others now than those that were loaded.
    recreated: tuple[str, ...] = ()

    @property
    def compared(self) -> int:
        """Records of the broker that were held against the lake."""
        return sum(each.broker for each in self.buckets)

    @property
    def faults(self) -> list[str]:
        told = [str(each) for each in self.findings if each.what != ONLY_IN_LAKE]
        told += [
            f"{topic}: nothing was compared, no batch was loaded" for topic in self.not_compared
        ]
        told += [
            f"{topic}: deleted and recreated since it was loaded, its records are others"
            for topic in self.recreated
        ]
        return told + [
            f"{each.topic} {each.bucket:%Y-%m-%d %H:%M}: producers counted {each.producer}, "
            f"the broker holds {each.broker}"
            for each in self.buckets
            if each.producer is not None and each.producer != each.broker
        ]

    def rows(self) -> list[dict[str, object]]:
        """As a table: one row per bucket."""
        return [asdict(each) for each in self.buckets]


def sums(df: DataFrame, *more: Column) -> DataFrame:
    """The step: count and checksum per topic and bucket of log time."""
    seconds = BUCKET_MS // 1000
    bucket = sf.timestamp_seconds(sf.floor(sf.unix_seconds("timestamp") / seconds) * seconds)
    checksum = sf.expr(_CHECKSUM).alias("checksum")
    grouped = df.withColumn("bucket", bucket).groupBy("topic", "bucket")
    return grouped.agg(sf.count("*").alias("rows"), checksum, *more)


def differences(
    broker: DataFrame, lake: DataFrame, uncommitted: DataFrame | None = None
) -> DataFrame:
    """The step: ranges of offsets that are not exactly once in both; columns as `Finding`.

    `uncommitted` is what the broker has whatever became of it.
    """
    places = _placed(broker, 1, 0, 0).unionByName(_placed(lake, 0, 1, 0))
    if uncommitted is not None:
        places = places.unionByName(_placed(uncommitted, 0, 0, 1))
    places = places.groupBy(*_PLACE).agg(
        sf.max("in_broker").alias("in_broker"),
        sf.sum("in_lake").alias("in_lake"),
        sf.max("is_there").alias("is_there"),
    )
    nowhere = (sf.col("in_lake") == 0) & (sf.col("in_broker") == 0)
    what = (
        sf.when(nowhere, None)
        .when(sf.col("in_lake") > 1, DUPLICATED)
        .when(sf.col("in_lake") == 0, MISSING)
        .when((sf.col("in_broker") == 0) & (sf.col("is_there") == 1), ABORTED)
        .when(sf.col("in_broker") == 0, ONLY_IN_LAKE)
    )
    wrong = places.withColumn("what", what).where("what IS NOT NULL")
    # Neighbours share the difference between their offset and their number: an island.
    numbered = wrong.withColumn(
        "island",
        sf.expr("offset - row_number() OVER (PARTITION BY topic, partition, what ORDER BY offset)"),
    )
    islands = numbered.groupBy("topic", "partition", "what", "island").agg(
        sf.min("offset").alias("first"),
        sf.max("offset").alias("last"),
        sf.sum(sf.greatest("in_lake", "in_broker")).alias("rows"),
    )
    return islands.select("topic", "partition", "first", "last", "rows", "what").orderBy(
        "topic", "partition", "first"
    )


def _placed(rows: DataFrame, in_broker: int, in_lake: int, is_there: int) -> DataFrame:
    return rows.select(
        *_PLACE,
        sf.lit(in_broker).alias("in_broker"),
        sf.lit(in_lake).alias("in_lake"),
        sf.lit(is_there).alias("is_there"),
    )


def producer_sums(events: DataFrame) -> DataFrame:
    """The step: what producers counted, from the events of `ProducerCounts`."""
    schema = "topic STRING, bucket BIGINT, count BIGINT"
    parsed = events.select(sf.from_json(sf.col("value").cast("string"), schema).alias("event"))
    grouped = parsed.groupBy(
        sf.col("event.topic").alias("topic"),
        sf.timestamp_millis("event.bucket").alias("bucket"),
    )
    return grouped.agg(sf.sum("event.count").alias("rows"))


@dataclass(slots=True)
class Audit:
    """The topics of `source` against the table at `path`, up to where its checkpoint has come."""

    spark: SparkSession
    source: KafkaSource
    path: str
    format: str = "delta"
    checkpoint: str = ""
    producer_counts: KafkaSource | None = None
    _between: tuple[Offsets, Offsets] = field(default=({}, {}))
    _recreated: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.checkpoint = self.checkpoint or f"{self.path}/_checkpoint"

    def step(self, df: DataFrame) -> DataFrame:
        return sums(df)

    def run(self) -> Report:
        not_yet_loaded, not_compared = self._find_ends()
        starts, ends = self._between
        if not ranges_between(starts, ends):
            raise PipelineError(
                f"nothing was compared: {self.path} has loaded nothing of what {self.source} has, "
                f"or the topics are empty ({not_yet_loaded:,} offsets not loaded yet)"
            )
        broker = self.source.between(starts, ends).batch(self.spark).select(*_PLACE, "timestamp")
        lake = self._lake(starts)
        broker_sums = {_key(row): row for row in sums(broker).collect()}
        lake_sums = {_key(row): row for row in sums(lake, *_latencies(lake)).collect()}
        differing = [
            key
            for key in sorted(broker_sums.keys() | lake_sums.keys())
            if _sum(broker_sums.get(key)) != _sum(lake_sums.get(key))
        ]
        findings = self._compare(broker, lake, differing) if differing else []
        buckets = self._buckets(broker_sums, lake_sums)
        report = Report(buckets, findings, not_yet_loaded, not_compared, self._recreated)
        if not any(each.broker or each.lake for each in buckets):
            raise PipelineError(f"nothing was compared: {self.source} holds no record")
        return report

    def _find_ends(self) -> tuple[int, tuple[str, ...]]:
        """What can be compared: from the log's start to what the lake says that it has."""
        with KafkaAdmin(self.spark, self.source.client_options) as admin:
            refuse_missing(self.source, admin)
            starts = starting_offsets(self.source, admin)
            ends = admin.ends(resolve(self.source, admin))
            notes = Folder(self.spark, f"{self.checkpoint}/{NOTES}")
            self._recreated = tuple(recreated(notes, admin, {topic for topic, _ in ends}))
        done = Checkpoint(self.spark, self.checkpoint).done()
        compared = {
            each: min(end, done.get(each, 0)) if done else end for each, end in ends.items()
        }
        # Spark wants each end at or after its start.
        compared = {each: max(end, starts.get(each, 0)) for each, end in compared.items()}
        self._between = ({each: starts.get(each, 0) for each in compared}, compared)
        loaded = {topic for topic, partition in done}
        waiting = {each.topic for each in ranges_between(self._between[0], ends)}
        not_compared = tuple(sorted(waiting - loaded)) if done else ()
        return count(ranges_between(compared, ends)), not_compared

    def _lake(self, starts: Offsets) -> DataFrame:
        """The table's rows that the broker can still have."""
        rows = [(topic, partition, start) for (topic, partition), start in starts.items()]
        schema = "topic STRING, partition INT, log_start BIGINT"
        log_starts = sf.broadcast(self.spark.createDataFrame(rows, schema))
        table = Lake(self.spark, self.path, self.format).read()
        joined = table.join(log_starts, ["topic", "partition"])
        kept = [name for name in ("timestamp", "ingested_at") if name in table.columns]
        return joined.where("offset >= log_start").select(*_PLACE, *kept)

    def _compare(
        self, broker: DataFrame, lake: DataFrame, differing: Sequence[tuple[str, datetime]]
    ) -> list[Finding]:
        topics = sorted({topic for topic, _ in differing})
        first = min(bucket for _, bucket in differing)
        last = max(bucket for _, bucket in differing)
        # Wider than the buckets that differ, but pushed down to the files of the lake.
        where = (
            sf.col("topic").isin(topics)
            & (sf.col("timestamp") >= sf.lit(first))
            & (sf.col("timestamp") < sf.lit(last) + sf.expr(f"INTERVAL {BUCKET_MS} MILLISECOND"))
        )
        found = differences(broker.where(where), lake.where(where), self._uncommitted(where))
        return [Finding(**row.asDict()) for row in found.collect()]

    def _uncommitted(self, where: Column) -> DataFrame | None:
        """What readers of committed records do not see, among what they do."""
        if self.source.isolation != READ_COMMITTED:
            return None
        everything = self.source.with_options(**{ISOLATION: READ_UNCOMMITTED})
        rows = everything.between(*self._between).batch(self.spark)
        return rows.select(*_PLACE, "timestamp").where(where)

    def _buckets(
        self, broker: dict[tuple[str, datetime], Row], lake: dict[tuple[str, datetime], Row]
    ) -> list[Bucket]:
        counted = self._counted_by_producers()
        found = []
        for topic, bucket in sorted(broker.keys() | lake.keys() | counted.keys()):
            key = (topic, bucket)
            ours, theirs = broker.get(key), lake.get(key)
            latencies = theirs["latencies"] if theirs and "latencies" in theirs else None
            found.append(
                Bucket(
                    topic,
                    bucket,
                    ours["rows"] if ours else 0,
                    theirs["rows"] if theirs else 0,
                    counted.get(key, 0) if self.producer_counts else None,
                    *_three(latencies),
                    theirs["latency_max"] if theirs and latencies else None,
                )
            )
        return found

    def _counted_by_producers(self) -> dict[tuple[str, datetime], int]:
        if self.producer_counts is None:
            return {}
        topics = {topic for topic, _ in self._between[1]}
        rows = producer_sums(self.producer_counts.batch(self.spark)).collect()
        return {_key(row): row["rows"] for row in rows if row["topic"] in topics}


def _latencies(lake: DataFrame) -> list[Column]:
    """From a record's timestamp to its batch's, where the table says when it was written."""
    if "ingested_at" not in lake.columns:
        return []
    took = (sf.unix_millis("ingested_at") - sf.unix_millis("timestamp")).cast("double")
    return [
        sf.percentile_approx(took, list(PERCENTILES)).alias("latencies"),
        sf.max(took).alias("latency_max"),
    ]


def _three(latencies: list[float] | None) -> tuple[float | None, float | None, float | None]:
    if latencies is None:
        return None, None, None
    p50, p95, p99 = latencies
    return p50, p95, p99


def _key(row: Row) -> tuple[str, datetime]:
    return row["topic"], row["bucket"]


def _sum(row: Row | None) -> tuple[int, object] | None:
    return None if row is None else (row["rows"], row["checksum"])
