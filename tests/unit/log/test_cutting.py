"""A log that serves is cut while its loop goes on, and nothing is appended meanwhile."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from kafkalite.env.background import QueuedBackground
from kafkalite.env.slicing import STEPS_AT_ONCE, finish
from kafkalite.log import replay, truncation
from kafkalite.log.checkpoints import read_offsets
from kafkalite.log.config import LogConfig, LogSettings
from kafkalite.log.flusher import RETRY_MS
from kafkalite.log.names import DELETED, LOG_STARTS, RECOVERY_POINTS
from kafkalite.log.partition_log import AppendOrigin, FoundOffset, PartitionLog
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.replication.leader import Leadership
from kafkalite.replication.partition import LATEST_TIMESTAMP, FetchPosition, Partition
from kafkalite.sim.disk import CrashDisk
from tests.unit.log.making import ROOT, START_MS, TOPIC_ID, World, batch, marker, read_all

SMALL = LogConfig(segment_bytes=400, index_interval_bytes=100)
QUIET = LogSettings(log_cleaner_enable=False, log_retention_check_interval_ms=1 << 40)
START, COUNT = 10, 20


class Workers(QueuedBackground):
    """Jobs wait in a queue, and are known for jobs while they run."""

    def __init__(self) -> None:
        super().__init__()
        self.is_at_work = False

    def submit(self, job: Callable[[], Any], done: Callable[[Any], None]) -> None:
        def work() -> Any:
            self.is_at_work = True
            try:
                return job()
            finally:
                self.is_at_work = False

        super().submit(work, done)


class Cutting:
    """A log from ten to thirty in several segments, whose disk is waited for by jobs in a queue."""

    def __init__(self, disk: CrashDisk | None = None) -> None:
        self.world = World(SMALL, disk or CrashDisk(), settings=QUIET)
        self.log = self.world.log()
        self.log.truncate_fully_and_start_at(START)
        for number in range(COUNT):
            self.log.append_as_leader(batch([b"v%03d" % number]), 0)
        self.log.flush()
        self.world.manager.checkpoint(RECOVERY_POINTS)
        self.jobs = Workers()
        self.world.env.background = self.jobs
        self.is_wanted = True
        self.outcomes: list[KafkaError | None] = []

    def produce(self, count: int) -> None:
        """So many batches of one producer, the first of which has sequence 0."""
        for number in range(count):
            one = batch([b"p"], producer_id=9, producer_epoch=0, base_sequence=number)
            self.log.append_as_leader(one, 0)

    def produce_transaction(self, count: int) -> None:
        """So many batches of one, which stays open."""
        for number in range(count):
            one = batch([b"x"], producer_id=9, producer_epoch=0, base_sequence=number,
                        is_transactional=True)  # fmt: skip
            self.log.append_as_leader(one, 0, AppendOrigin.COORDINATOR)

    def begin(self, offset: int, *, is_whole: bool = False) -> None:
        later = self.log.cut_later(offset, lambda: self.is_wanted, is_whole=is_whole)
        later.then(self.outcomes.append)

    def is_under_way(self) -> bool:
        return self.log.being_cut is not None

    @property
    def end(self) -> int:
        return self.log.log_end_offset

    @property
    def values(self) -> list[bytes | None]:
        return [one.value for one in read_all(self.log)]

    def until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            self.jobs.run_one()


@pytest.fixture
def cutting() -> Cutting:
    return Cutting()


@pytest.mark.parametrize(
    ("offset", "is_whole", "start", "end"),
    [(17, False, START, 17), (4, False, 4, 4), (4, True, 4, 4), (40, True, 40, 40)],
)
def test_a_cut_leaves_what_it_leaves_at_once(
    cutting: Cutting, offset: int, is_whole: bool, start: int, end: int
) -> None:
    cutting.begin(offset, is_whole=is_whole)
    assert not cutting.outcomes
    cutting.jobs.run_all()
    assert cutting.outcomes == [None]
    assert (cutting.log.log_start_offset, cutting.end) == (start, end)
    assert cutting.values == [b"v%03d" % number for number in range(end - start)]
    assert not [name for name in cutting.world.names() if name.endswith(DELETED)]
    cutting.log.append_as_leader(batch([b"new"]), 1)
    assert cutting.values[-1] == b"new"
    cutting.world.env.background = World().env.background
    log = cutting.world.restart(clean=False)
    assert (log.log_start_offset, log.log_end_offset) == (start, end + 1)


@pytest.mark.parametrize(("offset", "is_whole"), [(17, False), (4, False), (40, True)])
def test_the_loop_waits_for_no_sync(cutting: Cutting, offset: int, is_whole: bool) -> None:
    disk = cutting.world.disk
    assert isinstance(disk, CrashDisk)
    synced: list[bool] = []

    def look(kind: str, path: str, size: int) -> None:
        if kind.startswith("sync"):
            synced.append(cutting.jobs.is_at_work)

    disk.before_operation = look
    cutting.begin(offset, is_whole=is_whole)
    cutting.jobs.run_all()
    assert len(synced) > 3
    assert all(synced)


def test_a_cut_where_nothing_reaches_is_over_at_once(cutting: Cutting) -> None:
    cutting.begin(START + COUNT)
    assert cutting.outcomes == [None]
    assert not len(cutting.jobs)


def test_recovery_looks_at_what_is_cut_before_anything_is(cutting: Cutting) -> None:
    path = f"{ROOT}/{RECOVERY_POINTS}"
    cutting.log.flush()
    cutting.jobs.run_all()
    cutting.world.manager.checkpoint(RECOVERY_POINTS)
    cutting.jobs.run_all()
    assert read_offsets(cutting.world.disk, path)["t", 0] == START + COUNT
    cutting.begin(17)
    cutting.log.flush()  # which must not raise it again
    cutting.until(lambda: cutting.end == 17)
    assert read_offsets(cutting.world.disk, path)["t", 0] <= 17
    cutting.jobs.run_all()
    assert cutting.log.recovery_point <= 17
    cutting.log.flush()
    cutting.jobs.run_all()
    assert cutting.log.recovery_point == 17


def test_a_checkpoint_that_is_under_way_is_waited_for(cutting: Cutting) -> None:
    cutting.log.append_as_leader(batch([b"more"]), 0)
    cutting.log.flush()
    cutting.jobs.run_all()
    cutting.world.manager.checkpoint(RECOVERY_POINTS)
    cutting.begin(17)
    cutting.jobs.run_all()
    assert cutting.outcomes == [None]
    assert read_offsets(cutting.world.disk, f"{ROOT}/{RECOVERY_POINTS}")["t", 0] <= 17


def test_who_leads_meanwhile_appends_when_the_cut_lasts(cutting: Cutting) -> None:
    partition = Partition("t", 0, TOPIC_ID, 1, cutting.log)
    cutting.begin(17)
    cutting.until(lambda: cutting.end == 17)
    assert partition.take(Leadership(1, 2, 2, (1,), (1,)))
    partition.begin_epoch()
    with pytest.raises(KafkaError) as refused:
        partition.append(batch([b"early"]), START_MS)
    assert refused.value.code == Error.NOT_LEADER_OR_FOLLOWER
    cutting.jobs.run_all()
    assert partition.append(batch([b"late"]), START_MS).base_offset == 17


@pytest.mark.parametrize(("offset", "is_whole"), [(17, False), (4, True)])
def test_a_cut_that_nobody_wants_any_more_leaves_the_log_as_it_was(
    cutting: Cutting, offset: int, is_whole: bool
) -> None:
    names, values = cutting.world.names(), cutting.values
    cutting.begin(offset, is_whole=is_whole)
    cutting.is_wanted = False
    cutting.jobs.run_all()
    assert cutting.outcomes == [None]
    assert (cutting.world.names(), cutting.values) == (names, values)
    cutting.log.append_as_leader(batch([b"more"]), 0)
    cutting.log.flush()
    cutting.jobs.run_all()
    assert cutting.log.recovery_point == START + COUNT + 1


def test_a_cut_that_is_made_comes_to_last_whoever_wants_it(cutting: Cutting) -> None:
    cutting.begin(17)
    cutting.until(lambda: cutting.end == 17)
    assert cutting.is_under_way()
    cutting.is_wanted = False
    cutting.jobs.run_all()
    assert not cutting.is_under_way()
    assert not [name for name in cutting.world.names() if name.endswith(DELETED)]


def test_what_is_out_of_descriptors_is_tried_again(cutting: Cutting) -> None:
    disk = cutting.world.disk
    assert isinstance(disk, CrashDisk)
    failures = 3

    def fail(kind: str, path: str, size: int) -> None:
        nonlocal failures
        if kind == "sync" and failures:
            failures -= 1
            raise OSError(errno.EMFILE, "too many open files")

    disk.before_operation = fail
    cutting.begin(17)
    for _ in range(10):
        cutting.jobs.run_all()
        cutting.world.clock.advance(RETRY_MS)
    assert (cutting.outcomes, failures) == ([None], 0)
    assert cutting.log.home.is_online


@pytest.mark.parametrize("is_made", [False, True])
def test_a_disk_that_fails_ends_the_cut_and_its_service(cutting: Cutting, is_made: bool) -> None:
    disk = cutting.world.disk
    assert isinstance(disk, CrashDisk)
    cutting.begin(17)
    if is_made:
        cutting.until(lambda: cutting.end == 17)

    def fail(kind: str, path: str, size: int) -> None:
        if kind.startswith("sync"):
            raise OSError(errno.EIO, "input/output error")

    disk.before_operation = fail
    cutting.jobs.run_all()
    [outcome] = cutting.outcomes
    assert outcome is not None
    assert outcome.code == Error.KAFKA_STORAGE_ERROR
    assert not cutting.log.home.is_online


def test_who_was_killed_touches_nothing_any_more(cutting: Cutting) -> None:
    """Its directory may be another life's by then."""
    cutting.begin(17)
    cutting.world.manager.abandon()
    names = cutting.world.names()
    cutting.jobs.run_all()
    [outcome] = cutting.outcomes
    assert outcome is not None
    assert (cutting.world.names(), cutting.end) == (names, START + COUNT)


