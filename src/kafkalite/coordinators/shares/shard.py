"""The share coordinator of one partition of `__share_group_state`.

Owns the states whose keys fall into the partition, which epochs may still write them, and when a
whole state is written in place of a change. Invariant: all of it is the fold of the log, from the
offset that was pruned to.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from kafkalite.coordinators.effects import Effects, Producer, Record, Timer
from kafkalite.coordinators.events import Event
from kafkalite.coordinators.shares import events, records
from kafkalite.coordinators.shares.batches import NO_OFFSET, combined
from kafkalite.coordinators.shares.records import (
    NO_COUNT,
    UNINITIALIZED,
    ShareChange,
    ShareKey,
    ShareState,
)
from kafkalite.env.dataclasses import dataclass, field, replace
from kafkalite.protocol.errors import Error, KafkaError

log = logging.getLogger(__name__)

NO_EPOCH = -1
_PRUNE, _SNAPSHOTS = "prune", "snapshots"


@dataclass(slots=True)
class Settings:
    """What a shard is told of the broker's configuration, and of the cluster."""

    updates_per_snapshot: int
    prune_interval_ms: int
    cold_snapshot_interval_ms: int
    # Of a topic by its id; 0 when there is none.
    partition_count: Callable[[bytes], int]


@dataclass(slots=True)
class _Entry:
    """A state, who may still write it, and where in the log it was last written whole."""

    state: ShareState
    leader_epoch: int
    state_epoch: int
    updates: int = 0
    offset: int = 0


