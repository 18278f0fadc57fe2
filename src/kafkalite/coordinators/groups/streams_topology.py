"""What a streams application is made of: its subtopologies and their topics (KIP-1071).

Owns the topology as members give it and as the log keeps it, and what it comes to once the topics
are known: how many tasks each subtopology has, and its internal topics. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from enum import IntEnum
from functools import cached_property

from kafkalite.env.slicing import ELEMENTS_PER_STEP, Steps, in_steps
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import StreamsGroupHeartbeatRequest, StreamsGroupTopologyValue

Subtopology = StreamsGroupTopologyValue.Subtopology
TopicInfo = StreamsGroupTopologyValue.TopicInfo


class Status(IntEnum):
    """What a member is told beside its assignment."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


class WrongTopics(Exception):
    """The topics that are there do not do for a topology."""

    def __init__(self, status: Status, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


def beyond_meaning(why: str) -> KafkaError:
    """Of a topology that no application makes: Apache Kafka fails on it, and says nothing."""
    return KafkaError(Error.UNKNOWN_SERVER_ERROR, why)


@dataclass(frozen=True)
class Topology:
    """Subtopologies by id, as the log keeps them; never changed."""

    epoch: int
    subtopologies: dict[str, Subtopology]

    @classmethod
    def of(cls, value: StreamsGroupTopologyValue) -> Topology:
        return cls(value.epoch, {one.subtopology_id: one for one in value.subtopologies})

    @cached_property
    def sources(self) -> dict[str, str]:
        """The subtopology that reads each topic."""
        return {
            topic: one.subtopology_id
            for one in self.subtopologies.values()
            for topic in sources_of(one)
        }

    @cached_property
    def required(self) -> frozenset[str]:
        """Every topic that is read, and those that keep state."""
        required = set(self.sources)
        for one in self.subtopologies.values():
            required.update(topic.name for topic in one.state_changelog_topics)
        return frozenset(required)


def is_same(one: Topology, other: Topology) -> Steps[bool]:
    if one.epoch != other.epoch or one.subtopologies.keys() != other.subtopologies.keys():
        return False
    for number, (name, subtopology) in enumerate(one.subtopologies.items(), 1):
        if not (yield from _is_same(subtopology, other.subtopologies[name])):
            return False
        if number % ELEMENTS_PER_STEP == 0:
            yield
    return True


def _is_same(one: Subtopology, other: Subtopology) -> Steps[bool]:
    for field_ in fields(Subtopology):
        has, known = getattr(one, field_.name), getattr(other, field_.name)
        if isinstance(has, str) or len(has) < ELEMENTS_PER_STEP or len(has) != len(known):
            if has != known:
                return False
            continue
        for start in range(0, len(has), ELEMENTS_PER_STEP):
            end = start + ELEMENTS_PER_STEP
            if has[start:end] != known[start:end]:
                return False
            yield
    return True


def sources_of(subtopology: Subtopology) -> Iterator[str]:
    """What a subtopology reads."""
    yield from subtopology.source_topics
    for topic in subtopology.repartition_source_topics:
        yield topic.name


def as_record(asked: StreamsGroupHeartbeatRequest.Topology) -> Steps[StreamsGroupTopologyValue]:
    """A member's topology, as the log keeps it."""
    if asked.epoch < 0:
        raise beyond_meaning("Topology epoch must be non-negative.")
    if len({one.subtopology_id for one in asked.subtopologies}) < len(asked.subtopologies):
        raise beyond_meaning("Subtopology ids must differ.")
    subtopologies: list[Subtopology] = []
    for number, one in enumerate(asked.subtopologies, 1):
        subtopologies.append((yield from _subtopology(one)))
        if number % ELEMENTS_PER_STEP == 0:
            yield
    return StreamsGroupTopologyValue(epoch=asked.epoch, subtopologies=subtopologies)


def _subtopology(asked: StreamsGroupHeartbeatRequest.Subtopology) -> Steps[Subtopology]:
    return Subtopology(
        subtopology_id=asked.subtopology_id,
        source_topics=list(asked.source_topics),
        source_topic_regex=list(asked.source_topic_regex),
        state_changelog_topics=(yield from _topics(asked.state_changelog_topics)),
        repartition_sink_topics=list(asked.repartition_sink_topics),
        repartition_source_topics=(yield from _topics(asked.repartition_source_topics)),
        copartition_groups=(yield from in_steps(map(_together, asked.copartition_groups))),
    )


def _together(
    asked: StreamsGroupHeartbeatRequest.CopartitionGroup,
) -> StreamsGroupTopologyValue.CopartitionGroup:
    return StreamsGroupTopologyValue.CopartitionGroup(
        source_topics=list(asked.source_topics),
        source_topic_regex=list(asked.source_topic_regex),
        repartition_source_topics=list(asked.repartition_source_topics),
    )


def _topics(asked: list[StreamsGroupHeartbeatRequest.TopicInfo]) -> Steps[list[TopicInfo]]:
    topics: list[TopicInfo] = []
    for number, one in enumerate(asked, 1):
        configs = yield from in_steps(map(_config, one.topic_configs))
        topics.append(
            TopicInfo(
                name=one.name,
                partitions=one.partitions,
                replication_factor=one.replication_factor,
                topic_configs=configs,
            )
        )
        if number % ELEMENTS_PER_STEP == 0:
            yield
    return topics


def _config(asked: StreamsGroupHeartbeatRequest.KeyValue) -> StreamsGroupTopologyValue.TopicConfig:
    return StreamsGroupTopologyValue.TopicConfig(key=asked.key, value=asked.value)


# -- once the topics are known ---------------------------------------------------------------------


@dataclass(slots=True, frozen=True)
class InternalTopic:
    """A topic that the broker makes for the application."""

    name: str
    partitions: int
    replication_factor: int  # 0: the cluster's default
    configs: dict[str, str]


@dataclass(slots=True, frozen=True)
class ConfiguredSubtopology:
    tasks: int
    sources: tuple[str, ...]
    repartition_sources: tuple[InternalTopic, ...]
    repartition_sinks: tuple[str, ...]
    changelogs: tuple[InternalTopic, ...]

    @property
    def is_stateful(self) -> bool:
        return bool(self.changelogs)


@dataclass(slots=True, frozen=True)
class Configured:
    """What a topology comes to; not ready while something is wrong with its topics."""

    subtopologies: dict[str, ConfiguredSubtopology] = field(default_factory=dict)  # by sorted id
    missing: dict[str, InternalTopic] = field(default_factory=dict)
    wrong: WrongTopics | None = None

    @property
    def is_ready(self) -> bool:
        return self.wrong is None
