"""Writes batches to topics through Spark's Kafka sink, each record once across restarts.

Owns the note written before a batch: where the target's partitions ended. A batch that comes again
reads what landed since that note and leaves it out. How much came is told by where the partitions
end afterwards. Holds as long as no task is repeated within a batch and no executor of a killed
driver still writes when it is restarted.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from kafkalite.pipelines.common import interceptor
from kafkalite.pipelines.common.admin import KafkaAdmin
from kafkalite.pipelines.common.files import Folder
from kafkalite.pipelines.common.offsets import Offsets, dump, parse
from kafkalite.pipelines.common.outcomes import PipelineError
from kafkalite.pipelines.common.source import ISOLATION, READ_UNCOMMITTED, KafkaSource

# Gives, from the rows of a batch and the records that have landed, the rows still to write.
LeaveOut = Callable[[DataFrame, DataFrame], DataFrame]

_INTENTS = "intents"
_SINK_COLUMNS = ("topic", "partition", "key", "value", "headers")
_HEADERS = "array<struct<key:string,value:binary>>"
# A producer's own limit is 1 MB, and a broker's is the one that counts: what was read can be
# written where the broker takes it.
_LARGE = {"kafka.max.request.size": "115343360", "kafka.buffer.memory": "134217728"}


@dataclass(frozen=True, slots=True)
class Landed:
    """One write: where the target's partitions ended before its first attempt and after this one,
    how much came by this attempt, and how much was there from one before. `counted` are the rows,
    where they had to be counted."""

    started: Offsets
    ended: Offsets
    written: int
    there_already: int
    counted: int | None = None


class TopicSink:
    """Target topics on one cluster. `rate` bounds the records per second of each executor."""

    def __init__(
        self,
        spark: SparkSession,
        bootstrap_servers: str,
        topics: set[str],
        notes: Folder,
        options: Mapping[str, str] | None = None,
        rate: int | None = None,
    ) -> None:
        refuse_repeated_tasks(spark)
        self._spark = spark
        self._notes = notes
        self._topics = topics
        shaping = interceptor.options(spark, rate)
        self._options = {
            "kafka.bootstrap.servers": bootstrap_servers,
            **_LARGE,
            **shaping,
            **dict(options or {}),
        }
        # What is here is read whatever becomes of it: nobody's open transaction may hide it.
        kept = {**dict(options or {}), ISOLATION: READ_UNCOMMITTED}
        self._target = KafkaSource(bootstrap_servers, tuple(sorted(topics)), options=kept)

    def write(
        self, df: DataFrame, batch_id: int, leave_out: LeaveOut, expected: int | None = None
    ) -> Landed:
        """Writes a batch of `expected` rows, or of as many as it has where nobody else writes."""
        before = self.ends()
        intent = self._notes.read(f"{_INTENTS}/{batch_id}.json")
        there, counted = 0, expected
        if intent is None:
            self._notes.write(f"{_INTENTS}/{batch_id}.json", dump(before))
            started = before
        else:
            started = {**dict.fromkeys(before, 0), **parse(intent)}
        if before == started:
            self._send(df)
        else:
            landed = self._target.between(started, before).batch(self._spark)
            rest = leave_out(df, landed).persist()
            try:
                left = rest.count()
                counted = df.count() if expected is None else expected
                there = counted - left
                expected = None if expected is None else left
                self._send(rest)
            finally:
                rest.unpersist()
        self._notes.delete(f"{_INTENTS}/{batch_id - 2}.json")
        ended = self.ends()
        came = sum(ended[each] - before.get(each, 0) for each in ended)
        # Others may write to the same topic: then more came than was written here.
        written = came if expected is None else min(came, expected)
        return Landed(started, ended, written, there, counted)

    def has_begun(self, batch_id: int) -> bool:
        """Whether a batch was tried before."""
        return self._notes.exists(f"{_INTENTS}/{batch_id}.json")

    def ends(self) -> Offsets:
        with KafkaAdmin(self._spark, self._target.client_options) as admin:
            return admin.ends(admin.all_partitions(self._topics))

    def _send(self, df: DataFrame) -> None:
        to_kafka(df).write.format("kafka").options(**self._options).save()


def to_kafka(df: DataFrame) -> DataFrame:
    """The columns of Spark's sink; a `timestamp` travels as a header until it is sent."""
    kept = [sf.col(name) for name in _SINK_COLUMNS if name in df.columns and name != "headers"]
    headers: Column = sf.col("headers") if "headers" in df.columns else sf.lit(None).cast(_HEADERS)
    if "timestamp" in df.columns:
        headers = interceptor.with_timestamp(headers, sf.col("timestamp"))
    return df.select(*kept, headers.alias("headers"))


def refuse_repeated_tasks(spark: SparkSession) -> None:
    """Spark repeats a failed task, and its records would be in the topic twice."""
    settings: Any = spark.sparkContext.getConf()
    local = str(spark.sparkContext.master).startswith("local")
    once = local or settings.get("spark.task.maxFailures", "4") == "1"
    if not once or settings.get("spark.speculation", "false") == "true":
        raise PipelineError(
            "writing to a topic exactly once needs spark.task.maxFailures=1 and "
            "spark.speculation=false: a repeated task writes its records again"
        )
