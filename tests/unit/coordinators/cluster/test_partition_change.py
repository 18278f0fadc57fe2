"""Elections and moves of one partition."""

from random import Random

import pytest

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster.brokers import RegisterBroker, register_broker
from kafkalite.coordinators.cluster.image import Image, changed_partition
from kafkalite.coordinators.cluster.partition_change import (
    RECOVERING,
    Election,
    Target,
    change_partition,
)
from kafkalite.coordinators.cluster.records import decode_record
from kafkalite.coordinators.cluster.states import BrokerState, PartitionState, Topic
from kafkalite.coordinators.cluster.view import View
from kafkalite.protocol.messages import PartitionChangeRecord

ID = b"\1" * 16


def view(*, down=(), has_elr=True, min_isr="1", level=30, unclean=False):
    image = Image()
    image.features["metadata.version"] = level
    for broker_id in (1, 2, 3):
        image.brokers[broker_id] = BrokerState(
            broker_id, 0, b"", (), (), None, broker_id in down, False, (bytes([broker_id]) * 16,),
            (),
        )
    image.topics["t"] = image.by_id[ID] = Topic("t", ID)
    if has_elr:
        image.features["eligible.leader.replicas.version"] = 1
    settings = {
        "min.insync.replicas": min_isr,
        "unclean.leader.election.enable": str(unclean).lower(),
    }
    return View(image, BrokerConfig(settings), Random(1))


def state(replicas=(1, 2, 3), isr=(1, 2, 3), leader=1, **fields):
    directories = tuple(bytes([each]) * 16 for each in replicas)
    return PartitionState(ID, 0, replicas, isr, leader, 4, 7, directories, **fields)


def after(view, old, **target):
    wanted = Target.of(old)
    for name, value in target.items():
        setattr(wanted, name, value)
    record = change_partition(view, old, wanted)
    return old if record is None else changed_partition(old, record)


def test_nothing_changes_where_all_is_well():
    assert after(view(), state()) == state()


def test_a_leader_that_leaves_takes_the_data_along():
    """The others are in sync by name only until replicas copy data."""
    new = after(view(), state(), leaving={1}, isr=[2, 3])
    assert (new.leader, new.leader_epoch, new.isr) == (-1, 5, (2, 3))
    assert new.last_known_elr == (1,)


def test_a_follower_that_leaves_shrinks_the_set_in_the_same_epoch():
    new = after(view(), state(), leaving={3}, isr=[1, 2])
    assert (new.leader, new.leader_epoch, new.isr, new.elr) == (1, 4, (1, 2), ())


@pytest.mark.parametrize(("level", "epoch"), [(11, 5), (12, 4)])
def test_brokers_before_release_3_6_notice_a_shrink_by_a_new_epoch(level, epoch):
    new = after(view(level=level, has_elr=False), state(), leaving={3}, isr=[1, 2])
    assert (new.leader, new.leader_epoch, new.isr) == (1, epoch, (1, 2))


def test_who_falls_out_below_the_least_count_stays_eligible():
    new = after(view(min_isr="2"), state(isr=(1, 2)), leaving={2}, isr=[1])
    assert (new.leader, new.isr, new.elr) == (1, (1,), (2,))


def test_the_only_replica_is_eligible_when_it_is_gone_and_leads_again_from_there():
    gone = after(view(), state((1,), (1,)), leaving={1}, isr=[])
    assert (gone.leader, gone.isr, gone.elr, gone.last_known_elr) == (-1, (), (1,), (1,))
    back = after(view(), gone)
    assert (back.leader, back.isr, back.elr, back.last_known_elr) == (1, (1,), (), ())


def test_without_eligible_replicas_the_last_in_sync_stays_in_sync():
    gone = after(view(has_elr=False), state((1,), (1,)), leaving={1}, isr=[])
    assert (gone.leader, gone.isr, gone.elr) == (-1, (1,), ())


