"""A pass of retention over many logs: between everything else, and with one checkpoint for all."""

import pytest

from kafkalite.env.disk import Disk
from kafkalite.env.slicing import STEPS_PER_SLICE
from kafkalite.log import checkpoints, directory
from kafkalite.log.config import LogConfig
from kafkalite.log.names import RECOVERY_POINTS
from kafkalite.log.partition_log import PartitionLog
from kafkalite.log.retention_pass import RetentionPass
from tests.unit.log.making import World, batch, committed

OLD = LogConfig(segment_bytes=300, retention_ms=10_000)
LOGS = 2 * STEPS_PER_SLICE


def old_logs(count: int) -> World:
    world = World(OLD)
    for partition in range(count):
        log = world.log("t", partition)
        log.append_as_leader(batch([b"x"]), 0)
        committed(log)
    world.clock.advance(20_000)
    return world


def starts(world: World) -> set[int]:
    return {log.log_start_offset for log in world.manager}


def test_many_logs_are_gone_over_in_slices():
    world = old_logs(LOGS)
    world.manager.periodic.retain()
    assert starts(world) == {0, 1}
    world.clock.advance(0)
    assert starts(world) == {1}
    assert {len(log.segments) for log in world.manager} == {1}


def test_one_checkpoint_says_so_for_all_logs(monkeypatch):
    world = old_logs(20)
    written = []

    def staged(disk: Disk, path: str, offsets: dict[tuple[str, int], int]) -> None:
        written.append((path, dict(offsets)))
        checkpoints.stage_offsets(disk, path, offsets)

    monkeypatch.setattr(directory, "stage_offsets", staged)
    world.manager.periodic.retain()
    world.clock.advance(0)
    ((path, offsets),) = written
    assert RECOVERY_POINTS in path
    assert set(offsets.values()) == {1}
    assert len(offsets) == 20


def test_a_log_that_is_deleted_meanwhile_is_left_alone():
    world = old_logs(LOGS)
    world.manager.periodic.retain()
    for partition in (0, LOGS - 1):
        world.manager.delete("t", partition)
    world.clock.advance(0)
    assert starts(world) == {1}


def test_a_pass_is_not_begun_again_before_it_is_over():
    world = old_logs(LOGS)
    world.manager.periodic.retain()
    world.manager.periodic.retain()
    world.clock.advance(0)
    assert starts(world) == {1}
    world.clock.advance(20_000)
    world.manager.periodic.retain()
    world.clock.advance(0)
    assert starts(world) == {1}


@pytest.mark.parametrize("kind", ["retain", "flush", "expire_producers"])
def test_a_loop_that_does_not_keep_up_has_one_pass_of_a_kind(kind):
    """Each would make the next one slower, and all that others want."""
    world = old_logs(3 * LOGS)
    go_over = getattr(world.manager.periodic, kind)
    for _ in range(3):
        go_over()
    assert len(world.env.slices) == 1
    world.clock.advance(0)
    world.clock.advance(0)
    assert len(world.env.slices) == 0
    go_over()
    assert len(world.env.slices) == 1
    world.manager.periodic.stop()
    go_over()
    assert len(world.env.slices) == 1, "what a stop dropped can be begun again"


@pytest.mark.parametrize("logs", [1, LOGS])
def test_a_pass_that_fails_by_a_mistake_is_not_the_last(logs, monkeypatch):
    world = old_logs(logs)

    def fail(self: RetentionPass, log: PartitionLog) -> None:
        if log.partition == logs - 1:
            raise ValueError("a mistake")

    def retain() -> None:
        world.manager.periodic.retain()
        world.clock.advance(0)

    with monkeypatch.context() as patch:
        patch.setattr(RetentionPass, "_look_at", fail)
        with pytest.raises(ValueError, match="a mistake"):
            retain()
    retain()
    assert starts(world) == {1}
