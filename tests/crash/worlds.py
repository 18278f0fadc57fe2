"""Workloads on a disk that forgets, and what must hold whatever is left after a crash.

A workload appends, rolls, truncates, retains and compacts; before any of its disk operations the
machine may die. What must hold then is said in `Expected.check`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from kafkalite.env import Env, manual_env
from kafkalite.env.disk import Disk
from kafkalite.log.config import COMPACT, DELETE, LogConfig, LogSettings
from kafkalite.log.manager import LogManager
from kafkalite.log.names import CLEAN_SHUTDOWN
from kafkalite.log.partition_log import AppendOrigin, PartitionLog
from kafkalite.log.replay import marker_of
from kafkalite.protocol.errors import KafkaError
from kafkalite.records.batch import BatchHeader, iterate_headers, verify
from kafkalite.records.convert import iterate_any
from kafkalite.sim.disk import CrashDisk
from tests.unit.log.making import (
    ROOT,
    START_MS,
    TOPIC_ID,
    abandon,
    fetched,
    keyed,
    marker,
    open_logs,
)

QUIET = LogSettings(log_cleaner_enable=False, log_retention_check_interval_ms=1 << 40)


class Dead(BaseException):
    """The machine died: nothing of the process runs any more."""


@dataclass(slots=True)
class Transaction:
    """One of a producer's, and how it is to end: where a crash took its marker it is open."""

    end_offset: int | None = None  # of its marker
    is_committed: bool = False

    def is_open(self, log_end_offset: int) -> bool:
        return self.end_offset is None or self.end_offset >= log_end_offset


@dataclass(slots=True)
class Appended:
    """A batch that the workload wrote, and whether its writer was told so."""

    base_offset: int
    last_offset: int
    pairs: list[tuple[bytes, bytes | None]]
    producer_id: int
    sequence: int
    is_acknowledged: bool = False
    transaction: Transaction | None = None


@dataclass(slots=True)
class Expected:
    """What the workload knows of the log, and what it was promised."""

    config: LogConfig
    appended: list[Appended] = field(default_factory=list)
    removed_below: int = 0  # retention and DeleteRecords may have removed these
    cut_from: int | None = None  # a truncation that may or may not have lasted
    is_begun: bool = False  # a writer was told of a sync: that there is a log, and where it begins

    def copy(self) -> Expected:
        """As it is now, while the workload goes on."""
        return replace(self, appended=[replace(batch) for batch in self.appended])

    @property
    def acknowledged_end(self) -> int:
        ends = [batch.last_offset + 1 for batch in self.appended if batch.is_acknowledged]
        end = max(ends, default=0)
        return end if self.cut_from is None else min(end, self.cut_from)

    def check(self, log: PartitionLog) -> None:
        """Everything that must hold of a log that was recovered."""
        end = log.log_end_offset
        assert end >= self.acknowledged_end, (end, self.acknowledged_end)
        # Nothing was promised for the beginning of a log that was never synced: it may be gone.
        if self.acknowledged_end > 0 or self.is_begun:
            assert log.log_start_offset <= self.removed_below
        assert log.log_start_offset <= log.high_watermark <= end
        found = _records(log)
        offsets = [offset for offset, _, _ in found]
        assert offsets == sorted(set(offsets))
        written = {
            batch.base_offset + index: pair
            for batch in self.appended
            for index, pair in enumerate(batch.pairs)
        }
        for offset, key, value in found:
            if key is not None and not key.startswith(b"\0"):
                assert written[offset] == (key, value), offset
        if self.config.is_compacted:
            self._check_fold(log, found)
            self._check_sequences(log)
        else:
            # Of what was to be removed, any segment may have outlived the crash.
            start = max(log.log_start_offset, self.removed_below)
            below_end = {offset for offset in written if start <= offset < end}
            assert below_end <= set(offsets), sorted(below_end - set(offsets))[:5]
        _check_indexes(log)
        _check_transactions(log)
        self._check_window(log)

    def _check_fold(
        self, log: PartitionLog, found: list[tuple[int, bytes | None, bytes | None]]
    ) -> None:
        """A reader who keeps the last committed value of each key ends as if nothing had been
        compacted; and what is not decided is all there."""
        end = log.log_end_offset
        log.replicated(end)
        undecided = [
            batch.base_offset
            for batch in self.appended
            if batch.transaction is not None and batch.transaction.is_open(end)
        ]
        start, stable = log.log_start_offset, log.last_stable_offset
        if not (stable == start and any(offset < start for offset in undecided)):
            # Of what is open below a start that a crash has raised, a snapshot may still tell.
            assert stable == min([one for one in undecided if start <= one < end], default=end)
        expected: dict[bytes, bytes | None] = {}
        for batch in self.appended:
            if batch.transaction is not None and not batch.transaction.is_committed:
                continue
            for offset, (key, value) in enumerate(batch.pairs, batch.base_offset):
                if start <= offset < stable:
                    expected[key] = value
        visible = fetched(log, 1 << 16, is_committed_only=True)
        actual = {record.key: record.value for record in visible}
        live = {key: value for key, value in expected.items() if value is not None}
        assert live == {key: value for key, value in actual.items() if value is not None}
        there = {offset for offset, _, _ in found}
        for batch in self.appended:
            for offset in range(batch.base_offset, batch.base_offset + len(batch.pairs)):
                assert offset in there or not stable <= offset < end, offset

    def _check_sequences(self, log: PartitionLog) -> None:
        """Each producer goes on where its last batch in the log ended."""
        last: dict[int, Appended] = {}
        for batch in self.appended:
            if log.log_start_offset <= batch.base_offset < log.log_end_offset:
                last[batch.producer_id] = batch
        states = log.producers.states if log.producers is not None else {}
        for producer_id, batch in last.items():
            assert states[producer_id].last_sequence == batch.sequence + len(batch.pairs) - 1

    def _check_window(self, log: PartitionLog) -> None:
        """The last five batches of the producer are recognised, wherever the crash came."""
        mine = [b for b in self.appended if b.producer_id == 7]
        mine = [b for b in mine if b.last_offset < log.log_end_offset]
        if self.config.is_compacted or self.removed_below > 0 or not mine:
            return
        if self.cut_from is not None or log.log_start_offset > 0:
            return
        for batch in mine[-5:]:
            again = keyed(
                batch.pairs,
                producer_id=batch.producer_id,
                producer_epoch=0,
                base_sequence=batch.sequence,
            )
            result = log.append_as_leader(again, 0)
            assert result.is_duplicate
            assert result.base_offset == batch.base_offset


