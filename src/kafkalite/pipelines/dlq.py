"""`dlq`: records that do not decode or break a rule go to a dead letter topic, bytes untouched.

Owns the verdict on each record and the headers that Kafka Connect's dead letter queues have, so
that tools for those read ours. A record is neither changed nor lost: it is in the dead letter topic
once, or it was good. When too many are bad, the breaker stops before anything is written.

With a retry topic, which is read as well, a bad record goes there first, and is judged again by the
next batch, as often as it is told to.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from kafkalite.pipelines.common.checkpoint import NOTES
from kafkalite.pipelines.common.decode import Decoding, decode
from kafkalite.pipelines.common.files import Folder
from kafkalite.pipelines.common.ledger import Account
from kafkalite.pipelines.common.outcomes import PipelineError
from kafkalite.pipelines.common.progress import Progress, Watch
from kafkalite.pipelines.common.running import Batch, Observe, StreamJob, Trigger
from kafkalite.pipelines.common.schemas import Schemas, of_format
from kafkalite.pipelines.common.source import BRONZE, KafkaSource
from kafkalite.pipelines.common.stopping import StopRequest
from kafkalite.pipelines.common.targets import refuse_own_source
from kafkalite.pipelines.common.topic_sink import LeaveOut, TopicSink
from kafkalite.pipelines.retries import COUNT, PLACE, Retries, again_or_dead, first_read
from kafkalite.pipelines.retries import leave_out_landed as leave_out_read

PREFIX = "__connect.errors."
GOOD, GOOD_AGAIN = "good", "good after a retry"
CONVERSION, TRANSFORMATION = "VALUE_CONVERTER", "TRANSFORMATION"

_HEADERS = "array<struct<key:string,value:binary>>"
_DATA_EXCEPTION = "org.apache.kafka.connect.errors.DataException"
# Headers that a dead letter has more than its record.
_ADDED = 9


def judge(df: DataFrame, decoding: Decoding, rules: Mapping[str, str]) -> DataFrame:
    """The step: adds `error` (null for a good record) and the `stage` that found it.

    A rule is an SQL predicate over the record's columns and `data`. A record for which it is not
    true, null included, breaks it; the first broken rule names the error.
    """
    rows = decode(df, decoding)
    not_decoded: Column = (
        sf.col("error") if "error" in rows.columns else sf.lit(None).cast("string")
    )
    error = sf.when(not_decoded.isNotNull(), not_decoded)
    for name, predicate in rules.items():
        fulfilled = sf.expr(predicate) if _is_about(rows, predicate) else sf.lit(None)
        broken = ~sf.coalesce(fulfilled, sf.lit(False))
        error = error.when(broken, sf.lit(f"rule {name} broken: {predicate}"))
    stage = sf.when(not_decoded.isNotNull(), CONVERSION).when(error.isNotNull(), TRANSFORMATION)
    return rows.select(*BRONZE, error.alias("error"), stage.alias("stage"))


def _is_about(rows: DataFrame, predicate: str) -> bool:
    """Whether it can be asked: not of `data`, while no schema of any record is known."""
    if "data" in rows.columns:
        return True
    try:
        rows.select(sf.expr(predicate))
    except AnalysisException:
        # A wrong rule is told when there is data, and a raw record never has any.
        if "error" not in rows.columns:
            raise
        return False
    return True


def dead_letters(judged: DataFrame, topic: str, name: str = "kafkalite-dlq") -> DataFrame:
    """The bad records as they go to the dead letter topic, with Connect's headers added."""
    said = {
        "topic": sf.col("topic"),
        "partition": sf.col("partition").cast("string"),
        "offset": sf.col("offset").cast("string"),
        "connector.name": sf.lit(name),
        "task.id": sf.lit("0"),
        "stage": sf.col("stage"),
        "class.name": sf.lit("kafkalite.pipelines.dlq"),
        "exception.class.name": sf.lit(_DATA_EXCEPTION),
        "exception.message": sf.col("error"),
    }
    added = [
        sf.struct(sf.lit(PREFIX + what).alias("key"), sf.encode(text, "UTF-8").alias("value"))
        for what, text in said.items()
    ]
    assert len(added) == _ADDED, "what a retry takes off"
    headers = sf.concat(sf.coalesce("headers", sf.array().cast(_HEADERS)), sf.array(*added))
    return judged.where("error IS NOT NULL").select(
        sf.lit(topic).alias("topic"),
        "key",
        "value",
        "timestamp",
        headers.alias("headers"),
        sf.col("topic").alias("from_topic"),
        sf.col("partition").alias("from_partition"),
        sf.col("offset").alias("from_offset"),
        *(name for name in (COUNT, PLACE) if name in judged.columns),
    )


