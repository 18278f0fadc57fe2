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
from kafkalite.env.slicing import finish
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


def test_who_is_in_sync_takes_over_from_a_leader_that_leaves():
    new = after(view(), state(), leaving={1}, isr=[2, 3])
    assert (new.leader, new.leader_epoch, new.isr) == (2, 5, (2, 3))
    assert new.last_known_elr == ()


def test_the_first_replica_that_is_up_and_in_sync_leads_next():
    assert after(view(down=(2,)), state(), leaving={1}, isr=[2, 3]).leader == 3
    assert after(view(), state((3, 2, 1)), leaving={1}, isr=[2, 3]).leader == 3
    assert after(view(), state(isr=(1, 3)), leaving={1}, isr=[3]).leader == 3


def test_who_is_not_in_sync_leads_only_where_that_is_configured():
    old = state(isr=(1,))
    assert after(view(), old, leaving={1}, isr=[]).leader == -1
    new = after(view(), old, leaving={1}, isr=[], election=Election.UNCLEAN)
    assert (new.leader, new.isr, new.leader_recovery_state) == (2, (2,), RECOVERING)


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


@pytest.mark.parametrize("election", [Election.ONLINE, Election.PREFERRED])
def test_nobody_leads_who_is_not_in_sync(election):
    leaderless = state(isr=(1,), leader=-1, last_known_elr=(1,))
    assert after(view(down=(1,)), leaderless, election=election).leader == -1


def test_the_preferred_replica_leads_when_it_is_in_sync():
    old = state((2, 1), (1, 2), 1)
    assert after(view(), old, election=Election.PREFERRED).leader == 2
    assert after(view(), old).leader == 1
    assert after(view(down=(2,)), old, election=Election.PREFERRED).leader == 1
    assert after(view(), state((2, 1), (1,), 1), election=Election.PREFERRED).leader == 1


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
            for record in finish(register_broker(view, registration)).records
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
    """Every way in which a controller may have left a partition without a leader: the in-sync
    replicas are asked, then the eligible ones if the feature is on, then the last leader."""
    if set(isr) & set(elr) or (not has_elr and (elr or last_known or not isr)):
        return  # not a state that a controller leaves
    old = state((1, 2), isr, -1, elr=elr, last_known_elr=last_known)
    new = back(view(down=(1, 2), has_elr=has_elr), old)
    if 1 in (isr or elr or last_known):
        assert (new.leader, new.leader_epoch) == (1, 5)
        assert new.isr == (isr or (1,))
        assert 1 not in new.elr
        assert new.last_known_elr == ()
        is_unclean = not isr and not elr
        assert new.leader_recovery_state == (RECOVERING if is_unclean else 0)
    else:
        assert new.leader == -1


def test_without_the_feature_a_clean_stop_of_apache_kafka_keeps_no_partition_from_its_leader():
    """A stop leaves leader -1 and the last in-sync replica, and nothing else to go by."""
    old = state((1,), (1,), -1)
    new = back(view(down=(1,), has_elr=False), old)
    assert (new.leader, new.isr, new.leader_epoch, new.partition_epoch) == (1, (1,), 5, 8)


def test_a_leader_that_is_back_before_anybody_noticed_goes_on():
    assert back(view(), state()) == state()


def test_the_only_one_in_sync_goes_on_in_a_new_epoch_after_a_stop_that_was_not_clean():
    new = back(view(), state(isr=(1,)), was_clean=False)
    assert (new.leader, new.leader_epoch, new.isr, new.leader_recovery_state) == (1, 5, (1,), 0)


@pytest.mark.parametrize("has_elr", [True, False])
def test_after_a_stop_that_was_not_clean_another_one_in_sync_leads(has_elr):
    """What the log of the first one has lost nobody knows."""
    new = back(view(has_elr=has_elr), state(), was_clean=False)
    assert (new.leader, new.leader_epoch, new.isr, new.elr) == (2, 5, (2, 3), ())
    new = back(view(has_elr=has_elr, min_isr="3"), state(), was_clean=False)
    assert (new.leader, new.isr, new.elr) == (2, (2, 3), ())


def test_an_unclean_stop_takes_the_eligibility_and_then_the_last_leader_leads():
    old = state(isr=(), leader=-1, elr=(1, 2), last_known_elr=(1,))
    new = back(view(down=(1, 2, 3)), old, was_clean=False)
    assert (new.leader, new.elr) == (-1, (2,))
    new = back(view(down=(1, 2, 3)), new, 2, was_clean=False)
    assert (new.leader, new.elr) == (-1, ())
    new = back(view(down=(1, 2, 3)), new, 1, was_clean=False)
    assert (new.leader, new.isr, new.leader_recovery_state) == (1, (1,), RECOVERING)


def test_without_the_feature_the_last_in_sync_leads_whatever_its_stop_was():
    old = state((1, 2), (1,), -1)
    assert back(view(down=(1,), has_elr=False), old, was_clean=False).leader == 1


def test_who_is_in_sync_again_is_its_leaders_to_say():
    old = state((1, 2), (2,), 2)
    assert back(view(), old) == old