class Dead(BaseException):
    """The process ends here."""


def killed_in(offset: int, is_whole: bool, operation: int) -> tuple[int, int, bool]:
    """Where the log is after a kill in the midst of its cut, and whether that took so many
    operations."""
    disk = CrashDisk()
    cutting = Cutting(disk)
    operations = 0

    def die(kind: str, path: str, size: int) -> None:
        nonlocal operations
        operations += 1
        if operations == operation:
            raise Dead

    disk.before_operation = die
    with suppress(Dead):
        cutting.begin(offset, is_whole=is_whole)
        cutting.jobs.run_all()
    disk.before_operation = None
    cutting.world.env.background = World().env.background
    log = cutting.world.restart(clean=False)
    return log.log_start_offset, log.log_end_offset, operations >= operation


@pytest.mark.parametrize(
    ("offset", "is_whole"), [(17, False), (4, False), (START, True), (4, True)]
)
def test_a_kill_in_a_cut_leaves_a_log_that_ends_before_or_behind_it(
    offset: int, is_whole: bool
) -> None:
    operation, is_within = 0, True
    while is_within:
        operation += 1
        start, end, is_within = killed_in(offset, is_whole, operation)
        assert min(offset, START) <= start <= START, operation
        assert min(offset, START) <= end <= START + COUNT, operation
    assert operation > 10
    assert end == offset