@dataclass(slots=True)
class ShareShard:
    settings: Settings
    entries: dict[ShareKey, _Entry] = field(default_factory=dict)
    _last_tombstone: int = 0
    _pruned_to: int = 0

    # --- the shard protocol -----------------------------------------------------------------------

    def mark(self, event: Event[object]) -> object:
        """All but this is the fold of the log."""
        return self._pruned_to

    def decide(self, event: Event[object], now_ms: int) -> Effects:
        return _DECISIONS[type(event)](self, event, now_ms)

    def replay(self, record: Record) -> None:
        said = records.read(record)
        if said is None:
            log.warning("skipped a record of __share_group_state that is not known here")
            return
        key, value = said
        if value is None:
            self.entries.pop(key, None)
            self._last_tombstone = record.offset
        elif isinstance(value, ShareState):
            self._replay_state(key, value, record.offset)
        else:
            self._replay_change(key, value, record.offset)

    def replay_end_transaction(self, producer: Producer, committed: bool) -> None:
        """Nothing: this log's records are never part of a transaction."""

    def loaded(self, now_ms: int) -> Effects:
        return Effects(timers=self._timers() if self.entries else [])

    # --- replay -----------------------------------------------------------------------------------

    def _replay_state(self, key: ShareKey, state: ShareState, offset: int) -> None:
        entry = self.entries.get(key)
        if entry is None:
            entry = self.entries[key] = _Entry(state, state.leader_epoch, state.state_epoch)
        entry.state = state
        entry.leader_epoch = max(entry.leader_epoch, state.leader_epoch)
        entry.state_epoch = max(entry.state_epoch, state.state_epoch)
        entry.updates, entry.offset = 0, offset

    def _replay_change(self, key: ShareKey, change: ShareChange, offset: int) -> None:
        entry = self.entries.get(key)
        if entry is None:  # its whole state was pruned away, which whoever pruned did not need
            base = replace(UNINITIALIZED, snapshot_epoch=change.snapshot_epoch)
            entry = self.entries[key] = _Entry(base, change.leader_epoch, 0, 0, offset)
        entry.state = _changed(entry.state, change)
        entry.leader_epoch = max(entry.leader_epoch, change.leader_epoch)
        entry.updates += 1

    # --- decisions --------------------------------------------------------------------------------

    def initialize(self, event: events.Initialize, now_ms: int) -> Effects:
        key, entry = event.key, self.entries.get(event.key)
        _check_partition(key)
        if entry is not None and NO_EPOCH != event.state_epoch < entry.state_epoch:
            raise _refused(Error.FENCED_STATE_EPOCH)
        self._check_topic(key)
        state = ShareState(
            0 if entry is None else entry.state.snapshot_epoch + 1,
            event.state_epoch, 0, event.start_offset,
            NO_COUNT if event.start_offset == NO_OFFSET else 0, (), now_ms, now_ms,
        )  # fmt: skip
        return Effects([records.snapshot(key, state)], reply=None, timers=self._timers())

    def read(self, event: events.Read, now_ms: int) -> Effects:
        entry = self._written(event.key, event.leader_epoch, NO_EPOCH, "Read")
        self._check_topic(event.key)
        effects = Effects(reply=entry.state)
        if event.leader_epoch not in (NO_EPOCH, entry.leader_epoch):
            change = ShareChange(
                entry.state.snapshot_epoch, event.leader_epoch, entry.state.start_offset,
                entry.state.complete_count, (),
            )  # fmt: skip
            effects.records.append(self._record(event.key, entry, change, now_ms))
        return effects

    def write(self, event: events.Write, now_ms: int) -> Effects:
        entry = self._written(event.key, event.leader_epoch, event.state_epoch, "Write")
        self._check_topic(event.key)
        change = ShareChange(
            entry.state.snapshot_epoch, entry.state.leader_epoch, event.start_offset,
            event.complete_count, tuple(combined((), event.batches, event.start_offset)),
        )  # fmt: skip
        return Effects([self._record(event.key, entry, change, now_ms)], reply=None)

    def delete(self, event: events.Delete, now_ms: int) -> Effects:
        _check_partition(event.key)
        self._check_topic(event.key)
        known = event.key in self.entries
        return Effects([records.tombstone(event.key)] if known else [], reply=None)

    def summarize(self, event: events.Summarize, now_ms: int) -> Effects:
        _check_partition(event.key)
        self._check_topic(event.key)
        entry = self.entries.get(event.key)
        return Effects(reply=UNINITIALIZED if entry is None else entry.state)

    def topics_deleted(self, event: events.TopicsDeleted, now_ms: int) -> Effects:
        gone = [key for key in self.entries if key.topic_id in event.topic_ids]
        return Effects([records.tombstone(key) for key in gone], reply=None, atomic=False)

    # --- housekeeping -----------------------------------------------------------------------------

    def prune(self, event: events.PruneDue, now_ms: int) -> Effects:
        """What lies before the oldest state that still holds says nothing any more."""
        offsets = (entry.offset for entry in self.entries.values())
        offset = min(offsets, default=self._last_tombstone)
        effects = Effects(timers=self._timers(again=_PRUNE))
        if offset > self._pruned_to:
            self._pruned_to = offset
            effects.sends.append(events.Prune(offset))
        return effects

    def snapshot_cold(self, event: events.SnapshotsDue, now_ms: int) -> Effects:
        effects = Effects(timers=self._timers(again=_SNAPSHOTS), atomic=False)
        states = [(key, entry.state) for key, entry in self.entries.items()]
        if all(state.written_ms != state.created_ms for _, state in states):
            return effects  # nobody writes anything: whole states would follow whole states
        for key, state in states:
            if now_ms - state.written_ms >= self.settings.cold_snapshot_interval_ms:
                epoch = state.snapshot_epoch + 1
                whole = replace(state, snapshot_epoch=epoch, written_ms=now_ms)
                effects.records.append(records.snapshot(key, whole))
        return effects

    def _timers(self, again: str | None = None) -> list[Timer]:
        due: list[tuple[str, int, Event[object]]] = [
            (_PRUNE, self.settings.prune_interval_ms, events.PruneDue()),
            (_SNAPSHOTS, self.settings.cold_snapshot_interval_ms, events.SnapshotsDue()),
        ]
        return [
            Timer(name, delay_ms, event, only_if_absent=True)
            for name, delay_ms, event in due
            if again in (None, name)
        ]

    # --- checks -----------------------------------------------------------------------------------

    def _written(self, key: ShareKey, leader_epoch: int, state_epoch: int, what: str) -> _Entry:
        _check_partition(key)
        entry = self.entries.get(key)
        if entry is None:
            why = f"{what} operation on uninitialized share partition not allowed."
            raise KafkaError(Error.INVALID_REQUEST, why)
        if NO_EPOCH != leader_epoch < entry.leader_epoch:
            raise _refused(Error.FENCED_LEADER_EPOCH)
        if NO_EPOCH != state_epoch < entry.state_epoch:
            raise _refused(Error.FENCED_STATE_EPOCH)
        return entry

    def _check_topic(self, key: ShareKey) -> None:
        if key.partition >= self.settings.partition_count(key.topic_id):
            raise _refused(Error.UNKNOWN_TOPIC_OR_PARTITION)

    def _record(
        self, key: ShareKey, entry: _Entry, change: ShareChange, now_ms: int
    ) -> Record:
        if entry.updates < self.settings.updates_per_snapshot:
            return records.update(key, change)
        whole = replace(
            _changed(entry.state, change), snapshot_epoch=entry.state.snapshot_epoch + 1,
            created_ms=now_ms, written_ms=now_ms,
        )  # fmt: skip
        return records.snapshot(key, whole)


def _changed(state: ShareState, change: ShareChange) -> ShareState:
    start = state.start_offset if change.start_offset == NO_OFFSET else change.start_offset
    return replace(
        state,
        leader_epoch=state.leader_epoch if change.leader_epoch == NO_EPOCH else change.leader_epoch,
        start_offset=start,
        complete_count=change.complete_count,
        batches=tuple(combined(state.batches, change.batches, start)),
    )


def _check_partition(key: ShareKey) -> None:
    if key.partition < 0:
        why = "The partition id cannot be a negative number."
        raise KafkaError(Error.INVALID_REQUEST, why)


def _refused(code: Error) -> KafkaError:
    return KafkaError(code, code.message)


_DECISIONS: dict[type, Callable[[ShareShard, Any, int], Effects]] = {
    events.Initialize: ShareShard.initialize,
    events.Read: ShareShard.read,
    events.Write: ShareShard.write,
    events.Delete: ShareShard.delete,
    events.Summarize: ShareShard.summarize,
    events.TopicsDeleted: ShareShard.topics_deleted,
    events.PruneDue: ShareShard.prune,
    events.SnapshotsDue: ShareShard.snapshot_cold,
}