def _records(log: PartitionLog) -> list[tuple[int, bytes | None, bytes | None]]:
    """Every record of the log, read as a consumer does, with checksums checked."""
    found = []
    for data, header in batches(log):
        verify(data, header)
        found += [(r.offset, r.key, r.value) for r in iterate_any(data, header)]
    return [one for one in found if one[0] >= log.log_start_offset]


def batches(log: PartitionLog) -> list[tuple[bytes, BatchHeader]]:
    found = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        part = log.read(offset, 1 << 16)
        if part.range is None:
            break
        data = part.range.read()
        headers = list(iterate_headers(data))
        assert headers, "a read that brings no whole batch"
        assert headers[0].last_offset >= offset
        found += [(data, header) for header in headers]
        assert headers[-1].next_offset > offset
        offset = headers[-1].next_offset
    return found


def _check_indexes(log: PartitionLog) -> None:
    """Every entry leads to the batch that it speaks of."""
    for segment in log.segments:
        by_position = {h.position: h.last_offset for h in segment.walk(0)}
        assert sum(h.size for h in segment.walk(0)) == segment.size
        for slot in range(segment.index.entries):
            relative, position = segment.index.fetch(slot)
            assert by_position[position] == segment.base_offset + relative
        last = (-1, -1)
        for slot in range(segment.time_index.entries):
            timestamp, relative = segment.time_index.fetch(slot)
            assert (timestamp, relative) > last
            assert segment.base_offset + relative in by_position.values()
            last = (timestamp, relative)


def _check_transactions(log: PartitionLog) -> None:
    """Batches of aborted transactions are known as such, those of committed ones are not."""
    undecided: dict[int, list[int]] = {}
    aborted = log.aborted(log.log_start_offset, log.log_end_offset)
    for data, header in batches(log):
        if not header.is_transactional or header.record_count == 0:
            continue
        if not header.is_control:
            undecided.setdefault(header.producer_id, []).append(header.base_offset)
            continue
        ending = marker_of(data, header)
        for offset in undecided.pop(header.producer_id, []):
            is_known = any(
                one.producer_id == header.producer_id and one.first_offset <= offset
                and one.last_offset == header.base_offset
                for one in aborted
            )  # fmt: skip
            assert ending is not None
            assert is_known is not ending.is_commit, (offset, aborted)


# --- the workload ---------------------------------------------------------------------------------