def test_where_a_log_begins_lower_is_told_before_anything_is_appended(cutting: Cutting) -> None:
    cutting.log.replicated(cutting.end)
    cutting.log.delete_records_before(START + 2)
    cutting.world.manager.checkpoint(LOG_STARTS)
    cutting.jobs.run_all()
    path = f"{ROOT}/{LOG_STARTS}"
    assert read_offsets(cutting.world.disk, path)["t", 0] == START + 2
    cutting.begin(START + 1)
    cutting.jobs.run_all()
    assert cutting.outcomes == [None]
    assert read_offsets(cutting.world.disk, path).get(("t", 0), 0) <= START + 1


# --- producers ------------------------------------------------------------------------------------

PRODUCED = 40
CUT_AT = START + COUNT + PRODUCED - 5  # the producer's last sequence is 34 then


@pytest.fixture
def reloading(cutting: Cutting, monkeypatch: pytest.MonkeyPatch) -> Cutting:
    """Cut, while what its producers are is half known."""
    monkeypatch.setattr(replay, "BATCHES_PER_STEP", 1)
    cutting.log.config = LogConfig()  # one segment for all that comes
    cutting.produce(PRODUCED)
    cutting.begin(CUT_AT)
    cutting.until(lambda: cutting.end == CUT_AT)
    assert cutting.log.reloading is not None
    return cutting


