"""What is in topics and tables, read by confluent-kafka, pyarrow and json alone.

Owns the count after a bad day. Every record of a scene has a value of its own, so what is lost,
doubled or out of its place is told by values.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet
from confluent_kafka import Consumer, TopicPartition

WAIT_S = 60


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it lies in a topic."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes
    headers: dict[str, bytes] = field(default_factory=dict, compare=False)


@dataclass(slots=True)
class Verdict:
    """What is wrong after a bad day; nothing, if it held."""

    faults: list[str] = field(default_factory=list)

    def add(self, what: str, values: Iterable[bytes]) -> None:
        wrong = sorted(values)
        if wrong:
            self.faults.append(f"{len(wrong)} {what}, the first {wrong[0][:12]!r}")


def records(bootstrap: str, topic: str) -> list[Record]:
    """Committed records of all partitions, in the order of each; nothing without the topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "count",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "allow.auto.create.topics": False,
            "log_level": 0,
        }
    )
    try:
        there = consumer.list_topics(timeout=WAIT_S).topics
        numbers = sorted(there[topic].partitions) if topic in there else []
        consumer.assign([TopicPartition(topic, number, 0) for number in numbers])
        return _until_the_end(consumer, set(numbers))
    finally:
        consumer.close()


def _until_the_end(consumer: Consumer, open_ones: set[int]) -> list[Record]:
    found = []
    while open_ones:
        message = consumer.poll(WAIT_S)
        assert message is not None, "nothing for long"
        if message.error():
            open_ones.discard(message.partition())
            continue
        headers = dict(message.headers() or ())
        place = message.partition(), message.offset()
        found.append(Record(*place, message.key(), message.value(), headers))
    return sorted(found, key=lambda each: (each.partition, each.offset))


def committed(bootstrap: str, group: str, topic: str, partitions: int) -> dict[int, int]:
    """Offsets of a group; a partition without one is not there."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0})
    asked = [TopicPartition(topic, number) for number in range(partitions)]
    try:
        found = consumer.committed(asked, WAIT_S)
    finally:
        consumer.close()
    return {each.partition: each.offset for each in found if each.offset >= 0}


def ended(bootstrap: str, topic: str, partitions: int) -> int:
    """How far the partitions of a topic go, added up; 0 without the topic."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "count", "log_level": 0})
    try:
        if topic not in consumer.list_topics(timeout=WAIT_S).topics:
            return 0
        places = (TopicPartition(topic, number) for number in range(partitions))
        return sum(consumer.get_watermark_offsets(each, WAIT_S)[1] for each in places)
    finally:
        consumer.close()


def rows(path: Path, table_format: str) -> list[dict[str, Any]]:
    """The rows of a table: of the files that its log has, or of all that are whole."""
    files = _of_delta(path) if table_format == "delta" else _of_folder(path)
    return [row for file in files for row in pyarrow.parquet.ParquetFile(file).read().to_pylist()]


def _of_folder(path: Path) -> list[Path]:
    """What Spark leaves half done has a name that begins with `_` or a dot."""
    found = path.glob("batch=*/**/*.parquet")
    return [file for file in found if not any(n[0] in "_." for n in file.relative_to(path).parts)]


def _of_delta(path: Path) -> list[Path]:
    there: dict[str, None] = {}
    for commit in sorted((path / "_delta_log").glob("[0-9]*.json")):
        for line in commit.read_text(encoding="utf-8").splitlines():
            action = json.loads(line)
            if "add" in action:
                there[action["add"]["path"]] = None
            if "remove" in action:
                there.pop(action["remove"]["path"], None)
    return [path / unquote(name) for name in there]


def compare(
    made: Sequence[Record], must: Sequence[Record], found: Sequence[bytes], told: set[bytes]
) -> Verdict:
    """`made` may be there, each once; `must` is, but for what was told to be lost."""
    verdict = Verdict()
    counted = Counter(found)
    verdict.add("doubled", (value for value, count in counted.items() if count > 1))
    verdict.add("that nobody wrote", counted.keys() - {each.value for each in made})
    verdict.add("lost without a word", {each.value for each in must} - counted.keys() - told)
    return verdict


def told_lost(checkpoint: Path, made: Sequence[Record]) -> set[bytes]:
    """Values in the ranges that a run wrote down as lost."""
    path = checkpoint / "kafkalite" / "lost-ranges.json"
    ranges = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return {
        each.value
        for each in made
        for lost in ranges
        if each.partition == lost["partition"]
        and lost["start"] <= each.offset
        and (lost["end"] is None or each.offset < lost["end"])
    }


def out_of_order(copy: Sequence[Record], made: Sequence[Record]) -> list[bytes]:
    """Values of a copy that lie in another partition, or behind one that came later."""
    places = {each.value: (each.partition, each.offset) for each in made}
    reached: dict[int, int] = {}
    wrong = []
    for each in copy:
        partition, offset = places.get(each.value, (each.partition, -1))
        if partition != each.partition or offset <= reached.get(partition, -1):
            wrong.append(each.value)
        reached[partition] = max(offset, reached.get(partition, -1))
    return wrong
