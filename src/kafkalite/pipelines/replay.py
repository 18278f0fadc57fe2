"""`replay`: records of a table or a topic into a topic again, once, at the pace you set.

Owns the choice by time, offset and predicate, and that running the same replay again after a crash
writes only what is missing. Key, value, headers and timestamp stay; one header says where a record
came from, which is how a second run knows it. What is there to read is settled when it starts.
"""

from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from kafkalite.pipelines.common.admin import KafkaAdmin
from kafkalite.pipelines.common.files import Folder
from kafkalite.pipelines.common.lake import Lake
from kafkalite.pipelines.common.ledger import Account, Ledger
from kafkalite.pipelines.common.losses import note_topics, recreated
from kafkalite.pipelines.common.outcomes import Different, PipelineError
from kafkalite.pipelines.common.ownership import claim, held
from kafkalite.pipelines.common.running import lease_of
from kafkalite.pipelines.common.source import BRONZE, KafkaSource, refuse_missing, resolve
from kafkalite.pipelines.common.targets import refuse_own_source
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
            with KafkaAdmin(self.spark, self.source.client_options) as admin:
                refuse_missing(self.source, admin)
            df = self.source.batch(self.spark)
        else:
            df = Lake(self.spark, self.path, self.format).read()
        missing = set(BRONZE) - set(df.columns)
        if missing:
            raise PipelineError(f"{self.path} is not a table of records: no {sorted(missing)}")
        return self.step(df)

    def step(self, df: DataFrame) -> DataFrame:
        return again(df, self.target.topics[0], self.choice, self.keep_partitions)

    def run(self) -> Ledger:
        """Writes what is missing; gives the account of it."""
        (topic,) = self.target.topics
        if self.source is not None:
            refuse_own_source(self.spark, self.source, self.target, {topic})
        notes = Folder(self.spark, self.state)
        with held(lease_of(self.spark, notes, f"replay to {topic}")):
            claim(notes, {"command": "replay", "sink": topic}, is_used=False)
            if self.source is not None:
                self._refuse_recreated(self.source, notes)
            return self._run(topic, notes)

    def _refuse_recreated(self, source: KafkaSource, notes: Folder) -> None:
        """What was written is known by where it was read, which would be said of other records."""
        with KafkaAdmin(self.spark, source.client_options) as admin:
            topics = {topic for topic, _ in resolve(source, admin)}
            others = recreated(notes, admin, topics)
            if others:
                raise Different(
                    f"{', '.join(others)} was deleted and recreated since this replay began: "
                    "give another --state to write its records"
                )
            note_topics(notes, admin, topics)

    def _run(self, topic: str, notes: Folder) -> Ledger:
        servers, options = self.target.bootstrap_servers, self.target.kafka_options
        sink = TopicSink(self.spark, servers, {topic}, notes, options, self.rate)
        isolation = self.source.isolation if self.source else "as the table has it"
        origin = str(self.source) if self.source else self.path
        ledger = Ledger("replay", origin, topic, isolation, committed_to=self.state)
        # Read once: what is counted is what is sent.
        rows = self.rows().persist()
        try:
            chosen = rows.count()
            if self.source is not None:
                # Under the read as well: a consumer goes on in a new topic without a word.
                self._refuse_recreated(self.source, notes)
            landed = sink.write(rows, 0, leave_out_landed, chosen)
        finally:
            rows.unpersist()
        ledger.add(Account(landed.written, landed.there_already, read=chosen), (), chosen)
        return ledger
