"""A leader that somebody names."""

from dataclasses import replace

import pytest

from kafkalite.coordinators.cluster import partition_change
from kafkalite.coordinators.cluster.image import changed_partition
from kafkalite.coordinators.cluster.moving_leader import MoveLeader, move_leader
from kafkalite.coordinators.cluster.records import decode_record
from kafkalite.coordinators.cluster.states import NO_LEADER
from kafkalite.protocol.errors import Error, KafkaError
from tests.unit.coordinators.cluster.test_partition_change import state, view


def moved(seen, old, to):
    seen.image.topics["t"].partitions[0] = old
    [record] = move_leader(seen, MoveLeader("t", 0, to)).records
    assert record.value is not None
    return changed_partition(old, decode_record(record.value))


def test_who_holds_the_records_leads_in_a_new_epoch(monkeypatch):
    monkeypatch.setattr(partition_change, "holders", lambda state: state.isr, raising=False)
    expected = replace(state(), leader=2, leader_epoch=5, partition_epoch=8)
    assert moved(view(), state(), 2) == expected


def test_who_leads_already_begins_a_new_epoch():
    assert moved(view(), state(), 1) == replace(state(), leader_epoch=5, partition_epoch=8)


@pytest.mark.parametrize(
    ("old", "to", "down", "words"),
    [
        (state(replicas=(1,), isr=(1,)), 2, (), "broker 2 has no replica of it, as 1 have"),
        (state(isr=(1, 3)), 2, (), "broker 2 is not in sync"),
        (state(), 2, (2,), "broker 2 is not up"),
        (state(leader=NO_LEADER, isr=(1,)), 1, (), "it has no leader"),
    ],
)
def test_nobody_else_does(old, to, down, words):
    with pytest.raises(KafkaError, match=words) as refusal:
        moved(view(down=down), old, to)
    assert refusal.value.code == Error.ELIGIBLE_LEADERS_NOT_AVAILABLE


def test_what_is_not_there_has_no_leader():
    with pytest.raises(KafkaError, match="there is no partition t-7"):
        move_leader(view(), MoveLeader("t", 7, 1))
