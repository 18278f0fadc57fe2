"""One partition as this broker holds it: its log, and the role this broker plays for it.

Owns the leader epoch that requests are checked against, the high watermark's advance and who waits
on either. Never reads or writes a file itself: that is the log's. With one replica the high
watermark follows the log end (under fsync durability: what is on disk); a replicated partition's
follows its in-sync replicas, so the three offsets are separate values everywhere.
Invariant: log_start <= last_stable <= high_watermark <= log_end.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kafkalite.env.disk import FileRange
from kafkalite.env.later import Later
from kafkalite.env.slicing import Steps
from kafkalite.log.append import Append, AppendResult, Checked
from kafkalite.log.appending import append_as_leader
from kafkalite.log.partition_log import AppendOrigin, FoundOffset, PartitionLog
from kafkalite.log.validator import examine
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.replication.waiting import Parked

NO_EPOCH = -1
NO_LEADER = -1
NO_TIMESTAMP = -1
LATEST_TIMESTAMP = -1


@dataclass(slots=True)
class Leadership:
    """What the cluster's metadata says of a partition."""

    leader_id: int
    leader_epoch: int
    partition_epoch: int
    replicas: list[int]
    isr: list[int]

    def has_enough_in_sync(self, wanted: int) -> bool:
        """All replicas are enough, however many a topic's settings want."""
        return len(self.isr) >= min(wanted, len(self.replicas))


@dataclass(slots=True)
class PartitionRead:
    """What a fetch of one partition found."""

    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    records: FileRange | None = None
    aborted: list[tuple[int, int]] | None = None
    diverging: tuple[int, int] | None = None

    @property
    def size(self) -> int:
        return len(self.records) if self.records is not None else 0


@dataclass(slots=True)
class FetchPosition:
    """Where a reader stands in a partition, and what it believes of the leader."""

    offset: int
    max_bytes: int
    leader_epoch: int = NO_EPOCH
    last_fetched_epoch: int = NO_EPOCH
    log_start_offset: int = -1


