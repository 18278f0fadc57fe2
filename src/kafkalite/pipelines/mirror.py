"""`mirror`: topics to another cluster, record for record, restart after restart.

Owns that a copy has the partition, key, value, headers and timestamp of its original, in the same
order, once. No header is added: after a crash, what landed of a batch is its beginning, partition
by partition, and is checked to be so. Holds as long as nobody else writes to the copies, which is
looked at before and after each batch.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.window import Window

from kafkalite.pipelines.common.admin import ClusterError, KafkaAdmin
from kafkalite.pipelines.common.checkpoint import NOTES
from kafkalite.pipelines.common.copies import Copies, strangers
from kafkalite.pipelines.common.files import Folder
from kafkalite.pipelines.common.ledger import Account
from kafkalite.pipelines.common.offsets import Offsets, TopicPartition
from kafkalite.pipelines.common.outcomes import Different, PipelineError
from kafkalite.pipelines.common.progress import Progress, Watch
from kafkalite.pipelines.common.running import Batch, Observe, StreamJob, Trigger
from kafkalite.pipelines.common.source import KafkaSource, resolve
from kafkalite.pipelines.common.stopping import StopRequest
from kafkalite.pipelines.common.syncs import Syncs
from kafkalite.pipelines.common.targets import cluster_id
from kafkalite.pipelines.common.topic_sink import Landed, LeaveOut, TopicSink
from kafkalite.pipelines.common.translation import (
    Moves,
    Run,
    Sync,
    moves,
    still_to_write,
    translate,
)

# Settings of topics and offsets of groups go over at the start, at the end, and so often between.
SYNC_S = 10.0
MEMBERS = "of a group with members at the target"
# Options that split a partition over tasks, which would then write it out of order.
_SPLITTING = {"minpartitions", "maxrecordsperpartition"}


def copies(df: DataFrame, rename: str = "{topic}") -> DataFrame:
    """The step: records as they go to the target, `rename` saying under which topic."""
    target = sf.replace(sf.lit(rename), sf.lit("{topic}"), sf.col("topic"))
    return df.withColumns({"from_topic": sf.col("topic"), "topic": target})


def leave_out_landed(rows: DataFrame, landed: DataFrame) -> DataFrame:
    """What is left of each partition after as many records as have landed, which must be these."""
    joined = _side_by_side(rows, landed)
    first = joined.where(_DIFFERS).select("topic", "partition").first()
    if first is not None:
        raise PipelineError(
            f"{first['topic']}-{first['partition']} holds records that this mirror did not write "
            "since it was killed: it can no longer tell what landed; mirror to another topic"
        )
    return _in_order(joined.where("landed_content IS NULL").select(*rows.columns))


def leave_out_landed_of_compacted(rows: DataFrame, landed: DataFrame) -> DataFrame:
    """The same, where the source may have lost records since to compaction."""
    joined = _side_by_side(rows, landed)
    differing = joined.where(_DIFFERS).select("topic", "partition").distinct().collect()
    rest = joined.where("landed_content IS NULL").select(*rows.columns)
    for topic, partition in differing:
        here = (sf.col("topic") == topic) & (sf.col("partition") == partition)
        ours = rows.where(here).select("offset", _content()).orderBy("offset").collect()
        theirs = landed.where(here).select(_content()).orderBy("offset").collect()
        pairs = [(row[0], row[1]) for row in ours]
        first = still_to_write([row[0] for row in theirs], pairs)
        rest = rest.where(~here)
        if first is not None:
            rest = rest.unionByName(rows.where(here & (sf.col("offset") >= first)))
    return _in_order(rest)


_DIFFERS = "landed_content IS NOT NULL AND content IS DISTINCT FROM landed_content"


def _side_by_side(rows: DataFrame, landed: DataFrame) -> DataFrame:
    arrived = _numbered(landed).select(
        "topic", "partition", "place", _content().alias("landed_content")
    )
    ours = _numbered(rows).withColumn("content", _content())
    return ours.join(arrived, ["topic", "partition", "place"], "full_outer").persist()


def _in_order(rows: DataFrame) -> DataFrame:
    return rows.repartition("topic", "partition").sortWithinPartitions("offset")


def _numbered(df: DataFrame) -> DataFrame:
    window = Window.partitionBy("topic", "partition").orderBy("offset")
    return df.withColumn("place", sf.row_number().over(window))


def _content() -> Column:
    return sf.xxhash64("key", "value", "timestamp", sf.to_json("headers"))


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
    adopt: bool = False
    sync_settings: bool = True
    moved: dict[str, Moves] = field(default_factory=dict)
    _landed: Landed | None = None
    _copies: Copies | None = None
    _syncs: Syncs | None = None
    _known: set[TopicPartition] = field(default_factory=set)
    _is_within: bool = False
    _ensured_at: float = 0.0
    _moved_at: float = 0.0

    def __post_init__(self) -> None:
        splitting = [name for name in self.source.options if name.lower() in _SPLITTING]
        if splitting:
            raise ValueError(f"a mirror keeps the order of each partition: not with {splitting[0]}")
        if "{topic}" not in self.rename and len(self.source.topics) != 1:
            raise ValueError(f"{self.rename!r} gives all copies one name: it needs {{topic}} in it")
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
        there = cluster_id(self.spark, self.target)
        self._is_within = there == cluster_id(self.spark, self.source)
        return self.job(observe, there).run(watch, stop)

    def job(self, observe: Observe = lambda step, batch: None, there: str = "") -> StreamJob:
        return StreamJob(
            self.spark,
            "mirror",
            f"{self.rename} at {self.target.bootstrap_servers}",
            self.source,
            self.checkpoint,
            self._write,
            self.trigger,
            self.keep_going,
            observe,
            self._note_syncs,
            owner_sink=f"{self.rename} of cluster {there}",
            begin=self._begin,
            end=self._move_groups,
        )

    def _refuse_itself(self, topics: set[str]) -> None:
        """Within one cluster a pattern may take in what the mirror makes."""
        both = sorted({self._renamed(topic) for topic in topics} & topics)
        if self._is_within and both:
            raise PipelineError(
                f"{', '.join(both)} would be mirrored and is a copy: name the topics, or give "
                "another pattern or --rename"
            )

    def _begin(self) -> None:
        """What is to be so before the first batch."""
        self._syncs = Syncs(self._notes())
        mirrored = {topic for topic, _ in self._syncs.found}
        self._copies = Copies(self._notes(), self.rename, self.sync_settings, self.adopt, mirrored)
        with KafkaAdmin(self.spark, self.source.client_options) as admin:
            unknown = sorted(set(self.groups) - set(admin.groups()))
            partitions = resolve(self.source, admin)
        if unknown:
            servers = self.source.bootstrap_servers
            raise PipelineError(f"no group {', '.join(unknown)} at {servers}: nothing was copied")
        self._ensure({topic for topic, _ in partitions})

    def _ensure(self, topics: set[str]) -> None:
        self._refuse_itself(topics)
        assert self._copies is not None, "a run begins with it"
        with (
            KafkaAdmin(self.spark, self.source.client_options) as here,
            KafkaAdmin(self.spark, self.target.client_options) as there,
        ):
            self._copies.ensure(topics, here, there)
            self._known |= set(here.all_partitions(topics))
        self._ensured_at = time.monotonic()

    def _write(self, df: DataFrame, batch: Batch) -> Account:
        if not batch.ranges:
            return Account()
        places = {(each.topic, each.partition) for each in batch.ranges}
        if not places <= self._known or time.monotonic() - self._ensured_at > SYNC_S:
            self._ensure({topic for topic, _ in places | self._known})
        topics = {self._renamed(each.topic) for each in batch.ranges}
        servers, options = self.target.bootstrap_servers, self.target.kafka_options
        sink = TopicSink(self.spark, servers, topics, self._notes(), options)
        leave_out: LeaveOut = leave_out_landed
        if sink.has_begun(batch.id):
            leave_out = self._leave_out(topics)
        else:
            self._refuse_strangers(sink.ends())
        self._landed = sink.write(self.step(df), batch.id, leave_out)
        return Account(self._landed.written, self._landed.there_already, read=self._landed.counted)

    def _refuse_strangers(self, ends: Offsets) -> None:
        """Copies end where the last batch left them, or somebody else writes there."""
        left = {
            (self._renamed(topic), partition): syncs[-1].to_end
            for (topic, partition), syncs in self.syncs().items()
        }
        wrong = strangers(left, ends)
        if wrong and not self.adopt:
            raise Different(
                f"somebody else writes to the copies, nothing of this batch was written: "
                f"{'; '.join(wrong)}"
            )

    def _leave_out(self, copies: set[str]) -> LeaveOut:
        """How to tell what landed before a crash: records are missed only where keys are merged."""
        with KafkaAdmin(self.spark, self.target.client_options) as admin:
            settings = admin.settings(copies).values()
        is_compacted = any("compact" in each.get("cleanup.policy", "") for each in settings)
        return leave_out_landed_of_compacted if is_compacted else leave_out_landed

    def _note_syncs(self, df: DataFrame, batch: Batch) -> None:
        landed = self._landed
        if landed is None:
            return
        found = {}
        for each in batch.ranges:
            copy = (self._renamed(each.topic), each.partition)
            ends = landed.started[copy], landed.ended[copy]
            found[each.topic, each.partition] = Sync(each.start, each.end, *ends)
        gapped = {key: sync for key, sync in found.items() if not sync.is_dense}
        for key, noted in self._runs(gapped).items():
            # Fewer: compacted since it was copied. Then a group goes on at the batch's beginning.
            if sum(length for _, length in noted) == gapped[key].to_end - gapped[key].to_start:
                found[key] = replace(gapped[key], runs=noted)
        assert self._syncs is not None, "a run begins with them"
        self._syncs.note(batch.id, found)
        if time.monotonic() - self._moved_at > SYNC_S:
            self._move_groups()

    def _runs(self, gapped: Mapping[TopicPartition, Sync]) -> dict[TopicPartition, tuple[Run, ...]]:
        """What these batches had, as runs without a gap. Read for itself: the source counts what
        is read of a batch."""
        if not gapped:
            return {}
        starts = {key: sync.start for key, sync in gapped.items()}
        ends = {key: sync.end for key, sync in gapped.items()}
        try:
            rows = runs(self.source.between(starts, ends).batch(self.spark)).collect()
        except PySparkException:
            # Expired since: as if it were compacted.
            return {}
        found: dict[TopicPartition, list[Run]] = {}
        for row in rows:
            key = (row["topic"], row["partition"])
            found.setdefault(key, []).append((row["first"], row["length"]))
        return {key: tuple(each) for key, each in found.items()}

    def _move_groups(self) -> None:
        """Commits for each group, on the target, where its offsets on the source came to lie."""
        if not self.groups:
            return
        with (
            KafkaAdmin(self.spark, self.source.client_options) as here,
            KafkaAdmin(self.spark, self.target.client_options) as there,
        ):
            for group in self.groups:
                found = self._moves(here.committed(group), there.committed(group))
                earlier = self.moved.get(group, Moves({}, {}))
                self.moved[group] = _commit(there, group, found).after(earlier)
        self._moved_at = time.monotonic()

    def _moves(self, here: Offsets, there: Offsets) -> Moves:
        committed, places, starts = {}, {}, {}
        known = self.syncs()
        for (topic, partition), offset in here.items():
            if (topic, partition) not in self._known:
                # The group reads other topics as well.
                continue
            syncs = known.get((topic, partition), [])
            copy = (self._renamed(topic), partition)
            place = translate(offset, syncs)
            committed[copy] = offset
            if syncs:
                starts[copy] = syncs[0].start
            if place is not None:
                places[copy] = place
        return moves(committed, there, places, starts)

    def syncs(self) -> dict[TopicPartition, list[Sync]]:
        """All that is known, by source partition, in order."""
        return self._syncs.found if self._syncs is not None else {}

    def _notes(self) -> Folder:
        return Folder(self.spark, f"{self.checkpoint}/{NOTES}")

    def _renamed(self, topic: str) -> str:
        return self.rename.replace("{topic}", topic)


def runs(rows: DataFrame) -> DataFrame:
    """The step: the offsets of each partition as runs without a gap, in order."""
    window = Window.partitionBy("topic", "partition").orderBy("offset")
    island = (sf.col("offset") - sf.row_number().over(window)).alias("island")
    islands = rows.select("topic", "partition", "offset", island)
    grouped = islands.groupBy("topic", "partition", "island").agg(
        sf.min("offset").alias("first"), sf.count("*").alias("length")
    )
    return grouped.orderBy("topic", "partition", "first")


def _commit(there: KafkaAdmin, group: str, found: Moves) -> Moves:
    """Kafka commits for nobody whose group has members: they are reading there already."""
    try:
        if found.ahead:
            there.commit(group, found.ahead)
    except ClusterError as refused:
        if "UnknownMemberId" not in str(refused):
            raise
        return Moves({}, found.left | dict.fromkeys(found.ahead, MEMBERS))
    return found
