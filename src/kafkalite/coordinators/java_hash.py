"""Strings as Java hashes them: the partition of a key and the order of a set hang on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

_USUAL_TABLE = 16
Key = TypeVar("Key")


def java_hash(text: str) -> int:
    """`String.hashCode` of Java: over UTF-16 code units, in 32 bits with a sign."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def in_hash_order(texts: Iterable[str], size: int = _USUAL_TABLE) -> list[str]:
    """As a `java.util.HashSet` to which they were added in this order goes over them."""
    return in_order_of(texts, java_hash, size)


def in_order_of(
    keys: Iterable[Key], hash_of: Callable[[Key], int], size: int = _USUAL_TABLE
) -> list[Key]:
    """By their place in a table of twice the size whenever three quarters are taken."""
    each = list(dict.fromkeys(keys))
    while len(each) > size * 3 // 4:
        size *= 2

    def place(key: Key) -> int:
        value = hash_of(key) & 0xFFFFFFFF
        return (value ^ value >> 16) & (size - 1)

    return sorted(each, key=place)