@dataclass(slots=True)
class Workload:
    """What one seed does to a log."""

    seed: int
    is_fsynced: bool
    is_compacted: bool = False
    has_cuts: bool = False
    steps: int = 25
    is_uneven: bool = False

    def config(self) -> LogConfig:
        return LogConfig(
            cleanup_policy=(COMPACT,) if self.is_compacted else (DELETE,),
            segment_bytes=700,
            index_interval_bytes=120,
            min_cleanable_dirty_ratio=0.01,
            delete_retention_ms=0,
            file_delete_delay_ms=5,
            retention_ms=-1,
            preallocate=self.is_uneven and self.seed % 2 == 0,
            kafkalite_durability="fsync" if self.is_fsynced else "page-cache",
        )


class UnevenBackground:
    """Workers of which nobody knows when they do a job, nor when the loop hears of it."""

    def __init__(self, seed: int) -> None:
        self._random = Random(f"background/{seed}")
        self._waiting: list[tuple[Callable[[], Any], Callable[[Any], None]]] = []

    def submit(self, job: Callable[[], Any], done: Callable[[Any], None]) -> None:
        kind = self._random.random()
        if kind < 0.4:
            done(_outcome(job))
        elif kind < 0.7:
            outcome = _outcome(job)
            self._waiting.append((lambda: outcome, done))
        else:
            self._waiting.append((job, done))

    def turn(self) -> None:
        """The loop turns: some of what waits is done, or is heard of."""
        for _ in range(self._random.randint(0, len(self._waiting))):
            if self._waiting:
                job, done = self._waiting.pop(self._random.randrange(len(self._waiting)))
                done(_outcome(job))


def _outcome(job: Callable[[], Any]) -> Any:
    try:
        return job()
    except OSError as error:
        return error


