"""State of records by ranges of offsets, and how a later word about them is laid over an earlier.

Owns that rule: of two words about one offset the one with more deliveries holds, and of as many the
later state. Pure. Invariant: what `combined` makes is in order, does not overlap, and neighbours
that say the same are one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

NO_OFFSET = -1


class StateBatch(NamedTuple):
    """What is known of the records from `first` to `last`."""

    first: int
    last: int
    state: int
    deliveries: int

    @property
    def rank(self) -> tuple[int, int]:
        return self.deliveries, self.state


def combined(
    known: Iterable[StateBatch], said: Iterable[StateBatch], start_offset: int
) -> list[StateBatch]:
    """All that is said of offsets from `start_offset` on (NO_OFFSET: of all), where what is known
    is in order."""
    laid = list(known)
    for some in _in_order(sorted(one for one in said if one.first <= one.last)):
        laid = _merged(laid, some)
    return joined(_from(laid, start_offset))


def _in_order(said: list[StateBatch]) -> Iterator[list[StateBatch]]:
    """In as few parts as it takes that nothing overlaps within one."""
    while said:
        part: list[StateBatch] = []
        rest: list[StateBatch] = []
        for one in said:
            (rest if part and one.first <= part[-1].last else part).append(one)
        yield part
        said = rest


def joined(batches: Iterable[StateBatch]) -> list[StateBatch]:
    """Neighbours that say the same as one."""
    result: list[StateBatch] = []
    for one in batches:
        last = result[-1] if result else None
        if last is not None and last.last + 1 == one.first and last[2:] == one[2:]:
            result[-1] = StateBatch(last.first, *one[1:])
        else:
            result.append(one)
    return result


def _from(batches: list[StateBatch], start_offset: int) -> Iterable[StateBatch]:
    for one in batches:
        if one.last >= start_offset:
            yield one._replace(first=start_offset) if one.first < start_offset else one


def _merged(known: list[StateBatch], said: list[StateBatch]) -> list[StateBatch]:
    """Both of them, each in order: where they overlap the one of higher rank holds."""
    merged: list[StateBatch] = []
    mine, theirs = iter(known), iter(said)
    one, other = next(mine, None), next(theirs, None)
    while one is not None and other is not None:
        first = max(one.first, other.first)
        if one.first < first:
            merged.append(StateBatch(one.first, min(one.last, first - 1), *one[2:]))
        elif other.first < first:
            merged.append(StateBatch(other.first, min(other.last, first - 1), *other[2:]))
        last = min(one.last, other.last)
        if first <= last:
            holds = other if other.rank > one.rank else one
            merged.append(StateBatch(first, last, *holds[2:]))
        else:
            last = first - 1
        one, other = _behind(one, last, mine), _behind(other, last, theirs)
    merged += [each for each in (one, other) if each is not None]
    return [*merged, *mine, *theirs]


def _behind(
    one: StateBatch, last: int, rest: Iterator[StateBatch]
) -> StateBatch | None:
    """What is left of it behind an offset, or the next one."""
    if one.last <= last:
        return next(rest, None)
    return StateBatch(max(one.first, last + 1), one.last, one.state, one.deliveries)
