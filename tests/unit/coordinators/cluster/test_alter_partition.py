"""What a controller says to leaders that ask for other in-sync replicas."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kafkalite.coordinators.cluster.alter_partition import (
    AlterPartition,
    WantedIsr,
    alter_partition,
)
from kafkalite.coordinators.cluster.partition_change import RECOVERING
from kafkalite.coordinators.cluster.states import PartitionState
from kafkalite.coordinators.cluster.view import View
from kafkalite.env.slicing import finish
from kafkalite.protocol.errors import Error, KafkaError
from tests.unit.coordinators.cluster.test_partition_change import ID, state, view


def asked(
    known: View, old: PartitionState, isr: tuple[tuple[int, int], ...], *, broker_id: int = 1,
    broker_epoch: int = 0, place: tuple[bytes, int] = (ID, 0), **wanted: Any,
) -> tuple[PartitionState | Error, int]:  # fmt: skip
    """The outcome for one partition, and how many records were written."""
    known.image.by_id[ID].partitions[0] = old
    one = WantedIsr(old.leader_epoch, old.partition_epoch, isr)
    event = AlterPartition(broker_id, broker_epoch, {place: replace(one, **wanted)})
    effects = finish(alter_partition(known, event))
    assert isinstance(effects.reply, dict)
    return effects.reply[place], len(effects.records)


def test_a_replica_joins_and_leaves() -> None:
    out, records = asked(view(), state(isr=(1, 2)), ((1, 0), (2, 0), (3, 0)))
    assert isinstance(out, PartitionState)
    assert (out.isr, out.leader_epoch, out.partition_epoch, records) == ((1, 2, 3), 4, 8, 1)
    out, records = asked(view(), state(), ((1, 0), (3, 0)))
    assert isinstance(out, PartitionState)
    assert (out.isr, out.elr, records) == ((1, 3), (), 1)
    out, _ = asked(view(min_isr="3"), state(), ((1, 0), (3, 0)))
    assert isinstance(out, PartitionState)
    assert out.elr == (2,)


def test_what_is_so_already_is_answered_without_a_record() -> None:
    old = state()
    assert asked(view(), old, ((1, 0), (2, 0), (3, 0))) == (old, 0)


ALL = ((1, 0), (2, 0), (3, 0))


@pytest.mark.parametrize(
    ("isr", "changes", "error"),
    [
        (ALL, {"leader_epoch": 5}, Error.NOT_CONTROLLER),
        (ALL, {"partition_epoch": 8}, Error.NOT_CONTROLLER),
        (ALL, {"leader_epoch": 3}, Error.FENCED_LEADER_EPOCH),
        (ALL, {"broker_id": 2}, Error.INVALID_REQUEST),
        (ALL, {"partition_epoch": 6}, Error.INVALID_UPDATE_VERSION),
        (((1, 0), (4, 0)), {}, Error.INVALID_REQUEST),
        (((1, 0), (2, 0), (2, 0)), {}, Error.INVALID_REQUEST),
        (((2, 0), (3, 0)), {}, Error.INVALID_REQUEST),
        (ALL, {"leader_recovery_state": RECOVERING}, Error.INVALID_REQUEST),
        (((1, 0),), {"leader_recovery_state": RECOVERING}, Error.INVALID_REQUEST),
        (((1, 0), (2, 9)), {}, Error.INELIGIBLE_REPLICA),
        (ALL, {"place": (b"\2" * 16, 0)}, Error.UNKNOWN_TOPIC_ID),
        (ALL, {"place": (ID, 1)}, Error.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_each_refusal(isr: Any, changes: dict[str, Any], error: Error) -> None:
    assert asked(view(), state(isr=(1,)), isr, **changes) == (error, 0)


def test_one_that_is_fenced_does_not_join_whatever_its_epoch() -> None:
    for epoch in (0, -1):
        wanted = ((1, 0), (2, epoch))
        assert asked(view(down=(2,)), state(isr=(1,)), wanted) == (Error.INELIGIBLE_REPLICA, 0)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"broker_id": 9}, Error.BROKER_ID_NOT_REGISTERED),
        ({"broker_epoch": 1}, Error.STALE_BROKER_EPOCH),
    ],
)
def test_a_broker_that_is_not_what_it_was_is_refused_as_a_whole(
    changes: dict[str, Any], error: Error
) -> None:
    with pytest.raises(KafkaError) as raised:
        asked(view(), state(), ALL, **changes)
    assert raised.value.code is error


def test_a_leader_that_goes_on_after_an_unclean_election_takes_the_mark_away() -> None:
    old = state(isr=(1,), leader_recovery_state=RECOVERING)
    out, records = asked(view(), old, ((1, 0),))
    assert isinstance(out, PartitionState)
    assert (out.leader_recovery_state, records) == (0, 1)


def test_a_move_that_ends_may_choose_another_leader() -> None:
    old = state((2, 1), (1,), 1, adding_replicas=(2,), removing_replicas=(1,))
    assert asked(view(), old, ((1, 0), (2, 0))) == (Error.NEW_LEADER_ELECTED, 1)