def last_sequences(log: PartitionLog) -> list[int]:
    return [one.last_sequence for one in log.active_producers()]


def test_producers_are_read_a_slice_per_turn(
    cutting: Cutting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "BATCHES_PER_STEP", 4)
    cutting.produce(PRODUCED)
    cutting.jobs.run_all()
    read: list[int] = []
    replay_batch = replay.replay_batch

    def noted(*given: Any) -> Any:
        read[-1] += 1
        return replay_batch(*given)

    monkeypatch.setattr(replay, "replay_batch", noted)
    read.append(0)
    steps = truncation.reload_producers(cutting.log)
    read.extend(0 for _ in steps)
    assert 0 < max(read) <= 4
    assert len(read) > 1
    assert last_sequences(cutting.log) == [PRODUCED - 1]


def test_a_log_goes_on_with_the_producers_that_its_cut_left(reloading: Cutting) -> None:
    assert STEPS_AT_ONCE < PRODUCED
    assert reloading.is_under_way()
    assert not reloading.outcomes
    reloading.world.clock.advance(0)
    reloading.jobs.run_all()
    assert reloading.outcomes == [None]
    assert reloading.log.reloading is None
    assert last_sequences(reloading.log) == [34]


def test_a_transaction_whose_end_was_cut_off_is_seen_by_nobody_meanwhile(
    cutting: Cutting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unclean leader may have all of it but its marker: an aborted one would pass for read."""
    monkeypatch.setattr(replay, "BATCHES_PER_STEP", 1)
    cutting.log.config = LogConfig()
    first = cutting.end
    cutting.produce_transaction(PRODUCED)
    cutting.log.append_as_leader(marker(9, 0, commit=False), 0, AppendOrigin.COORDINATOR)
    cutting.log.replicated(cutting.end)
    assert cutting.log.last_stable_offset == cutting.end
    cutting.begin(cutting.end - 1)
    cutting.until(lambda: cutting.end == first + PRODUCED)
    assert cutting.log.reloading is not None
    assert cutting.log.aborted_transactions(first, cutting.end) == []
    partition = Partition("t", 0, TOPIC_ID, 1, cutting.log)

    def seen() -> tuple[int, bool]:
        found = partition.read(
            FetchPosition(first, 1 << 20), is_committed_only=True, min_one=True, is_leaders=False
        )
        return partition.end_offset(is_committed_only=True), found.records is not None

    def latest() -> FoundOffset | None:
        return finish(partition.offset_for_time(LATEST_TIMESTAMP, is_committed_only=True))

    assert seen() == (START, False)
    with pytest.raises(KafkaError) as refused:
        latest()
    assert refused.value.code == Error.OFFSET_NOT_AVAILABLE
    cutting.world.clock.advance(0)
    cutting.jobs.run_all()
    assert seen() == (first, False)
    found = latest()
    assert found is not None
    assert found.offset == first


def test_a_stop_meanwhile_keeps_the_producers_as_they_are_after_the_cut(
    reloading: Cutting,
) -> None:
    reloading.world.env.background = World().env.background
    log = reloading.world.restart(clean=True)
    assert log.log_end_offset == CUT_AT
    assert last_sequences(log) == [34]
    reloading.world.clock.advance(0)
    assert reloading.log.reloading is None


@pytest.mark.parametrize("how", ["deleted", "killed"])
def test_producers_of_a_log_that_has_gone_are_read_no_further(
    reloading: Cutting, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "killed":
        reloading.world.manager.abandon()
    else:
        reloading.log.end(KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION))
    read: list[object] = []
    monkeypatch.setattr(replay, "replay_batch", lambda *given: read.append(given))
    reloading.world.clock.advance(0)
    reloading.jobs.run_all()
    [outcome] = reloading.outcomes
    assert outcome is not None
    assert len(read) <= 1
