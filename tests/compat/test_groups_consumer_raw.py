"""Consumer groups by hand (KIP-848), on both brokers: epochs, fencing, and changing protocols."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import ConsumerGroupHeartbeatRequest
from tests.compat.brokers import Broker
from tests.compat.group_peer import (
    ClassicPeer,
    ConsumerPeer,
    GroupPeer,
    assignment,
    group_on,
    read_assignment,
    settle,
    subscription,
)

NONE = Error.NONE


@pytest.fixture
def group(broker: Broker, unique: Callable[[str], str]) -> Iterator[GroupPeer]:
    with group_on(broker, unique("group")) as peer:
        yield peer


@pytest.fixture
def made(group: GroupPeer, topic: str) -> str:
    return group.known_topic(topic)


def beats(member: ConsumerPeer, until: Callable[[], bool]) -> None:
    for _ in range(200):
        assert member.beat() == NONE
        if until():
            return
        time.sleep(0.02)
    raise AssertionError(f"{member.member_id} stays in epoch {member.epoch}")


def test_first_member_gets_everything(group: GroupPeer, made: str) -> None:
    ana = group.consumer("ana", topics=[made])
    assert ana.beat() == NONE
    assert ana.epoch == 2
    settle(ana)
    assert ana.partitions == [0, 1, 2, 3]
    found = group.describe_consumers()
    assert (found.group_state, found.assignor_name) == ("Stable", "uniform")
    assert found.group_epoch == found.assignment_epoch == ana.epoch
    member = found.members[0]
    assert (member.member_id, member.member_epoch, member.member_type) == ("ana", ana.epoch, 1)
    assert (member.client_id, member.client_host) == ("bench", "/127.0.0.1")
    assert (member.subscribed_topic_names, member.subscribed_topic_regex) == ([made], "")
    assert member.assignment == member.target_assignment
    assert group.listed() == ("Stable", "consumer", "consumer")


def test_second_member_waits_for_the_first_to_give_back(group: GroupPeer, made: str) -> None:
    ana, bob = group.consumer("ana", topics=[made]), group.consumer("bob", topics=[made])
    assert ana.beat() == NONE
    assert bob.beat() == NONE
    assert bob.partitions == []
    beats(ana, lambda: len(ana.partitions) == 2)
    settle(ana, bob)
    assert sorted(ana.partitions + bob.partitions) == [0, 1, 2, 3]
    assert ana.epoch == bob.epoch


def test_first_heartbeats_must_tell_everything(group: GroupPeer, made: str) -> None:
    complete: dict[str, Any] = {
        "group_id": group.group_id, "member_id": "ana", "member_epoch": 0,
        "rebalance_timeout_ms": 1_000, "subscribed_topic_names": [made], "topic_partitions": [],
    }  # fmt: skip
    wrong: dict[str, dict[str, Any]] = {
        "MemberId can't be empty.": {"member_id": ""},
        "GroupId can't be empty.": {"group_id": ""},
        "InstanceId can't be empty.": {"instance_id": ""},
        "RackId can't be empty.": {"rack_id": ""},
        "RebalanceTimeoutMs must be provided in first request.": {"rebalance_timeout_ms": -1},
        "TopicPartitions must be empty when (re-)joining.": {"topic_partitions": None},
        "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.": {
            "subscribed_topic_names": None
        },
        "MemberEpoch is invalid.": {"member_epoch": -3},
        "InstanceId can't be null.": {"member_epoch": -2},
    }
    for message, change in wrong.items():
        answer = group.ask(ConsumerGroupHeartbeatRequest(**(complete | change)), 1)
        assert (answer.error_code, answer.error_message) == (Error.INVALID_REQUEST, message)
    odd = ConsumerGroupHeartbeatRequest(**complete, server_assignor="nonsense")
    answer = group.ask(odd, 1)
    assert (answer.error_code, answer.error_message) == (
        Error.UNSUPPORTED_ASSIGNOR,
        "ServerAssignor nonsense is not supported. Supported assignors: uniform, range.",
    )


def test_epochs_are_fenced(group: GroupPeer, made: str) -> None:
    ana, bob = group.consumer("ana", topics=[made]), group.consumer("bob", topics=[made])
    assert ana.beat(epoch=3) == Error.GROUP_ID_NOT_FOUND
    assert ana.beat(epoch=-1) == Error.GROUP_ID_NOT_FOUND
    ana.epoch = 0
    assert ana.beat() == NONE
    assert bob.beat(epoch=1) == Error.UNKNOWN_MEMBER_ID
    assert bob.beat(epoch=-1) == Error.UNKNOWN_MEMBER_ID
    assert bob.beat(epoch=0) == NONE
    assert ana.beat(epoch=9) == Error.FENCED_MEMBER_EPOCH
    before = ana.epoch
    beats(ana, lambda: ana.epoch > before)
    bumped = ana.epoch
    assert ana.beat(epoch=before) == NONE, "the answer before may have been lost"
    assert ana.epoch == bumped
    ana.owned[next(iter(ana.owned))] = [0, 1, 2, 3]
    assert ana.beat(epoch=before) == Error.FENCED_MEMBER_EPOCH
    assert ana.beat(epoch=0) == NONE


def test_member_that_leaves_frees_its_partitions(group: GroupPeer, made: str) -> None:
    ana, bob = group.consumer("ana", topics=[made]), group.consumer("bob", topics=[made])
    assert ana.beat() == bob.beat() == NONE
    settle(ana, bob)
    assert ana.beat(epoch=-1) == NONE
    settle(bob)
    assert bob.partitions == [0, 1, 2, 3]
    assert bob.beat(epoch=-1) == NONE
    found = group.describe_consumers()
    assert (found.group_state, found.members) == ("Empty", [])


def test_commits_are_checked_against_epochs(group: GroupPeer, made: str) -> None:
    ana, bob = group.consumer("ana", topics=[made]), group.consumer("bob", topics=[made])
    assert ana.beat() == NONE
    settle(ana)
    before = ana.epoch
    assert ana.commit(made, 0, 1) == NONE
    assert ana.commit(made, 0, 1, epoch=9) == Error.STALE_MEMBER_EPOCH
    assert group.commit(made, 0, 1, "nobody", before) == Error.UNKNOWN_MEMBER_ID
    assert group.commit(made, 0, 1) == Error.UNKNOWN_MEMBER_ID
    assert group.commit(made, 0, 1, "ana", before, version=8) == Error.UNSUPPORTED_VERSION
    assert bob.beat() == NONE
    settle(ana, bob)
    mine, lost = ana.partitions[0], bob.partitions[0]
    assert ana.commit(made, mine, 5, epoch=before) == NONE, "it has had this one since then"
    assert ana.commit(made, lost, 5, epoch=before) == Error.STALE_MEMBER_EPOCH
    assert bob.commit(made, lost, 6) == NONE
    assert group.fetch(made, lost, "bob", bob.epoch) == (NONE, 6, "")
    assert group.fetch(made, lost, "bob", 99)[0] == Error.STALE_MEMBER_EPOCH
    assert group.fetch(made, lost, "nobody", 1)[0] == Error.UNKNOWN_MEMBER_ID


def test_offsets_of_subscribed_topics_stay(group: GroupPeer, made: str) -> None:
    ana = group.consumer("ana", topics=[made])
    assert ana.beat() == NONE
    assert ana.commit(made, 0, 1) == NONE
    assert group.delete_offset(made, 0) == Error.GROUP_SUBSCRIBED_TO_TOPIC
    assert group.delete() == Error.NON_EMPTY_GROUP
    assert ana.beat(epoch=-1) == NONE
    assert group.delete_offset(made, 0) == NONE
    assert group.delete() == NONE


def test_static_member_is_away_and_comes_back(group: GroupPeer, made: str) -> None:
    ana = group.consumer("ana", topics=[made])
    bob = group.consumer("bob", topics=[made], instance_id="two")
    assert ana.beat() == bob.beat() == NONE
    settle(ana, bob)
    had, epoch = bob.partitions, ana.epoch
    zoe = group.consumer("zoe", topics=[made], instance_id="two")
    assert zoe.beat() == Error.UNRELEASED_INSTANCE_ID
    assert bob.beat(epoch=-2) == NONE
    assert ana.beat() == NONE
    assert zoe.beat() == NONE
    assert (zoe.partitions, zoe.epoch, ana.epoch) == (had, epoch, epoch)
    bob.epoch = epoch
    assert bob.beat() == Error.FENCED_INSTANCE_ID
    unknown = group.consumer("eve", topics=[made], instance_id="nine")
    assert unknown.beat(epoch=1) == Error.UNKNOWN_MEMBER_ID


def test_range_assignor(group: GroupPeer, made: str) -> None:
    ana = group.consumer("ana", topics=[made], assignor="range")
    bob = group.consumer("bob", topics=[made], assignor="range")
    assert ana.beat() == bob.beat() == NONE
    settle(ana, bob)
    assert (ana.partitions, bob.partitions) == ([0, 1], [2, 3])
    assert group.describe_consumers().assignor_name == "range"


def test_regular_expression(group: GroupPeer, made: str) -> None:
    bad = group.consumer("bad", regex="orders(")
    assert bad.beat() == Error.INVALID_REGULAR_EXPRESSION
    other = group.topic(f"{made}-other", 1)
    ana = group.consumer("ana", regex=f"{made}.*", topics=[])
    assert ana.beat() == NONE
    beats(ana, lambda: len(ana.owned) == 2)
    assert {len(indexes) for indexes in ana.owned.values()} == {4, 1}
    assert group.topic_id(other) in ana.owned
    assert group.describe_consumers().members[0].subscribed_topic_regex == f"{made}.*"


def test_changed_subscription(group: GroupPeer, made: str) -> None:
    other = group.topic(f"{made}-other", 2)
    ana = group.consumer("ana", topics=[made])
    assert ana.beat() == NONE
    ana.topics = [other]
    assert ana.beat(is_full=True) == NONE
    settle(ana)
    assert list(ana.owned.values()) == [[0, 1]]


# -- changing protocols ------------------------------------------------------------------------


def classic(group: GroupPeer, topic: str, instance_id: str | None = None) -> ClassicPeer:
    """A classic consumer with everything, alone in its group."""
    member = group.classic(instance_id=instance_id, protocols={"range": subscription([topic])})
    member.join()
    share = assignment({topic: [0, 1, 2, 3]})
    assert member.sync({member.member_id: share})[0] == NONE
    return member


def rejoin(member: ClassicPeer, topic: str, owned: list[int]) -> list[int]:
    """Joins and syncs as a consumer of a consumer group does; what it has then."""
    member.protocols = {"range": subscription([topic], {topic: owned})}
    answer = member.join()
    assert answer.error_code == NONE
    assert answer.members == []
    code, data = member.sync()
    assert code == NONE
    return read_assignment(data).get(topic, [])


def follow(member: ClassicPeer, topic: str, owned: list[int], beside: ConsumerPeer) -> list[int]:
    """Joins again as long as it is told to."""
    for _ in range(200):
        assert beside.beat() == NONE
        code = member.heartbeat()
        if code == NONE and sorted(owned + beside.partitions) == [0, 1, 2, 3]:
            return owned
        if code == Error.REBALANCE_IN_PROGRESS:
            owned = rejoin(member, topic, owned)
        time.sleep(0.02)
    raise AssertionError("the group does not settle")


def test_classic_group_becomes_a_consumer_group(group: GroupPeer, made: str) -> None:
    ana = classic(group, made)
    assert ana.commit(made, 0, 7) == NONE
    bob = group.consumer("bob", topics=[made])
    assert bob.beat() == NONE
    assert group.listed()[1] == "consumer"
    owned = follow(ana, made, [0, 1, 2, 3], bob)
    assert sorted(owned + bob.partitions) == [0, 1, 2, 3]
    types = {one.member_id: one.member_type for one in group.describe_consumers().members}
    assert types == {ana.member_id: 0, "bob": 1}
    assert ana.commit(made, owned[0], 8) == NONE
    assert ana.commit(made, owned[0], 8, generation=99) == Error.ILLEGAL_GENERATION
    assert group.fetch(made, owned[0])[1] == 8


def test_group_becomes_classic_again_when_the_last_consumer_leaves(
    group: GroupPeer, made: str
) -> None:
    ana = classic(group, made)
    bob = group.consumer("bob", topics=[made])
    assert bob.beat() == NONE
    follow(ana, made, [0, 1, 2, 3], bob)
    assert bob.beat(epoch=-1) == NONE
    assert group.listed()[1] == "classic"
    assert ana.heartbeat() == Error.REBALANCE_IN_PROGRESS
    answer = ana.join()
    assert (answer.error_code, len(answer.members)) == (NONE, 1)
    assert ana.sync({ana.member_id: b"all"}) == (NONE, b"all")


def test_classic_member_joins_a_consumer_group(group: GroupPeer, made: str) -> None:
    bob = group.consumer("bob", topics=[made])
    assert bob.beat() == NONE
    ana = group.classic(protocols={"range": subscription([made], {})})
    ana.join()
    code, data = ana.sync()
    assert code == NONE
    owned = follow(ana, made, read_assignment(data).get(made, []), bob)
    assert sorted(owned + bob.partitions) == [0, 1, 2, 3]
    assert ana.leave() == NONE
    settle(bob)
    assert bob.partitions == [0, 1, 2, 3]


def test_static_member_changes_its_protocol_and_nobody_else_notices(
    group: GroupPeer, made: str
) -> None:
    ana = classic(group, made, instance_id="one")
    bob = group.consumer("bob", topics=[made], instance_id="one")
    assert bob.beat() == NONE
    assert bob.partitions == [0, 1, 2, 3]
    assert ana.heartbeat() == Error.FENCED_INSTANCE_ID
    assert group.listed()[1] == "consumer"
    back = group.classic(instance_id="one", protocols={"range": subscription([made])})
    assert back.join().error_code == NONE
    assert group.listed()[1] == "classic"
    assert bob.beat() == Error.GROUP_ID_NOT_FOUND


def test_other_protocol_types_stay_apart(group: GroupPeer, made: str) -> None:
    connect = group.classic(protocol_type="connect")
    connect.join()
    connect.sync({connect.member_id: b""})
    bob = group.consumer("bob", topics=[made])
    assert bob.beat() == Error.GROUP_ID_NOT_FOUND
    assert connect.heartbeat() == NONE


def test_group_has_settings_of_its_own(group: GroupPeer, made: str) -> None:
    """They reach a member with a heartbeat, and go as they came."""
    ana = group.consumer("ana", topics=[made])
    assert ana.beat() == NONE
    assert ana.heartbeat_interval_ms == 5_000
    group.configure("consumer.heartbeat.interval.ms", "7000")
    beats(ana, lambda: ana.heartbeat_interval_ms == 7_000)
    group.configure("consumer.heartbeat.interval.ms", None)
    beats(ana, lambda: ana.heartbeat_interval_ms == 5_000)
