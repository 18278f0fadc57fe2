"""What a follower does with answers that are late, damaged or not for it."""

from __future__ import annotations

import pytest

from kafkalite.log.epochs import LeaderEpochs
from kafkalite.protocol.errors import Error
from kafkalite.replication.acting import copy_of, follow
from kafkalite.replication.follower import (
    Append,
    Backoff,
    Copy,
    Fetched,
    FetchFrom,
    Follower,
    State,
    TruncateFullyAndStartAt,
    TruncateTo,
)
from kafkalite.replication.leader import Leadership
from kafkalite.replication.partition import Partition
from tests.unit.log.making import TOPIC_ID, World, batch
from tests.unit.replication.stage import done


def copy(start: int = 0, high_watermark: int = 0, end: int = 5, *epochs: tuple[int, int]) -> Copy:
    return Copy(start, high_watermark, end, LeaderEpochs.of(epochs or [(1, 0)]))


def fetching(at: Copy) -> tuple[Follower, FetchFrom]:
    follower = Follower(1, 4, 7)
    follower.start(at)
    asked = follower.ask(at, 0)
    assert isinstance(asked, FetchFrom)
    return follower, asked


def records(base_offset: int, count: int = 1) -> bytearray:
    found = bytearray(batch([b"x"] * count, partition_leader_epoch=1))
    found[:8] = base_offset.to_bytes(8, "big")
    return found


def test_it_asks_from_its_logs_end() -> None:
    _, asked = fetching(copy(2, 3, 5, (1, 0), (3, 4)))
    assert asked == FetchFrom(1, 4, offset=5, last_fetched_epoch=3, log_start_offset=2)


def test_nothing_is_asked_while_its_log_changes() -> None:
    follower, asked = fetching(copy())
    (append,) = follower.fetched(asked, Fetched(records=records(5)), copy(), 0)
    assert isinstance(append, Append)
    assert follower.state is State.CHANGING
    assert follower.ask(copy(), 0) is None
    assert follower.fetched(asked, Fetched(records=records(5)), copy(), 0) == []
    follower.appended(append, copy(end=6))
    assert follower.ask(copy(end=6), 0) == FetchFrom(1, 4, 6, 1, 0)


def test_an_answer_for_another_place_is_dropped() -> None:
    follower, asked = fetching(copy())
    assert follower.fetched(asked, Fetched(records=records(5)), copy(end=6), 0) == []
    assert follower.state is State.FETCHING


def test_an_answer_for_another_epoch_is_dropped() -> None:
    follower, asked = fetching(copy())
    follower.take(Leadership(2, 5, 8, (1, 2), (1, 2)))
    follower.start(copy())
    assert follower.fetched(asked, Fetched(records=records(5)), copy(), 0) == []
    assert follower.unanswered(asked, 0) == []


def test_older_metadata_is_passed_over() -> None:
    follower, _ = fetching(copy())
    assert not follower.take(Leadership(2, 5, 6, (1, 2), (1, 2)))
    assert not follower.take(Leadership(1, 4, 9, (1, 2), (1, 2)))
    assert (follower.leader_id, follower.partition_epoch) == (1, 9)
    assert follower.state is State.FETCHING


@pytest.mark.parametrize(
    ("at", "diverging", "cut"),
    [
        (copy(0, 0, 9, (1, 0), (3, 5)), (1, 4), 4),  # the leader's epoch ended before ours
        (copy(0, 0, 9, (1, 0), (3, 5)), (1, 7), 5),  # ours before the leader's
        (copy(0, 0, 9, (1, 0), (3, 5)), (2, 7), 5),  # an epoch that is not ours: to the end of 1
        (copy(0, 0, 9, (3, 2)), (1, 1), 1),  # before all that we know
        (copy(0, 0, 9, (1, 0)), (1, 6), 6),
        (copy(0, 0, 9, (1, 0)), (7, 6), 6),
    ],
)
def test_where_a_log_is_cut(at: Copy, diverging: tuple[int, int], cut: int) -> None:
    follower, asked = fetching(at)
    assert follower.fetched(asked, Fetched(diverging=diverging), at, 0) == [TruncateTo(cut)]


