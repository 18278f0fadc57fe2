"""Classic groups by hand, on both brokers: every refusal, and what each member is told when."""

import time
from collections.abc import Callable, Iterator

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import JoinGroupRequest, LeaveGroupRequest
from tests.compat.brokers import Broker
from tests.compat.group_peer import ClassicPeer, GroupPeer, group_on

NONE = Error.NONE


@pytest.fixture
def group(broker: Broker, unique: Callable[[str], str]) -> Iterator[GroupPeer]:
    with group_on(broker, unique("group")) as peer:
        yield peer


def stable(*members: ClassicPeer) -> None:
    """All in one generation; the first leads, and each is assigned its number.

    The first joins alone, so that it leads; then the others come and it joins again.
    """
    first, *others = members
    first.join()
    share(first)
    for member in others:
        member.begin_join()
        await_rebalance(first)
        joining = [first, *members[1 : members.index(member)]]
        for one in joining:
            one.send_join()
        generations = {one.joined().generation_id for one in (*joining, member)}
        assert len(generations) == 1
        share(*joining, member)


def share(*members: ClassicPeer) -> None:
    """Everyone syncs; whoever leads hands out the numbers."""
    numbers = {member.member_id: b"%d" % number for number, member in enumerate(members)}
    for member in members:
        member.send_sync(numbers)
    for number, member in enumerate(members):
        assert member.synced() == (NONE, b"%d" % number)


def await_rebalance(member: ClassicPeer) -> None:
    """Heartbeats until the member is told to join again."""
    for _ in range(500):
        code = member.heartbeat()
        if code != NONE:
            assert code == Error.REBALANCE_IN_PROGRESS
            return
        time.sleep(0.02)
    raise AssertionError("nobody rebalances")


def test_member_is_given_an_id_and_joins_with_it(group: GroupPeer) -> None:
    ana = group.classic()
    ana.send_join()
    first = ana.joined()
    assert (first.error_code, first.generation_id) == (Error.MEMBER_ID_REQUIRED, -1)
    assert first.member_id.startswith("bench-")
    ana.member_id = first.member_id
    answer = ana.join()
    assert (answer.generation_id, answer.protocol_name, answer.protocol_type) == (
        1, "range", "consumer",
    )  # fmt: skip
    assert answer.leader == answer.member_id == first.member_id
    assert not answer.skip_assignment
    assert [(one.member_id, bytes(one.metadata)) for one in answer.members] == [
        (first.member_id, b"me")
    ]
    assert ana.sync({ana.member_id: b"all"}) == (NONE, b"all")
    assert ana.heartbeat() == NONE


@pytest.mark.parametrize("version", [2, 3])
def test_old_client_needs_no_id_first(group: GroupPeer, version: int) -> None:
    ana = group.classic()
    ana.send_join(version)
    assert ana.joined(version).error_code == NONE


def test_follower_is_told_no_members(group: GroupPeer) -> None:
    ana, bob = group.classic(), group.classic()
    stable(ana)
    bob.begin_join()
    await_rebalance(ana)
    assert ana.heartbeat() == Error.REBALANCE_IN_PROGRESS
    ana.send_join()
    leading, following = ana.joined(), bob.joined()
    assert {one.member_id for one in leading.members} == {ana.member_id, bob.member_id}
    assert following.members == []
    assert following.leader == ana.member_id
    bob.send_sync()
    assert ana.sync({ana.member_id: b"a", bob.member_id: b"b"}) == (NONE, b"a")
    assert bob.synced() == (NONE, b"b")


def test_what_is_refused_at_the_door(group: GroupPeer) -> None:
    ana = group.classic(session_ms=5_999)
    ana.send_join()
    assert ana.joined().error_code == Error.INVALID_SESSION_TIMEOUT
    ana.session_ms, ana.protocols = 6_000, {}
    ana.send_join()
    assert ana.joined().error_code == Error.INCONSISTENT_GROUP_PROTOCOL
    ana.protocols, ana.protocol_type = {"range": b""}, ""
    ana.send_join()
    assert ana.joined().error_code == Error.INCONSISTENT_GROUP_PROTOCOL
    nameless = ana.ask(JoinGroupRequest(group_id="", session_timeout_ms=6_000), 9)
    assert (nameless.error_code, nameless.protocol_name) == (Error.INVALID_GROUP_ID, None)


