"""A log never has a hole where a power cut took a whole segment: it ends there."""

from dataclasses import replace

import pytest

from kafkalite.env.disk import read_whole, replace_file
from kafkalite.log.config import COMPACT, LogConfig
from kafkalite.log.names import CLEANER_OFFSETS, RECOVERY_POINTS
from tests.unit.log.making import ROOT, World, abandon, committed, keyed, open_logs, read_all

COMPACTED = LogConfig(
    cleanup_policy=(COMPACT,), segment_bytes=300, index_interval_bytes=100,
    min_cleanable_dirty_ratio=0.01,
)  # fmt: skip
PLAIN = LogConfig(segment_bytes=300, index_interval_bytes=100)
COUNT = 40


def filled(config: LogConfig) -> World:
    world = World(config)
    for number in range(COUNT):
        record = (b"k%d" % (number % 5), b"v%03d" % number)
        world.log().append_as_leader(keyed([record], timestamp=world.env.clock.now_ms()), 0)
    committed(world.log())
    return world


def compact(world: World) -> None:
    world.manager.periodic.cleaner.run()
    world.clock.advance(10_000)
    assert len(read_all(world.log())) < COUNT


def lose(world: World, base_offset: int) -> None:
    for name in world.names():
        if name.startswith(f"{base_offset:020d}."):
            world.disk.remove(f"{ROOT}/t-0/{name}")


def offsets(world: World) -> list[int]:
    world.manager = open_logs(world.env, world.config)
    return [record.offset for record in read_all(committed(world.log()))]


@pytest.mark.parametrize("number", [1, 2, -2])
@pytest.mark.parametrize("is_sealed", [True, False])
def test_it_ends_where_a_whole_segment_is_lost(number: int, is_sealed: bool) -> None:
    world = filled(PLAIN)
    bases = list(world.log().bases)
    abandon(world.manager)
    lose(world, bases[number])
    if not is_sealed:
        world.disk.remove(f"{ROOT}/t-0/derived-file-checksums")
    assert offsets(world) == list(range(bases[number]))
    assert f"{bases[bases.index(bases[number]) + 1]:020d}.0.corrupt" in world.names()
    assert world.log().append_as_leader(keyed([(b"k", b"v")]), 0).base_offset == bases[number]


def test_what_was_appended_behind_a_clean_stop_is_lost_with_what_follows() -> None:
    """The segment is what it was sealed as, and the next one has been begun: neither tells."""
    world = filled(COMPACTED)
    world.manager.close()
    seals = read_whole(world.disk, f"{ROOT}/t-0/derived-file-checksums")
    world.manager = open_logs(world.env, replace(COMPACTED, segment_bytes=10_000))
    size, last = world.log().active.size, world.log().bases[-1]
    world.log().append_as_leader(keyed([(b"k", b"lost")]), 0)
    world.log().roll()
    abandon(world.manager)
    replace_file(world.disk, f"{ROOT}/t-0/derived-file-checksums", seals)
    world.disk.open(f"{ROOT}/t-0/{last:020d}.log").truncate(size)
    assert offsets(world) == list(range(COUNT))
    assert world.log().log_end_offset == COUNT


@pytest.mark.parametrize("are_points_lost", [True, False])
def test_what_compaction_left_out_is_no_loss(are_points_lost: bool) -> None:
    world = filled(COMPACTED)
    compact(world)
    before = [record.offset for record in read_all(world.log())]
    abandon(world.manager)
    if are_points_lost:
        for name in (RECOVERY_POINTS, CLEANER_OFFSETS):
            world.disk.remove(f"{ROOT}/{name}")
    assert offsets(world) == before


def test_what_is_lost_behind_what_was_compacted_is_a_loss() -> None:
    world = filled(COMPACTED)
    compact(world)
    for number in range(COUNT):
        world.log().append_as_leader(keyed([(b"k%d" % number, b"new")]), 0)
    before = [record.offset for record in read_all(committed(world.log()))]
    bases = list(world.log().bases)
    abandon(world.manager)
    # The first behind the recovery point, and the segment before it had been compacted.
    lost = next(base for base in bases if base > before[0] and base >= COUNT)
    lose(world, lost)
    assert offsets(world) == [offset for offset in before if offset < lost]
