"""Groups with an interval between their assignments, by hand on both brokers (KIP-1263): who comes
within it shares one epoch, and patterns are looked at after the answer.

The interval is the group's own, so the brokers that all tests share go on without one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from kafkalite.protocol.errors import Error
from tests.compat.brokers import Broker
from tests.compat.group_peer import ConsumerPeer, GroupPeer, group_on, settle, subscription

NONE = Error.NONE
INTERVAL_S = 2.0


@pytest.fixture
def group(broker: Broker, unique: Callable[[str], str]) -> Iterator[GroupPeer]:
    """It has its interval before anybody comes."""
    with group_on(broker, unique("group")) as peer:
        peer.configure("consumer.assignment.interval.ms", str(int(INTERVAL_S * 1000)))
        yield peer


@pytest.fixture
def made(group: GroupPeer, topic: str) -> str:
    return group.known_topic(topic)


def epochs(group: GroupPeer) -> tuple[int, int, str]:
    found = group.describe_consumers()
    return found.group_epoch, found.assignment_epoch, found.group_state


def until(member: ConsumerPeer, condition: Callable[[], bool]) -> None:
    for _ in range(200):
        assert member.beat() == NONE
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError(f"{member.member_id} stays in epoch {member.epoch}")


def test_members_that_come_within_the_interval_share_an_epoch(
    group: GroupPeer, made: str
) -> None:
    ana, bob, cat = (group.consumer(name, topics=[made]) for name in ("ana", "bob", "cat"))
    began = time.monotonic()
    assert ana.beat() == NONE
    assert (ana.epoch, ana.partitions) == (2, [0, 1, 2, 3])
    for late in (bob, cat):
        assert late.beat() == NONE
        assert (late.epoch, late.partitions) == (2, [])
    assert ana.beat() == NONE
    assert (ana.epoch, ana.partitions) == (2, [0, 1, 2, 3])
    assert epochs(group) == (4, 2, "Assigning")
    assert time.monotonic() - began < INTERVAL_S, "too slow to see anything"
    until(bob, lambda: epochs(group)[1] == 4)
    assert time.monotonic() - began > INTERVAL_S - 0.1
    settle(ana, bob, cat)
    assert {ana.epoch, bob.epoch, cat.epoch} == {4}
    assert sorted(ana.partitions + bob.partitions + cat.partitions) == [0, 1, 2, 3]
    assert epochs(group) == (4, 4, "Stable")


def test_who_leaves_is_followed_by_who_comes(group: GroupPeer, made: str) -> None:
    """One assignment for both."""
    ana, bob = group.consumer("ana", topics=[made]), group.consumer("bob", topics=[made])
    assert ana.beat() == NONE
    assert bob.beat() == NONE
    assert ana.beat(epoch=-1) == NONE
    assert bob.beat() == NONE
    assert (bob.epoch, bob.partitions) == (2, [])
    assert epochs(group) == (4, 2, "Assigning")
    until(bob, lambda: bob.partitions == [0, 1, 2, 3])
    assert bob.epoch == 4


def test_a_classic_member_waits_as_long(group: GroupPeer, made: str) -> None:
    ana = group.consumer("ana", topics=[made])
    assert ana.beat() == NONE
    bob = group.classic(protocols={"range": subscription([made], {})})
    assert bob.join().error_code == NONE
    assert bob.generation == 2
    assert bob.sync()[0] == NONE
    assert bob.heartbeat() == NONE
    assert epochs(group) == (3, 2, "Assigning")
    until(ana, lambda: len(ana.partitions) == 2)
    assert bob.heartbeat() == Error.REBALANCE_IN_PROGRESS
    assert bob.join().generation_id == 3


def test_a_pattern_is_looked_at_after_the_answer(group: GroupPeer, made: str) -> None:
    ana = group.consumer("ana", regex=f"{made}.*", topics=[])
    assert ana.beat() == NONE
    assert (ana.epoch, ana.partitions) == (1, [])
    time.sleep(0.5)
    assert epochs(group) == (2, 1, "Assigning")
    assert ana.beat() == NONE
    assert (ana.epoch, ana.partitions) == (2, [0, 1, 2, 3]), "the first waits for nothing"


def test_who_subscribes_to_nothing_has_the_first_epoch(group: GroupPeer, made: str) -> None:
    """An assignment of nothing is none that others have to wait for."""
    ana, bob = group.consumer("ana", topics=[]), group.consumer("bob", topics=[made])
    assert ana.beat() == NONE
    assert (ana.epoch, ana.partitions) == (1, [])
    assert epochs(group) == (1, 1, "Stable")
    assert bob.beat() == NONE
    assert (bob.epoch, bob.partitions) == (2, [0, 1, 2, 3])


def test_a_pattern_that_others_have_is_known(group: GroupPeer, made: str) -> None:
    ana = group.consumer("ana", regex=f"{made}.*", topics=[])
    assert ana.beat() == NONE
    until(ana, lambda: ana.partitions == [0, 1, 2, 3])
    bob = group.consumer("bob", regex=f"{made}.*", topics=[])
    assert bob.beat() == NONE
    assert epochs(group)[0] == 3
    settle(ana, bob)
    assert sorted(ana.partitions + bob.partitions) == [0, 1, 2, 3]


def test_a_pattern_that_is_none_is_refused_at_once(group: GroupPeer) -> None:
    assert group.consumer("ana", regex="orders(").beat() == Error.INVALID_REGULAR_EXPRESSION


def test_without_an_interval_all_is_at_once_again(group: GroupPeer, made: str) -> None:
    ana, bob = group.consumer("ana", topics=[made]), group.consumer("bob", topics=[made])
    assert ana.beat() == NONE
    group.configure("consumer.assignment.interval.ms", "0")
    if not group.broker.is_kafkalite:
        time.sleep(0.5)
    assert bob.beat() == NONE
    assert bob.epoch == 3
    assert epochs(group)[:2] == (3, 3)
