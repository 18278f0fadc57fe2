"""State of records by ranges of offsets, and how a later word about them is laid over an earlier.

Owns that rule: of two words about one offset the one with more deliveries holds, and of as many the
later state. Pure. Invariant: what `combined` makes is in order, does not overlap, and neighbours
that say the same are one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
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
    for one in said:
        _lay(laid, one)
    return joined(_from(laid, start_offset))


def joined(batches: Iterable[StateBatch]) -> list[StateBatch]:
    """Neighbours that say the same as one."""
    result: list[StateBatch] = []
    for one in batches:
        last = result[-1] if result else None
        if last is not None and last.last + 1 == one.first and last.rank == one.rank:
            result[-1] = last._replace(last=one.last)
        else:
            result.append(one)
    return result


def _from(batches: list[StateBatch], start_offset: int) -> Iterable[StateBatch]:
    for one in batches:
        if one.last >= start_offset:
            yield one._replace(first=start_offset) if one.first < start_offset else one


def _lay(laid: list[StateBatch], one: StateBatch) -> None:
    """One more over what is there, which is in order."""
    if one.last < one.first:
        return
    if not laid or laid[-1].last < one.first:
        laid.append(one)
        return
    low = high = bisect_left(laid, one.first, key=lambda each: each.last)
    pieces: list[StateBatch] = []
    position = one.first
    while high < len(laid) and laid[high].first <= one.last:
        old = laid[high]
        high += 1
        if old.first < one.first:
            pieces.append(old._replace(last=one.first - 1))
        if position < old.first:
            pieces.append(one._replace(first=position, last=old.first - 1))
        first, last = max(old.first, one.first), min(old.last, one.last)
        pieces.append((one if one.rank > old.rank else old)._replace(first=first, last=last))
        if old.last > one.last:
            pieces.append(old._replace(first=one.last + 1))
        position = last + 1
    if position <= one.last:
        pieces.append(one._replace(first=position))
    laid[low:high] = pieces