def test_other_protocols_are_refused(group: GroupPeer) -> None:
    ana, bob = group.classic(), group.classic(protocols={"sticky": b""})
    stable(ana)
    bob.send_join()
    assert bob.joined().error_code == Error.INCONSISTENT_GROUP_PROTOCOL
    bob.protocols, bob.protocol_type = {"range": b""}, "connect"
    bob.send_join()
    assert bob.joined().error_code == Error.INCONSISTENT_GROUP_PROTOCOL


def test_unknown_members_are_told_so(group: GroupPeer) -> None:
    stable(group.classic())
    zoe = group.classic(member_id="zoe", generation=1)
    zoe.send_join()
    assert zoe.joined().error_code == Error.UNKNOWN_MEMBER_ID
    assert zoe.sync()[0] == Error.UNKNOWN_MEMBER_ID
    assert zoe.heartbeat() == Error.UNKNOWN_MEMBER_ID
    assert zoe.leave() == Error.UNKNOWN_MEMBER_ID


def test_wrong_generations_and_protocols_are_told_so(group: GroupPeer) -> None:
    ana = group.classic()
    stable(ana)
    ana.generation = 7
    assert ana.heartbeat() == Error.ILLEGAL_GENERATION
    assert ana.sync()[0] == Error.ILLEGAL_GENERATION
    ana.generation, ana.protocols = 1, {"sticky": b""}
    assert ana.sync()[0] == Error.INCONSISTENT_GROUP_PROTOCOL


def test_follower_that_joins_again_is_told_the_present_generation(group: GroupPeer) -> None:
    ana, bob = group.classic(), group.classic()
    stable(ana, bob)
    leader, follower = ana, bob
    before = follower.generation
    follower.send_join()
    again = follower.joined()
    assert (again.error_code, again.generation_id) == (NONE, before)
    leader.send_join()
    await_rebalance(follower)
    follower.send_join()
    assert leader.joined().generation_id == follower.joined().generation_id == before + 1


def test_join_during_the_sync_sends_everyone_back(group: GroupPeer) -> None:
    ana, bob, cat = group.classic(), group.classic(), group.classic()
    stable(ana)
    bob.begin_join()
    await_rebalance(ana)
    ana.send_join()
    ana.joined()
    bob.joined()
    bob.send_sync()
    cat.begin_join()
    assert bob.synced()[0] == Error.REBALANCE_IN_PROGRESS
    assert ana.sync({})[0] == Error.REBALANCE_IN_PROGRESS
    ana.send_join()
    bob.send_join()
    generations = {one.joined().generation_id for one in (ana, bob, cat)}
    assert generations == {3}


def test_member_leaves_and_the_others_take_over(group: GroupPeer) -> None:
    ana, bob = group.classic(), group.classic()
    stable(ana, bob)
    assert ana.leave() == NONE
    assert bob.heartbeat() == Error.REBALANCE_IN_PROGRESS
    generation = bob.generation
    assert bob.join().generation_id == generation + 1
    assert bob.sync({bob.member_id: b"all"}) == (NONE, b"all")
    assert bob.leave() == NONE
    assert group.listed() == ("Empty", "classic", "consumer")


def test_member_that_dies_is_removed_after_its_session(group: GroupPeer) -> None:
    ana, bob = group.classic(), group.classic()
    stable(ana, bob)
    await_rebalance(ana)
    assert ana.join().error_code == NONE
    assert bob.heartbeat() == Error.UNKNOWN_MEMBER_ID


