"""Placement: leaders in turn, racks in turn, nobody twice, nobody who is down first."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.coordinators.cluster.placement import place
from kafkalite.coordinators.cluster.states import BrokerState
from kafkalite.protocol.errors import Error, KafkaError

DIRECTORY = b"\1" * 16


def broker(broker_id, rack=None, is_fenced=False, cordoned=None):
    return BrokerState(
        broker_id, 0, b"", (), (), rack, is_fenced, False, (DIRECTORY,), cordoned
    )


@given(
    st.integers(1, 6), st.integers(1, 20), st.integers(1, 6), st.integers(0, 99), st.data()
)
def test_every_partition_has_replicas_on_as_many_brokers(count, partitions, factor, seed, data):
    factor = min(factor, count)
    racks = data.draw(st.lists(st.sampled_from([None, "r", "s"]), min_size=count, max_size=count))
    brokers = [broker(each, rack) for each, rack in enumerate(racks, start=1)]
    placed = list(place(brokers, partitions, factor, Random(seed)))
    assert len(placed) == partitions
    assert all(len(set(replicas)) == len(replicas) == factor for replicas in placed)
    leaders = Counter(dict.fromkeys(range(1, count + 1), 0))
    leaders.update(replicas[0] for replicas in placed)
    assert max(leaders.values()) - min(leaders.values()) <= 1


@pytest.mark.parametrize("seed", range(20))
def test_replicas_of_a_partition_are_on_different_racks(seed):
    brokers = [broker(each, "abc"[each % 3]) for each in range(6)]
    for replicas in place(brokers, 12, 3, Random(seed)):
        assert len({each % 3 for each in replicas}) == 3


def test_a_fenced_broker_never_leads():
    brokers = [broker(1), broker(2, is_fenced=True), broker(3)]
    placed = list(place(brokers, 12, 3, Random(1)))
    assert {replicas[0] for replicas in placed} == {1, 3}


@pytest.mark.parametrize("seed", range(10))
def test_brokers_that_are_down_are_taken_last(seed):
    brokers = [broker(1), broker(2, is_fenced=True), broker(3), broker(4, is_fenced=True)]
    for replicas in place(brokers, 8, 3, Random(seed)):
        assert set(replicas[:2]) == {1, 3}


def test_a_broker_that_takes_nothing_gets_nothing():
    brokers = [broker(1), broker(2, cordoned=(DIRECTORY,))]
    assert list(place(brokers, 3, 1, Random(1))) == [[1]] * 3


@pytest.mark.parametrize(
    ("brokers", "factor", "message"),
    [
        ([broker(1)], 2, "only 1 broker(s) are registered"),
        ([broker(1, is_fenced=True)], 1, "All brokers are currently fenced"),
        ([], 1, "All brokers are currently fenced"),
    ],
)
def test_refuses_what_cannot_be(brokers, factor, message):
    with pytest.raises(KafkaError) as refusal:
        place(brokers, 1, factor, Random(1))
    assert refusal.value.code == Error.INVALID_REPLICATION_FACTOR
    assert message in str(refusal.value.message)
