"""`to-lake`: topics into a table, every record once, with where it came from.

Owns the bronze table: topic, partition, offset, timestamp, key, value and headers as they were, the
log date, when it was written, and what the value decodes to. Each batch is written exactly once,
whatever is killed in between.
"""

from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from kafkalite.pipelines.common.admin import KafkaAdmin
from kafkalite.pipelines.common.checkpoint import Checkpoint
from kafkalite.pipelines.common.decode import Decoding, decode
from kafkalite.pipelines.common.lake import TO_LAKE, Lake, files_for
from kafkalite.pipelines.common.ledger import Account
from kafkalite.pipelines.common.offsets import count
from kafkalite.pipelines.common.progress import Progress, Watch
from kafkalite.pipelines.common.running import (
    Batch,
    Observe,
    StreamJob,
    Trigger,
    sink_of_checkpoint,
)
from kafkalite.pipelines.common.schemas import Schemas, of_format
from kafkalite.pipelines.common.source import KafkaSource, resolve
from kafkalite.pipelines.common.stopping import StopRequest

DATE_COLUMN = "date"


def bronze(df: DataFrame, decoding: Decoding | None = None) -> DataFrame:
    """The step: records to rows of the table."""
    rows = df.select(
        "*",
        sf.to_date("timestamp").alias(DATE_COLUMN),
        sf.current_timestamp().alias("ingested_at"),
    )
    return decode(rows, decoding) if decoding is not None else rows


@dataclass(slots=True)
class ToLake:
    """Topics to a Delta or Parquet table at `path`."""

    spark: SparkSession
    source: KafkaSource
    path: str
    format: str = "delta"
    checkpoint: str = ""
    decoding: Decoding = field(default_factory=Decoding)
    schema_registry: str = ""
    partition_by_date: bool = False
    target_file_bytes: int | None = None
    trigger: Trigger = field(default_factory=Trigger)
    keep_going: bool = False
    adopt: bool = False
    _schemas: Schemas | None = None
    _bytes_per_row: float | None = None
    _claimed: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.checkpoint = self.checkpoint or f"{self.path}/_checkpoint"
        self._schemas = of_format(self.decoding, self.schema_registry)

    def step(self, df: DataFrame) -> DataFrame:
        decoding = self.decoding
        if self._schemas is not None:
            decoding = self._schemas.complete(decoding, df)
        return bronze(df, decoding)

    def run(
        self,
        watch: Watch | None = None,
        stop: StopRequest | None = None,
        observe: Observe = lambda step, batch: None,
    ) -> Progress:
        self.table().own(TO_LAKE, self.adopt)
        self._claim_early()
        if self.target_file_bytes:
            self._weigh()
        return self.job(observe).run(watch, stop)

    def job(self, observe: Observe = lambda step, batch: None) -> StreamJob:
        return StreamJob(
            self.spark,
            TO_LAKE,
            self.path,
            self.source,
            self.checkpoint,
            self._write,
            self.trigger,
            self.keep_going,
            observe,
            owner_sink=sink_of_checkpoint(self.spark, self.path, self.checkpoint),
        )

    def table(self) -> Lake:
        return Lake(self.spark, self.path, self.format)

    def _write(self, df: DataFrame, batch: Batch) -> Account:
        table = self.table()
        topics = {each.topic for each in batch.ranges}
        if not topics <= self._claimed:
            self._claimed |= topics
            table.claim(batch.query_id, self._claimed)
        # Framed Avro is looked at for its schemas first: read from the broker once.
        df = df if self._schemas is None else df.persist()
        try:
            return self._append(self.step(df), table, batch)
        finally:
            if self._schemas is not None:
                df.unpersist()

    def _append(self, rows: DataFrame, table: Lake, batch: Batch) -> Account:
        files = files_for(count(batch.ranges), self._bytes_per_row, self.target_file_bytes)
        if files is not None:
            rows = rows.coalesce(files)
        return table.append(rows, batch, (DATE_COLUMN,) if self.partition_by_date else ())

    def _claim_early(self) -> None:
        """A restart claims what it had; a first run claims with its first batch."""
        checkpoint = Checkpoint(self.spark, self.checkpoint)
        planned, query_id = checkpoint.resumes_at(), checkpoint.query_id()
        if planned is not None and query_id is not None:
            self._claimed = {topic for topic, _ in planned}
            self.table().claim(query_id, self._claimed)

    def _weigh(self) -> None:
        with KafkaAdmin(self.spark, self.source.client_options) as admin:
            self._bytes_per_row = admin.bytes_per_offset(resolve(self.source, admin))
