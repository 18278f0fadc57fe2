"""A partition's leader: who is in sync with it, and what is committed by that.

Owns the epochs, the in-sync replicas and what is known of each follower's log. It has no clock, no
log and nobody to call: it is told what happened and what the moment is like, and answers with
effects. Invariant: nothing is committed that a replica of the maximal ISR does not have: the
committed in-sync replicas, and the one that the controller is asked to add.

The rules are those of Apache Kafka's `Partition`: KIP-497 (AlterPartition), KIP-841 (fenced brokers
and those that stop do not join) and KIP-966 (fewer than min.insync.replicas commit nothing new,
so that whoever was in sync last has all of it).
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from kafkalite.env.dataclasses import dataclass, field
from kafkalite.protocol.errors import Error, KafkaError

NO_EPOCH = -1
UNKNOWN_OFFSET = -1

# The controller has not done it, and what it knows of the partition is what we do.
_REFUSED = (Error.OPERATION_NOT_ATTEMPTED, Error.INELIGIBLE_REPLICA)
# Whether it was done or not, the metadata is ahead of us, and will say.
_OVERTAKEN = (
    Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_ID, Error.FENCED_LEADER_EPOCH,
    Error.INVALID_UPDATE_VERSION, Error.INVALID_REQUEST, Error.NEW_LEADER_ELECTED,
)  # fmt: skip


@dataclass(slots=True)
class Neighbours:
    """The cluster's brokers as this one knows them from the metadata, one for all partitions."""

    epochs: dict[int, int] = field(default_factory=dict)  # of those that are up and not fenced
    stopping: set[int] = field(default_factory=set)
    max_lag_ms: int = 30_000  # replica.lag.time.max.ms
    fetch_backoff_ms: int = 1_000  # replica.fetch.backoff.ms
    # How often leaders here had somebody leave the in-sync replicas, or join them.
    isr_shrinks: int = 0
    isr_expands: int = 0

    def altered(self, had: int, has: int) -> None:
        """A leader was given other in-sync replicas, as it had asked."""
        self.isr_shrinks += has < had
        self.isr_expands += has > had


@dataclass(slots=True, frozen=True)
class Leadership:
    """What the metadata says of a partition. Not all replicas need copy from the leader: those that
    do not are counted by what the metadata says alone."""

    leader_id: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    copying: tuple[int, ...] = ()


@dataclass(slots=True, frozen=True)
class Moment:
    """What an event finds: the leader's own log, what is asked of it, and the others."""

    now_ms: int
    log_start_offset: int
    high_watermark: int
    own_offset: int  # what the leader vouches for: under fsync durability what is on its disk
    log_end_offset: int
    min_isr: int
    neighbours: Neighbours


@dataclass(slots=True, frozen=True)
class ReplicaFetch:
    """What a follower's fetch says of its log."""

    offset: int
    log_start_offset: int
    broker_epoch: int = NO_EPOCH


# --- effects --------------------------------------------------------------------------------------


@dataclass(slots=True, frozen=True)
class Committed:
    """Everything below an offset is."""

    high_watermark: int


@dataclass(slots=True, frozen=True)
class LowWatermark:
    """No replica that is up has anything below an offset any more."""

    offset: int


@dataclass(slots=True, frozen=True, eq=False)
class AlterPartition:
    """Asks the controller for other in-sync replicas, each with the epoch of its broker."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]
    joining: int | None = None  # counts as in sync at once: that only holds more back


@dataclass(slots=True, frozen=True)
class Altered:
    """The controller has done it, or found it done."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]


Effect = Committed | LowWatermark | AlterPartition


# --- state ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class Replica:
    """What the leader knows of a follower, by its fetches."""

    log_start_offset: int = UNKNOWN_OFFSET
    end_offset: int = UNKNOWN_OFFSET
    broker_epoch: int | None = None
    caught_up_ms: int = 0  # the last time at which it had all that the leader then had
    _fetched_ms: int = 0
    _leader_end_offset: int = 0  # when it fetched last

    def fetched(self, fetch: ReplicaFetch, leader_end_offset: int, now_ms: int) -> None:
        """A follower is never quite at the end of a busy log: having come where that was at its
        fetch before means that it was caught up then."""
        if fetch.offset >= leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif fetch.offset >= self._leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, self._fetched_ms)
        self.log_start_offset, self.end_offset = fetch.log_start_offset, fetch.offset
        self.broker_epoch = fetch.broker_epoch
        self._leader_end_offset = max(leader_end_offset, self._leader_end_offset)
        self._fetched_ms = now_ms

    def begin_epoch(self, leader_end_offset: int, now_ms: int, *, is_in_sync: bool) -> None:
        """The same leader is elected again: who is in sync has the full time to show up."""
        self._leader_end_offset = leader_end_offset
        self._fetched_ms = self.caught_up_ms = now_ms if is_in_sync else 0

    def is_caught_up(self, moment: Moment) -> bool:
        lag_ms = moment.now_ms - self.caught_up_ms
        is_at_end = self.end_offset == moment.log_end_offset
        return is_at_end or lag_ms <= moment.neighbours.max_lag_ms


