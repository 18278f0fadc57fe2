"""What the members of a share group were handed and what they said of it, as they know it.

Owns the judgement at every delivery: a record is with one member at a time, is not handed out again
once it is done with, nor more often than the group allows, and how often it was is not forgotten.
Invariant: what it reports is false whatever was lost on the way. So a member is only sure of a
record from the answer that brought it until its lock may be over, and only while its connection and
the broker's life go on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from kafkalite.sim.client import Client
from kafkalite.sim.places import Anomaly

GROUP = "sharers"
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
SAID = {GAP: "a gap", ACCEPT: "accepted", RELEASE: "released for the last time", REJECT: "rejected"}

Record = tuple[int, int]  # a partition's index and an offset


@dataclass(slots=True)
class Hold:
    """A record that is a member's, for sure."""

    who: str
    client: Client
    link: object
    life: object
    since_ms: int
    until_ms: int


@dataclass(slots=True)
class Handed:
    """A record in an answer to a member, with when it was asked for, and in which of the broker's
    lives: what one has said may come when the next has begun."""

    record: Record
    value: bytes
    count: int
    asked_ms: int
    life: object


@dataclass(slots=True)
class Sharing:
    """The evidence about one group that shares one topic."""

    topic: str
    topic_id: bytes
    partition_count: int
    is_committed_only: bool
    most_deliveries: int
    now_ms: Callable[[], int]
    life: Callable[[], object]
    group_id: str = GROUP
    is_peaceful: bool = False
    is_over: bool = False
    values: dict[Record, bytes] = field(default_factory=dict)
    found: list[Anomaly] = field(default_factory=list)
    # Answers that may have had records in them and did not come, by partition.
    lost: Counter[int] = field(default_factory=Counter)
    _holds: dict[Record, Hold] = field(default_factory=dict)
    # What is known, and since when: who says so after that is told of it.
    _done: dict[Record, tuple[str, int]] = field(default_factory=dict)
    _least: dict[Record, tuple[int, int]] = field(default_factory=dict)

    def hand(self, who: str, client: Client, handed: Handed, lock_ms: int) -> None:
        for kind, what in self._wrong(who, handed):
            self.found.append((kind, f"{handed.record} of {self.topic}, to {who}: {what}"))
        self.values.setdefault(handed.record, handed.value)
        self._holds[handed.record] = Hold(
            who, client, client.link, handed.life, self.now_ms(), handed.asked_ms + lock_ms
        )

    def _wrong(self, who: str, handed: Handed) -> Iterator[Anomaly]:
        record, asked_ms = handed.record, handed.asked_ms
        known = self.values.get(record, handed.value)
        if known != handed.value:
            yield "shared inconsistently", f"{handed.value!r}, before {known!r}"
        said, since_ms = self._done.get(record, ("", asked_ms))
        if asked_ms > since_ms:
            yield "shared though done with", f"{said} at {since_ms}, asked for at {asked_ms}"
        if handed.count > self.most_deliveries:
            yield "shared too often", f"{handed.count} times"
        least, since_ms = self._least.get(record, (1, -1))
        if asked_ms > since_ms and handed.count < least:
            yield "deliveries forgotten", f"delivery {handed.count}, after {least - 1}"
        hold = self._holds.get(record)
        if hold is not None and hold.since_ms < asked_ms and self._is_sure(hold):
            yield "shared with two", f"{hold.who} has it until {hold.until_ms}"

    def _is_sure(self, hold: Hold) -> bool:
        return (
            hold.client.link is hold.link
            and self.life() is hold.life
            and self.now_ms() < hold.until_ms
        )

    def let_go(self, record: Record) -> None:
        """Its member is not sure of it any more."""
        self._holds.pop(record, None)

    def settle(self, record: Record, said: int, count: int) -> None:
        """What a member said of it was acknowledged."""
        if said == RELEASE and count < self.most_deliveries:
            self._least[record] = count + 1, self.now_ms()
        elif record not in self._done:
            self._done[record] = SAID[said], self.now_ms()

    def renew(self, record: Record, who: str, asked_ms: int, lock_ms: int) -> None:
        hold = self._holds.get(record)
        if hold is not None and hold.who == who:
            hold.until_ms = max(hold.until_ms, asked_ms + lock_ms)

    # --- at the end -------------------------------------------------------------------------------

    def check(self, index: int, seen: Collection[tuple[int, bytes]]) -> Iterator[Anomaly]:
        """Against all that a partition holds, for who reads as this group does."""
        known = dict(seen)
        for (of, offset), value in self.values.items():
            if of == index and known.get(offset) != value:
                yield "shared what is not there", f"{value!r} at {offset} of {self.topic}-{index}"
        if self.lost[index] >= self.most_deliveries:
            return  # in these, a record may have come as often as it could
        for offset, value in known.items():
            if (index, offset) not in self.values:
                yield "never shared", f"{value!r} at {offset} of {self.topic}-{index}"
