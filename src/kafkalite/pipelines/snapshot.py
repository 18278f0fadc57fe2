"""`snapshot`: the latest value per key, once at an offset or a time, or kept up as a table.

Owns the fold of a changelog: what compaction will keep of each key, less the tombstones. Keys
belong to their partition, as for compaction. A record without a key has no place in a changelog,
and says where it is unless told to be left out. Only a tombstone, or a delete that can be read as
one, deletes: what cannot be read is kept with its bytes and an `error`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from kafkalite.pipelines.common.admin import KafkaAdmin
from kafkalite.pipelines.common.decode import Decoding, decode, json_object
from kafkalite.pipelines.common.files import Folder
from kafkalite.pipelines.common.lake import MARKS, Lake
from kafkalite.pipelines.common.ledger import Account, Ledger
from kafkalite.pipelines.common.losses import topic_ids
from kafkalite.pipelines.common.outcomes import Different, PipelineError
from kafkalite.pipelines.common.ownership import held
from kafkalite.pipelines.common.progress import Progress, Watch
from kafkalite.pipelines.common.running import (
    Batch,
    Observe,
    StreamJob,
    Trigger,
    lease_of,
    sink_of_checkpoint,
)
from kafkalite.pipelines.common.schemas import Schemas, of_format
from kafkalite.pipelines.common.source import KafkaSource, refuse_missing, resolve
from kafkalite.pipelines.common.stopping import StopRequest

ONCE, FOLLOW = "snapshot", "snapshot --follow"
ENVELOPES = ("none", "debezium")
NULL_KEYS = ("fail", "drop")
KEY = ("topic", "partition", "key")
OLDER, KEYLESS, DELETED = "older value of a key", "without a key", "deleted"
UNCHANGED = "nothing to change"
NOT_ENVELOPE = "not a Debezium envelope"
ENVELOPE_ERROR = "envelope_error"
_OPERATIONS = ("c", "r", "u", "d")


def latest_per_key(df: DataFrame) -> DataFrame:
    """The step: the record with the highest offset of each key, tombstones included."""
    rest = [name for name in df.columns if name not in KEY]
    newest = sf.max_by(sf.struct(*rest), sf.col("offset")).alias("newest")
    return df.groupBy(*KEY).agg(newest).select(*KEY, "newest.*")


def unwrap(df: DataFrame, envelope: str) -> DataFrame:
    """A Debezium change as a plain one: its `after` as the value, a delete as a tombstone.

    Whatever else there is keeps its bytes, and says so in `envelope_error`.
    """
    if envelope == "none":
        return df
    outer = json_object(sf.col("value").cast("string"))
    # With Connect's schemas the change is the payload.
    fields = sf.when(sf.map_contains_key(outer, "op"), outer).otherwise(
        json_object(outer["payload"])
    )
    operation, after = fields["op"], fields["after"]
    is_delete = (operation == "d") & after.isNull()
    is_change = operation.isin(*_OPERATIONS[:3]) & json_object(after).isNotNull()
    is_read = sf.coalesce(sf.col("value").isNull() | is_delete | is_change, sf.lit(False))
    plain = sf.when(is_change, sf.encode(after, "UTF-8")).when(~is_read, sf.col("value"))
    error = sf.when(~is_read, NOT_ENVELOPE)
    return df.withColumns({"value": plain, ENVELOPE_ERROR: error})


def told(df: DataFrame) -> DataFrame:
    """One `error` for a value: of its envelope, or else of what was in it."""
    if ENVELOPE_ERROR not in df.columns:
        return df
    said = [name for name in (ENVELOPE_ERROR, "error") if name in df.columns]
    return df.withColumn("error", sf.coalesce(*said)).drop(ENVELOPE_ERROR)


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
    schema_registry: str = ""
    adopt: bool = False
    _schemas: Schemas | None = None

    def __post_init__(self) -> None:
        self.checkpoint = self.checkpoint or f"{self.path}/_checkpoint"
        self._schemas = of_format(self.decoding, self.schema_registry)
        if self.envelope not in ENVELOPES:
            raise ValueError(f"no envelope {self.envelope!r}; there are {', '.join(ENVELOPES)}")
        if self.null_keys not in NULL_KEYS:
            raise ValueError(f"null keys: {' or '.join(NULL_KEYS)}, not {self.null_keys!r}")

    def step(self, df: DataFrame) -> DataFrame:
        """Latest per key with decoded values; tombstones are rows with a null value."""
        keyed = unwrap(df.where("key IS NOT NULL"), self.envelope)
        rows = latest_per_key(keyed)
        decoding = self.decoding
        if self._schemas is not None:
            decoding = self._schemas.complete(decoding, rows)
        return told(decode(rows, decoding))

    def once(self) -> Ledger:
        """Replaces the table; gives the account of it."""
        # Beside a table of Parquet, not in it: Spark empties the folder that it writes anew.
        beside = f"{self.path}.kafkalite" if self.format == "parquet" else f"{self.path}/{MARKS}"
        with held(lease_of(self.spark, Folder(self.spark, beside), f"snapshot {self.path}")):
            self._table().own(ONCE, self.adopt, beside)
            with KafkaAdmin(self.spark, self.source.client_options) as admin:
                refuse_missing(self.source, admin)
                topics = topic_ids(admin, {topic for topic, _ in resolve(self.source, admin)})
            # Read once, though it is counted, folded and written.
            df = self.source.batch(self.spark).persist()
            try:
                return self._replace(df, topics)
            finally:
                df.unpersist()

    def _replace(self, df: DataFrame, topics: Mapping[str, str]) -> Ledger:
        self._refuse_null_keys(df)
        read, keyed = df.agg(sf.count("*"), sf.count("key")).collect()[0]
        self._refuse_others(topics)
        rows = self.step(df).persist()
        try:
            keys, values = rows.agg(sf.count("*"), sf.count("value")).collect()[0]
            kept = rows if self.keep_tombstones else rows.where("value IS NOT NULL")
            table = self._table()
            before = table.versions()
            writer = kept.write.format(self.format).mode("overwrite")
            writer.option("overwriteSchema", "true").save(self.path)
            deleted = 0 if self.keep_tombstones else keys - values
            left_out = {OLDER: keyed - keys, KEYLESS: read - keyed, DELETED: deleted}
            account = Account(table.rows_since(before), 0, left_out, read)
        finally:
            rows.unpersist()
        source, isolation = str(self.source), self.source.isolation
        ledger = Ledger(ONCE, source, self.path, isolation, committed_to=self.path)
        ledger.add(account, (), read)
        return ledger

    def _refuse_others(self, topics: Mapping[str, str]) -> None:
        """Now that they are read: a consumer goes on in a new topic of the same name."""
        with KafkaAdmin(self.spark, self.source.client_options) as admin:
            now = topic_ids(admin, topics)
        others = sorted(name for name in topics if now.get(name) != topics[name])
        if others:
            raise Different(
                f"{', '.join(others)} was deleted while it was read: nothing was written, "
                "start it again for what is there now"
            )

    def _table(self) -> Lake:
        return Lake(self.spark, self.path, self.format)

    def follow(
        self,
        watch: Watch | None = None,
        stop: StopRequest | None = None,
        observe: Observe = lambda step, batch: None,
    ) -> Progress:
        """Keeps the table up with the topic, deletes included."""
        if self.format != "delta":
            raise PipelineError("only a Delta table can be merged into: use format delta")
        self._table().own(FOLLOW, self.adopt)
        return self.job(observe).run(watch, stop)

    def job(self, observe: Observe = lambda step, batch: None) -> StreamJob:
        return StreamJob(
            self.spark,
            FOLLOW,
            self.path,
            self.source,
            self.checkpoint,
            self._write,
            self.trigger,
            self.keep_going,
            observe,
            owner_sink=sink_of_checkpoint(self.spark, self.path, self.checkpoint),
        )

    def _write(self, df: DataFrame, batch: Batch) -> Account:
        # Looked at for null keys, then merged: read from the broker once.
        kept = df.persist()
        try:
            return self._merge(kept)
        finally:
            kept.unpersist()

    def _merge(self, df: DataFrame) -> Account:
        self._refuse_null_keys(df)
        read, keyed = df.agg(sf.count("*"), sf.count("key")).collect()[0]
        changes = self.step(df).persist()
        try:
            keys = changes.count()
            said = self._merge_into(changes)
        finally:
            changes.unpersist()
        return merged(said, read, keyed, keys)

    def _merge_into(self, changes: DataFrame) -> dict[str, int]:
        table = self._table()
        if not table.exists():
            changes.limit(0).write.format("delta").save(self.path)
        changes.createOrReplaceTempView("changes")
        before = table.versions()
        # A batch that comes again finds its own offsets there and changes nothing.
        changes.sparkSession.sql(f"""
            MERGE INTO delta.`{Folder(self.spark, self.path).url}` AS kept USING changes AS new
            ON kept.topic = new.topic AND kept.partition = new.partition AND kept.key = new.key
            {self._clauses()}
        """)
        return table.metrics_since(before)

    def _clauses(self) -> str:
        update = "WHEN MATCHED AND new.offset > kept.offset THEN UPDATE SET *"
        if self.keep_tombstones:
            return f"{update} WHEN NOT MATCHED THEN INSERT *"
        return f"""WHEN MATCHED AND new.offset > kept.offset AND new.value IS NULL THEN DELETE
            {update} WHEN NOT MATCHED AND new.value IS NOT NULL THEN INSERT *"""

    def _refuse_null_keys(self, df: DataFrame) -> None:
        if self.null_keys == "drop":
            return
        first = df.where("key IS NULL").select("topic", "partition", "offset").first()
        if first is not None:
            raise PipelineError(
                f"{first['topic']}-{first['partition']} offset {first['offset']} has no key, so no "
                "place in a snapshot: leave such records out with null keys 'drop'"
            )


def merged(said: dict[str, int], read: int, keyed: int, keys: int) -> Account:
    """The account of a batch of so many keys, by what its merge says of itself."""
    written = said.get("numTargetRowsInserted", 0) + said.get("numTargetRowsUpdated", 0)
    deleted = said.get("numTargetRowsDeleted", 0)
    # A tombstone of no row, or what an attempt before has merged. No commit: all of them are.
    nothing = said.get("numSourceRows", keys) - written - deleted
    left_out = {OLDER: keyed - keys, KEYLESS: read - keyed, DELETED: deleted, UNCHANGED: nothing}
    return Account(written, 0, left_out, read)
