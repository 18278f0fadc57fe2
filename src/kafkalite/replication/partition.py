"""One partition as this broker holds it: its log, and the role this broker plays for it.

Owns the role, the way from what it decides to the log's high watermark, and who waits on either.
Never reads or writes a file itself: that is the log's. With one replica the high watermark follows
the log end (under fsync durability: what is on disk); a replicated partition's follows its in-sync
replicas, so the three offsets are separate values everywhere. Invariants: it has exactly one role,
which alone decides the high watermark; log_start <= last_stable <= high_watermark <= log_end.
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
from kafkalite.replication.follower import Follower
from kafkalite.replication.leader import Leader, Leadership, Moment, Neighbours
from kafkalite.replication.traffic import Traffic
from kafkalite.replication.waiting import Parked

NO_EPOCH = -1
NO_LEADER = -1
NO_TIMESTAMP = -1
LATEST_TIMESTAMP = -1


@dataclass(slots=True)
class Idle:
    """No role: nobody leads the partition, or it is not here any more."""

    leader_epoch: int = -1
    partition_epoch: int = -1
    leader_id: int = NO_LEADER


Role = Leader | Follower | Idle
_ALONE = Neighbours()


@dataclass(slots=True)
class PartitionRead:
    """What a fetch of one partition found."""

    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    records: FileRange | None = None
    aborted: list[tuple[int, int]] | None = None
    diverging: tuple[int, int] | None = None
    nearer: int | None = None  # who is to be read from instead

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


@dataclass(slots=True, eq=False)
class Partition:
    """A replica on this broker and its waiters."""

    topic: str
    index: int
    topic_id: bytes
    node_id: int
    log: PartitionLog
    role: Role = field(default_factory=Idle)
    neighbours: Neighbours = field(default_factory=lambda: _ALONE)
    traffic: Traffic | None = None  # of its topic, where somebody asked for it to be counted
    _watchers: dict[Parked, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.log.durability.on_moved = self._durability_moved

    @property
    def is_leader(self) -> bool:
        return self.role.leader_id == self.node_id

    @property
    def leader_epoch(self) -> int:
        return self.role.leader_epoch

    @property
    def high_watermark(self) -> int:
        return self.log.high_watermark

    @property
    def last_stable_offset(self) -> int:
        return self.log.last_stable_offset

    def check_leader(self, expected_epoch: int = NO_EPOCH) -> None:
        """Refuse a request that is not for this leader in this epoch."""
        self.check_epoch(expected_epoch)
        if self.role.leader_id != self.node_id:
            raise KafkaError(Error.NOT_LEADER_OR_FOLLOWER)

    def check_epoch(self, expected_epoch: int) -> None:
        """Refuse a request that is not for any replica in this epoch."""
        known_epoch = self.role.leader_epoch
        if expected_epoch != NO_EPOCH and expected_epoch != known_epoch:
            is_old = expected_epoch < known_epoch
            raise KafkaError(Error.FENCED_LEADER_EPOCH if is_old else Error.UNKNOWN_LEADER_EPOCH)

    # --- the role ---------------------------------------------------------------------------------

    def take(self, said: Leadership) -> bool:
        """Takes the role that the metadata says; True when this broker leads from here on, in an
        epoch that is to begin."""
        role = self.role
        if said.leader_id == self.node_id:
            leader = role if isinstance(role, Leader) else Leader(self.node_id)
            self.role = leader
            if leader.pending is not None and said.partition_epoch > leader.partition_epoch:
                self.neighbours.altered(len(leader.isr), len(said.isr))
            is_new_epoch = leader.take(said, self.log.log_end_offset, self._now_ms())
            if not is_new_epoch:
                self.settle()
            return is_new_epoch
        if said.leader_id == NO_LEADER:
            self.role = Idle(said.leader_epoch, said.partition_epoch)
        elif isinstance(role, Follower):
            role.take(said)
        else:
            self.role = Follower(
                said.leader_id, said.leader_epoch, said.partition_epoch,
                backoff_ms=self.neighbours.fetch_backoff_ms,
            )  # fmt: skip
        return False

    def begin_epoch(self) -> None:
        """This broker leads from here on: the epoch starts at the log's end (KIP-101), and what
        all replicas have is committed."""
        log = self.log
        log.begin_epoch(self.role.leader_epoch)
        self.settle()
        if not log.is_durable_on_append:
            log.durability.want(log.log_end_offset)

    def moment(self, now_ms: int) -> Moment:
        """What a leader's role is told beside an event."""
        log = self.log
        return Moment(
            now_ms, log.log_start_offset, log.high_watermark, self._own_offset(),
            log.log_end_offset, log.config.min_insync_replicas, self.neighbours,
        )  # fmt: skip

    def _own_offset(self) -> int:
        """Up to where the leader counts its own log."""
        log = self.log
        return log.log_end_offset if log.is_durable_on_append else log.durability.durable_offset

    def settle(self) -> None:
        """The high watermark goes to where a leader's role now has it."""
        leader = self.role
        if isinstance(leader, Leader):
            self.advance(leader.high_watermark(self.moment(self._now_ms())))

    def _now_ms(self) -> int:
        """For how long followers lag; of a clock that nobody sets."""
        return self.log.home.env.clock.monotonic_ms()

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
        leader, log, traffic = self.role, self.log, self.traffic
        if traffic is not None:
            traffic.produces += 1
        if not isinstance(leader, Leader):
            raise KafkaError(Error.NOT_LEADER_OR_FOLLOWER)
        if log.being_cut is not None:  # as follower, a moment ago
            raise KafkaError(Error.NOT_LEADER_OR_FOLLOWER, "the log is being cut")
        if is_all and not leader.has_enough_in_sync(log.config.min_insync_replicas):
            raise KafkaError(Error.NOT_ENOUGH_REPLICAS)
        append.leader_epoch = leader.leader_epoch
        result = append_as_leader(log, append)
        if not log.is_durable_on_append:
            log.durability.want(log.log_end_offset)
        elif leader.followers or log.config.min_insync_replicas > 1:
            self.settle()
        else:
            self.advance(log.log_end_offset)
        if leader.followers:
            self.wake()  # they read what is not committed yet
        if traffic is not None and not result.is_duplicate:  # one that has come before counts once
            traffic.bytes_in += len(append.records)
            traffic.messages_in += result.last_offset + 1 - result.base_offset
        return result

    def acknowledges(self, offset: int, *, is_all: bool) -> bool:
        """Whether everything below it is committed; for acks=1, which asks for no other replica,
        whether this leader vouches for it."""
        is_committed = self.log.high_watermark >= offset
        return is_committed or (not is_all and self._own_offset() >= offset)

    @property
    def lacks_in_sync(self) -> bool:
        """Whether what is committed is so by fewer than min.insync.replicas."""
        leader = self.role
        return (
            isinstance(leader, Leader)
            and bool(leader.followers)
            and leader.outcome_at(0, self.moment(self._now_ms())) is not Error.NONE
        )

    def _durability_moved(self) -> None:
        """More of the log is on stable storage, or nothing more of it ever will be."""
        if self.log.lost is not None:
            self.give_up(self.log.lost)
        else:
            self.settle()
            if not self.log.is_durable_on_append:
                self.wake()  # also when too few are in sync: acks=1 waits for the disk alone

    def advance(self, high_watermark: int) -> None:
        """Raise the high watermark, as the role has decided, and wake whoever waited for it."""
        if self.log.replicated(high_watermark):
            self.wake()

    def when_committed(self, offset: int) -> Later[KafkaError | None]:
        """Filled once every record below `offset` is committed; with an error when nobody can tell
        here any more whether it will be: the role is lost, the topic deleted, the disk broken."""
        if offset <= self.log.high_watermark:
            return Later.of(None)
        if self.role.leader_id != self.node_id:
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
        log = self.log
        if not is_committed_only:
            return log.high_watermark
        return log.last_stable_offset if log.knows_what_is_stable else log.log_start_offset

    def read(
        self,
        position: FetchPosition,
        *,
        is_committed_only: bool,
        min_one: bool,
        is_leaders: bool = True,
    ) -> PartitionRead:
        """Records from a position on, as far as this isolation level may see; of a follower, too,
        where they need not be the leader's."""
        if self.traffic is not None:
            self.traffic.fetches += 1
        if is_leaders:
            self.check_leader(position.leader_epoch)
        else:
            self.check_epoch(position.leader_epoch)
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

    def read_elsewhere(self, position: FetchPosition, nearer: int) -> PartitionRead:
        """Where the log is, and the replica that its records are to be read from."""
        if self.traffic is not None:
            self.traffic.fetches += 1
        self.check_epoch(position.leader_epoch)
        log = self.log
        return PartitionRead(
            log.high_watermark, log.last_stable_offset, log.log_start_offset, nearer=nearer
        )

    def read_as_replica(
        self, position: FetchPosition, *, min_one: bool = True
    ) -> PartitionRead:
        """Records from a position on up to the log's end, committed or not; or where the reader's
        log parts from ours."""
        if self.traffic is not None:
            self.traffic.fetches += 1
        log = self.log
        found = PartitionRead(log.high_watermark, log.last_stable_offset, log.log_start_offset)
        found.diverging = self._divergence(position)
        if found.diverging is None:
            found.records = log.read(
                position.offset, position.max_bytes, min_one_message=min_one
            ).range
            if self.traffic is not None:
                self.traffic.replication_bytes_out += found.size
        return found

    def offset_for_time(
        self, timestamp: int, *, is_committed_only: bool, is_replica: bool = False
    ) -> Steps[FoundOffset | None]:
        """The offset of a moment or of a named offset, as ListOffsets
        counts them; None where this isolation level can see no such record. A replica sees all."""
        limit = self.end_offset(is_committed_only=is_committed_only)
        is_settled = is_replica or (
            self._knows_what_is_committed
            and (self.log.knows_what_is_stable or not is_committed_only)
        )
        if is_replica:
            limit = self.log.log_end_offset
        found: FoundOffset | None = None
        if timestamp != LATEST_TIMESTAMP:
            found = yield from self.log.offset_for_time_in_steps(timestamp, limit)
        elif is_settled:
            return FoundOffset(NO_TIMESTAMP, limit, self.role.leader_epoch)
        if found is None and not is_settled:
            raise KafkaError(Error.OFFSET_NOT_AVAILABLE)
        if found is not None and found.leader_epoch < 0 and found.offset == self.log.log_end_offset:
            return found._replace(leader_epoch=self.role.leader_epoch)  # of what comes next
        return found

    @property
    def _knows_what_is_committed(self) -> bool:
        """What was committed before its epoch a new leader hears from its followers: until then
        the end that it could name may lie below one that was named before (KIP-207)."""
        leader = self.role
        is_new = isinstance(leader, Leader) and leader.epoch_start_offset > self.high_watermark
        return not is_new

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

    @property
    def low_watermark(self) -> int:
        """Below it no replica that is up has records any more."""
        leader = self.role
        if not isinstance(leader, Leader) or not leader.followers:
            return self.log.log_start_offset
        return leader.low_watermark(self.moment(self._now_ms()))

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest known epoch up to this one and where it ends; (-1, -1) if none is."""
        if epoch == self.role.leader_epoch:
            return epoch, self.log.log_end_offset
        known, role = self.log.end_offset_for_epoch(epoch), self.role
        if known[0] == NO_EPOCH < epoch < role.leader_epoch and isinstance(role, Leader):
            return epoch, role.epoch_start_offset  # of which an empty log keeps nothing
        return known

    def _divergence(self, position: FetchPosition) -> tuple[int, int] | None:
        """Where the reader's log parts from ours. Asked before the offset is held against our end:
        a reader with a tail that we never had must truncate, not start over. One that is below our
        start has nothing of ours in any case."""
        if position.last_fetched_epoch == NO_EPOCH:
            return None
        epoch, end_offset = self.end_offset_for_epoch(position.last_fetched_epoch)
        if epoch == NO_EPOCH or end_offset == -1:
            raise KafkaError(Error.OFFSET_OUT_OF_RANGE)
        if position.offset < self.log.log_start_offset:
            raise KafkaError(Error.OFFSET_OUT_OF_RANGE)
        if epoch < position.last_fetched_epoch or end_offset < position.offset:
            return epoch, end_offset
        return None