class Run:
    """A workload under way."""

    def __init__(self, workload: Workload, disk: CrashDisk) -> None:
        self.workload = workload
        self.random = Random(workload.seed)
        self.config = workload.config()
        self.expected = Expected(self.config)
        self.env: Env = manual_env(workload.seed, disk)
        self.manager: LogManager = open_logs(self.env, self.config, QUIET)
        self.log = self.manager.create("t", 0, TOPIC_ID, self.config)
        self._sequence = 0
        self._open: dict[int, Transaction] = {}  # by producer
        if workload.is_uneven:
            self.env.background = UnevenBackground(workload.seed)

    def _turn(self) -> None:
        if isinstance(self.env.background, UnevenBackground):
            self.env.background.turn()

    def run(self) -> None:
        for _ in range(self.workload.steps):
            self._step()
            self._turn()
        self.manager.close()

    def _step(self) -> None:
        kind = self.random.random()
        if self.workload.is_compacted and kind < 0.4:
            self._go_on_with_transactions()
        elif kind < 0.75:
            self._append()
        elif kind < 0.80:
            self._transaction()
        elif kind < 0.86:
            self.log.flush()
        elif kind < 0.92:
            self.env.clock.advance(70_000)  # type: ignore[attr-defined]
        elif self.workload.is_compacted:
            self._compact()
        elif self.workload.has_cuts and kind < 0.96:
            self._truncate()
        elif self.workload.has_cuts:
            self._delete_records()

    def _append(self) -> None:
        count = self.random.randint(1, 4)
        pairs = [self._pair() for _ in range(count)]
        appended = Appended(self.log.log_end_offset, 0, pairs, 7, self._sequence)
        appended.last_offset = appended.base_offset + count - 1
        data = keyed(
            pairs,
            timestamp=START_MS + appended.base_offset,
            producer_id=7,
            producer_epoch=0,
            base_sequence=self._sequence,
        )
        self._sequence += count
        self._write(appended, data)

    def _write(self, appended: Appended, data: memoryview) -> None:
        # Before the write: a crash in the middle of it may leave the batch, unacknowledged.
        self.expected.cut_from = None
        self.expected.appended = [
            b for b in self.expected.appended if b.last_offset < appended.base_offset
        ]
        self.expected.appended.append(appended)
        self.log.append_as_leader(data, self.random.randrange(1, 3))
        if self.workload.is_fsynced:
            self.log.when_durable(self.log.log_end_offset).then(
                lambda error: self._acknowledge(appended, error)
            )
        else:
            appended.is_acknowledged = True
        self.log.replicated(self.log.log_end_offset)

    def _acknowledge(self, appended: Appended, error: KafkaError | None) -> None:
        appended.is_acknowledged = error is None
        self.expected.is_begun |= error is None

    def _pair(self) -> tuple[bytes, bytes | None]:
        key = b"k%d" % self.random.randrange(6)
        if self.workload.is_compacted and self.random.random() < 0.2:
            return key, None
        return key, self.random.randbytes(self.random.choice((1, 8, 40)))

    def _transaction(self) -> None:
        """A batch that is aborted or committed at once."""
        free = [one for one in range(20, 24) if one not in self._open]
        if free:
            producer_id = self.random.choice(free)
            self._append_in_transaction(producer_id)
            self._end_transaction(producer_id)

    def _go_on_with_transactions(self) -> None:
        """Several are open side by side, over rolls and compactions."""
        if self._open and self.random.random() < 0.4:
            self._end_transaction(self.random.choice(sorted(self._open)))
        else:
            self._append_in_transaction(self.random.randrange(20, 23))

    def _append_in_transaction(self, producer_id: int) -> None:
        start = self.log.log_end_offset
        transaction = self._open.setdefault(producer_id, Transaction())
        entry = self.log.producers.states.get(producer_id) if self.log.producers else None
        sequence = entry.last_sequence + 1 if entry is not None else 0
        pairs = [self._pair()]
        data = keyed(
            pairs,
            timestamp=START_MS + start,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            is_transactional=True,
        )
        written = Appended(start, start, pairs, producer_id, sequence, transaction=transaction)
        self._write(written, data)

    def _end_transaction(self, producer_id: int) -> None:
        transaction = self._open.pop(producer_id)
        transaction.end_offset = self.log.log_end_offset
        transaction.is_committed = self.random.random() < 0.5
        data = marker(producer_id, 0, commit=transaction.is_committed)
        self.log.append_as_leader(data, 1, AppendOrigin.COORDINATOR)
        self.log.replicated(self.log.log_end_offset)

    def _compact(self) -> None:
        cleaner = self.manager.periodic.cleaner
        cleaner.run()
        for _ in range(30):
            self.env.clock.advance(1)  # type: ignore[attr-defined]
            self._turn()

    def _truncate(self) -> None:
        log = self.log
        if log.log_end_offset <= log.log_start_offset:
            return
        # What follows a leader that lost more may be cut below where it began.
        first = 0 if self.random.random() < 0.3 else log.log_start_offset
        offset = self.random.randrange(first, log.log_end_offset)
        kept = [b for b in self.expected.appended if b.last_offset < offset]
        self.expected.cut_from = kept[-1].last_offset + 1 if kept else first
        log.truncate_to(offset)
        self.expected.removed_below = min(self.expected.removed_below, log.log_end_offset)
        self.expected.appended = [
            b for b in self.expected.appended if b.last_offset < log.log_end_offset
        ]
        states = log.producers.states if log.producers else {}
        self._sequence = states[7].last_sequence + 1 if 7 in states else 0

    def _delete_records(self) -> None:
        offset = self.random.randrange(self.log.log_start_offset, self.log.high_watermark + 1)
        self.expected.removed_below = max(self.expected.removed_below, offset)
        self.log.delete_records_before(offset)
        self.manager.periodic.retain()


def recover(disk: Disk, workload: Workload) -> tuple[LogManager, PartitionLog | None]:
    """A new process on what is left."""
    manager = open_logs(manual_env(1, disk), workload.config(), QUIET)
    return manager, manager.get("t", 0)


def check_state(disk: CrashDisk, expected: Expected, workload: Workload) -> None:
    """Recovers from a state of the disk, checks it, and does it again."""
    was_clean = disk.exists(f"{ROOT}/{CLEAN_SHUTDOWN}")
    manager, log = recover(disk, workload)
    if log is None:
        assert expected.acknowledged_end == 0
        abandon(manager)
        return
    expected.check(log)
    abandon(manager)
    if was_clean:  # that was no recovery yet
        abandon(recover(disk, workload)[0])
    before = disk.contents()
    manager, again = recover(disk, workload)
    assert again is not None
    assert again.log_end_offset == log.log_end_offset
    abandon(manager)
    assert _lasting(disk.contents()) == _lasting(before), "recovering twice gives other files"


def _lasting(files: dict[str, bytes]) -> dict[str, bytes]:
    """Without the hole at the end of a file that was preallocated."""
    lasting = {path: data for path, data in files.items() if path.endswith("index")}
    return lasting | {p: data.rstrip(b"\0") for p, data in files.items() if p.endswith(".log")}


__all__ = ["Dead", "Expected", "KafkaError", "Run", "Workload", "check_state", "recover"]