def leave_out_landed(rows: DataFrame, landed: DataFrame) -> DataFrame:
    """The rows whose origin no dead letter names yet."""
    # The last of its headers: a dead letter of a dead letter names both origins.
    names = sf.reverse(sf.transform("headers", lambda header: header["key"]))
    values = sf.reverse(sf.transform("headers", lambda header: header["value"]))

    def said(what: str) -> Column:
        place = sf.array_position(names, PREFIX + what)
        return sf.try_element_at(values, place.cast("int")).cast("string")

    origins = landed.where("headers IS NOT NULL").where(sf.array_contains(names, f"{PREFIX}offset"))
    origins = origins.select(
        said("topic").alias("from_topic"),
        said("partition").cast("int").alias("from_partition"),
        said("offset").cast("long").alias("from_offset"),
    )
    return rows.join(origins, ["from_topic", "from_partition", "from_offset"], "left_anti")


@dataclass(slots=True)
class DeadLetters:
    """Sorts the bad records of topics out into `topic`."""

    spark: SparkSession
    source: KafkaSource
    topic: str
    checkpoint: str
    decoding: Decoding = field(default_factory=Decoding)
    rules: Mapping[str, str] = field(default_factory=dict)
    schema_registry: str = ""
    target: KafkaSource | None = None
    max_error_rate: float = 1.0
    breaker_from_rows: int = 100
    trigger: Trigger = field(default_factory=Trigger)
    keep_going: bool = False
    retries: Retries | None = None
    good: int = 0
    bad: int = 0
    _schemas: Schemas | None = None

    def __post_init__(self) -> None:
        self._schemas = of_format(self.decoding, self.schema_registry)
        if self.retries is not None:
            if not self.source.topics:
                raise ValueError("with a retry topic, name the topics: it is read beside them")
            topics = (*self.source.topics, self.retries.topic)
            self.source = replace(self.source, topics=topics)

    def step(self, df: DataFrame) -> DataFrame:
        decoding = self.decoding
        if self._schemas is not None:
            decoding = self._schemas.complete(decoding, df)
        judged = judge(df, decoding, self.rules)
        return judged if self.retries is None else first_read(judged, self.retries, PREFIX, _ADDED)

    def run(
        self,
        watch: Watch | None = None,
        stop: StopRequest | None = None,
        observe: Observe = lambda step, batch: None,
    ) -> Progress:
        refuse_own_source(self.spark, self.source, self._target(), {self.topic})
        return self.job(observe).run(watch, stop)

    def job(self, observe: Observe = lambda step, batch: None) -> StreamJob:
        return StreamJob(
            self.spark,
            "dlq",
            self.topic,
            self.source,
            self.checkpoint,
            self._write,
            self.trigger,
            self.keep_going,
            observe,
        )

    def _write(self, df: DataFrame, batch: Batch) -> Account:
        judged = self.step(df).persist()
        try:
            total, bad, again = judged.agg(*self._counted(judged)).collect()[0]
            self._break_if_too_many(total, bad, batch)
            account = Account(read=total, left_out={GOOD: total - bad - again, GOOD_AGAIN: again})
            if bad:
                letters, leave_out = self._letters(judged)
                landed = self._sink().write(letters, batch.id, leave_out, bad)
                account.written, account.there_already = landed.written, landed.there_already
        finally:
            judged.unpersist()
        self.good += total - bad
        self.bad += bad
        return account

    def _counted(self, judged: DataFrame) -> tuple[Column, Column, Column]:
        """All, the bad ones, and those that are good now that they were retried."""
        again = sf.lit(0)
        if self.retries is not None:
            again = sf.count_if(sf.col("error").isNull() & (sf.col(COUNT) > 0))
        return sf.count("*"), sf.count("error"), again

    def _letters(self, judged: DataFrame) -> tuple[DataFrame, LeaveOut]:
        letters = dead_letters(judged, self.topic)
        if self.retries is None:
            return letters, leave_out_landed
        return again_or_dead(letters, self.retries), leave_out_read

    def _break_if_too_many(self, total: int, bad: int, batch: Batch) -> None:
        if total >= self.breaker_from_rows and bad / total > self.max_error_rate:
            raise PipelineError(
                f"{bad} of {total} records are bad, more than {self.max_error_rate:.0%}: nothing "
                f"of this batch was written ({', '.join(map(str, batch.ranges))})"
            )

    def _sink(self) -> TopicSink:
        target = self._target()
        notes = Folder(self.spark, f"{self.checkpoint}/{NOTES}")
        servers, options = target.bootstrap_servers, target.kafka_options
        topics = {self.topic} if self.retries is None else {self.topic, self.retries.topic}
        return TopicSink(self.spark, servers, topics, notes, options)

    def _target(self) -> KafkaSource:
        return self.target or self.source
