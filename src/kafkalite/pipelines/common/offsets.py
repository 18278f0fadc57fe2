"""Offsets as Spark writes them: `{topic: {partition: offset}}`, and ranges between two of them.

Owns the arithmetic of offsets. Pure: no Spark, no network.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

# Spark's words for the ends of a partition, in its offset JSON.
LATEST, EARLIEST = -1, -2

TopicPartition = tuple[str, int]
Offsets = dict[TopicPartition, int]


@dataclass(frozen=True, slots=True, order=True)
class Range:
    """Offsets from `start` up to and without `end` of one partition."""

    topic: str
    partition: int
    start: int
    end: int

    def __len__(self) -> int:
        return max(0, self.end - self.start)

    def __str__(self) -> str:
        last = self.end - 1
        span = str(self.start) if last == self.start else f"{self.start}..{last}"
        return f"{self.topic}-{self.partition} offsets {span}"


def parse(text: str) -> Offsets:
    """`{"t": {"0": 7}}` as Spark writes it."""
    return {
        (topic, int(partition)): offset
        for topic, partitions in json.loads(text).items()
        for partition, offset in partitions.items()
    }


def dump(offsets: Mapping[TopicPartition, int]) -> str:
    """The JSON that Spark's `startingOffsets` and `endingOffsets` take."""
    nested: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        nested.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(nested)


def assignment(partitions: Iterable[TopicPartition]) -> str:
    """The JSON that Spark's `assign` takes."""
    nested: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        nested.setdefault(topic, []).append(partition)
    return json.dumps(nested)


def between(
    starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> list[Range]:
    """What lies between; a partition that `starts` does not know began at 0, as Spark has it."""
    return [
        Range(topic, partition, starts.get((topic, partition), 0), end)
        for (topic, partition), end in sorted(ends.items())
        if end > starts.get((topic, partition), 0)
    ]


def count(ranges: Iterable[Range]) -> int:
    """An upper bound of the records: compaction and transaction markers take offsets too."""
    return sum(len(each) for each in ranges)
