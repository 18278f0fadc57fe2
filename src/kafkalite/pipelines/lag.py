"""`lag`: Spark's progress as the offsets of a consumer group, so that every lag tool sees Spark.

Owns the commits; the group has no members, and Spark never reads these offsets back. They are
committed after Spark's own commit, so a tool may see less than is done, never more.
"""

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from kafkalite.pipelines.common.admin import KafkaAdmin
from kafkalite.pipelines.common.checkpoint import NOTES, Checkpoint
from kafkalite.pipelines.common.files import Folder
from kafkalite.pipelines.common.losses import recreated
from kafkalite.pipelines.common.offsets import Offsets, TopicPartition, parse
from kafkalite.pipelines.common.outcomes import DONE, Different, PipelineError
from kafkalite.pipelines.common.source import KafkaSource

RECREATED = "deleted and recreated"


class CommitOffsetsListener(StreamingQueryListener):
    """`spark.streams.addListener(CommitOffsetsListener(spark, source, "my-group"))`.

    With `query_name` it commits for that query alone; otherwise for every query of the session.
    """

    def __init__(
        self, spark: SparkSession, source: KafkaSource, group: str, query_name: str | None = None
    ) -> None:
        self._admin = KafkaAdmin(spark, source.client_options)
        self._group = group
        self._query_name = query_name

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        progress = json.loads(event.progress.json)
        if self._query_name in (None, progress["name"]):
            offsets = ends_of(progress)
            if offsets:
                self._admin.commit(self._group, offsets)

    def close(self) -> None:
        self._admin.close()


def ends_of(progress: dict[str, Any]) -> Offsets:
    """The step: where the Kafka sources of a progress report ended."""
    found: Offsets = {}
    for source in progress["sources"]:
        end = source.get("endOffset")
        if end and source["description"].startswith("KafkaV2["):
            found |= parse(end if isinstance(end, str) else json.dumps(end))
    return found


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """One partition: what the query has done, where the log ends, and the records between."""

    topic: str
    partition: int
    done: int
    end: int

    @property
    def lag(self) -> int:
        return max(0, self.end - self.done)


@dataclass(slots=True)
class Lag:
    """Commits what a checkpoint has done as `group`; for queries that run without the listener."""

    spark: SparkSession
    source: KafkaSource
    checkpoint: str
    group: str = ""

    def measure(self) -> list[PartitionLag]:
        done = Checkpoint(self.spark, self.checkpoint).done()
        if not done:
            raise PipelineError(f"{self.checkpoint} has no finished batch of a Kafka source")
        notes = Folder(self.spark, f"{self.checkpoint}/{NOTES}")
        with KafkaAdmin(self.spark, self.source.client_options) as admin:
            self._refuse_others(notes, admin, done)
            ends = admin.ends(done)
        # A query of somebody else notes no topics: then one that is shorter tells.
        self._refuse({each[0] for each in done if done[each] > ends[each]}, RECREATED)
        return lags(done, ends)

    def _refuse_others(self, notes: Folder, admin: KafkaAdmin, done: Offsets) -> None:
        """Before anything is asked of partitions that nobody has: it would wait in vain. They never
        go but with their topic."""
        topics = {topic for topic, _ in done}
        there = admin.topics(topics)
        self._refuse(topics - there.keys(), "deleted")
        fewer = {topic for topic, partition in done if partition >= there[topic].partitions}
        self._refuse({*recreated(notes, admin, topics), *fewer}, RECREATED)

    def _refuse(self, topics: Collection[str], what: str) -> None:
        if topics:
            raise Different(
                f"{', '.join(sorted(topics))} was {what} since {self.checkpoint} read it: "
                "its offsets say nothing of what is there"
            )

    def commit(self) -> list[PartitionLag]:
        """Commits once and gives the lag."""
        measured = self.measure()
        offsets = {(each.topic, each.partition): each.done for each in measured}
        with KafkaAdmin(self.spark, self.source.client_options) as admin:
            admin.commit(self.group, offsets)
            committed = admin.committed(self.group)
        wrong = sorted(each for each in offsets if committed.get(each) != offsets[each])
        if wrong:
            topic, partition = wrong[0]
            raise Different(
                f"group {self.group} was committed up to {offsets[wrong[0]]} of "
                f"{topic}-{partition} and is at {committed.get(wrong[0])}: somebody else commits it"
            )
        return measured


def as_ledger(measured: list[PartitionLag], group: str) -> dict[str, Any]:
    """The account of a measurement, for one line."""
    partitions = [{**asdict(each), "lag": each.lag} for each in measured]
    total = sum(each.lag for each in measured)
    said = {"command": "lag", "lag": total, "partitions": partitions, "committed_to": group}
    return {**said, "proven": True, "exit_code": DONE}


def lags(done: Offsets, ends: dict[TopicPartition, int]) -> list[PartitionLag]:
    return [
        PartitionLag(topic, partition, offset, ends[topic, partition])
        for (topic, partition), offset in sorted(done.items())
    ]
