"""Compaction with transactions against a list: one partition's life, and what must hold of it.

An event is a letter and what it is about; `Life` lets it happen to a real log on a disk in memory
and notes it in a list that nothing is ever taken from. What a reader of either kind may and must
find is said from the list alone, in `check`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from kafkalite.env.disk import Disk
from kafkalite.env.slicing import finish
from kafkalite.log.config import COMPACT, LogConfig, LogSettings
from kafkalite.log.partition_log import AppendOrigin, PartitionLog
from kafkalite.log.snapshots import snapshot_path
from kafkalite.records.record import Record
from tests.unit.log.making import World, committed, fetched, keyed, marker

CONFIG = LogConfig(
    cleanup_policy=(COMPACT,), min_cleanable_dirty_ratio=0.0, index_interval_bytes=1,
    delete_retention_ms=5, file_delete_delay_ms=1, retention_ms=-1,
)  # fmt: skip
QUIET = LogSettings(log_cleaner_enable=False, log_retention_check_interval_ms=1 << 40)
LITTLE_MEMORY = LogSettings(
    log_cleaner_enable=False, log_retention_check_interval_ms=1 << 40,
    log_cleaner_dedupe_buffer_size=1,
)  # fmt: skip
FIRST_PRODUCER = 100

WRITE, DELETE, IN_TXN, DELETE_IN_TXN = "write", "delete", "write in", "delete in"
COMMIT, ABORT, ROLL, PASS, CUT = "commit", "abort", "roll", "pass", "delete records"
RECORDS = (WRITE, DELETE, IN_TXN, DELETE_IN_TXN)
LAST_KEY = 9  # that no history has


class Event(NamedTuple):
    """What happens: to which key, by which producer."""

    kind: str
    key: int = 0
    producer: int = 0


@dataclass(slots=True)
class Transaction:
    """A transaction and how it ended, if it did."""

    producer: int
    is_open: bool = True
    is_committed: bool = False


@dataclass(slots=True)
class Written:
    """A record as it was written."""

    offset: int
    key: bytes
    value: bytes | None
    transaction: Transaction | None

    @property
    def is_aborted(self) -> bool:
        done = self.transaction
        return done is not None and not done.is_open and not done.is_committed

    @property
    def is_open(self) -> bool:
        return self.transaction is not None and self.transaction.is_open


@lru_cache(maxsize=1 << 16)
def _batch(key: int, value: bytes | None, producer: int, sequence: int) -> bytes:
    fields: dict[str, object] = {}
    if producer >= 0:
        fields = {
            "producer_id": FIRST_PRODUCER + producer, "producer_epoch": 0,
            "base_sequence": sequence, "is_transactional": True,
        }  # fmt: skip
    return bytes(keyed([(b"k%d" % key, value)], **fields))


@lru_cache(maxsize=1 << 8)
def _marker(producer: int, *, is_commit: bool) -> bytes:
    return bytes(marker(FIRST_PRODUCER + producer, 0, commit=is_commit))


@dataclass(slots=True)
class Life:
    """A log, and the list of what was written to it."""

    settings: LogSettings = field(default_factory=lambda: QUIET)
    disk: Disk | None = None
    config: LogConfig = CONFIG
    world: World = field(init=False)
    written: list[Written] = field(default_factory=list)
    open: dict[int, Transaction] = field(default_factory=dict)
    sequences: dict[int, int] = field(default_factory=dict)
    cut_below: int = 0
    is_late: bool = False  # what was deleted may be forgotten

    def __post_init__(self) -> None:
        self.world = World(self.config, self.disk, self.settings)
        self.world.log()

    @property
    def log(self) -> PartitionLog:
        return self.world.log()

    # --- events -----------------------------------------------------------------------------------

    def happen(self, event: Event) -> None:
        match event.kind:
            case "write" | "delete":
                self._write(event, None)
            case "write in" | "delete in":
                transaction = self.open.setdefault(event.producer, Transaction(event.producer))
                self._write(event, transaction)
            case "commit" | "abort":
                self._end(event.producer, is_commit=event.kind == COMMIT)
            case "roll":
                self.log.roll()
            case "delete records":
                self.cut_below = max(self.cut_below, self.last_stable_offset)
                self.log.delete_records_before(self.cut_below)
                self.world.manager.periodic.retain()
            case "pass":
                self.run_pass()

    def _write(self, event: Event, transaction: Transaction | None) -> None:
        offset = self.log.log_end_offset
        value = b"v%d" % offset if event.kind in (WRITE, IN_TXN) else None
        producer, sequence = -1, -1
        if transaction is not None:
            producer = event.producer
            sequence = 0 if self._has_only_its_marker(producer) else self.sequences.get(producer, 0)
            self.sequences[producer] = sequence + 1
        self.written.append(Written(offset, b"k%d" % event.key, value, transaction))
        self._append(_batch(event.key, value, producer, sequence), AppendOrigin.CLIENT)

    def _has_only_its_marker(self, producer: int) -> bool:
        """After a crash the segment where a log begins is read whole, as in Apache Kafka: who has
        nothing but a marker there, below the log's start, has to begin anew."""
        known = self.log.producers
        state = known.states.get(FIRST_PRODUCER + producer) if known is not None else None
        return self.cut_below > 0 and state is not None and not state.batches

    def _end(self, producer: int, *, is_commit: bool) -> None:
        transaction = self.open.pop(producer)
        transaction.is_open, transaction.is_committed = False, is_commit
        self._append(_marker(producer, is_commit=is_commit), AppendOrigin.COORDINATOR)

    def _append(self, batch: bytes, origin: AppendOrigin) -> None:
        self.log.append_as_leader(memoryview(bytearray(batch)), 0, origin)
        committed(self.log)

    def run_pass(self) -> bool:
        """False when there was nothing to clean."""
        cleaner = self.world.manager.periodic.cleaner
        if finish(cleaner.choose()) is None:
            return False
        cleaner.run()
        while cleaner.is_running:
            self.world.clock.advance(0)
        cleaner.stop()
        return True

    def restart(self, *, clean: bool, with_snapshots: bool = True) -> None:
        log = self.log
        if not with_snapshots and not clean:
            log.flush()
            for name in self.world.names():
                if name.endswith(".snapshot"):
                    offset = int(name.removesuffix(".snapshot"))
                    self.world.disk.remove(snapshot_path(log.directory, offset))
        if not clean:
            self.world.manager.checkpoint("log-start-offset-checkpoint")
        committed(self.world.restart(clean=clean))

    # --- what must hold ---------------------------------------------------------------------------

    @property
    def last_stable_offset(self) -> int:
        starts = [one.offset for one in self.written if one.is_open]
        return min(starts, default=self.log.log_end_offset)

    def check(self) -> None:
        log = self.log
        start = self.log.log_start_offset
        assert start == self.cut_below
        assert log.last_stable_offset == max(self.last_stable_offset, start)
        everything = list(fetched(log, 1 << 20, is_committed_only=False))
        visible = list(fetched(log, 1, is_committed_only=True))
        stable = log.last_stable_offset
        self._check_are_as_written(everything)
        self._check_are_as_written(visible)
        due = [
            one for one in self.written
            if start <= one.offset < stable and not one.is_aborted
        ]  # fmt: skip
        open_ones = [one for one in self.written if one.offset >= max(stable, start)]
        self._check_latest(due, visible, "read_committed")
        there = {record.offset for record in everything}
        assert there >= {one.offset for one in open_ones}, "what is not stable was touched"
        assert {record.offset for record in visible} <= {one.offset for one in due}
        self._check_latest(due, [r for r in everything if r.offset < stable], "read_uncommitted")
        self._check_index(everything)
        self._check_producers()

    def _check_are_as_written(self, records: list[Record]) -> None:
        written = {one.offset: one for one in self.written}
        offsets = [record.offset for record in records]
        assert offsets == sorted(set(offsets))
        for record in records:
            one = written[record.offset]
            assert (record.key, record.value) == (one.key, one.value)

    def _check_latest(self, due: list[Written], found: list[Record], who: str) -> None:
        """What is not there any more was followed by a record of its key that counts, or deleted
        its key long ago."""
        latest = {one.key: one for one in due}
        there = {record.offset for record in found}
        for one in latest.values():
            if one.value is not None or not self.is_late:
                assert one.offset in there, f"{who} misses {one}"
        values = {r.key: r.value for r in found if r.offset in {one.offset for one in due}}
        assert {k: v for k, v in values.items() if v is not None} == {
            one.key: one.value for one in latest.values() if one.value is not None
        }

    def _check_index(self, everything: list[Record]) -> None:
        """Of the records that are there, those of aborted transactions are known as such, and no
        other is."""
        log = self.log
        aborted = log.aborted(log.log_start_offset, log.log_end_offset)
        written = {one.offset: one for one in self.written}
        for record in everything:
            one = written[record.offset]
            producer = -1 if one.transaction is None else one.transaction.producer
            is_known = any(
                entry.producer_id == FIRST_PRODUCER + producer
                and entry.first_offset <= record.offset <= entry.last_offset
                for entry in aborted
            )
            assert is_known == one.is_aborted, (one, aborted)

    def _check_producers(self) -> None:
        producers = self.log.producers
        states = producers.states if producers is not None else {}
        starts = {
            producer: min(one.offset for one in self.written if one.transaction is transaction)
            for producer, transaction in self.open.items()
        }
        for producer, sequence in self.sequences.items():
            state = states.get(FIRST_PRODUCER + producer)
            if state is None or not state.batches:
                assert self.cut_below > 0, f"producer {producer} is forgotten"
                continue
            assert (state.epoch, state.last_sequence) == (0, sequence - 1)
            assert state.transaction_start == starts.get(producer, -1)


