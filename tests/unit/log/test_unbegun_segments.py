"""A segment that could not be begun leaves nothing that hides what the one before it takes."""

from __future__ import annotations

import errno
from random import Random

import pytest

from kafkalite.log import interrupted
from kafkalite.log.config import LogConfig
from kafkalite.log.names import INDEX, LOG, TIME_INDEX, offset_name
from kafkalite.log.partition_log import PartitionLog
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.records.batch import iterate_headers
from kafkalite.sim.disk import CrashDisk
from tests.unit.log.making import ROOT, World, abandon, batch, committed, open_logs

SMALL = LogConfig(segment_bytes=500, index_interval_bytes=100)
LARGE, LITTLE = 300, 10  # the first is too much for what is left of a segment, not the second


def append(log: PartitionLog, number: int, size: int) -> None:
    log.append_as_leader(batch([b"%03d" % number + b"x" * size]), 0)


def refuse(disk: CrashDisk, kind: str, code: int) -> None:
    """A file of this kind cannot be made for the second segment."""

    def fail(path: str) -> None:
        if path.endswith(offset_name(1, kind)):
            raise OSError(code, "failed", path)

    disk.before_open = fail


def half_begun(kind: str, code: int) -> World:
    """A log whose second segment could not be begun, and whose first went on."""
    disk = CrashDisk()
    world = World(SMALL, disk)
    log = world.log()
    append(log, 0, LARGE)
    refuse(disk, kind, code)
    with pytest.raises(KafkaError) as refused:
        append(log, 1, LARGE)
    assert refused.value.code == Error.KAFKA_STORAGE_ERROR
    disk.before_open = None
    append(log, 1, LITTLE)
    assert log.bases == [0]
    return world


def found_from_everywhere(log: PartitionLog) -> list[int]:
    """The first offset that a reader finds from each on; -1 where there is nothing."""
    committed(log)
    found = [log.read(offset, 1 << 20).range for offset in range(log.log_end_offset)]
    return [next(iterate_headers(each.read())).base_offset if each else -1 for each in found]


@pytest.mark.parametrize("kind", [LOG, INDEX, TIME_INDEX])
@pytest.mark.parametrize("code", [errno.ENFILE, errno.ENOSPC])
def test_nothing_is_left_of_it(kind: str, code: int) -> None:
    world = half_begun(kind, code)
    assert not {offset_name(1, each) for each in (LOG, INDEX, TIME_INDEX)} & set(world.names())
    assert world.log().active.seal is None


@pytest.mark.parametrize("kind", [LOG, INDEX, TIME_INDEX])
@pytest.mark.parametrize("more", [0, 1, 5])
@pytest.mark.parametrize("clean", [True, False])
def test_what_came_behind_is_found_after_a_restart(kind: str, more: int, clean: bool) -> None:
    world = half_begun(kind, errno.ENFILE)
    for number in range(more):
        append(world.log(), 2 + number, LARGE)
    world.log().flush()
    world.clock.advance(100)
    log = world.restart(clean=clean)
    assert log.log_end_offset == 2 + more
    assert found_from_everywhere(log) == list(range(2 + more))


def test_what_was_reserved_for_it_is_given_back() -> None:
    config = LogConfig(segment_bytes=500, preallocate=True)
    disk = CrashDisk()
    world = World(config, disk)
    append(world.log(), 0, LARGE)

    def full(kind: str, path: str, size: int) -> None:
        if kind == "truncate" and path.endswith(offset_name(1, LOG)):
            raise OSError(errno.ENOSPC, "full", path)

    disk.before_operation = full
    with pytest.raises(KafkaError):
        append(world.log(), 1, LARGE)
    assert offset_name(1, LOG) not in world.names()


# --- one that is there all the same: of a broker before, or back after a power cut ----------------


@pytest.mark.parametrize("more", [0, 5])
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("is_flushed", [True, False])
@pytest.mark.parametrize("reserved", [0, 40, 500])
def test_one_that_is_left_is_removed_at_the_start(
    more: int, clean: bool, is_flushed: bool, reserved: int
) -> None:
    world = half_begun(INDEX, errno.ENFILE)
    for number in range(more):
        append(world.log(), 2 + number, LARGE)
    if is_flushed:
        world.log().flush()
        world.clock.advance(100)
    if clean:
        world.manager.close()
    else:
        abandon(world.manager)
    left = world.disk.create(f"{ROOT}/t-0/{offset_name(1, LOG)}")
    left.truncate(reserved)
    left.close()
    world.manager = open_logs(world.env, SMALL)
    log = world.log()
    assert 1 not in log.bases
    assert log.log_end_offset == 2 + more
    assert found_from_everywhere(log) == list(range(2 + more))
    assert offset_name(1, LOG) not in world.names()
    append(log, 99, LITTLE)
    assert log.log_end_offset == 3 + more


@pytest.mark.parametrize("seed", range(30))
def test_a_power_cut_brings_none_back_that_hides_anything(seed: int) -> None:
    world = half_begun(TIME_INDEX, errno.ENFILE)
    world.log().flush()
    world.clock.advance(100)
    abandon(world.manager)
    assert isinstance(world.disk, CrashDisk)
    again = World(SMALL, world.disk.crashed(Random(seed)))
    assert found_from_everywhere(again.log()) == [0, 1]


def test_an_empty_segment_at_the_end_stays() -> None:
    world = World(SMALL)
    append(world.log(), 0, LARGE)
    world.log().roll()
    for clean in (True, False):
        assert world.restart(clean=clean).bases == [0, 1]


def test_a_segment_that_is_sealed_is_not_read_for_the_empty_one_behind_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(SMALL)
    append(world.log(), 0, LARGE)
    world.log().roll()
    world.manager.close()
    walked: list[int] = []
    monkeypatch.setattr(interrupted, "_end_of", lambda segment: walked.append(segment.base_offset))
    world.manager = open_logs(world.env, SMALL)
    assert world.log().bases == [0, 1]
    assert walked == []
