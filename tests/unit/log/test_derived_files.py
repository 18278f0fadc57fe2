"""Indexes, snapshots and checkpoints that are gone or wrong: the records alone decide.

The search over every shape, file and kind of damage is in `tests/damage`.
"""

from __future__ import annotations

import logging

import pytest

from kafkalite.env.disk import read_whole, replace_file
from kafkalite.log.config import LogConfig
from kafkalite.log.partition_log import AppendOrigin, PartitionLog
from kafkalite.log.seals import SEALS
from tests.unit.log.making import (
    ROOT,
    TOPIC_ID,
    World,
    abandon,
    batch,
    committed,
    marker,
    open_logs,
    read_all,
)  # fmt: skip

SMALL = LogConfig(segment_bytes=600, index_interval_bytes=100)
OWN = f"{ROOT}/t-0"


def filled(count: int = 40, config: LogConfig = SMALL) -> World:
    """A log of several segments, stopped cleanly."""
    world = World(config)
    for number in range(count):
        world.log().append_as_leader(batch([b"%d" % number]), 0)
    committed(world.log())
    world.manager.close()
    return world


def started(world: World) -> PartitionLog:
    world.manager = open_logs(world.env, world.config)
    return committed(world.log())


def names(world: World, suffix: str) -> list[str]:
    return [f"{OWN}/{name}" for name in world.names() if name.endswith(suffix)]