def live(events: list[Event], settings: LogSettings = QUIET) -> bool:
    """A life and what must hold in it; False when one of its passes had nothing to do."""
    life = Life(settings)
    for event in events:
        if event.kind != PASS:
            life.happen(event)
        elif not life.run_pass():
            return False
        else:
            life.check()
    die(life)
    return True


def die(life: Life) -> None:
    """The end of every life: all of it is compacted, transactions end, it is compacted again when
    all horizons have passed, and opened anew with no more than the log itself says."""
    life.happen(Event(ROLL))
    life.run_pass()
    life.check()
    for producer in sorted(life.open):
        life.happen(Event(ABORT if producer == 0 else COMMIT, 0, producer))
    life.happen(Event(WRITE, LAST_KEY))
    life.check()
    life.world.clock.advance(CONFIG.delete_retention_ms)
    life.is_late = True
    life.happen(Event(ROLL))
    life.run_pass()
    life.restart(clean=False, with_snapshots=False)
    life.check()


def histories(events: int, keys: int, producers: int) -> Iterator[list[Event]]:
    """Every life of so many events, up to the names of keys and of producers, and up to the order
    of plain records side by side."""
    yield from _longer([], events, keys, producers, frozenset())


def _longer(
    before: list[Event], events: int, keys: int, producers: int, open_ones: frozenset[int]
) -> Iterator[list[Event]]:
    if len(before) == events:
        yield before
        return
    for event in _next_events(before, events, keys, producers, open_ones):
        if event.kind in (IN_TXN, DELETE_IN_TXN):
            now_open = open_ones | {event.producer}
        elif event.kind in (COMMIT, ABORT):
            now_open = open_ones - {event.producer}
        else:
            now_open = open_ones
        yield from _longer([*before, event], events, keys, producers, now_open)


