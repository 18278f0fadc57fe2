"""Judges what cannot be read any more: topics that were deleted, and records whose time was up.

There is no last reading to hold anything against, so only this is asked: all that was read of such
a partition agrees, is in order, was sent to that topic and not to its forerunner or successor, and
nothing of it was aborted. Invariant: as in `checker`, what it reports is false under any order of
events.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kafkalite.sim.history import Fate, History, Partition, Sent

Anomaly = tuple[str, str]


def check_gone(history: History, finals: Collection[Partition]) -> Iterator[Anomaly]:
    """Every anomaly of partitions that are not there to the end, or not from their beginning."""
    sent: dict[bytes, list[Sent]] = {}
    for each in history.sent:
        sent.setdefault(each.value, []).append(each)
    truth: dict[tuple[Partition, int], bytes] = {}
    for reading in history.readings:
        where = reading.partition
        if where in finals and where not in history.fading:
            continue
        offsets = [offset for offset, _ in reading.seen]
        if offsets != sorted(set(offsets)):
            yield "read out of order", f"{where}"
        for offset, value in reading.seen:
            what = f"{value!r} at {offset} of {where}"
            other = truth.setdefault((where, offset), value)
            if other != value:
                yield "inconsistent", f"{what}, which somebody read as {other!r}"
            tries = sent.get(value, [])
            if not any(_may_be_in(each, where) for each in tries):
                yield "invented", what
            elif reading.is_committed_only and all(_is_gone(each) for each in tries):
                yield "aborted but visible", what


def _may_be_in(each: Sent, where: Partition) -> bool:
    if each.partition == where:
        return True
    is_same_name = each.partition[0].partition("@")[0] == where[0].partition("@")[0]
    return each.is_by_name and is_same_name and each.partition[1] == where[1]


def _is_gone(each: Sent) -> bool:
    return each.attempt.fate in (Fate.GONE, Fate.OPEN)
