"""The order in which Java's maps are gone over, which is that of what the tools print."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from kafkalite.coordinators.java_hash import in_hash_order, in_order_of, java_hash

TopicPartition = tuple[str, int]
_SMALL_SET = 4
Key = TypeVar("Key")


def in_map_order(keys: Iterable[str], capacity: int = 16) -> list[str]:
    """As a `java.util.HashMap` of this initial capacity, filled in this order."""
    return in_hash_order(keys, _power(capacity))


def in_copied_order(keys: Iterable[str]) -> list[str]:
    """As the copy of a map that is gone over in this order."""
    each = list(keys)
    return in_hash_order(each, _power(int(len(each) / 0.75 + 1.0)))


def in_map_order_of(
    keys: Iterable[Key], hash_of: Callable[[Key], int], capacity: int = 16
) -> list[Key]:
    """The same of keys that are no strings."""
    return in_order_of(keys, hash_of, _power(capacity))


def partitions_in_map_order(keys: Iterable[TopicPartition]) -> list[TopicPartition]:
    """As a `java.util.HashMap` of partitions, filled in this order."""
    return in_order_of(keys, lambda each: 31 * (31 + each[1]) + java_hash(each[0]))


def in_scala_set_order(keys: Iterable[str]) -> list[str]:
    """As an immutable Set of Scala: in this order while it is small, as a trie of hashes else."""
    each = list(dict.fromkeys(keys))
    if len(each) <= _SMALL_SET:
        return each

    def improved(key: str) -> int:
        value = java_hash(key)
        value = (value + ~(value << 9)) & 0xFFFFFFFF
        value ^= value >> 14
        value = (value + (value << 4)) & 0xFFFFFFFF
        return value ^ value >> 10

    return _trie({key: improved(key) for key in each})


def _trie(hashes: dict[str, int]) -> list[str]:
    """By the next five bits: first those that are alone with theirs, then the nodes below."""
    if not any(hashes.values()):
        return list(hashes)
    nodes: dict[int, dict[str, int]] = {}
    for key, value in hashes.items():
        nodes.setdefault(value & 31, {})[key] = value >> 5
    ordered = [nodes[bits] for bits in sorted(nodes)]
    alone = [key for node in ordered if len(node) == 1 for key in node]
    return alone + [key for node in ordered if len(node) > 1 for key in _trie(node)]


def _power(capacity: int) -> int:
    return 1 << max(0, capacity - 1).bit_length()