def _next_events(
    before: list[Event], events: int, keys: int, producers: int, open_ones: frozenset[int]
) -> Iterator[Event]:
    known = 1 + max((e.key for e in before if e.kind in RECORDS), default=-1)
    seen = 1 + max((e.producer for e in before if e.kind == IN_TXN), default=-1)
    last = before[-1] if before else Event(ROLL)
    first_plain = last.key if last.kind in (WRITE, DELETE) else 0
    for key in range(min(known + 1, keys)):
        if key >= first_plain:
            yield Event(WRITE, key)
            if key < known:
                yield Event(DELETE, key)
        for producer in range(min(seen + 1, producers)):
            yield Event(IN_TXN, key, producer)
    for producer in sorted(open_ones):
        yield Event(COMMIT, 0, producer)
        yield Event(ABORT, 0, producer)
    if last.kind != ROLL and len(before) < events - 1:
        yield Event(ROLL)


def with_a_pass(events: list[Event]) -> Iterator[list[Event]]:
    """The same with a pass at each place that matters: before or behind a plain record of the
    active segment it does the same, and before the first closed one nothing."""
    has_closed = False
    for place, event in enumerate(events[:-1], 1):
        has_closed = has_closed or event.kind == ROLL
        if has_closed and event.kind not in (WRITE, DELETE):
            yield [*events[:place], Event(PASS), *events[place:]]


def told(events: list[Event]) -> str:
    return ", ".join(f"{kind} {key}/{producer}" for kind, key, producer in events)
