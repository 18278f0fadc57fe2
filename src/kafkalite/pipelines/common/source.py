"""The topics that a pipeline reads, and how: every option of Spark's Kafka source passes through.

Owns the options of `format("kafka")`; knows no sink. Invariant: the bronze columns are always read,
so no pipeline can lose where a record came from.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from pyspark.sql import DataFrame, SparkSession

from kafkalite.pipelines.common import offsets
from kafkalite.pipelines.common.admin import KafkaAdmin
from kafkalite.pipelines.common.outcomes import PipelineError

READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"
ISOLATION = "kafka.isolation.level"
BRONZE = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
_STREAM_ONLY = {
    "maxoffsetspertrigger",
    "minoffsetspertrigger",
    "maxtriggerdelay",
    "failondataloss",
}


@dataclass(frozen=True, slots=True)
class KafkaSource:
    """Topics by `topics` (names), `pattern` or `assign`; `options` are Spark's own, unchanged.

    What was aborted, or is not committed yet, is not read, unless `options` say otherwise.
    """

    bootstrap_servers: str
    topics: tuple[str, ...] = ()
    pattern: str = ""
    assign: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        chosen = [bool(self.topics), bool(self.pattern), bool(self.assign)]
        if sum(chosen) != 1:
            raise ValueError("name the topics in one way: topics, pattern or assign")

    def __str__(self) -> str:
        return self.pattern or self.assign or ", ".join(self.topics)

    def stream(self, spark: SparkSession) -> DataFrame:
        """Starts at the earliest offset unless `startingOffsets` says otherwise: a table of a
        topic is meant to hold the topic."""
        defaults = {} if self._has("starting") else {"startingOffsets": "earliest"}
        reader = spark.readStream.format("kafka").options(**defaults, **self._all())
        return reader.load().select(*BRONZE)

    def batch(self, spark: SparkSession) -> DataFrame:
        options = {k: v for k, v in self._all().items() if k.lower() not in _STREAM_ONLY}
        return spark.read.format("kafka").options(**options).load().select(*BRONZE)

    def between(
        self,
        starts: Mapping[offsets.TopicPartition, int],
        ends: Mapping[offsets.TopicPartition, int],
    ) -> "KafkaSource":
        """The same cluster, but exactly these offsets, for a batch read."""
        starts = {each: starts.get(each, 0) for each in ends}
        kept = {k: v for k, v in self.options.items() if not _says_where(k)}
        kept |= {"startingOffsets": offsets.dump(starts), "endingOffsets": offsets.dump(ends)}
        return replace(self, topics=(), pattern="", assign=offsets.assignment(ends), options=kept)

    def with_options(self, **options: str) -> "KafkaSource":
        return replace(self, options={**self.options, **options})

    @property
    def isolation(self) -> str:
        return self.options.get(ISOLATION, READ_COMMITTED)

    @property
    def kafka_options(self) -> dict[str, str]:
        """The `kafka.` options: what reaches the cluster, for a source and for a sink."""
        return {name: value for name, value in self.options.items() if name.startswith("kafka.")}

    @property
    def client_options(self) -> dict[str, str]:
        """What any Kafka client needs to reach the same cluster, and how it reads there."""
        passed = {ISOLATION: self.isolation, **self.kafka_options}
        settings = {name.removeprefix("kafka."): value for name, value in passed.items()}
        return {**settings, "bootstrap.servers": self.bootstrap_servers}

    def _all(self) -> dict[str, str]:
        where = {
            "subscribe": ",".join(self.topics),
            "subscribePattern": self.pattern,
            "assign": self.assign,
        }
        chosen = {name: value for name, value in where.items() if value}
        return {
            "kafka.bootstrap.servers": self.bootstrap_servers,
            ISOLATION: READ_COMMITTED,
            "includeHeaders": "true",
            **chosen,
            **self.options,
        }

    def _has(self, prefix: str) -> bool:
        return any(name.lower().startswith(prefix) for name in self.options)


def _says_where(option: str) -> bool:
    return option.lower().startswith(("starting", "ending")) or option.lower() in _STREAM_ONLY


def resolve(source: KafkaSource, admin: KafkaAdmin) -> list[offsets.TopicPartition]:
    """The partitions that a source means, as the cluster has them now."""
    if source.assign:
        asked: dict[str, list[int]] = json.loads(source.assign)
        return [(topic, partition) for topic, parts in asked.items() for partition in parts]
    names: Iterable[str] = source.topics
    if source.pattern:
        names = admin.matching(source.pattern)
    return admin.all_partitions(names)


def refuse_missing(source: KafkaSource, admin: KafkaAdmin) -> None:
    """Names the topics that are asked for by name and are not there, and the nearest that are."""
    asked = list(json.loads(source.assign)) if source.assign else list(source.topics)
    there = admin.topics(asked)
    missing = sorted(set(asked) - set(there))
    if missing:
        near = get_close_matches(missing[0], admin.topic_names(), 1, 0.7)
        raise PipelineError(
            f"no topic {', '.join(missing)} at {source.bootstrap_servers}"
            f"{f': do you mean {near[0]}?' if near else ''}"
        )


def starting_offsets(source: KafkaSource, admin: KafkaAdmin) -> offsets.Offsets:
    """Where a first run begins to read; by-timestamp options are taken as the log's start."""
    partitions = resolve(source, admin)
    said = next(
        (v for k, v in source.options.items() if k.lower() == "startingoffsets"), "earliest"
    )
    said = said.strip() if said.lstrip().startswith("{") else said.strip().lower()
    starts = admin.starts(partitions)
    if said == "earliest":
        return starts
    ends = admin.ends(partitions)
    if said == "latest":
        return ends
    if not said.startswith("{"):
        raise ValueError(f"startingOffsets={said}: earliest, latest, or JSON by topic")
    words = {offsets.EARLIEST: starts, offsets.LATEST: ends}
    return {
        each: words[offset][each] if offset in words else offset
        for each, offset in offsets.parse(said).items()
        if each in starts
    }
