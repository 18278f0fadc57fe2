"""The order in which Java's maps are gone over, which is that of what the tools print."""

from __future__ import annotations

from collections.abc import Iterable

from kafkalite.coordinators.java_hash import in_hash_order, in_order_of, java_hash

TopicPartition = tuple[str, int]


def in_map_order(keys: Iterable[str], capacity: int = 16) -> list[str]:
    """As a `java.util.HashMap` of this initial capacity, filled in this order."""
    return in_hash_order(keys, _power(capacity))


def in_copied_order(keys: Iterable[str]) -> list[str]:
    """As the copy of a map that is gone over in this order."""
    each = list(keys)
    return in_hash_order(each, _power(int(len(each) / 0.75 + 1.0)))


def partitions_in_map_order(keys: Iterable[TopicPartition]) -> list[TopicPartition]:
    """As a `java.util.HashMap` of partitions, filled in this order."""
    return in_order_of(keys, lambda each: 31 * (31 + each[1]) + java_hash(each[0]))


def _power(capacity: int) -> int:
    return 1 << max(0, capacity - 1).bit_length()
