"""What the clients of a simulation did and saw: the evidence that the checker judges.

Owns the record of every value sent, every transaction's fate and every value read. Judges nothing.
Every value is sent under one name, so that a second copy of it in a log is a duplicate.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from kafkalite.sim.topics import Topics

Partition = tuple[str, int]


class Fate(Enum):
    """What a client knows of something it asked for."""

    OPEN = "nothing was decided"
    KEPT = "acknowledged"
    UNKNOWN = "asked for, and the answer did not come"
    GONE = "refused, aborted or never asked for"


@dataclass(slots=True)
class Attempt:
    """A transaction, or for other producers a batch of its own."""

    fate: Fate = Fate.OPEN
    is_transactional: bool = False
    values: list[Sent] = field(default_factory=list)
    known_at: int | None = None  # so many values had been sent when it was known to be kept


@dataclass(slots=True)
class Sent:
    """A value on its way into a partition."""

    value: bytes
    partition: Partition
    producer: str  # the incarnation: its values must keep their order
    attempt: Attempt
    number: int  # so many values were sent before it
    # To a topic that comes and goes; excused if nobody knows which of its lives had it.
    is_by_name: bool = False
    is_excused: bool = False


@dataclass(slots=True)
class Reading:
    """What one consumer saw of a partition, in order, and how far it came."""

    partition: Partition
    is_committed_only: bool
    seen: list[tuple[int, bytes]] = field(default_factory=list)
    position: int = 0


@dataclass(slots=True)
class History:
    """All of one run."""

    sent: list[Sent] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    compacted: set[Partition] = field(default_factory=set)
    fading: set[Partition] = field(default_factory=set)  # what is old goes, by the segment
    topics: Topics = field(default_factory=Topics)

    def begin(self, *, is_transactional: bool) -> Attempt:
        attempt = Attempt(is_transactional=is_transactional)
        self.attempts.append(attempt)
        return attempt

    def send(self, attempt: Attempt, producer: str, partition: Partition) -> bytes:
        """A new value."""
        value = b"%d" % len(self.sent)
        return self.copy(attempt, producer, partition, value)

    def copy(self, attempt: Attempt, producer: str, partition: Partition, value: bytes) -> bytes:
        """A value that has its name from elsewhere."""
        sent = Sent(value, partition, producer, attempt, len(self.sent))
        self.sent.append(sent)
        attempt.values.append(sent)
        return value

    def keep(self, attempt: Attempt) -> None:
        """It was acknowledged."""
        attempt.fate = Fate.KEPT
        attempt.known_at = len(self.sent)

    def reading(self, partition: Partition, *, is_committed_only: bool) -> Reading:
        reading = Reading(partition, is_committed_only)
        self.readings.append(reading)
        return reading

    def bind(self) -> None:
        """At the end: what was sent by name to a topic that came and went, to one of its lives."""
        for sent in self.sent:
            if sent.partition[0] in self.topics.lives:
                bound = self.topics.bound(sent.partition, sent.number, sent.attempt.known_at)
                sent.partition, sent.is_excused = bound.partition, not bound.is_sure
                sent.is_by_name = True

    def complain(self, what: str) -> None:
        """A client was told what no sound broker tells it."""
        self.complaints.append(what)

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1