def test_many_members_leave_at_once_each_with_its_code(group: GroupPeer) -> None:
    ana, bob = group.classic(), group.classic()
    stable(ana, bob)
    request = LeaveGroupRequest(
        group_id=group.group_id,
        members=[
            LeaveGroupRequest.Member(member_id=member_id)
            for member_id in (ana.member_id, "nobody", bob.member_id)
        ],
    )
    answer = group.ask(request, 5)
    codes = [one.error_code for one in answer.members]
    assert codes == [NONE, Error.UNKNOWN_MEMBER_ID, NONE]


# -- static members ----------------------------------------------------------------------------


def test_static_member_keeps_its_place_under_a_new_id(group: GroupPeer) -> None:
    ana, bob = group.classic(instance_id="one"), group.classic(instance_id="two")
    stable(ana, bob)
    again = group.classic(instance_id="two")
    answer = again.join()
    assert (answer.error_code, answer.generation_id) == (NONE, bob.generation)
    assert answer.member_id != bob.member_id
    assert again.sync() == (NONE, b"1")
    assert ana.heartbeat() == NONE
    assert bob.heartbeat() == Error.FENCED_INSTANCE_ID
    assert bob.sync()[0] == Error.FENCED_INSTANCE_ID
    assert bob.leave() == Error.FENCED_INSTANCE_ID


def test_static_leader_that_returns_is_not_to_assign(group: GroupPeer) -> None:
    ana = group.classic(instance_id="one")
    stable(ana)
    answer = group.classic(instance_id="one").join()
    assert answer.skip_assignment
    assert answer.leader == answer.member_id
    assert len(answer.members) == 1


def test_static_leader_of_an_older_version_is_not_told_that_it_leads(group: GroupPeer) -> None:
    ana = group.classic(instance_id="one")
    stable(ana)
    again = group.classic(instance_id="one")
    again.send_join(8)
    answer = again.joined(8)
    assert (answer.leader, answer.members) == (ana.member_id, [])


def test_static_member_with_another_protocol_makes_all_rebalance(group: GroupPeer) -> None:
    both = {"range": b"", "sticky": b""}
    ana = group.classic(instance_id="one", protocols=dict(both))
    bob = group.classic(instance_id="two", protocols=dict(both))
    stable(ana, bob)
    again = group.classic(instance_id="two", protocols={"sticky": b""})
    again.begin_join()
    await_rebalance(ana)
    ana.send_join()
    assert ana.joined().protocol_name == again.joined().protocol_name == "sticky"


def test_static_member_is_removed_by_its_instance(group: GroupPeer) -> None:
    ana = group.classic(instance_id="one")
    stable(ana)
    assert ana.leave(by_instance=True) == NONE
    assert ana.leave(by_instance=True) == Error.UNKNOWN_MEMBER_ID
    assert ana.heartbeat() == Error.UNKNOWN_MEMBER_ID


def test_static_member_replaced_while_it_joins_is_fenced(group: GroupPeer) -> None:
    ana, bob = group.classic(instance_id="one"), group.classic(instance_id="two")
    stable(ana, bob)
    bob.protocols = {"range": b"changed"}
    bob.send_join()
    await_rebalance(ana)
    again = group.classic(instance_id="two")
    again.begin_join()
    assert bob.joined().error_code == Error.FENCED_INSTANCE_ID
    ana.send_join()
    assert ana.joined().error_code == again.joined().error_code == NONE


# -- offsets -----------------------------------------------------------------------------------


