"""Strings as Java hashes them: the partition of a key and the order of a set hang on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from kafkalite.env.slicing import LOOKS_PER_STEP, Steps, in_steps

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
    size = _size_for(len(each), size)
    return sorted(each, key=lambda key: _place(hash_of(key), size))


def some_in_hash_order(texts: list[str], count: int) -> Steps[list[str]]:
    """Those of the `count` that were added."""
    size = _size_for(count, _USUAL_TABLE)
    places = yield from in_steps(_place(java_hash(text), size) for text in texts)
    table: dict[int, list[str]] = {}
    for number, (place, text) in enumerate(zip(places, texts, strict=True)):
        table.setdefault(place, []).append(text)
        if number % LOOKS_PER_STEP == 0:
            yield
    found: list[str] = []
    for place in range(size):
        found += table.get(place, ())
        if place % LOOKS_PER_STEP == 0:
            yield
    return found


def _size_for(count: int, size: int) -> int:
    while count > size * 3 // 4:
        size *= 2
    return size


def _place(hashed: int, size: int) -> int:
    value = hashed & 0xFFFFFFFF
    return (value ^ value >> 16) & (size - 1)