def test_watermarks_do_not_count_before_the_cut() -> None:
    at = copy(0, 3, 9)
    follower, asked = fetching(at)
    answer = Fetched(high_watermark=7, log_start_offset=2, diverging=(1, 6))
    assert follower.fetched(asked, answer, at, 0) == [TruncateTo(6)]


def test_an_empty_log_may_begin_in_the_middle_of_a_batch() -> None:
    at = Copy(3, 3, 3, LeaderEpochs())
    follower, asked = fetching(at)
    begin, append = follower.fetched(asked, Fetched(records=records(1, 4)), at, 0)
    assert begin == TruncateFullyAndStartAt(1)
    assert isinstance(append, Append)


def test_a_batch_with_offsets_that_were_given_is_never_appended() -> None:
    follower, asked = fetching(copy())
    assert follower.fetched(asked, Fetched(records=records(3, 4)), copy(), 0) == []
    assert follower.state is State.FAILED
    assert follower.ask(copy(), 1_000_000) is None
    assert follower.take(Leadership(1, 5, 8, (1, 2), (1, 2)))
    follower.start(copy())
    assert follower.ask(copy(), 0) is not None


@pytest.mark.parametrize(
    ("error", "current_leader", "state"),
    [
        (Error.FENCED_LEADER_EPOCH, None, State.FENCED),
        (Error.NOT_LEADER_OR_FOLLOWER, (3, 5), State.FENCED),
        (Error.NOT_LEADER_OR_FOLLOWER, (3, 4), State.FETCHING),
        (Error.NOT_LEADER_OR_FOLLOWER, None, State.FETCHING),
        (Error.UNKNOWN_LEADER_EPOCH, None, State.FETCHING),
        (Error.UNKNOWN_TOPIC_ID, None, State.FETCHING),
        (Error.KAFKA_STORAGE_ERROR, None, State.FETCHING),
    ],
)
def test_each_error(
    error: Error, current_leader: tuple[int, int] | None, state: State
) -> None:
    follower, asked = fetching(copy())
    effects = follower.fetched(asked, Fetched(error, current_leader=current_leader), copy(), 50)
    assert follower.state is state
    assert effects == ([] if state is State.FENCED else [Backoff(1_050)])
    assert follower.ask(copy(), 1_049) is None
    assert (follower.ask(copy(), 1_050) is None) == (state is State.FENCED)


@pytest.fixture
def partition() -> Partition:
    """A follower with a log of its own."""
    log = World().log()
    partition = Partition("t", 0, TOPIC_ID, 2, log)
    partition.take(Leadership(1, 4, 7, (1, 2), (1, 2)))
    return partition


def answered(partition: Partition, answer: Fetched) -> Follower:
    role = partition.role
    assert isinstance(role, Follower)
    role.start(copy_of(partition))
    asked = role.ask(copy_of(partition), 0)
    assert isinstance(asked, FetchFrom)
    done(follow(partition, role.fetched(asked, answer, copy_of(partition), 0), 0))
    return role


def test_what_came_damaged_is_asked_for_again(partition: Partition) -> None:
    damaged = records(0)
    damaged[-1] ^= 1
    role = answered(partition, Fetched(records=damaged, high_watermark=1))
    assert (role.state, role.delayed_until_ms) == (State.FETCHING, 1_000)
    assert (partition.log.log_end_offset, partition.high_watermark) == (0, 0)


def test_a_disk_that_fails_ends_it(partition: Partition) -> None:
    partition.log.home.failure = OSError("the disk is gone")
    role = answered(partition, Fetched(records=records(0)))
    assert role.state is State.FAILED


def test_records_of_a_later_epoch_than_was_asked_for_are_left_out(partition: Partition) -> None:
    later = records(1)
    later[12:16] = (9).to_bytes(4, "big")
    answered(partition, Fetched(records=records(0) + later, high_watermark=2))
    assert (partition.log.log_end_offset, partition.high_watermark) == (1, 1)
