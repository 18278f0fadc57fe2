"""What goes through the topics of a broker: records and bytes, in and out, and what failed.

Owns the sums, of each topic that this broker has a partition of, and of those that are gone. Plain
numbers, which whoever does the work adds to; nothing is counted unless somebody asked for it.
Failures that a client brings about by being late (a leader that moved, a topic that was deleted)
count as none, as in Apache Kafka.
"""

from __future__ import annotations

from kafkalite.protocol.errors import Error

_TOO_LARGE = frozenset({Error.MESSAGE_TOO_LARGE, Error.RECORD_LIST_TOO_LARGE})
_EXPECTED = frozenset({
    Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_ID, Error.NOT_LEADER_OR_FOLLOWER,
    Error.KAFKA_STORAGE_ERROR,
})  # fmt: skip
_EXPECTED_OF_PRODUCE = _EXPECTED | _TOO_LARGE | {Error.CORRUPT_MESSAGE}
_EXPECTED_OF_FETCH = _EXPECTED | {
    Error.FENCED_LEADER_EPOCH, Error.UNKNOWN_LEADER_EPOCH, Error.INCONSISTENT_TOPIC_ID,
    Error.OFFSET_OUT_OF_RANGE, Error.REPLICA_NOT_AVAILABLE, Error.CORRUPT_MESSAGE,
}  # fmt: skip

NAMES = (
    "messages_in", "bytes_in", "bytes_out", "bytes_rejected", "produces", "fetches",
    "failed_produces", "failed_fetches", "produce_conversions", "fetch_conversions",
    "replication_bytes_out",
)  # fmt: skip


class Traffic:
    """Of one topic."""

    __slots__ = NAMES

    def __init__(self) -> None:
        self.messages_in = self.bytes_in = self.bytes_out = self.bytes_rejected = 0
        self.produces = self.fetches = self.failed_produces = self.failed_fetches = 0
        self.produce_conversions = self.fetch_conversions = self.replication_bytes_out = 0

    def refused_produce(self, code: int, size: int) -> None:
        """A batch of so many bytes was not appended."""
        if code in _TOO_LARGE:
            self.bytes_rejected += size
        if code not in _EXPECTED_OF_PRODUCE:
            self.failed_produces += 1

    def refused_fetch(self, code: int) -> None:
        if code not in _EXPECTED_OF_FETCH:
            self.failed_fetches += 1

    def add(self, other: Traffic) -> None:
        for name in NAMES:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Traffics:
    """Of all topics of one broker, by their ids: a name may come again."""

    def __init__(self) -> None:
        self._by_id: dict[bytes, tuple[str, Traffic]] = {}
        self._gone = Traffic()

    def of(self, topic_id: bytes, name: str) -> Traffic:
        return self._by_id.setdefault(topic_id, (name, Traffic()))[1]

    def forget(self, topic_id: bytes) -> None:
        """It was deleted; what it had still counts for the broker."""
        gone = self._by_id.pop(topic_id, None)
        if gone is not None:
            self._gone.add(gone[1])

    def by_topic(self) -> list[tuple[str, Traffic]]:
        return list(self._by_id.values())

    def total(self) -> Traffic:
        total = Traffic()
        total.add(self._gone)
        for _, each in self._by_id.values():
            total.add(each)
        return total
