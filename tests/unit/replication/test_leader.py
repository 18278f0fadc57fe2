"""What a leader makes of the controller's answers, and of a log of which not all lasts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.replication.leader import (
    Altered,
    AlterPartition,
    Committed,
    Leader,
    Leadership,
    Moment,
    Neighbours,
    ReplicaFetch,
)

NEIGHBOURS = Neighbours(epochs={1: 10, 2: 20, 3: 30})


def moment(now_ms: int = 0, high_watermark: int = 0, end: int = 5, own: int = 5) -> Moment:
    return Moment(now_ms, 0, high_watermark, own, end, 1, NEIGHBOURS)


def leading(*isr: int) -> Leader:
    leader = Leader(1)
    leader.take(Leadership(1, 4, 7, (1, 2, 3), isr, (1, 2, 3)), 5, 0)
    return leader


@pytest.fixture
def asking() -> tuple[Leader, AlterPartition]:
    """It has asked that 3 may join."""
    leader = leading(1, 2)
    (asked,) = leader.fetched(3, ReplicaFetch(5, 0, 30), moment())
    assert isinstance(asked, AlterPartition)
    return leader, asked


def test_what_is_asked_of_the_controller(asking: tuple[Leader, AlterPartition]) -> None:
    _, asked = asking
    assert (asked.leader_epoch, asked.partition_epoch) == (4, 7)
    assert asked.isr == ((1, 10), (2, -1), (3, 30))


@pytest.mark.parametrize(
    ("error", "is_asked_again", "is_pending"),
    [
        (Error.OPERATION_NOT_ATTEMPTED, False, False),
        (Error.INELIGIBLE_REPLICA, False, False),
        (Error.UNKNOWN_TOPIC_OR_PARTITION, False, True),
        (Error.UNKNOWN_TOPIC_ID, False, True),
        (Error.FENCED_LEADER_EPOCH, False, True),
        (Error.INVALID_UPDATE_VERSION, False, True),
        (Error.INVALID_REQUEST, False, True),
        (Error.NEW_LEADER_ELECTED, False, True),
        (Error.NOT_CONTROLLER, True, True),
        (Error.UNKNOWN_SERVER_ERROR, True, True),
        (Error.REQUEST_TIMED_OUT, True, True),
    ],
)
def test_each_refusal(
    asking: tuple[Leader, AlterPartition], error: Error, is_asked_again: bool, is_pending: bool
) -> None:
    leader, asked = asking
    assert leader.altered(asked, error, moment()) == ([asked] if is_asked_again else [])
    assert (leader.pending is asked) == is_pending
    assert leader.maximal_isr == ((1, 2, 3) if is_pending else (1, 2))
    assert leader.isr == (1, 2)


@pytest.mark.parametrize(
    ("outcome", "is_taken"),
    [
        (Altered(4, 8, (1, 2, 3)), True),
        (Altered(4, 7, (1, 2, 3)), True),  # it was so already
        (Altered(4, 6, (1, 2, 3)), False),
        (Altered(5, 8, (1, 2, 3)), False),
    ],
)
def test_only_a_state_of_this_epoch_that_is_not_older_is_taken(
    asking: tuple[Leader, AlterPartition], outcome: Altered, is_taken: bool
) -> None:
    leader, asked = asking
    leader.altered(asked, outcome, moment())
    assert (leader.isr == (1, 2, 3)) == is_taken
    assert (leader.partition_epoch == outcome.partition_epoch) == is_taken or not is_taken
    assert (leader.pending is None) == is_taken


def test_an_answer_to_what_is_asked_no_more_says_nothing(
    asking: tuple[Leader, AlterPartition],
) -> None:
    leader, asked = asking
    leader.take(Leadership(1, 4, 8, (1, 2, 3), (1, 2), (1, 2, 3)), 5, 0)
    assert leader.altered(asked, Altered(4, 9, (1, 2, 3)), moment()) == []
    assert (leader.isr, leader.partition_epoch) == ((1, 2), 8)


def test_older_metadata_is_passed_over() -> None:
    leader = leading(1, 2)
    assert not leader.take(Leadership(1, 5, 6, (1,), (1,)), 5, 0)
    assert (leader.leader_epoch, leader.isr) == (4, (1, 2))


def test_a_leader_counts_of_its_own_log_what_it_vouches_for() -> None:
    """Under fsync durability, what is on its disk: not what its followers have in memory."""
    leader = leading(1, 2)
    early = moment(own=3)
    leader.followers[3].caught_up_ms = -1_000_000
    assert Committed(3) in leader.fetched(2, ReplicaFetch(5, 0, 20), early)
    assert leader.changed(moment(high_watermark=3)) == [Committed(5)]
    assert leader.changed(moment(high_watermark=5)) == []


def test_the_high_watermark_never_falls() -> None:
    leader = leading(1, 2)
    leader.fetched(2, ReplicaFetch(2, 0, 20), moment())
    assert leader.high_watermark(moment(high_watermark=4)) == 2
    assert leader.changed(moment(high_watermark=4)) == []


def test_a_fetch_without_an_epoch_is_of_any_life() -> None:
    leader = leading(1)
    (asked,) = leader.fetched(2, ReplicaFetch(5, 0), moment(high_watermark=5))
    assert isinstance(asked, AlterPartition)
    assert asked.isr == ((1, 10), (2, -1))


def test_a_fetch_without_an_epoch_does_not_let_a_fenced_broker_join() -> None:
    leader = leading(1)
    fenced = replace(moment(high_watermark=5), neighbours=Neighbours(epochs={1: 10}))
    assert leader.fetched(2, ReplicaFetch(5, 0), fenced) == []


@pytest.mark.parametrize(
    ("leader_epoch", "error"),
    [(4, Error.UNKNOWN_LEADER_EPOCH), (-1, Error.NOT_LEADER_OR_FOLLOWER)],
)
def test_who_is_no_replica_is_told_so(leader_epoch: int, error: Error) -> None:
    with pytest.raises(KafkaError) as raised:
        leading(1).check_follower(9, leader_epoch)
    assert raised.value.code is error


def test_replicas_that_copy_nothing_count_by_what_the_metadata_says() -> None:
    """As those of brokers of one process do: the leader commits alone while enough are in sync."""
    leader = Leader(1)
    leader.take(Leadership(1, 0, 0, (1, 2, 3), (1,)), 0, 0)
    assert leader.high_watermark(Moment(0, 0, 0, 5, 5, 1, NEIGHBOURS)) == 5
    assert leader.high_watermark(Moment(0, 0, 0, 5, 5, 2, NEIGHBOURS)) == 0
    leader.take(Leadership(1, 0, 1, (1, 2, 3), (1, 2)), 0, 0)
    assert leader.high_watermark(Moment(0, 0, 0, 5, 5, 2, NEIGHBOURS)) == 5
