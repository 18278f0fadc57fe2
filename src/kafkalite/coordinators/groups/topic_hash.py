"""The number by which a consumer group notices that one of its topics has changed.

Owns Apache Kafka's way to compute it (XXH3 over id, name, partitions and racks), so that a group
which changes its coordinator from one broker to the other, or back, goes on in the same epoch.
Nothing is cached. Invariant: equal topics have equal numbers on every broker.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from xxhash import xxh3_64_intdigest

from kafkalite.coordinators.groups.topics import TopicView
from kafkalite.env.slicing import Steps

NO_TOPICS_HASH = 0
PARTITIONS_PER_STEP = 64
_HASH_VERSION = b"\0"


def hash_in_steps(topics: Iterable[TopicView]) -> Steps[int]:
    """The `metadata_hash` of a group with these topics, some topics at a time."""
    ordered = sorted(topics, key=lambda topic: topic.name)
    if not ordered:
        return NO_TOPICS_HASH
    hashes: list[bytes] = []
    partitions = 0
    for topic in ordered:
        hashes.append(struct.pack("<q", hash_of_topic(topic)))
        partitions += 1 + topic.partition_count
        if partitions >= PARTITIONS_PER_STEP:
            partitions = 0
            yield
    return _hash(b"".join(hashes))


def hash_of_topic(topic: TopicView) -> int:
    parts = [_HASH_VERSION, topic.topic_id[7::-1], topic.topic_id[:7:-1], _text(topic.name)]
    parts.append(struct.pack("<i", topic.partition_count))
    for index in range(topic.partition_count):
        parts.append(struct.pack("<i", index))
        for rack in sorted(topic.racks[index]) if index < len(topic.racks) else ():
            parts += [struct.pack("<i", _units(rack)), _text(rack)]
    return _hash(b"".join(parts))


def _text(value: str) -> bytes:
    """UTF-16 as Java keeps it, then its length."""
    return value.encode("utf-16-le", "surrogatepass") + struct.pack("<i", _units(value))


def _units(value: str) -> int:
    return len(value.encode("utf-16-le", "surrogatepass")) // 2


def _hash(data: bytes) -> int:
    value = xxh3_64_intdigest(data)
    return value - (1 << 64) if value >> 63 else value
