"""`preallocate`: the segment that is appended to has its whole size, any other its own."""

import logging

import pytest

from kafkalite.env.disk import RealDisk
from kafkalite.log.config import LogConfig
from kafkalite.log.names import RECOVERY_POINTS
from kafkalite.sim.disk import CrashDisk
from tests.unit.log.making import ROOT, START_MS, World, batch, committed, read_all

CONFIG = LogConfig(segment_bytes=4000, preallocate=True)


def fill(log, count):
    for index in range(count):
        log.append_as_leader(batch([b"%03d" % index + b"x" * 100], timestamp=START_MS + index), 0)
    committed(log)


def sizes(world, log):
    """What the files have, and what of it is records."""
    return [(world.disk.size_of(one.path(".log")), one.size) for one in log.segments]


def test_only_the_segment_that_is_appended_to_is_longer_than_its_records():
    world = World(CONFIG, CrashDisk())
    log = world.log()
    assert sizes(world, log) == [(4000, 0)]
    fill(log, 60)
    *closed, (active, used) = sizes(world, log)
    assert closed
    assert all(size == used for size, used in closed)
    assert active == 4000 > used
    assert len(read_all(log)) == 60
    log.truncate_fully_and_start_at(5)
    assert sizes(world, log) == [(4000, 0)]


@pytest.mark.parametrize("clean", [True, False])
def test_after_a_restart_the_file_ends_with_the_records(clean, caplog):
    world = World(CONFIG, CrashDisk())
    fill(world.log(), 10)
    before = read_all(world.log())
    with caplog.at_level(logging.WARNING):
        log = world.restart(clean=clean)
    assert all(size == used for size, used in sizes(world, log))
    assert read_all(log) == before
    assert ("cut" in caplog.text) is not clean
    assert not any(name.endswith(".corrupt") for name in world.names())
    fill(log, 5)
    assert len(read_all(log)) == 15


def test_a_hole_behind_a_completed_segment_takes_nothing_of_the_next():
    """Its removal was lost in a crash."""
    world = World(CONFIG, CrashDisk())
    fill(world.log(), 60)
    before = read_all(world.log())
    first = world.log().segments[0]
    world.disk.open(first.path(".log")).truncate(CONFIG.segment_bytes)
    assert read_all(world.restart(clean=False)) == before


def test_a_hole_below_the_recovery_point_is_cut():
    world = World(CONFIG, CrashDisk())
    fill(world.log(), 20)
    world.log().flush()
    world.log().roll()
    world.manager.checkpoint(RECOVERY_POINTS)
    before = read_all(world.log())
    first = world.log().segments[0]
    for path in (f"{ROOT}/t-0/{20:020d}.snapshot", f"{ROOT}/t-0/{0:020d}.snapshot"):
        if world.disk.exists(path):
            world.disk.remove(path)
    world.disk.open(first.path(".log")).truncate(CONFIG.segment_bytes)
    log = world.restart(clean=False)
    assert read_all(log) == before
    assert sizes(world, log)[0] == (first.size, first.size)


def test_of_a_damaged_file_no_hole_is_kept():
    world = World(CONFIG, CrashDisk())
    fill(world.log(), 10)
    segment = world.log().active
    file = world.disk.open(segment.path(".log"))
    file.write_at(segment.size - 10, b"\xff")
    assert world.restart(clean=False).log_end_offset == 9
    (kept,) = (name for name in world.names() if name.endswith(".corrupt"))
    assert world.disk.size_of(f"{world.log().directory}/{kept}") < 500


def test_a_real_file_is_reserved(tmp_path):
    file = RealDisk().create(f"{tmp_path}/x")
    file.reserve(1 << 20)
    assert file.size() == 1 << 20
    file.close()
