"""Writes batches to topics through Spark's Kafka sink, each record once across restarts.

Owns the note written before a batch: where the target's partitions ended. A batch that comes again
reads what landed since that note and leaves it out. Holds as long as no task is repeated within a
batch and no executor of a killed driver still writes when it is restarted.
"""

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from kafkalite.pipelines.common import interceptor
from kafkalite.pipelines.common.admin import KafkaAdmin
from kafkalite.pipelines.common.files import Folder
from kafkalite.pipelines.common.offsets import Offsets, dump, parse
from kafkalite.pipelines.common.running import PipelineError
from kafkalite.pipelines.common.source import KafkaSource

# Gives, from the rows of a batch and the records that have landed, the rows still to write.
LeaveOut = Callable[[DataFrame, DataFrame], DataFrame]

_INTENTS = "intents"
_SINK_COLUMNS = ("topic", "partition", "key", "value", "headers")
_HEADERS = "array<struct<key:string,value:binary>>"


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
            **shaping,
            **dict(options or {}),
        }
        kept = {
            k: v for k, v in self._options.items() if k.startswith("kafka.") and k not in shaping
        }
        self._target = KafkaSource(bootstrap_servers, tuple(sorted(topics)), options=kept)

    def write(self, df: DataFrame, batch_id: int, leave_out: LeaveOut) -> Offsets:
        """Writes a batch; gives where the target's partitions ended before its first attempt."""
        with KafkaAdmin(self._spark, self._target.client_options) as admin:
            ends = admin.ends(admin.all_partitions(self._topics))
        intent = self._notes.read(f"{_INTENTS}/{batch_id}.json")
        if intent is None:
            self._notes.write(f"{_INTENTS}/{batch_id}.json", dump(ends))
            started = ends
        else:
            started = {**dict.fromkeys(ends, 0), **parse(intent)}
            if ends != started:
                landed = self._target.between(started, ends).batch(self._spark)
                df = leave_out(df, landed)
        to_kafka(df).write.format("kafka").options(**self._options).save()
        self._notes.delete(f"{_INTENTS}/{batch_id - 2}.json")
        return started


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
