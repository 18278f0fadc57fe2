"""What a copy of a log knows of its producers: all that the log knows, whatever came first."""

from __future__ import annotations

import pytest

from kafkalite.env import manual_env
from kafkalite.env.clock import ManualClock
from kafkalite.log.append import Append
from kafkalite.log.appending import append_as_leader
from kafkalite.log.config import LogConfig, LogSettings
from kafkalite.log.manager import LogManager
from kafkalite.log.partition_log import PartitionLog
from tests.unit.log.making import CLUSTER_ID, START_MS, TOPIC_ID, batch, committed, keyed

QUIET = LogSettings(log_cleaner_enable=False)


def moving(log_config: LogConfig) -> tuple[LogManager, PartitionLog]:
    env = manual_env()
    manager = LogManager(
        env, ["/one", "/two"], node_id=1, cluster_id=CLUSTER_ID, settings=QUIET,
        config_of=lambda _: log_config,
    )  # fmt: skip
    assert manager.start().is_resolved
    return manager, manager.create("t", 0, TOPIC_ID, log_config, directory="/one")


def moved(manager: LogManager) -> PartitionLog:
    copies: list[PartitionLog] = []
    manager.move("t", 0, "/two", copies.append)
    assert isinstance(manager.env.clock, ManualClock)
    manager.env.clock.advance(1_000)
    [copy] = copies
    return copy


@pytest.mark.parametrize("plain_batches", [0, 1, 4])
@pytest.mark.parametrize("deleted_to", [0, 1])
def test_a_log_that_moves_keeps_its_open_transaction(plain_batches: int, deleted_to: int) -> None:
    """A chunk that is copied may begin with batches that are of no producer."""
    manager, log = moving(LogConfig())
    for _ in range(plain_batches):
        log.append_as_leader(batch([b"of nobody"]), 0)
    log.append_as_leader(
        keyed(
            [(b"k", b"not committed")] * 3, producer_id=9, producer_epoch=0, base_sequence=0,
            is_transactional=True, timestamp=START_MS,
        ),
        0,
    )  # fmt: skip
    committed(log)
    log.delete_records_before(min(deleted_to, plain_batches))
    copy = moved(manager)
    assert copy.active_producers() == log.active_producers() != []
    assert copy.last_stable_offset == log.last_stable_offset == plain_batches


def test_what_a_coordinator_was_asked_of_a_transaction_outlasts_a_move() -> None:
    """The question is on its way while the log is replaced: nothing is wrong with the batch."""
    manager, log = moving(LogConfig())
    log.append_as_leader(batch([b"of nobody"]), 0)
    asked = log.start_verification(9, 0, 0, supports_epoch_bump=False)
    first = keyed(
        [(b"k", b"v")], producer_id=9, producer_epoch=0, base_sequence=0, is_transactional=True,
        timestamp=START_MS,
    )  # fmt: skip
    copy = moved(manager)
    append_as_leader(copy, Append(first, START_MS, verification=asked, leader_epoch=0))
    committed(copy)
    assert copy.last_stable_offset == 1


def test_a_log_moves_whose_batches_are_larger_than_its_segments_are_to_be_now() -> None:
    """segment.bytes was lowered since they were written: nothing that its owner can mend."""
    manager, log = moving(LogConfig(segment_bytes=10_000))
    for value in (b"a" * 3_000, b"b" * 3_000, b"c"):
        log.append_as_leader(batch([value]), 0)
    committed(log)
    log.config = LogConfig(segment_bytes=1_000)
    copy = moved(manager)
    assert copy.log_end_offset == log.log_end_offset == 3
    copy.append_as_leader(batch([b"more"]), 0)
    assert copy.segments[-1].base_offset == 3


def test_a_log_that_is_cut_while_it_moves_is_copied_anew() -> None:
    """As a follower's is, which has other records with the same offsets then."""
    manager, log = moving(LogConfig())
    for _ in range(3):
        log.append_as_leader(batch([b"lost"]), 0)
    copies: list[PartitionLog] = []
    manager.move("t", 0, "/two", copies.append)
    assert isinstance(manager.env.clock, ManualClock)
    log.durability.hold()  # so that the copy waits before it takes the log's place
    manager.env.clock.advance(1_000)
    future = manager.future("t", 0)
    assert future is not None
    assert (future.log_end_offset, copies) == (3, [])
    log.truncate_to(1)
    for _ in range(2):
        log.append_as_leader(batch([b"kept"]), 1)
    log.durability.release()
    manager.env.clock.advance(1_000)
    [copy] = copies
    found = [log.read(0, 1 << 20).range, copy.read(0, 1 << 20).range]
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].read() == found[1].read()
