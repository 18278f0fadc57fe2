"""`snapshot`: the latest value per key, once at an offset or a time, or kept up as a table.

Owns the fold of a changelog: what compaction will keep of each key, less the tombstones. Keys
belong to their partition, as for compaction. A record without a key has no place in a changelog,
and says where it is unless told to be left out.
"""

from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from kafkalite.pipelines.common.decode import Decoding, decode
from kafkalite.pipelines.common.files import Folder
from kafkalite.pipelines.common.lake import Lake
from kafkalite.pipelines.common.running import (
    Batch,
    Observe,
    PipelineError,
    Progress,
    StreamJob,
    Trigger,
    Watch,
)
from kafkalite.pipelines.common.source import KafkaSource
from kafkalite.pipelines.common.stopping import StopRequest

ENVELOPES = ("none", "debezium")
NULL_KEYS = ("fail", "drop")
KEY = ("topic", "partition", "key")


def latest_per_key(df: DataFrame) -> DataFrame:
    """The step: the record with the highest offset of each key, tombstones included."""
    rest = [name for name in df.columns if name not in KEY]
    newest = sf.max_by(sf.struct(*rest), sf.col("offset")).alias("newest")
    return df.groupBy(*KEY).agg(newest).select(*KEY, "newest.*")


def unwrap(df: DataFrame, envelope: str) -> DataFrame:
    """A Debezium change as a plain one: its `after` as the value, a delete as a tombstone."""
    if envelope == "none":
        return df
    text = sf.col("value").cast("string")
    after = sf.coalesce(
        sf.get_json_object(text, "$.payload.after"), sf.get_json_object(text, "$.after")
    )
    return df.withColumn("value", sf.encode(after, "UTF-8"))


@dataclass(slots=True)
class Snapshot:
    """Changelog topics to a table at `path`.

    `once` reads up to where the source's `endingOffsets` or `endingTimestamp` say, now if nothing
    is said, and replaces the table. `follow` merges batch after batch into a Delta table.
    """

    spark: SparkSession
    source: KafkaSource
    path: str
    format: str = "delta"
    checkpoint: str = ""
    decoding: Decoding = field(default_factory=Decoding)
    envelope: str = "none"
    null_keys: str = "fail"
    keep_tombstones: bool = False
    trigger: Trigger = field(default_factory=Trigger)
    keep_going: bool = False

    def __post_init__(self) -> None:
        self.checkpoint = self.checkpoint or f"{self.path}/_checkpoint"
        if self.envelope not in ENVELOPES:
            raise ValueError(f"no envelope {self.envelope!r}; there are {', '.join(ENVELOPES)}")
        if self.null_keys not in NULL_KEYS:
            raise ValueError(f"null keys: {' or '.join(NULL_KEYS)}, not {self.null_keys!r}")

    def step(self, df: DataFrame) -> DataFrame:
        """Latest per key with decoded values; tombstones are rows with a null value."""
        keyed = unwrap(df.where("key IS NOT NULL"), self.envelope)
        return decode(latest_per_key(keyed), self.decoding)

    def once(self) -> int:
        """Replaces the table; gives its row count."""
        df = self.source.batch(self.spark)
        self._refuse_null_keys(df)
        rows = self.step(df)
        rows = rows if self.keep_tombstones else rows.where("value IS NOT NULL")
        # Read and folded once, though it is counted and written.
        rows = rows.persist()
        try:
            writer = rows.write.format(self.format).mode("overwrite")
            writer.option("overwriteSchema", "true").save(self.path)
            return rows.count()
        finally:
            rows.unpersist()

    def follow(
        self,
        watch: Watch | None = None,
        stop: StopRequest | None = None,
        observe: Observe = lambda step, batch: None,
    ) -> Progress:
        """Keeps the table up with the topic, deletes included."""
        if self.format != "delta":
            raise PipelineError("only a Delta table can be merged into: use format delta")
        return self.job(observe).run(watch, stop)

    def job(self, observe: Observe = lambda step, batch: None) -> StreamJob:
        return StreamJob(
            self.spark,
            f"snapshot {self.path}",
            self.source,
            self.checkpoint,
            self._write,
            self.trigger,
            self.keep_going,
            observe,
        )

    def _write(self, df: DataFrame, batch: Batch) -> None:
        # Looked at for null keys, then merged: read from the broker once.
        kept = df.persist()
        try:
            self._merge(kept)
        finally:
            kept.unpersist()

    def _merge(self, df: DataFrame) -> None:
        self._refuse_null_keys(df)
        changes = self.step(df)
        table = Lake(self.spark, self.path, "delta")
        if not table.exists():
            changes.limit(0).write.format("delta").save(self.path)
        changes.createOrReplaceTempView("changes")
        # A batch that comes again finds its own offsets there and changes nothing.
        changes.sparkSession.sql(f"""
            MERGE INTO delta.`{Folder(self.spark, self.path).url}` AS kept USING changes AS new
            ON kept.topic = new.topic AND kept.partition = new.partition AND kept.key = new.key
            WHEN MATCHED AND new.offset > kept.offset AND new.value IS NULL THEN DELETE
            WHEN MATCHED AND new.offset > kept.offset THEN UPDATE SET *
            WHEN NOT MATCHED AND new.value IS NOT NULL THEN INSERT *
        """)

    def _refuse_null_keys(self, df: DataFrame) -> None:
        if self.null_keys == "drop":
            return
        first = df.where("key IS NULL").select("topic", "partition", "offset").first()
        if first is not None:
            raise PipelineError(
                f"{first['topic']}-{first['partition']} offset {first['offset']} has no key, so no "
                "place in a snapshot: leave such records out with null keys 'drop'"
            )