def flip(world: World, path: str, bit: int) -> None:
    file = world.disk.open(path)
    [byte] = file.read_at(bit // 8, 1)
    file.write_at(bit // 8, bytes([byte ^ 1 << bit % 8]))


def goes_on(log: PartitionLog, end: int = 40) -> None:
    assert log.log_end_offset == end
    assert log.append_as_leader(batch([b"next"]), 0).base_offset == end
    values = [record.value for record in read_all(committed(log))]
    assert values[-2:] == [b"%d" % (end - 1), b"next"]


# --- the end of a log -----------------------------------------------------------------------------


@pytest.mark.parametrize("is_sealed", [True, False])
def test_bytes_behind_an_index_move_no_end(is_sealed: bool) -> None:
    world = filled()
    path = names(world, ".index")[-1]
    world.disk.open(path).write_at(world.disk.size_of(path), b"\x00\x01" * 8)
    if not is_sealed:
        world.disk.remove(f"{OWN}/{SEALS}")
    goes_on(started(world))


@pytest.mark.parametrize("is_sealed", [True, False])
def test_no_flipped_bit_in_an_index_moves_the_end_or_hides_a_record(is_sealed: bool) -> None:
    for number in range(len(names(filled(), ".index"))):
        bits = 8 * filled().disk.size_of(names(filled(), ".index")[number])
        for bit in range(0, bits, 5):
            world = filled()
            flip(world, names(world, ".index")[number], bit)
            if not is_sealed:
                world.disk.remove(f"{OWN}/{SEALS}")
            log = started(world)
            for offset in range(40):
                found = log.read(offset, 1).range
                assert found is not None
                assert b"%d" % offset in found.read()
            goes_on(log)


def test_records_that_are_lost_after_a_clean_stop_are_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = filled()
    path = names(world, ".log")[-1]
    [*_, last] = started(world).active.walk(0)
    world.manager.close()
    world.disk.open(path).truncate(last.position)
    with caplog.at_level(logging.ERROR):
        assert started(world).log_end_offset == 39
    [line] = caplog.messages
    assert "ended at 40 when it was closed, and ends at 39 now" in line


def test_damage_in_records_that_were_whole_at_a_clean_stop_cuts_nothing() -> None:
    world = filled()
    path = names(world, ".log")[-1]
    [*_, last] = started(world).active.walk(0)
    world.manager.close()
    length = 8 * (last.position + 8)
    flip(world, path, length)
    size = world.disk.size_of(path)
    world.manager = open_logs(world.env, SMALL)
    [offline] = world.manager.offline
    assert path in offline.reason
    world.clock.advance(60_000)
    world.manager.close()
    assert world.disk.size_of(path) == size
    flip(world, path, length)
    goes_on(started(world))


# --- aborted transactions -------------------------------------------------------------------------


def with_transactions() -> World:
    """Some aborted, some committed, the last one open."""
    world = World(SMALL)
    log = world.log()
    for number in range(8):
        made = batch(
            [b"%d" % number], producer_id=7, producer_epoch=0, base_sequence=number,
            is_transactional=True,
        )  # fmt: skip
        log.append_as_leader(batch([b"plain"]), 0)
        log.append_as_leader(made, 0)
        if number < 7:
            ends = marker(7, 0, commit=number % 2 == 1)
            log.append_as_leader(ends, 0, AppendOrigin.COORDINATOR)
    committed(log)
    return world


@pytest.mark.parametrize("is_sealed", [True, False])
@pytest.mark.parametrize(
    "suffixes",
    [
        (".index",),
        (".timeindex",),
        (".index", ".timeindex", ".txnindex"),
        (".index", ".timeindex", ".txnindex", ".snapshot"),
        (".snapshot",),
    ],
)
def test_files_that_are_gone_are_made_again_with_the_aborted_transactions(
    suffixes: tuple[str, ...], is_sealed: bool
) -> None:
    world = with_transactions()
    log = world.log()
    before = log.aborted(0, log.log_end_offset), log.last_stable_offset, read_all(log)
    world.manager.close()
    for path in names(world, suffixes):  # type: ignore[arg-type]
        world.disk.remove(path)
    if not is_sealed:
        world.disk.remove(f"{OWN}/{SEALS}")
    log = started(world)
    assert (log.aborted(0, log.log_end_offset), log.last_stable_offset, read_all(log)) == before


# --- what Apache Kafka wrote ----------------------------------------------------------------------


def test_a_directory_without_seals_is_taken_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    world = filled()
    world.disk.remove(f"{OWN}/{SEALS}")
    with caplog.at_level(logging.WARNING):
        log = started(world)
    assert caplog.messages == []
    assert all(segment.seal is None for segment in log.segments)
    world.manager.close()
    with caplog.at_level(logging.WARNING):
        log = started(world)
    assert caplog.messages == []
    assert all(segment.seal is not None for segment in log.segments)


def test_what_another_broker_added_and_closed_is_taken_as_it_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = filled()
    seals = world.disk.open(f"{OWN}/{SEALS}").read_at(0, 1 << 20)
    log = started(world)
    for number in range(40, 60):
        log.append_as_leader(batch([b"%d" % number]), 0)
    committed(log)
    world.manager.close()
    world.disk.create(f"{OWN}/{SEALS}").write_at(0, seals)  # it knows nothing of this file
    with caplog.at_level(logging.WARNING):
        log = started(world)
    assert caplog.messages == []
    goes_on(log, 60)


# --- offline --------------------------------------------------------------------------------------


def test_a_damaged_batch_that_a_lost_snapshot_needs_makes_its_partition_offline() -> None:
    world = with_transactions()
    world.manager.create("u", 0, TOPIC_ID, SMALL)
    world.manager.close()
    for path in names(world, ".snapshot"):
        world.disk.remove(path)
    flip(world, names(world, ".log")[0], 8 * 8)  # the length of the first batch
    world.manager = open_logs(world.env, SMALL)
    [offline] = world.manager.offline
    assert (offline.topic, offline.partition) == ("t", 0)
    assert names(world, ".log")[0] in offline.reason
    assert world.manager.get("u", 0) is not None


@pytest.mark.parametrize("damaged", [b"0 0\n1 20", b"0 0\n1 39", b"0 0\n1 41", b"1 0\n2 40", None])
def test_epochs_are_complained_of_only_when_they_are_wrong(
    damaged: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Apache Kafka, which knows no seals, went on in the directory and was killed."""
    world = filled()
    seals, path = read_whole(world.disk, f"{OWN}/{SEALS}"), f"{OWN}/leader-epoch-checkpoint"
    log = started(world)
    log.append_as_leader(batch([b"by another"]), 1)
    log.flush()
    abandon(world.manager)
    replace_file(world.disk, f"{OWN}/{SEALS}", seals)
    right = read_whole(world.disk, path)
    assert right == b"0\n2\n0 0\n1 40\n"
    if damaged is not None:
        replace_file(world.disk, path, right.replace(b"0 0\n1 40", damaged))
    with caplog.at_level(logging.WARNING):
        log = started(world)
    assert log.epochs.entries() == [(0, 0), (1, 40)]
    assert ("leader epochs" in caplog.text) == (damaged is not None)
    log.flush()
    assert read_whole(world.disk, path) == right


def test_epochs_whose_batches_compaction_took_are_kept_after_a_kill_of_another_broker(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = filled()
    seals, path = read_whole(world.disk, f"{OWN}/{SEALS}"), f"{OWN}/leader-epoch-checkpoint"
    log = started(world)
    last = bytearray(batch([b"by another"]))
    last[0:8], last[12:16] = (45).to_bytes(8, "big"), (3).to_bytes(4, "big")
    log.append_as_follower(last)
    log.flush()
    abandon(world.manager)
    replace_file(world.disk, f"{OWN}/{SEALS}", seals)
    replace_file(world.disk, path, b"0\n4\n0 0\n1 40\n2 42\n3 44\n")
    with caplog.at_level(logging.WARNING):
        log = started(world)
    assert log.epochs.entries() == [(0, 0), (1, 40), (2, 42), (3, 44)]
    assert "leader epochs" not in caplog.text


def test_epochs_that_begin_where_a_batch_says_that_it_has_none_are_wrong() -> None:
    world = World(SMALL)
    log = world.log()
    for epoch in (-1, -1, 0):
        log.append_as_leader(batch([b"one"]), epoch)
    log.flush()
    world.clock.advance(1)
    assert log.epochs.entries() == [(0, 2)]
    abandon(world.manager)
    replace_file(world.disk, f"{OWN}/leader-epoch-checkpoint", b"0\n1\n0 1\n")
    assert started(world).epochs.entries() == [(0, 2)]