@dataclass(slots=True)
class Leader:
    """This broker's role for a partition that it leads."""

    leader_id: int  # this broker
    leader_epoch: int = NO_EPOCH
    partition_epoch: int = NO_EPOCH
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()  # as the controller has committed it
    epoch_start_offset: int = UNKNOWN_OFFSET
    followers: dict[int, Replica] = field(default_factory=dict)
    pending: AlterPartition | None = None

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """With the one that is to join; one that is to leave is in sync until it has."""
        pending = self.pending
        if pending is None or pending.joining is None:
            return self.isr
        return (*self.isr, pending.joining)

    def take(self, said: Leadership, log_end_offset: int, now_ms: int) -> bool:
        """Takes over what the metadata says; True when that begins a new epoch. What was asked of
        the controller is settled by it."""
        if said.partition_epoch < self.partition_epoch:
            return False
        is_new_epoch = said.leader_epoch > self.leader_epoch
        known, is_elected_again = self.followers, self.leader_epoch != NO_EPOCH
        others = [each for each in said.copying if each != self.leader_id]
        self.followers = {each: known.get(each) or Replica() for each in others}
        self.replicas, self.isr, self.pending = said.replicas, said.isr, None
        self.leader_epoch, self.partition_epoch = said.leader_epoch, said.partition_epoch
        if is_new_epoch:
            self.epoch_start_offset = log_end_offset
            for broker_id, replica in self.followers.items():
                is_in_sync = broker_id in self.isr
                if is_elected_again:
                    replica.begin_epoch(log_end_offset, now_ms, is_in_sync=is_in_sync)
                else:
                    replica.caught_up_ms = now_ms if is_in_sync else 0
        return is_new_epoch

    # --- what is committed ------------------------------------------------------------------------

    def high_watermark(self, moment: Moment) -> int:
        """Up to where everything is committed; below what it was when that is no news.

        A follower that is caught up counts though it has not joined yet: else the others would run
        ahead of it for ever. Below min.insync.replicas nothing new is committed.
        """
        if not self.has_enough_in_sync(moment.min_isr):
            return moment.high_watermark
        maximal_isr, lowest = self.maximal_isr, moment.own_offset
        for broker_id, replica in self.followers.items():
            if replica.end_offset < lowest and (
                broker_id in maximal_isr
                or (replica.is_caught_up(moment) and self._is_eligible(broker_id, moment))
            ):
                lowest = replica.end_offset
        return lowest

    def has_enough_in_sync(self, wanted: int) -> bool:
        """For an append with acks=all, or to commit any: all replicas are enough, however many a
        topic's settings want."""
        return len(self.isr) >= min(wanted, len(self.replicas))

    def outcome_at(self, offset: int, moment: Moment) -> Error | None:
        """Of an append with acks=all that ends at an offset; None while it is not committed."""
        if moment.high_watermark < offset:
            return None
        wanted = min(moment.min_isr, len(self.replicas))
        is_enough = len(self.maximal_isr) >= wanted
        return Error.NONE if is_enough else Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    def low_watermark(self, moment: Moment) -> int:
        """Below it no replica that is up has records any more: how far a DeleteRecords has come."""
        starts = [
            replica.log_start_offset
            for broker_id, replica in self.followers.items()
            if broker_id in moment.neighbours.epochs
        ]
        return min([moment.log_start_offset, *starts])

    def nearest(self, among: Container[int], offset: int) -> int | None:
        """Of the followers among these the one that a reader at an offset is sent to: it is in
        sync, has that offset, and is the furthest."""
        found = [
            (replica.end_offset, replica.caught_up_ms, broker_id)
            for broker_id, replica in self.followers.items()
            if broker_id in among
            and broker_id in self.isr
            and replica.log_start_offset <= offset <= replica.end_offset
        ]
        return max(found)[2] if found else None

    # --- events -----------------------------------------------------------------------------------

    def changed(self, moment: Moment) -> list[Effect]:
        """The log has grown, more of it lasts, or the metadata is another."""
        high_watermark = self.high_watermark(moment)
        return [Committed(high_watermark)] if high_watermark > moment.high_watermark else []

    def check_follower(self, broker_id: int, leader_epoch: int) -> None:
        """Whoever the metadata does not name may know more of it than we do."""
        if broker_id not in self.followers:
            is_sure = leader_epoch != NO_EPOCH
            raise KafkaError(
                Error.UNKNOWN_LEADER_EPOCH if is_sure else Error.NOT_LEADER_OR_FOLLOWER
            )

    def fetched(self, broker_id: int, fetch: ReplicaFetch, moment: Moment) -> list[Effect]:
        """A follower has everything below the offset that it asks for."""
        known_epoch = moment.neighbours.epochs.get(broker_id, NO_EPOCH)
        if NO_EPOCH != fetch.broker_epoch < known_epoch:
            raise KafkaError(Error.NOT_LEADER_OR_FOLLOWER, "a fetch of an earlier life")
        replica = self.followers[broker_id]
        had, low_watermark = replica.end_offset, self.low_watermark(moment)
        replica.fetched(fetch, moment.log_end_offset, moment.now_ms)
        effects: list[Effect] = []
        if self.low_watermark(moment) > low_watermark:
            effects.append(LowWatermark(self.low_watermark(moment)))
        effects += self._expansions(broker_id, replica, moment)
        return effects + (self.changed(moment) if replica.end_offset != had else [])

    def time_passed(self, moment: Moment) -> list[Effect]:
        """Asked every half replica.lag.time.max.ms: followers that lag have to leave."""
        if self.pending is not None:
            return []
        lagging = [each for each in self.isr if each != self.leader_id and self._lags(each, moment)]
        if not lagging:
            return []
        return [self._alter([each for each in self.isr if each not in lagging], moment)]

    def altered(
        self, asked: AlterPartition, outcome: Altered | Error, moment: Moment
    ) -> list[Effect]:
        """What the controller said. An answer that the metadata has overtaken says nothing."""
        if asked is not self.pending:
            return []
        if isinstance(outcome, Error):
            return self._refused(asked, outcome)
        is_ours = outcome.leader_epoch == self.leader_epoch
        if not is_ours or outcome.partition_epoch < self.partition_epoch:
            return []
        self.isr, self.partition_epoch, self.pending = outcome.isr, outcome.partition_epoch, None
        return self.changed(moment)

    # --- in-sync replicas -------------------------------------------------------------------------

    def _refused(self, asked: AlterPartition, error: Error) -> list[Effect]:
        if error in _REFUSED:
            self.pending = None
        return [] if error in (*_REFUSED, *_OVERTAKEN) else [asked]

    def _expansions(
        self, broker_id: int, replica: Replica, moment: Moment
    ) -> Iterator[AlterPartition]:
        """A follower joins when it has all that is committed, and that of this epoch: what is
        committed in truth may be more than the high watermark tells a new leader."""
        is_settled = self.pending is None and broker_id not in self.isr
        if not is_settled or not self._is_eligible(broker_id, moment):
            return
        if replica.end_offset >= max(moment.high_watermark, self.epoch_start_offset):
            yield self._alter([*self.isr, broker_id], moment, joining=broker_id)

    def _is_eligible(self, broker_id: int, moment: Moment) -> bool:
        """Its broker is up, stays, and is in the life in which it fetched."""
        neighbours, fetched_in = moment.neighbours, self.followers[broker_id].broker_epoch
        epoch = neighbours.epochs.get(broker_id)
        is_up = epoch is not None and broker_id not in neighbours.stopping
        return is_up and fetched_in in (NO_EPOCH, epoch)

    def _lags(self, broker_id: int, moment: Moment) -> bool:
        replica = self.followers.get(broker_id)
        return replica is None or not replica.is_caught_up(moment)

    def _alter(
        self, isr: list[int], moment: Moment, *, joining: int | None = None
    ) -> AlterPartition:
        with_epochs = tuple((each, self._epoch_of(each, moment)) for each in isr)
        self.pending = AlterPartition(
            self.leader_epoch, self.partition_epoch, with_epochs, joining
        )
        return self.pending

    def _epoch_of(self, broker_id: int, moment: Moment) -> int:
        """-1 of one that has not fetched: if it dies, the controller notices before we do."""
        if broker_id == self.leader_id:
            return moment.neighbours.epochs.get(broker_id, NO_EPOCH)
        replica = self.followers.get(broker_id)
        found = replica.broker_epoch if replica is not None else None
        return NO_EPOCH if found is None else found
