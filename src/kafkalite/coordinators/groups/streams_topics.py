"""From a topology to its tasks and internal topics, by the topics that are there (KIP-1071).

Owns Apache Kafka's rules: how many partitions a repartition topic gets, which topics must have as
many as each other, and which internal topics are missing. Changes nothing; raises KafkaError for a
topology that no topics would do for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kafkalite.coordinators.groups.assignors import Rest
from kafkalite.coordinators.groups.streams_topology import (
    Configured,
    ConfiguredSubtopology,
    InternalTopic,
    Status,
    Subtopology,
    TopicInfo,
    Topology,
    WrongTopics,
    beyond_meaning,
    sources_of,
)
from kafkalite.coordinators.groups.topics import Topics
from kafkalite.env.slicing import Steps
from kafkalite.protocol.errors import Error, KafkaError

SHOWN_TOPICS = 3
SUBTOPOLOGIES_PER_STEP = 8

Counts = dict[str, int]
CountOf = Callable[[str], int | None]


def configure(topology: Topology, topics: Topics) -> Steps[Configured]:
    """What is wrong with the topics stands in the outcome."""
    try:
        return (yield from _configure(topology, topics))
    except WrongTopics as wrong:
        return Configured(wrong=wrong.with_traceback(None))


def _configure(topology: Topology, topics: Topics) -> Steps[Configured]:
    subtopologies = list(topology.subtopologies.values())
    decided: Counts = {}

    def count_of(name: str) -> int | None:
        view = topics.by_name(name)
        return decided.get(name) if view is None else view.partition_count

    yield from _check_sources(subtopologies, count_of)
    decided.update((yield from _repartition_counts(subtopologies, count_of)))
    yield from _copartition(subtopologies, count_of, decided)
    yield from _changelog_counts(subtopologies, count_of, decided)
    configured: dict[str, ConfiguredSubtopology] = {}
    for number, one in enumerate(sorted(subtopologies, key=lambda each: each.subtopology_id), 1):
        configured[one.subtopology_id] = _configured(one, count_of, decided)
        if number % SUBTOPOLOGIES_PER_STEP == 0:
            yield
    missing = yield from _missing(topology, configured, topics)
    wrong = None
    if missing:
        detail = f"Internal topics are missing: {_summary(missing)}"
        wrong = WrongTopics(Status.MISSING_INTERNAL_TOPICS, detail)
    return Configured(configured, missing, wrong)


def _summary(names: Iterable[str]) -> str:
    """The first of them, and how many more there are."""
    listed = list(names)
    more = len(listed) - SHOWN_TOPICS
    shown = ", ".join(listed[:SHOWN_TOPICS])
    return f"{shown} and {more} additional topics" if more > 0 else shown


def _check_sources(subtopologies: list[Subtopology], count_of: CountOf) -> Steps[None]:
    missing: set[str] = set()
    for number, one in enumerate(subtopologies, 1):
        missing.update(name for name in one.source_topics if count_of(name) is None)
        if number % SUBTOPOLOGIES_PER_STEP == 0:
            yield
    if missing:
        detail = f"Source topics {_summary(sorted(missing))} are missing."
        raise WrongTopics(Status.MISSING_SOURCE_TOPICS, detail)


# -- how many partitions ---------------------------------------------------------------------------


def _repartition_counts(subtopologies: list[Subtopology], count_of: CountOf) -> Steps[Counts]:
    """What is given, and for what others write as many as the most that these read."""
    counts = {
        topic.name: topic.partitions
        for one in subtopologies
        for topic in one.repartition_source_topics
        if topic.partitions != 0
    }
    waiting = [one for one in subtopologies if one.repartition_sink_topics]
    rest = Rest()
    while waiting:
        still: list[Subtopology] = []
        has_progressed = False
        for one in waiting:
            open_sinks = [name for name in one.repartition_sink_topics if name not in counts]
            most = _most_read(one, counts, count_of) if open_sinks else None
            if most is not None:
                counts.update(dict.fromkeys(open_sinks, most))
                has_progressed = True
            elif open_sinks:
                still.append(one)
            if rest.after(1 + len(open_sinks)):
                yield
        if still and not has_progressed:
            raise KafkaError(
                Error.STREAMS_INVALID_TOPOLOGY,
                "Failed to compute number of partitions for all repartition topics."
                " There may be loops in the topology that cannot be resolved.",
            )
        waiting = still
    if any(topic.name not in counts for one in subtopologies
           for topic in one.repartition_source_topics):  # fmt: skip
        raise KafkaError(
            Error.STREAMS_INVALID_TOPOLOGY,
            "Failed to compute number of partitions for all repartition topics, because"
            " a repartition source topic is never used as a sink topic.",
        )
    return counts


def _most_read(one: Subtopology, counts: Counts, count_of: CountOf) -> int | None:
    inner = (counts.get(topic.name) for topic in one.repartition_source_topics)
    outer = (count_of(name) for name in one.source_topics)
    return max((each for each in (*inner, *outer) if each is not None), default=None)


def _copartition(
    subtopologies: list[Subtopology], count_of: CountOf, decided: Counts
) -> Steps[None]:
    repartitioned = [topic for one in subtopologies for topic in one.repartition_source_topics]
    fixed = {topic.name for topic in repartitioned if topic.partitions != 0}
    flexible = {topic.name for topic in repartitioned if topic.partitions == 0}
    rest = Rest()
    for one in subtopologies:
        for group in one.copartition_groups:
            names = {
                *_picked(one.source_topics, group.source_topics),
                *_picked(
                    [topic.name for topic in one.repartition_source_topics],
                    group.repartition_source_topics,
                ),
            }
            decided.update(_enforced(names, fixed, flexible, count_of))
            if rest.after(1 + len(names)):
                yield


def _picked(names: list[str], indexes: list[int]) -> list[str]:
    if any(not 0 <= index < len(names) for index in indexes):
        raise beyond_meaning("A copartition group names a topic that its subtopology has not.")
    return [names[index] for index in indexes]


def _enforced(
    names: set[str], fixed: set[str], flexible: set[str], count_of: CountOf
) -> Counts:
    """How many partitions each repartition topic of a copartition group gets."""
    counts = {name: _known(name, count_of) for name in sorted(names)}
    inner = {name: count for name, count in counts.items() if name in fixed or name in flexible}
    outer = {name: count for name, count in counts.items() if name not in inner}
    if not counts:
        return {}
    if outer:
        count = _same(outer, outer)
    elif fixed:
        count = _same({name: _known(name, count_of) for name in sorted(fixed)}, inner)
    else:
        count = _most(inner)
    for name, has in inner.items():
        if name in fixed and has != count:
            raise WrongTopics(
                Status.INCORRECTLY_PARTITIONED_TOPICS,
                f"Number of partitions [{has}] of repartition topic [{name}] doesn't match number"
                f" of partitions [{count}] of the source topic.",
            )
    return dict.fromkeys(inner, count)


def _known(name: str, count_of: CountOf) -> int:
    count = count_of(name)
    if count is None:
        raise beyond_meaning(f"Number of partitions is not set for topic: {name}")
    return count


def _same(counts: Counts, told: Counts) -> int:
    """The one number that all have; `told` is what else is said of."""
    first = next(iter(counts.values()))
    if any(count != first for count in counts.values()):
        listed = ", ".join(f"{name}={count}" for name, count in sorted(told.items()))
        raise WrongTopics(
            Status.INCORRECTLY_PARTITIONED_TOPICS,
            f"Following topics do not have the same number of partitions: [{{{listed}}}]",
        )
    return first


def _most(counts: Counts) -> int:
    most = max(counts.values())
    if most <= 0:
        raise KafkaError(
            Error.STREAMS_INVALID_TOPOLOGY,
            "All topics in the copartition group had undefined partition number:"
            f" [{', '.join(counts)}]",
        )
    return most


def _changelog_counts(
    subtopologies: list[Subtopology], count_of: CountOf, decided: Counts
) -> Steps[None]:
    """A changelog has a partition for each task."""
    for number, one in enumerate(subtopologies, 1):
        decided.update(
            dict.fromkeys(
                (topic.name for topic in one.state_changelog_topics), _tasks_of(one, count_of)
            )
        )
        if number % SUBTOPOLOGIES_PER_STEP == 0:
            yield


def _tasks_of(one: Subtopology, count_of: CountOf) -> int:
    counts = [_known(name, count_of) for name in sources_of(one)]
    if not counts:
        raise KafkaError(
            Error.STREAMS_INVALID_TOPOLOGY,
            f"No source topics found for subtopology {one.subtopology_id}",
        )
    return max(counts)


# -- internal topics -------------------------------------------------------------------------------


def _configured(one: Subtopology, count_of: CountOf, decided: Counts) -> ConfiguredSubtopology:
    return ConfiguredSubtopology(
        _tasks_of(one, count_of),
        tuple(one.source_topics),
        tuple(_internal(topic, decided) for topic in one.repartition_source_topics),
        tuple(one.repartition_sink_topics),
        tuple(_internal(topic, decided) for topic in one.state_changelog_topics),
    )


def _internal(topic: TopicInfo, decided: Counts) -> InternalTopic:
    partitions = topic.partitions or decided.get(topic.name, 0)
    if partitions < 1:
        raise beyond_meaning("Number of partitions must be at least 1.")
    configs = {one.key: one.value for one in topic.topic_configs}
    return InternalTopic(topic.name, partitions, topic.replication_factor, configs)


def _missing(
    topology: Topology, configured: dict[str, ConfiguredSubtopology], topics: Topics
) -> Steps[dict[str, InternalTopic]]:
    """Internal topics that are not there; those that are must be as they would be made."""
    missing: dict[str, InternalTopic] = {}
    for number, one in enumerate(configured.values(), 1):
        for topic in (*one.repartition_sources, *one.changelogs):
            view = topics.by_name(topic.name)
            if view is None:
                missing[topic.name] = topic
            elif view.partition_count != topic.partitions:
                raise WrongTopics(
                    Status.INCORRECTLY_PARTITIONED_TOPICS,
                    f"Existing topic {topic.name} has different number of partitions:"
                    f" expected {topic.partitions}, found {view.partition_count}",
                )
        if number % SUBTOPOLOGIES_PER_STEP == 0:
            yield
    return missing