@dataclass(slots=True)
class Partition:
    """A replica on this broker and its waiters."""

    topic: str
    index: int
    topic_id: bytes
    node_id: int
    log: PartitionLog
    leadership: Leadership = field(default_factory=lambda: Leadership(NO_LEADER, -1, -1, [], []))
    _watchers: dict[Parked, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.log.durability.on_moved = self._durability_moved

    @property
    def is_leader(self) -> bool:
        return self.leadership.leader_id == self.node_id

    @property
    def leader_epoch(self) -> int:
        return self.leadership.leader_epoch

    @property
    def high_watermark(self) -> int:
        return self.log.high_watermark

    @property
    def last_stable_offset(self) -> int:
        return self.log.last_stable_offset

    def check_leader(self, expected_epoch: int = NO_EPOCH) -> None:
        """Refuse a request that is not for this leader in this epoch."""
        if expected_epoch != NO_EPOCH and expected_epoch != self.leadership.leader_epoch:
            is_old = expected_epoch < self.leadership.leader_epoch
            raise KafkaError(Error.FENCED_LEADER_EPOCH if is_old else Error.UNKNOWN_LEADER_EPOCH)
        if self.leadership.leader_id != self.node_id:
            raise KafkaError(Error.NOT_LEADER_OR_FOLLOWER)

    def begin_epoch(self) -> None:
        """This broker leads from here on: the epoch starts at the log's end (KIP-101), and what
        the only replica has is committed."""
        log = self.log
        log.begin_epoch(self.leadership.leader_epoch)
        if log.is_durable_on_append:
            self.advance(log.log_end_offset)
        else:
            self.advance(log.durability.durable_offset)
            log.durability.want(log.log_end_offset)

    def give_up(self, error: KafkaError) -> None:
        """Nothing more is committed here: the role is lost, or the partition."""
        self.log.watermark.fail(error)
        self.wake()

    def examine(self, append: Append) -> Steps[Checked]:
        """A client's batch looked at in steps, before `write`."""
        return examine(append, self.log.config)

    def append(
        self,
        records: memoryview,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        *,
        is_all: bool = False,
        transaction_version: int = 0,
    ) -> AppendResult:
        """What a coordinator writes; a marker says by which version of transactions its epoch is
        to be judged."""
        append = Append(records, now_ms, origin=origin, transaction_version=transaction_version)
        return self.write(append, is_all=is_all)

    def write(self, append: Append, *, is_all: bool) -> AppendResult:
        """Append as leader and let the high watermark follow; `is_all` means acks=all."""
        leadership, log = self.leadership, self.log
        if leadership.leader_id != self.node_id:
            self.check_leader()
        if is_all and not leadership.has_enough_in_sync(log.config.min_insync_replicas):
            raise KafkaError(Error.NOT_ENOUGH_REPLICAS)
        append.leader_epoch = leadership.leader_epoch
        result = append_as_leader(log, append)
        if log.is_durable_on_append:
            self.advance(log.log_end_offset)
        else:
            log.durability.want(log.log_end_offset)
        return result

    def _durability_moved(self) -> None:
        """More of the log is on stable storage, or nothing more of it ever will be."""
        log = self.log
        if log.lost is not None:
            self.give_up(log.lost)
        elif self.leadership.leader_id == self.node_id:
            self.advance(log.durability.durable_offset)

    def advance(self, high_watermark: int) -> None:
        """Raise the high watermark and wake whoever waited for it."""
        if self.log.replicated(high_watermark):
            self.wake()

    def when_committed(self, offset: int) -> Later[KafkaError | None]:
        """Filled once every record below `offset` is committed; with an error when nobody can tell
        here any more whether it will be: the role is lost, the topic deleted, the disk broken."""
        if offset <= self.log.high_watermark:
            return Later.of(None)
        if self.leadership.leader_id != self.node_id:
            return Later.of(KafkaError(Error.NOT_LEADER_OR_FOLLOWER))
        if self.log.lost is not None:
            return Later.of(self.log.lost)
        return self.log.watermark.wait_for(offset)

    def moved(self, log: PartitionLog) -> None:
        """The log lies in another directory now; who waits looks again there."""
        self.log.durability.on_moved = None
        self.log = log
        log.durability.on_moved = self._durability_moved
        self._durability_moved()
        self.wake()

    def watch(self, parked: Parked) -> None:
        self._watchers[parked] = None

    def unwatch(self, parked: Parked) -> None:
        self._watchers.pop(parked, None)

    def wake(self) -> None:
        """Have whoever watches look again: new data, a new role, or the partition's end."""
        for parked in self._watchers:
            parked.moved(self)

    def end_offset(self, *, is_committed_only: bool) -> int:
        """Where a consumer of this isolation level must stop reading."""
        return self.log.last_stable_offset if is_committed_only else self.log.high_watermark

    def read(
        self, position: FetchPosition, *, is_committed_only: bool, min_one: bool
    ) -> PartitionRead:
        """Records from a position on, as far as this isolation level may see."""
        self.check_leader(position.leader_epoch)
        log = self.log
        found = PartitionRead(
            log.high_watermark, log.last_stable_offset, log.log_start_offset
        )
        found.diverging = self._divergence(position)
        if found.diverging is not None:
            return found
        limit = self.end_offset(is_committed_only=is_committed_only)
        slice_ = log.read(position.offset, position.max_bytes, limit, min_one)
        found.records = slice_.range
        if is_committed_only and not slice_.is_too_small:
            found.aborted = log.aborted_transactions(position.offset, slice_.end_offset)
        return found

    def offset_for_time(
        self, timestamp: int, *, is_committed_only: bool
    ) -> Steps[FoundOffset | None]:
        """The offset of a moment or of a named offset, as ListOffsets
        counts them; None where this isolation level can see no such record."""
        limit = self.end_offset(is_committed_only=is_committed_only)
        if timestamp == LATEST_TIMESTAMP:
            return FoundOffset(NO_TIMESTAMP, limit, self.leadership.leader_epoch)
        found = yield from self.log.offset_for_time_in_steps(timestamp, limit)
        if found is not None and found.leader_epoch < 0 and found.offset == self.log.log_end_offset:
            return found._replace(leader_epoch=self.leadership.leader_epoch)  # of what comes next
        return found

    def segment_starts(self) -> list[tuple[int, int]]:
        """Each segment's first offset, and when it was last written to."""
        log = self.log
        disk = log.home.disk
        return [
            (max(segment.base_offset, log.log_start_offset), disk.modified_ms(segment.path(".log")))
            for segment in log.segments
        ]

    def delete_records_before(self, offset: int) -> int:
        """Move the log's start up to `offset` (-1: the high watermark); returns the new start."""
        log = self.log
        if log.config.is_compacted and not log.config.is_deleted:
            raise KafkaError(Error.POLICY_VIOLATION)
        target = log.high_watermark if offset == -1 else offset
        if not 0 <= target <= log.high_watermark:
            raise KafkaError(Error.OFFSET_OUT_OF_RANGE)
        log.delete_records_before(target)
        return log.log_start_offset

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest known epoch up to this one and where it ends; (-1, -1) if none is."""
        if epoch == self.leadership.leader_epoch:
            return epoch, self.log.log_end_offset
        return self.log.end_offset_for_epoch(epoch)

    def _divergence(self, position: FetchPosition) -> tuple[int, int] | None:
        """Where the reader's log parts from ours. Asked before the offset's range is checked:
        a reader with a tail that we never had must truncate, not start over."""
        if position.last_fetched_epoch == NO_EPOCH:
            return None
        epoch, end_offset = self.end_offset_for_epoch(position.last_fetched_epoch)
        if epoch == NO_EPOCH or end_offset == -1:
            raise KafkaError(Error.OFFSET_OUT_OF_RANGE)
        if epoch < position.last_fetched_epoch or end_offset < position.offset:
            return epoch, end_offset
        return None
