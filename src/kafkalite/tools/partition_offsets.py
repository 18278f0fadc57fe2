"""The offsets at which partitions begin, end, or were at a moment, as their leaders tell them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kafkalite.protocol.errors import Error
from kafkalite.tools.asking import Asking
from kafkalite.tools.failures import Failure, execution, refused, runtime, wrapped
from kafkalite.tools.get_offsets import offsets_request
from kafkalite.tools.java_maps import TopicPartition, in_map_order
from kafkalite.tools.topic_reports import described

LATEST, EARLIEST = -1, -2
_ERRORS = "org.apache.kafka.common.errors."


def leaders_of(asking: Asking, topics: Iterable[str]) -> dict[TopicPartition, int]:
    """All partitions of some topics, and who leads them: -1 for nobody."""
    return {
        (topic.name, each.partition): each.leader
        for topic in described(asking, in_map_order(topics))
        for each in topic.partitions
    }


def check_known(asking: Asking, partitions: Collection[TopicPartition]) -> None:
    """Refuses partitions that there are not, and such without a leader."""
    with wrapped(execution, runtime):
        leaders = leaders_of(asking, [topic for topic, _ in partitions])
    absent = [each for each in partitions if each not in leaders]
    if absent:
        message = f'The partitions "{_joined(absent)}" do not exist'
        raise Failure(f"{_ERRORS}UnknownTopicOrPartitionException", message)
    idle = [each for each in leaders if leaders[each] < 0 and each in partitions]
    if idle:
        message = f'The partitions "{_joined(idle)}" have no leader'
        raise Failure(f"{_ERRORS}LeaderNotAvailableException", message)


def offsets_at(
    asking: Asking, leaders: Mapping[TopicPartition, int], moment: int
) -> dict[TopicPartition, int]:
    """Of all these partitions; the first that has none is the failure of all."""
    found = {}
    with wrapped(execution, runtime):
        for leader in sorted(set(leaders.values())):
            wanted = sorted(each for each in leaders if leaders[each] == leader)
            answer = asking.broker("listOffsets", leader, offsets_request(wanted, moment))
            for topic in answer.topics:
                for each in topic.partitions:
                    if each.error_code != Error.NONE:
                        raise refused(each.error_code)
                    found[topic.name, each.partition_index] = each.offset
    return {each: found[each] for each in leaders}


def invalid_topic(partition: TopicPartition) -> Failure:
    """Nobody need look for it."""
    return refused(
        Error.INVALID_TOPIC_EXCEPTION,
        f"Failed to fetch metadata for partition {shown(partition)} due to invalid topic "
        f"`{partition[0]}`",
    )


def _joined(partitions: Iterable[TopicPartition]) -> str:
    return ",".join(shown(each) for each in partitions)


def shown(partition: TopicPartition) -> str:
    return f"{partition[0]}-{partition[1]}"
