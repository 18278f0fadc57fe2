"""Judges a compacted partition: whoever keeps the last committed value of each key ends rightly.

Which values are left depends on when the cleaner came by, so only this is asked: what is gone was
followed by a committed value of its key, nothing of an aborted transaction is seen, and no reader
missed what is there to the end. Owns the key of a value. Invariant: as in `checker`, what it
reports is false under any order of events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from zlib import crc32

from kafkalite.sim.history import Fate, History, Partition, Reading, Sent

KEYS = 40  # so many that a key which was lost is not soon written again
Anomaly = tuple[str, str]


def key_of(value: bytes) -> bytes:
    """All keyed alike, in every topic."""
    return b"k%d" % (crc32(value) % KEYS)


def check_compacted(
    history: History, partition: Partition, committed: Reading, everything: Reading
) -> Iterator[Anomaly]:
    """Every anomaly of one compacted partition, from its last reading by each isolation level."""
    places = {each.value: index for index, each in enumerate(history.sent)}
    mine = [each for each in history.sent if each.partition == partition]
    yield from _check_latest(mine, places, committed)
    truth = dict(everything.seen)
    readings = [each for each in history.readings if each.partition == partition]
    for reading in [*readings, committed, everything]:
        yield from _check_reading(reading, committed, everything)
        for offset, value in reading.seen:
            other = truth.setdefault(offset, value)
            if other != value:
                yield "inconsistent", f"{partition} had {value!r} and {other!r} at {offset}"
    gone = {each.value for each in mine if each.attempt.fate in (Fate.GONE, Fate.OPEN)}
    for reading in [*readings, committed]:
        if reading.is_committed_only:
            for _, value in reading.seen:
                if value in gone:
                    yield "aborted but visible", f"{value!r} in {partition}"


def _check_latest(
    mine: Iterable[Sent], places: dict[bytes, int], committed: Reading
) -> Iterator[Anomaly]:
    """The last value of a key is there, or one that may have come behind it."""
    sent = {each.value: each for each in mine}
    there = {value for _, value in committed.seen}
    last = {key_of(value): value for _, value in sorted(committed.seen)}
    for value, each in sent.items():
        if each.attempt.fate is not Fate.KEPT or value in there or each.is_excused:
            continue
        follower = sent.get(last.get(key_of(value), b""))
        if follower is None or _is_before(follower, each, places):
            yield "lost", f"{value!r} in {each.partition}, and nothing came behind it"


def _is_before(one: Sent, other: Sent, places: dict[bytes, int]) -> bool:
    """Whether a value is surely in the log before another one."""
    place = places[other.value]
    if one.producer == other.producer:
        return places[one.value] < place
    return one.attempt.known_at is not None and one.attempt.known_at <= place


def _check_reading(reading: Reading, committed: Reading, everything: Reading) -> Iterator[Anomaly]:
    """A consumer saw all that is there to the end, and of what is committed nothing later."""
    whole = committed if reading.is_committed_only else everything
    where = reading.partition
    seen = set(reading.seen)
    for offset, value in whole.seen:
        if offset < reading.position and (offset, value) not in seen:
            yield "skipped", f"{(offset, value)} of {where}"
    offsets = [offset for offset, _ in reading.seen]
    if offsets != sorted(set(offsets)):
        yield "read out of order", f"{where}"
    if not reading.is_committed_only:
        return  # what it saw may have been aborted
    last = {key_of(value): offset for offset, value in sorted(whole.seen)}
    for offset, value in reading.seen:
        if offset > last.get(key_of(value), -1):
            yield "lost", f"{(offset, value)} of {where}, which somebody had read"