def test_commits_are_fenced(group: GroupPeer, topic: str) -> None:
    group.topic(topic)
    ana = group.classic()
    assert ana.commit(topic, 0, 1, generation=3) == Error.GROUP_ID_NOT_FOUND
    assert group.commit(topic, 0, 1, "x", 3, version=8) == Error.ILLEGAL_GENERATION
    ana.join()
    assert ana.commit(topic, 0, 1) == Error.REBALANCE_IN_PROGRESS
    assert ana.sync({ana.member_id: b""})[0] == NONE
    assert ana.commit(topic, 0, 5) == NONE
    assert ana.commit(topic, 0, 6, generation=0) == Error.ILLEGAL_GENERATION
    assert group.commit(topic, 0, 7, "nobody", 1) == Error.UNKNOWN_MEMBER_ID
    assert group.commit(topic, 0, 8) == Error.UNKNOWN_MEMBER_ID
    assert group.commit(topic, 0, 9, ana.member_id, 1, "one") == Error.UNKNOWN_MEMBER_ID
    assert group.fetch(topic, 0) == (NONE, 5, "")
    assert ana.leave() == NONE
    assert group.commit(topic, 0, 3, metadata="from outside") == NONE
    assert group.fetch(topic, 0) == (NONE, 3, "from outside")


def test_commit_during_the_join_is_welcome(group: GroupPeer, topic: str) -> None:
    group.topic(topic)
    ana, bob = group.classic(), group.classic()
    stable(ana)
    bob.begin_join()
    await_rebalance(ana)
    assert ana.commit(topic, 0, 5) == NONE


def test_simple_group_is_made_by_a_commit_and_lives_on_its_offsets(
    group: GroupPeer, topic: str
) -> None:
    group.topic(topic)
    assert group.listed() is None
    assert group.commit(topic, 1, 42, metadata="m") == NONE
    assert group.listed() == ("Empty", "classic", "")
    assert group.fetch(topic, 0) == (NONE, -1, "")
    assert group.fetch(topic, 1) == (NONE, 42, "m")
    assert group.commit(topic, 99, 1) == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert group.commit("nowhere", 0, 1) == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert group.commit(topic, 0, 1, metadata="x" * 4097) == Error.OFFSET_METADATA_TOO_LARGE
    assert group.delete_offset(topic, 1) == NONE
    assert group.fetch(topic, 1) == (NONE, -1, "")


def test_groups_are_deleted_when_they_are_empty(group: GroupPeer, topic: str) -> None:
    group.topic(topic)
    assert group.delete() == Error.GROUP_ID_NOT_FOUND
    assert group.delete_offset(topic, 0) == Error.GROUP_ID_NOT_FOUND
    ana = group.classic(protocol_type="connect")
    stable(ana)
    assert group.delete() == Error.NON_EMPTY_GROUP
    assert group.delete_offset(topic, 0) == Error.NON_EMPTY_GROUP
    assert ana.commit(topic, 0, 1) == NONE
    assert ana.leave() == NONE
    assert group.delete() == NONE
    assert group.listed() is None
    assert group.fetch(topic, 0) == (NONE, -1, "")


# -- administration ----------------------------------------------------------------------------


def test_group_is_described(group: GroupPeer) -> None:
    assert group.describe(5).group_state == "Dead"
    unknown = group.describe(6)
    assert (unknown.error_code, unknown.error_message) == (
        Error.GROUP_ID_NOT_FOUND, f"Group {group.group_id} not found.",
    )  # fmt: skip
    ana = group.classic(instance_id="one")
    stable(ana)
    found = group.describe()
    assert (found.group_state, found.protocol_type, found.protocol_data) == (
        "Stable", "consumer", "range",
    )  # fmt: skip
    member = found.members[0]
    assert (member.member_id, member.group_instance_id) == (ana.member_id, "one")
    assert (member.client_id, member.client_host) == ("bench", "/127.0.0.1")
    assert (bytes(member.member_metadata), bytes(member.member_assignment)) == (b"me", b"0")
    consumers = group.describe_consumers()
    assert (consumers.error_code, consumers.error_message) == (
        Error.GROUP_ID_NOT_FOUND, f"Group {group.group_id} is not a consumer group.",
    )  # fmt: skip


def test_lists_are_filtered(group: GroupPeer) -> None:
    stable(group.classic())
    row = ("Stable", "classic", "consumer")
    assert group.listed() == row
    assert group.listed(states=["STABLE"]) == row
    assert group.listed(states=["Empty"]) is None
    assert group.listed(types=["classic"]) == row
    assert group.listed(types=["Consumer"]) is None
