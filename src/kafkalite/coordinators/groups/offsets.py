"""The committed offsets of a shard's groups, and those that wait for a transaction's end.

Owns both, and is changed by `replay` alone. It checks nothing: `offset_requests` does.
Invariant: `open_producers` names exactly the producers that have an offset pending for a
partition of a group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kafkalite.coordinators.effects import Producer
from kafkalite.env.slicing import Steps, finish
from kafkalite.protocol.messages import OffsetCommitValue

NO_TIMESTAMP = -1
# Of a transaction, at its end.
ENDED_AT_ONCE = 1_000
ENDED_PER_STEP = 16

Partitions = dict[int, "CommittedOffset"]
ByTopic = dict[str, Partitions]
ByGroup = dict[str, ByTopic]


@dataclass(slots=True)
class CommittedOffset:
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int
    topic_id: bytes
    # Where its record is: of a plain and a transactional commit, the later record wins.
    record_offset: int = -1


@dataclass(slots=True)
class OffsetStore:
    committed: ByGroup = field(default_factory=dict)
    pending: dict[int, ByGroup] = field(default_factory=dict)
    open_producers: dict[str, dict[tuple[str, int], dict[int, None]]] = field(default_factory=dict)

    # -- questions -------------------------------------------------------------------------

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        return self.committed.get(group_id, {}).get(topic, {}).get(partition)

    def of_group(self, group_id: str) -> ByTopic:
        return self.committed.get(group_id, {})

    def is_unstable(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction may yet change this offset."""
        return (topic, partition) in self.open_producers.get(group_id, ())

    def has_open_transactions(self, group_id: str) -> bool:
        return group_id in self.open_producers

    def as_it_is(self, group_id: str) -> OffsetStore:
        """The group's offsets, which later records do not change."""
        committed = {topic: dict(each) for topic, each in self.of_group(group_id).items()}
        opened = dict(self.open_producers.get(group_id, {}))
        return OffsetStore({group_id: committed}, {}, {group_id: opened})

    def partitions_of(self, group_id: str) -> Iterator[tuple[str, int]]:
        """Every partition with a committed or a pending offset, each once."""
        for topic, partitions in self.of_group(group_id).items():
            for partition in partitions:
                yield topic, partition
        for topic, partition in self.open_producers.get(group_id, ()):
            if self.get(group_id, topic, partition) is None:
                yield topic, partition

    def of_topic(self, group_id: str, topic: str) -> Iterator[tuple[int, CommittedOffset]]:
        """Every committed and every pending offset."""
        yield from self.of_group(group_id).get(topic, {}).items()
        for (name, partition), producers in self.open_producers.get(group_id, {}).items():
            if name == topic:
                for producer_id in producers:
                    yield partition, self.pending[producer_id][group_id][topic][partition]

    def count(self, group_id: str) -> int:
        """Offsets of the group, those that are pending too."""
        committed = sum(len(partitions) for partitions in self.of_group(group_id).values())
        return committed + len(self.open_producers.get(group_id, ()))

    # -- replay ----------------------------------------------------------------------------

    def replay_commit(
        self,
        group_id: str,
        topic: str,
        partition: int,
        value: OffsetCommitValue,
        record_offset: int,
        producer: Producer | None,
    ) -> None:
        offset = CommittedOffset(
            value.offset,
            value.leader_epoch,
            value.metadata,
            value.commit_timestamp,
            value.expire_timestamp,
            value.topic_id,
            record_offset,
        )
        if producer is None:
            _put(self.committed, group_id, topic, partition, offset)
            return
        waiting = self.pending.setdefault(producer.producer_id, {})
        _put(waiting, group_id, topic, partition, offset)
        opened = self.open_producers.setdefault(group_id, {})
        opened.setdefault((topic, partition), {})[producer.producer_id] = None

    def replay_tombstone(self, group_id: str, topic: str, partition: int) -> None:
        """Deletes the offset, and those that open transactions would put in its place."""
        _remove(self.committed, group_id, topic, partition)
        opened = self.open_producers.get(group_id, {})
        for producer_id in opened.pop((topic, partition), ()):
            waiting = self.pending.get(producer_id, {})
            _remove(waiting, group_id, topic, partition)
            if not waiting:
                self.pending.pop(producer_id, None)
        if not opened:
            self.open_producers.pop(group_id, None)

    def replay_end_transaction(self, producer_id: int, committed: bool) -> Steps[None] | None:
        """At once, or in steps when there are many."""
        groups = self.pending.pop(producer_id, {})
        count = sum(len(one) for topics in groups.values() for one in topics.values())
        steps = self._end_transaction(producer_id, groups, committed)
        return steps if count > ENDED_AT_ONCE else finish(steps)

    def _end_transaction(self, producer_id: int, groups: ByGroup, committed: bool) -> Steps[None]:
        ended = 0
        for group_id, topics in groups.items():
            for topic, partitions in topics.items():
                for partition, offset in partitions.items():
                    self._close(group_id, topic, partition, producer_id)
                    if committed:
                        self._keep_later(group_id, topic, partition, offset)
                    ended += 1
                    if ended % ENDED_PER_STEP == 0:
                        yield

    def _keep_later(
        self, group_id: str, topic: str, partition: int, offset: CommittedOffset
    ) -> None:
        existing = self.get(group_id, topic, partition)
        if existing is None or offset.record_offset > existing.record_offset:
            _put(self.committed, group_id, topic, partition, offset)

    def _close(self, group_id: str, topic: str, partition: int, producer_id: int) -> None:
        opened = self.open_producers[group_id]
        producers = opened[topic, partition]
        del producers[producer_id]
        if not producers:
            del opened[topic, partition]
        if not opened:
            del self.open_producers[group_id]


def _put(
    groups: ByGroup, group_id: str, topic: str, partition: int, offset: CommittedOffset
) -> None:
    groups.setdefault(group_id, {}).setdefault(topic, {})[partition] = offset


def _remove(groups: ByGroup, group_id: str, topic: str, partition: int) -> None:
    topics = groups.get(group_id)
    if topics is None or topic not in topics:
        return
    topics[topic].pop(partition, None)
    if not topics[topic]:
        del topics[topic]
    if not topics:
        del groups[group_id]
