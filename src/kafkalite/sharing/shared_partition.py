"""One partition as one group shares it, on the broker that leads it.

Owns the window, from its loading on: when locks expire, what is on its way to the share
coordinator, and who waits for records. One write is under way at a time, with all that has come
meanwhile in the next. Invariant: what a member is told of an acknowledgement is what was written.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from enum import Enum

from kafkalite.coordinators.shares.batches import NO_OFFSET, StateBatch, joined
from kafkalite.coordinators.shares.persister import Known, Persister
from kafkalite.coordinators.shares.records import ShareKey
from kafkalite.env import Env
from kafkalite.env.clock import Timer
from kafkalite.env.later import Later
from kafkalite.env.slicing import Steps
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.replication.partition import LATEST_TIMESTAMP, Partition
from kafkalite.replication.waiting import Parked
from kafkalite.sharing import acknowledging
from kafkalite.sharing.acknowledging import Said, Speaker
from kafkalite.sharing.acquiring import Acquired, Asker, Fetched, acquire, without
from kafkalite.sharing.in_flight import Transition
from kafkalite.sharing.settings import BY_DURATION, ShareSettings, duration_ms
from kafkalite.sharing.window import Window, said_of

log = logging.getLogger(__name__)

EARLIEST_TIMESTAMP = -2
# What members are told when the coordinator refuses.
_TOLD = {
    Error.NOT_COORDINATOR: Error.COORDINATOR_NOT_AVAILABLE,
    Error.COORDINATOR_NOT_AVAILABLE: Error.COORDINATOR_NOT_AVAILABLE,
    Error.COORDINATOR_LOAD_IN_PROGRESS: Error.COORDINATOR_NOT_AVAILABLE,
    Error.GROUP_ID_NOT_FOUND: Error.GROUP_ID_NOT_FOUND,
    Error.UNKNOWN_TOPIC_OR_PARTITION: Error.UNKNOWN_TOPIC_OR_PARTITION,
    Error.FENCED_LEADER_EPOCH: Error.NOT_LEADER_OR_FOLLOWER,
    Error.FENCED_STATE_EPOCH: Error.NOT_LEADER_OR_FOLLOWER,
    Error.OFFSET_NOT_AVAILABLE: Error.OFFSET_NOT_AVAILABLE,
    Error.NOT_LEADER_OR_FOLLOWER: Error.NOT_LEADER_OR_FOLLOWER,
}
# After these somebody else has a newer state.
FENCED = (
    Error.NOT_LEADER_OR_FOLLOWER, Error.GROUP_ID_NOT_FOUND, Error.UNKNOWN_TOPIC_OR_PARTITION
)  # fmt: skip

_Told = Callable[[KafkaError | None], None]


class State(Enum):
    LOADING = "loading"
    ACTIVE = "active"
    GONE = "gone"


class SharedPartition:
    def __init__(
        self,
        env: Env,
        key: ShareKey,
        partition: Partition,
        persister: Persister,
        settings: ShareSettings,
        forget: Callable[[SharedPartition], None],
    ) -> None:
        self.key, self.partition = key, partition
        self.leader_epoch = partition.leader_epoch
        self.state = State.LOADING
        self.failure: KafkaError | None = None
        self._env, self._persister, self._settings = env, persister, settings
        self._forget = forget
        self._window = Window(0, 0)
        self._state_epoch = 0
        self._watchers: dict[Parked, None] = {}
        self._timer: Timer | None = None
        self._timer_ms = 0
        self._is_expiring = False
        self._unwritten: list[tuple[list[StateBatch], _Told]] = []
        self._is_writing = False
        self._settled: list[Later[None]] = []

    @property
    def window(self) -> Window:
        return self._window

    @property
    def is_current(self) -> bool:
        """Whether this broker leads the partition still, in the same epoch."""
        partition = self.partition
        return partition.is_leader and partition.leader_epoch == self.leader_epoch

    # --- its beginning and end --------------------------------------------------------------------

    def load(self) -> None:
        self._persister.read(self.key, self.leader_epoch).then(self._known, self._mistaken)

    def _known(self, known: Known | KafkaError) -> None:
        if isinstance(known, KafkaError):
            self._failed(known)
        elif known.start_offset != NO_OFFSET:
            self._begin(known, known.start_offset)
        else:
            self._first_offset().then(
                lambda offset: self._begin(known, offset), self._mistaken
            )

    def _mistaken(self, error: Exception) -> None:
        if not isinstance(error, KafkaError):
            log.error("%s is not shared, by a mistake of ours", self.key, exc_info=error)
            error = KafkaError(Error.UNKNOWN_SERVER_ERROR)
        self._failed(error)

    def _first_offset(self) -> Later[int]:
        """Where a group begins that has read nothing."""
        begins_at = self._settings.begins_at(self.key.group_id)
        if begins_at.startswith(BY_DURATION):
            ago_ms = duration_ms(begins_at.removeprefix(BY_DURATION))
            timestamp = max(0, self._env.clock.now_ms() - ago_ms)
        else:
            timestamp = EARLIEST_TIMESTAMP if begins_at == "earliest" else LATEST_TIMESTAMP
        steps = self.partition.offset_for_time(timestamp, is_committed_only=False)

        def offset(found: tuple[int, int, int] | None) -> int:
            if found is None:
                why = f"Offset for timestamp {timestamp} not found."
                raise KafkaError(Error.OFFSET_NOT_AVAILABLE, why)
            return found[1]

        return self._env.slices.later(steps).map(offset)

    def _begin(self, known: Known, start_offset: int) -> None:
        if self.state is State.GONE:
            return
        try:
            self._window = Window.of(start_offset, known.batches)
        except KafkaError as error:
            self._failed(error)
            return
        self._state_epoch = known.state_epoch
        self.state = State.ACTIVE
        self.wake()

    def _failed(self, error: KafkaError) -> None:
        self.failure = self._told(error)
        self.close()

    def close(self) -> None:
        """Nothing is handed out any more; whoever shares the partition next loads it again."""
        if self.state is not State.GONE:
            self.state = State.GONE
            self._forget(self)
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self.wake()

    def _told(self, error: KafkaError) -> KafkaError:
        code = _TOLD.get(Error(error.code), Error.UNKNOWN_SERVER_ERROR)
        return KafkaError(code, error.message or Error(error.code).message)

    # --- who waits --------------------------------------------------------------------------------

    def watch(self, parked: Parked) -> None:
        self._watchers[parked] = None

    def unwatch(self, parked: Parked) -> None:
        self._watchers.pop(parked, None)

    def wake(self) -> None:
        for parked in self._watchers:
            parked.moved(self)

    # --- records ----------------------------------------------------------------------------------

    def wanted_offset(self) -> int | None:
        """Where the next record is that may be handed out; None when none may."""
        if self.state is not State.ACTIVE:
            return None
        most = self._settings.most_in_flight(self.key.group_id)
        return self._window.next_fetch_offset() if self._window.can_acquire(most) else None

    def acquire(
        self,
        member: str,
        most_records: int,
        batch_size: int,
        *,
        is_strict: bool,
        fetch_offset: int,
        fetched: Sequence[Fetched],
        aborted: Iterable[Fetched] = (),
    ) -> list[Acquired]:
        if self.state is not State.ACTIVE:
            return []
        group_id, settings = self.key.group_id, self._settings
        until_ms = self._env.clock.monotonic_ms() + settings.lock_ms(group_id)
        asker = Asker(
            member, until_ms, most_records, batch_size, is_strict,
            settings.most_in_flight(group_id), settings.most_deliveries(group_id),
        )  # fmt: skip
        acquired = acquire(self._window, asker, fetch_offset, fetched)
        acquired = without(self._window, acquired, aborted)
        if acquired:
            self._expire_at(until_ms)
        return acquired

    def log_begins_at(self, offset: int) -> None:
        self._window.log_begins_at(offset)

    def acknowledge(self, member: str, said: Iterable[Said]) -> Steps[Later[KafkaError | None]]:
        """Filled once it is written, or refused."""
        group_id, settings = self.key.group_id, self._settings
        until_ms = self._env.clock.monotonic_ms() + settings.lock_ms(group_id)
        speaker = Speaker(
            member, until_ms, settings.most_deliveries(group_id), settings.may_renew(group_id)
        )
        if self.state is not State.ACTIVE:
            return Later.of(KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION))
        try:
            transition = yield from acknowledging.acknowledge(self._window, speaker, said)
        except KafkaError as error:
            self._expire_next()
            self.wake()
            return Later.of(error.with_traceback(None))
        if self._is_gone():
            return Later.of(KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION))
        self._expire_at(until_ms)
        return self._write_transition(transition)

    def _is_gone(self) -> bool:
        return self.state is State.GONE

    def release(self, member: str) -> Steps[Later[KafkaError | None]]:
        """All that a member had, which has gone."""
        if self.state is not State.ACTIVE:
            return Later.of(None)
        most = self._settings.most_deliveries(self.key.group_id)
        transition = yield from acknowledging.release(self._window, member, most)
        return Later.of(None) if self._is_gone() else self._write_transition(transition)

    # --- writing ----------------------------------------------------------------------------------

    def _write_transition(self, transition: Transition) -> Later[KafkaError | None]:
        if transition.is_empty:
            return Later.of(None)
        later: Later[KafkaError | None] = Later()

        def written(error: KafkaError | None) -> None:
            now_ms = self._env.clock.monotonic_ms()
            acknowledging.end(
                self._window, transition, is_written=error is None, now_ms=now_ms
            )
            self._expire_next()
            self.wake()
            later.resolve(error)

        said = sorted(map(said_of, transition.runs))
        self._write(said, written)
        return later

    def _write(self, said: list[StateBatch], told: _Told) -> None:
        self._unwritten.append((said, told))
        if not self._is_writing:
            self._write_next()

    def settled(self) -> Later[None]:
        """Filled once nothing is on its way to the share coordinator."""
        if not self._is_writing:
            return Later.of(None)
        self._settled.append(Later())
        return self._settled[-1]

    def _write_next(self) -> None:
        if not self._unwritten:
            settled, self._settled = self._settled, []
            for later in settled:
                later.resolve(None)
            return
        some, self._unwritten = self._unwritten, []
        window = self._window
        self._is_writing = True
        self._persister.write(
            self.key,
            state_epoch=self._state_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=window.start_offset,
            complete_count=window.complete_count,
            batches=joined(sorted(one for said, _ in some for one in said)),
        ).then(lambda error: self._written(some, error))

    def _written(
        self, some: list[tuple[list[StateBatch], _Told]], error: KafkaError | None
    ) -> None:
        self._is_writing = False
        refused = None if error is None else self._told(error)
        if refused is not None and refused.code in FENCED:
            self.close()
        for _, told in some:
            told(refused)
        self._write_next()

    # --- locks ------------------------------------------------------------------------------------

    def _expire_at(self, at_ms: int) -> None:
        if self._timer is not None:
            if self._timer_ms <= at_ms:
                return
            self._timer.cancel()
        delay_ms = max(0, at_ms - self._env.clock.monotonic_ms())
        self._timer_ms = at_ms
        self._timer = self._env.clock.call_later(delay_ms, self._expire)

    def _expire_next(self) -> None:
        if self._timer is None and not self._is_expiring and self.state is State.ACTIVE:
            next_ms = self._window.next_deadline_ms()
            if next_ms is not None:
                self._expire_at(next_ms)

    def _expire(self) -> None:
        self._timer = None
        if not self.is_current:
            self.close()
            return
        self._is_expiring = True
        most = self._settings.most_deliveries(self.key.group_id)
        steps = self._window.expire(self._env.clock.monotonic_ms(), most)
        self._env.slices.later(steps).then(self._expired, self._not_expired)

    def _expired(self, written: list[StateBatch]) -> None:
        self._is_expiring = False
        self._expire_next()
        if written and not self._is_gone():
            self._write(written, self._expiry_written)
            self.wake()

    def _not_expired(self, mistake: Exception) -> None:
        self._is_expiring = False
        raise mistake

    def _expiry_written(self, error: KafkaError | None) -> None:
        if error is not None:
            log.warning("expired locks of %s could not be written: %s", self.key, error)
        self._window.move_start()