def test_the_last_known_leader_leads_with_a_mark_when_nobody_is_eligible():
    lost = state(isr=(), leader=-1, last_known_elr=(2,))
    new = after(view(), lost)
    assert (new.leader, new.isr, new.leader_recovery_state) == (2, (2,), RECOVERING)
    assert new.last_known_elr == ()
    assert after(view(down=(2,)), lost) == lost


@pytest.mark.parametrize("election", list(Election))
def test_nobody_leads_who_never_did(election):
    leaderless = state(leader=-1, last_known_elr=(1,))
    assert after(view(down=(1,)), leaderless, election=election).leader == -1


def test_a_move_ends_when_the_newcomer_is_in_sync():
    moving = state((2, 1), (1,), 1, adding_replicas=(2,), removing_replicas=(1,))
    assert after(view(), moving) == moving
    done = after(view(), moving, isr=[1, 2])
    assert (done.replicas, done.isr, done.is_reassigning) == ((2,), (2,), False)
    assert done.leader_epoch == moving.leader_epoch + 1
    assert done.directories == (b"\2" * 16,)


def test_a_smaller_set_is_not_taken_before_all_who_stay_are_in_sync():
    moving = state((1, 2, 3), (1,), 1, removing_replicas=(3,))
    assert after(view(), moving) == moving
    done = after(view(), moving, isr=[1, 2])
    assert (done.replicas, done.is_reassigning) == ((1, 2), False)


def back(view, old, broker_id=1, *, was_clean=True):
    """The partition after the broker has registered again."""
    view.image.by_id[ID].partitions[0] = old
    registration = RegisterBroker(broker_id, [], None, [bytes([broker_id]) * 16], was_clean)
    changes = [
        each
        for each in (
            record.decoded or decode_record(record.value or b"")
            for record in register_broker(view, registration).records
        )
        if isinstance(each, PartitionChangeRecord)
    ]
    assert len(changes) <= 1
    return changed_partition(old, *changes) if changes else old


SUBSETS = [(), (1,), (2,), (1, 2)]


@pytest.mark.parametrize("has_elr", [True, False])
@pytest.mark.parametrize("isr", SUBSETS)
@pytest.mark.parametrize("elr", SUBSETS)
@pytest.mark.parametrize("last_known", [(), (1,), (2,)])
def test_a_broker_that_is_back_leads_whatever_it_may_lead(has_elr, isr, elr, last_known):
    """Every way in which Apache Kafka may have left a partition without a leader: the in-sync
    replicas are asked, then the eligible ones if the feature is on, then the last leader."""
    if set(isr) & set(elr) or (not has_elr and (elr or last_known or not isr)):
        return  # not a state that a controller leaves
    old = state((1, 2), isr, -1, elr=elr, last_known_elr=last_known)
    new = back(view(down=(1, 2), has_elr=has_elr), old)
    holders = last_known or elr or isr
    if 1 in holders:
        assert (new.leader, new.leader_epoch) == (1, 5)
        assert 1 in new.isr
        assert 1 not in new.elr
        assert new.last_known_elr == ()
        assert new.leader_recovery_state == 0
    else:
        assert new.leader == -1


def test_without_the_feature_a_clean_stop_of_apache_kafka_keeps_no_partition_from_its_leader():
    """A stop leaves leader -1 and the last in-sync replica, and nothing else to go by."""
    old = state((1,), (1,), -1)
    new = back(view(down=(1,), has_elr=False), old)
    assert (new.leader, new.isr, new.leader_epoch, new.partition_epoch) == (1, (1,), 5, 8)


def test_a_stop_that_was_not_clean_begins_a_new_epoch():
    assert back(view(), state()) == state()
    assert back(view(), state(), was_clean=False).leader_epoch == 5


def test_a_follower_that_is_back_is_in_sync_again():
    new = back(view(), state((1, 2), (2,), 2))
    assert (new.leader, new.leader_epoch, new.isr) == (2, 4, (2, 1))
