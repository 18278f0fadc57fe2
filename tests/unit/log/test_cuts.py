"""A log that is cut below its start, or below where it was closed, is believed to be so."""

from contextlib import suppress

import pytest

from kafkalite.log.checkpoints import read_offsets
from kafkalite.log.config import LogConfig, LogSettings
from kafkalite.log.names import LOG_STARTS
from kafkalite.log.partition_log import PartitionLog
from kafkalite.log.seals import read_seals
from kafkalite.sim.disk import CrashDisk
from tests.unit.log.making import ROOT, World, abandon, batch, committed, open_logs, read_all

SMALL = LogConfig(segment_bytes=400, index_interval_bytes=100)
QUIET = LogSettings(log_cleaner_enable=False, log_retention_check_interval_ms=1 << 40)
COUNT, START = 20, 10


def closed_behind_deletions() -> World:
    """Twenty records, of which ten are deleted, after a clean stop and a start."""
    world = World(SMALL, settings=QUIET)
    for number in range(COUNT):
        world.log().append_as_leader(batch([b"v%03d" % number]), 0)
    committed(world.log()).delete_records_before(START)
    committed(world.restart(clean=True))
    return world


def cut_below_the_start(log: PartitionLog, offset: int, how: str) -> None:
    if how == "at its end":
        log.truncate_to(offset)
    else:
        log.truncate_fully_and_start_at(offset)


@pytest.mark.parametrize("how", ["at its end", "fully"])
@pytest.mark.parametrize("count", [0, 2, 9])
def test_nothing_written_after_a_cut_below_the_start_is_lost(how: str, count: int) -> None:
    world = closed_behind_deletions()
    cut_below_the_start(world.log(), 4, how)
    for number in range(count):
        world.log().append_as_leader(batch([b"new %d" % number]), 1)
    world.log().flush()
    log = committed(world.restart(clean=False))
    assert (log.log_start_offset, log.log_end_offset) == (4, 4 + count)
    assert [one.value for one in read_all(log)] == [b"new %d" % each for each in range(count)]


def test_what_was_cut_is_not_said_to_be_lost(caplog: pytest.LogCaptureFixture) -> None:
    world = closed_behind_deletions()
    world.log().truncate_to(COUNT - 2)
    log = committed(world.restart(clean=False))
    assert (log.log_start_offset, log.log_end_offset) == (START, COUNT - 2)
    assert "records are lost" not in caplog.text


def test_a_batch_that_spans_the_start_takes_it_along() -> None:
    world = World(SMALL, settings=QUIET)
    world.log().append_as_leader(batch([b"a", b"b", b"c", b"d"]), 0)
    committed(world.log()).delete_records_before(2)
    world.manager.checkpoint(LOG_STARTS)
    world.log().truncate_to(3)
    assert ("t", 0) not in read_offsets(world.disk, f"{ROOT}/{LOG_STARTS}")
    world.log().append_as_leader(batch([b"e"]), 1)
    log = committed(world.restart(clean=False))
    assert [(one.offset, one.value) for one in read_all(log)] == [(0, b"e")]


class Dead(BaseException):
    """The process ends here."""


def killed_in(offset: int, how: str, operation: int) -> tuple[int, int, bool]:
    """Where a log from ten to thirty is after a kill in the midst of its cut at an offset, and
    whether the cut took that many operations."""
    world = World(SMALL, disk := CrashDisk(), settings=QUIET)
    world.log().truncate_fully_and_start_at(START)
    for number in range(COUNT):
        world.log().append_as_leader(batch([b"v%03d" % number]), 0)
    operations = 0

    def die(kind: str, path: str, size: int) -> None:
        nonlocal operations
        operations += 1
        if operations == operation:
            raise Dead

    disk.before_operation = die
    with suppress(Dead):
        cut_below_the_start(world.log(), offset, how)
    disk.before_operation = None
    log = world.restart(clean=False)
    return log.log_start_offset, log.log_end_offset, operations == operation


@pytest.mark.parametrize(
    ("offset", "how"), [(START, "at its end"), (4, "at its end"), (START, "fully"), (4, "fully")]
)
def test_a_kill_in_a_cut_leaves_no_log_that_begins_at_zero(offset: int, how: str) -> None:
    operation, is_within = 0, True
    while is_within:
        operation += 1
        start, end, is_within = killed_in(offset, how, operation)
        assert offset <= start <= START, operation
        assert offset <= end <= START + COUNT, operation
    assert (start, end) == (offset, offset)
    assert operation > 10


def test_what_was_sealed_behind_a_cut_is_forgotten() -> None:
    world = closed_behind_deletions()
    bases = list(world.log().bases)
    world.log().truncate_to(bases[2] + 1)
    abandon(world.manager)
    seals = read_seals(world.disk, f"{ROOT}/t-0", "t", 0, is_clean=False)
    assert seals is not None
    assert seals.closed is None
    assert sorted(seals.segments) == sorted(seals.next_offsets) == bases[:2]
    assert max(seals.snapshots, default=0) <= bases[2] + 1
    world.manager = open_logs(world.env, SMALL, QUIET)
    assert world.log().log_end_offset == bases[2] + 1
