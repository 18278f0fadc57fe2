"""What clients were told and have seen, and what is wrong when it is held against the logs.

Pure: no cluster and no clock. Each check says in words what it has found.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

Place = tuple[str, int]  # topic and partition
UNKNOWN_OFFSET = 0  # what is below is no offset: of a retry that was answered without one
SHOWN = 5


@dataclass(slots=True)
class Written:
    """One writer's: `name number` is each of its values."""

    acknowledged: dict[str, tuple[Place, int]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    may_fail: bool = False  # a plain producer that does not try again


@dataclass(slots=True)
class Seen:
    """What one reader was given."""

    values: dict[Place, dict[int, bytes]] = field(default_factory=lambda: defaultdict(dict))
    committed: dict[Place, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def give(self, place: Place, offset: int, value: bytes) -> None:
        known = self.values[place].setdefault(offset, value)
        if known != value:
            self.wrong.append(f"{_at(place, offset)} was read as {known!r}, then as {value!r}")

    def commits(self, place: Place, offset: int) -> None:
        """It was told that this is committed."""
        if offset < self.committed.get(place, 0):
            self.wrong.append(
                f"{_at(place, offset)} is committed, which was {self.committed[place]}"
            )
        self.committed[place] = offset

    def begins(self, place: Place, offset: int) -> None:
        """Where it goes on after it was given the partition anew."""
        if offset < self.committed.get(place, 0):
            self.wrong.append(
                f"{_at(place, offset)} is read again, and {self.committed[place]} was committed"
            )


@dataclass(slots=True)
class History:
    """Of one round."""

    written: dict[str, Written] = field(default_factory=dict)
    seen: dict[str, Seen] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def writer(self, name: str, *, may_fail: bool = False) -> Written:
        return self.written.setdefault(name, Written(may_fail=may_fail))

    def reader(self, name: str) -> Seen:
        return self.seen.setdefault(name, Seen())

    @property
    def acknowledged(self) -> int:
        return sum(len(each.acknowledged) for each in self.written.values())


Log = dict[Place, list[tuple[int, bytes]]]  # as it is read in the end, read_committed


def wrong_in(history: History, found: Log) -> list[str]:
    """All that is."""
    by_offset = {place: dict(records) for place, records in found.items()}
    count = Counter(value for records in found.values() for _, value in records)
    told: list[str] = []
    for name, written in history.written.items():
        told += _unkept(name, written, count, by_offset)
        if written.failures and not written.may_fail:
            told.append(f"{name} failed: {_some(written.failures)}")
    told += _group("doubled", (repr(value) for value, times in count.items() if times > 1))
    told += out_of_order(found)
    for name, seen in history.seen.items():
        told += [f"{name}: {each}" for each in seen.wrong[:SHOWN]]
        told += [f"{name}: {each}" for each in _unseen(seen, by_offset)]
    return told


def _unkept(
    name: str, written: Written, count: Counter[bytes], found: dict[Place, dict[int, bytes]]
) -> Iterator[str]:
    """Acknowledged, and not there, or not where it was said to be."""
    lost = [value for value in written.acknowledged if value.encode() not in count]
    yield from _group(f"{name}: acknowledged and lost", lost)
    moved = [
        f"{value} at {_at(place, offset)}"
        for value, (place, offset) in written.acknowledged.items()
        if offset >= UNKNOWN_OFFSET and found.get(place, {}).get(offset) != value.encode()
    ]
    yield from _group(f"{name}: acknowledged, and something else is there", moved)


def out_of_order(found: Log) -> Iterator[str]:
    """A writer's numbers rise within each partition."""
    for place, records in found.items():
        last: dict[str, int] = {}
        for offset, value in records:
            name, _, number = value.decode().rpartition(" ")
            if int(number) < last.get(name, -1):
                yield f"{_at(place, offset)}: {name} {number} comes behind {last[name]}"
                break
            last[name] = int(number)


def _unseen(seen: Seen, found: dict[Place, dict[int, bytes]]) -> Iterator[str]:
    """What it was given and is not there any more, and what it was never given."""
    for place, values in seen.values.items():
        there = found.get(place, {})
        gone = [
            f"{offset} as {value!r}" for offset, value in values.items()
            if there.get(offset) != value
        ]  # fmt: skip
        yield from _group(f"of {place[0]}-{place[1]} it read what is not there", gone)
        left_out = [str(each) for each in there if each < max(values) and each not in values]
        yield from _group(f"of {place[0]}-{place[1]} it was not given", left_out)


# --- transactions ---------------------------------------------------------------------------------


def wrong_in_copies(source: Log, copies: Log, committed: dict[Place, int]) -> Iterator[str]:
    """A copy `topic-partition offset` of each record below what is committed of the source, and
    of no other: a transaction's records and offsets count together or not at all."""
    expected = {
        copy_of(place, offset)
        for place, records in source.items()
        for offset, _ in records
        if offset < committed.get(place, 0)
    }
    found = [value for records in copies.values() for _, value in records]
    yield from _group("copied, and not committed", (repr(each) for each in {*found} - expected))
    yield from _group("committed, and not copied", (repr(each) for each in expected - {*found}))
    doubled = (repr(each) for each, times in Counter(found).items() if times > 1)
    yield from _group("copied twice", doubled)


def copy_of(place: Place, offset: int) -> bytes:
    return f"{place[0]}-{place[1]} {offset}".encode()


def unkept_commits(told: dict[Place, int], committed: dict[Place, int]) -> Iterator[str]:
    """Committed offsets do not go back."""
    for place, offset in told.items():
        if committed.get(place, 0) < offset:
            yield f"{_at(place, offset)} was committed, and {committed.get(place)} is"


def _group(what: str, each: Iterable[str]) -> Iterator[str]:
    named = sorted(each)
    if named:
        yield f"{what}: {_some(named)}"


def _some(named: list[str]) -> str:
    return f"{len(named)} ({', '.join(named[:SHOWN])}{', …' if len(named) > SHOWN else ''})"


def _at(place: Place, offset: int) -> str:
    return f"{place[0]}-{place[1]}-{offset}"
