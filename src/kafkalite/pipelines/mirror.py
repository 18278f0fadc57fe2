"""`mirror`: topics to another cluster, record for record, restart after restart.

Owns that a copy has the partition, key, value, headers and timestamp of its original, in the same
order, once; and the table of which offset became which, by which groups move over. No header is
added: after a crash, what landed of a batch is its beginning, partition by partition, and is
checked to be so. Holds as long as nobody else writes to the copies.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.window import Window

from kafkalite.pipelines.common.admin import KafkaAdmin
from kafkalite.pipelines.common.checkpoint import NOTES
from kafkalite.pipelines.common.files import Folder
from kafkalite.pipelines.common.offsets import Offsets, TopicPartition
from kafkalite.pipelines.common.running import (
    Batch,
    Observe,
    PipelineError,
    Progress,
    StreamJob,
    Trigger,
    Watch,
)
from kafkalite.pipelines.common.source import KafkaSource, resolve
from kafkalite.pipelines.common.stopping import StopRequest
from kafkalite.pipelines.common.topic_sink import TopicSink

SYNCS = "offset-syncs"
# Options that split a partition over tasks, which would then write it out of order.
_SPLITTING = {"minpartitions", "maxrecordsperpartition"}


def copies(df: DataFrame, rename: str = "{topic}") -> DataFrame:
    """The step: records as they go to the target, `rename` saying under which topic."""
    before, _, after = rename.partition("{topic}")
    target = sf.concat(sf.lit(before), sf.col("topic"), sf.lit(after))
    return df.withColumns({"from_topic": sf.col("topic"), "topic": target})


def leave_out_landed(rows: DataFrame, landed: DataFrame) -> DataFrame:
    """What is left of each partition after as many records as have landed, which must be these."""
    arrived = _numbered(landed).select(
        "topic", "partition", "place", _content().alias("landed_content")
    )
    ours = _numbered(rows).withColumn("content", _content())
    joined = ours.join(arrived, ["topic", "partition", "place"], "full_outer").persist()
    wrong = joined.where("landed_content IS NOT NULL AND content IS DISTINCT FROM landed_content")
    first = wrong.select("topic", "partition").first()
    if first is not None:
        raise PipelineError(
            f"{first['topic']}-{first['partition']} holds records that this mirror did not write "
            "since it was killed: it can no longer tell what landed; mirror to another topic"
        )
    rest = joined.where("landed_content IS NULL").select(*rows.columns)
    return rest.repartition("topic", "partition").sortWithinPartitions("offset")


def _numbered(df: DataFrame) -> DataFrame:
    window = Window.partitionBy("topic", "partition").orderBy("offset")
    return df.withColumn("place", sf.row_number().over(window))


def _content() -> Column:
    return sf.xxhash64("key", "value", "timestamp", sf.to_json("headers"))


@dataclass(frozen=True, slots=True)
class Sync:
    """One batch of one partition: source offsets `start` to `end` became `to_start` to `to_end`."""

    start: int
    end: int
    to_start: int
    to_end: int


@dataclass(slots=True)
class Mirror:
    """Topics of `source` to the cluster at `target`, under names made by `rename`."""

    spark: SparkSession
    source: KafkaSource
    target: KafkaSource
    checkpoint: str
    rename: str = "{topic}"
    groups: tuple[str, ...] = ()
    trigger: Trigger = field(default_factory=Trigger)
    keep_going: bool = False
    translated: dict[str, Offsets] = field(default_factory=dict)
    _started: Offsets = field(default_factory=dict)

    def __post_init__(self) -> None:
        splitting = [name for name in self.source.options if name.lower() in _SPLITTING]
        if splitting:
            raise ValueError(f"a mirror keeps the order of each partition: not with {splitting[0]}")
        same = self.source.bootstrap_servers == self.target.bootstrap_servers
        if same and self.rename == "{topic}":
            raise ValueError("a mirror to the same cluster needs other names: rename")

    def step(self, df: DataFrame) -> DataFrame:
        return copies(df, self.rename)

    def run(
        self,
        watch: Watch | None = None,
        stop: StopRequest | None = None,
        observe: Observe = lambda step, batch: None,
    ) -> Progress:
        self._create_topics()
        progress = self.job(observe).run(watch, stop)
        self._translate_groups()
        return progress

    def job(self, observe: Observe = lambda step, batch: None) -> StreamJob:
        return StreamJob(
            self.spark,
            "mirror",
            self.source,
            self.checkpoint,
            self._write,
            self.trigger,
            self.keep_going,
            observe,
            self._note_syncs,
        )

    def _write(self, df: DataFrame, batch: Batch) -> None:
        if not batch.ranges:
            return
        topics = {self._renamed(each.topic) for each in batch.ranges}
        options = {k: v for k, v in self.target.options.items() if k.startswith("kafka.")}
        sink = TopicSink(self.spark, self.target.bootstrap_servers, topics, self._notes(), options)
        self._started = sink.write(self.step(df), batch.id, leave_out_landed)

    def _note_syncs(self, df: DataFrame, batch: Batch) -> None:
        started = self._started
        with KafkaAdmin(self.spark, self.target.client_options) as admin:
            ended = admin.ends(started)
        rows = []
        for each in batch.ranges:
            copy = (self._renamed(each.topic), each.partition)
            span = (each.start, each.end, started[copy], ended[copy])
            rows.append([each.topic, each.partition, *span])
        self._notes().write(f"{SYNCS}/{batch.id}.json", json.dumps(rows))

    def _create_topics(self) -> None:
        """Copies of topics that the target lacks, with as many partitions."""
        with KafkaAdmin(self.spark, self.source.client_options) as admin:
            wanted = admin.topics({topic for topic, _ in resolve(self.source, admin)})
        with KafkaAdmin(self.spark, self.target.client_options) as admin:
            there = admin.topics(self._renamed(name) for name in wanted)
            for name, topic in wanted.items():
                copy = there.get(self._renamed(name))
                if copy is None:
                    admin.create_topic(self._renamed(name), topic.partitions, {})
                elif copy.partitions < topic.partitions:
                    raise PipelineError(
                        f"{copy.name} has {copy.partitions} partitions, {name} has "
                        f"{topic.partitions}: add partitions to the copy first"
                    )

    def _translate_groups(self) -> None:
        """Commits for each group, on the target, where its offsets on the source came to lie."""
        if not self.groups:
            return
        syncs = self.syncs()
        with (
            KafkaAdmin(self.spark, self.source.client_options) as here,
            KafkaAdmin(self.spark, self.target.client_options) as there,
        ):
            for group in self.groups:
                moved = {}
                for (topic, partition), offset in here.committed(group).items():
                    place = self._translate(topic, partition, offset, syncs)
                    if place is not None:
                        moved[self._renamed(topic), partition] = place
                if moved:
                    there.commit(group, moved)
                self.translated[group] = moved

    def _translate(
        self, topic: str, partition: int, offset: int, syncs: dict[TopicPartition, list[Sync]]
    ) -> int | None:
        return translate(
            offset,
            syncs.get((topic, partition), []),
            lambda start: self._count_records(topic, partition, start, offset),
        )

    def _count_records(self, topic: str, partition: int, start: int, end: int) -> int:
        """Over the gaps of compaction and transactions only reading tells how many there are."""
        key = (topic, partition)
        return self.source.between({key: start}, {key: end}).batch(self.spark).count()

    def syncs(self) -> dict[TopicPartition, list[Sync]]:
        """All that was noted, by source partition, in order."""
        notes = self._notes()
        found: dict[TopicPartition, list[Sync]] = {}
        for name in sorted(notes.names(SYNCS), key=lambda name: int(name.partition(".")[0])):
            for topic, partition, *span in json.loads(notes.read(f"{SYNCS}/{name}") or "[]"):
                found.setdefault((topic, partition), []).append(Sync(*span))
        return found

    def _notes(self) -> Folder:
        return Folder(self.spark, f"{self.checkpoint}/{NOTES}")

    def _renamed(self, topic: str) -> str:
        return self.rename.replace("{topic}", topic)


def translate(offset: int, syncs: list[Sync], count_from: Callable[[int], int]) -> int | None:
    """Where a source offset came to lie; None for one before or past what was mirrored."""
    if syncs and offset == syncs[-1].end:
        return syncs[-1].to_end
    for sync in syncs:
        if sync.start <= offset < sync.end:
            dense = sync.end - sync.start == sync.to_end - sync.to_start
            return sync.to_start + (offset - sync.start if dense else count_from(sync.start))
    return None
