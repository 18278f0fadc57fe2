"""`replay`: records of a table or a topic into a topic again, once, at the pace you set.

Owns the choice by time, offset and predicate, and that running the same replay again after a crash
writes only what is missing. Key, value, headers and timestamp stay; one header says where a record
came from, which is how a second run knows it.
"""

from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from kafkalite.pipelines.common.files import Folder
from kafkalite.pipelines.common.lake import Lake
from kafkalite.pipelines.common.running import PipelineError
from kafkalite.pipelines.common.source import BRONZE, KafkaSource
from kafkalite.pipelines.common.topic_sink import TopicSink

ORIGIN = "kafkalite.replay.origin"
_HEADERS = "array<struct<key:string,value:binary>>"


@dataclass(frozen=True, slots=True)
class Choice:
    """Which records: by log time (from, to), by offset (from, to), by an SQL predicate."""

    topics: tuple[str, ...] = ()
    from_time: str = ""
    to_time: str = ""
    from_offset: int | None = None
    to_offset: int | None = None
    where: str = ""

    def of(self, df: DataFrame) -> DataFrame:
        """Starts are included, ends are not."""
        conditions: list[Column] = []
        if self.topics:
            conditions.append(sf.col("topic").isin(*self.topics))
        if self.from_time:
            conditions.append(sf.col("timestamp") >= sf.lit(self.from_time).cast("timestamp"))
        if self.to_time:
            conditions.append(sf.col("timestamp") < sf.lit(self.to_time).cast("timestamp"))
        if self.from_offset is not None:
            conditions.append(sf.col("offset") >= self.from_offset)
        if self.to_offset is not None:
            conditions.append(sf.col("offset") < self.to_offset)
        if self.where:
            conditions.append(sf.expr(self.where))
        for condition in conditions:
            df = df.where(condition)
        return df


def again(df: DataFrame, topic: str, choice: Choice, keep_partitions: bool = False) -> DataFrame:
    """The step: the chosen rows as records for `topic`, in the order of each partition."""
    origin = sf.concat_ws("/", sf.col("topic"), sf.col("partition"), sf.col("offset"))
    stamp = sf.struct(sf.lit(ORIGIN).alias("key"), sf.encode(origin, "UTF-8").alias("value"))
    headers = sf.concat(sf.coalesce("headers", sf.array().cast(_HEADERS)), sf.array(stamp))
    rows = choice.of(df).repartition("topic", "partition").sortWithinPartitions("offset")
    chosen = rows.select(
        sf.lit(topic).alias("topic"),
        "partition",
        "key",
        "value",
        "timestamp",
        headers.alias("headers"),
        origin.alias("origin"),
        "offset",
    )
    return chosen if keep_partitions else chosen.drop("partition")


def leave_out_landed(rows: DataFrame, landed: DataFrame) -> DataFrame:
    """The rows whose origin no record of the target names; their order within a task stays."""
    stamps = sf.filter("headers", lambda header: header["key"] == ORIGIN)
    origins = landed.where("headers IS NOT NULL").select(
        sf.try_element_at(stamps, sf.lit(-1))["value"].cast("string").alias("origin")
    )
    rest = rows.join(origins.where("origin IS NOT NULL"), "origin", "left_anti")
    place = sf.substring_index("origin", "/", 2)
    return rest.repartition(place).sortWithinPartitions("offset")


@dataclass(slots=True)
class Replay:
    """From a table at `path` (or else the topics of `source`) to `topic` of `target`.

    `state` is the folder that makes it one replay however often it is started; another folder is
    another replay.
    """

    spark: SparkSession
    target: KafkaSource
    state: str
    path: str = ""
    format: str = "delta"
    source: KafkaSource | None = None
    choice: Choice = field(default_factory=Choice)
    rate: int | None = None
    keep_partitions: bool = False

    def __post_init__(self) -> None:
        if bool(self.path) == (self.source is not None):
            raise ValueError("replay from a table or from topics: give one of path and source")
        if len(self.target.topics) != 1:
            raise ValueError("replay into one topic")

    def rows(self) -> DataFrame:
        if self.source is not None:
            df = self.source.batch(self.spark)
        else:
            df = Lake(self.spark, self.path, self.format).read()
        missing = set(BRONZE) - set(df.columns)
        if missing:
            raise PipelineError(f"{self.path} is not a table of records: no {sorted(missing)}")
        return self.step(df)

    def step(self, df: DataFrame) -> DataFrame:
        return again(df, self.target.topics[0], self.choice, self.keep_partitions)

    def run(self) -> int:
        """Writes what is missing; gives the count of records that the replay has."""
        options = {k: v for k, v in self.target.options.items() if k.startswith("kafka.")}
        notes = Folder(self.spark, self.state)
        (topic,) = self.target.topics
        sink = TopicSink(
            self.spark, self.target.bootstrap_servers, {topic}, notes, options, self.rate
        )
        rows = self.rows()
        sink.write(rows, 0, leave_out_landed)
        return rows.count()
