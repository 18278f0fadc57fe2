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
# To look at a topic takes as long as so much work; a group of them that belong together too.
LOOKS = 4

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
    rest = Rest()
    for one in sorted(subtopologies, key=lambda each: each.subtopology_id):
        configured[one.subtopology_id] = yield from _configured(one, count_of, decided, rest)
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
    missing, rest = set[str](), Rest()
    for one in subtopologies:
        for name in one.source_topics:
            if count_of(name) is None:
                missing.add(name)
            if rest.after(LOOKS):
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
            most = (yield from _most_read(one, counts, count_of, rest)) if open_sinks else None
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


def _most_read(
    one: Subtopology, counts: Counts, count_of: CountOf, rest: Rest
) -> Steps[int | None]:
    found: list[int | None] = []
    for topic in one.repartition_source_topics:
        found.append(counts.get(topic.name))
        if rest.after(1):
            yield
    for name in one.source_topics:
        found.append(count_of(name))
        if rest.after(LOOKS):
            yield
    return max((each for each in found if each is not None), default=None)


def _copartition(
    subtopologies: list[Subtopology], count_of: CountOf, decided: Counts
) -> Steps[None]:
    repartitioned = [topic for one in subtopologies for topic in one.repartition_source_topics]
    fixed = {topic.name for topic in repartitioned if topic.partitions != 0}
    flexible = {topic.name for topic in repartitioned if topic.partitions == 0}
    rest = Rest()
    of_fixed = yield from _all_known(sorted(fixed), count_of, rest)
    for one in subtopologies:
        inner = [topic.name for topic in one.repartition_source_topics]
        for group in one.copartition_groups:
            names = {
                *_picked(one.source_topics, group.source_topics),
                *_picked(inner, group.repartition_source_topics),
            }
            counts = yield from _all_known(sorted(names), count_of, rest)
            decided.update(_enforced(counts, of_fixed, flexible))
            if rest.after(4 * LOOKS + len(names) + len(of_fixed)):
                yield


def _picked(names: list[str], indexes: list[int]) -> list[str]:
    if any(not 0 <= index < len(names) for index in indexes):
        raise beyond_meaning("A copartition group names a topic that its subtopology has not.")
    return [names[index] for index in indexes]


def _enforced(counts: Counts, fixed: Counts, flexible: set[str]) -> Counts:
    """How many partitions each repartition topic of a copartition group gets."""
    inner = {name: count for name, count in counts.items() if name in fixed or name in flexible}
    outer = {name: count for name, count in counts.items() if name not in inner}
    if not counts:
        return {}
    if outer:
        count = _same(outer, outer)
    elif fixed:
        count = _same(fixed, inner)
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


def _all_known(names: Iterable[str], count_of: CountOf, rest: Rest) -> Steps[Counts]:
    counts: Counts = {}
    for name in names:
        counts[name] = _known(name, count_of)
        if rest.after(LOOKS):
            yield
    return counts


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
    rest = Rest()
    for one in subtopologies:
        tasks = yield from _tasks_of(one, count_of, rest)
        for topic in one.state_changelog_topics:
            decided[topic.name] = tasks
            if rest.after(1):
                yield


def _tasks_of(one: Subtopology, count_of: CountOf, rest: Rest) -> Steps[int]:
    counts = yield from _all_known(sources_of(one), count_of, rest)
    if not counts:
        raise KafkaError(
            Error.STREAMS_INVALID_TOPOLOGY,
            f"No source topics found for subtopology {one.subtopology_id}",
        )
    return max(counts.values())


# -- internal topics -------------------------------------------------------------------------------


def _configured(
    one: Subtopology, count_of: CountOf, decided: Counts, rest: Rest
) -> Steps[ConfiguredSubtopology]:
    return ConfiguredSubtopology(
        (yield from _tasks_of(one, count_of, rest)),
        tuple(one.source_topics),
        (yield from _all_internal(one.repartition_source_topics, decided, rest)),
        tuple(one.repartition_sink_topics),
        (yield from _all_internal(one.state_changelog_topics, decided, rest)),
    )


def _all_internal(
    topics: Iterable[TopicInfo], decided: Counts, rest: Rest
) -> Steps[tuple[InternalTopic, ...]]:
    made: list[InternalTopic] = []
    for topic in topics:
        made.append(_internal(topic, decided))
        if rest.after(2 * LOOKS + len(topic.topic_configs)):
            yield
    return tuple(made)


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
    missing, rest = dict[str, InternalTopic](), Rest()
    for one in configured.values():
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
            if rest.after(LOOKS):
                yield
    return missing
