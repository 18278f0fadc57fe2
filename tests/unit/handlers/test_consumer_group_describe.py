"""ConsumerGroupDescribe: what a group has and what it is to have."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import ConsumerGroupDescribeRequest, OffsetCommitRequest
from tests.unit.handlers.group_desk import Desk, versions
from tests.unit.handlers.group_member import GROUP, join
from tests.unit.handlers.test_consumer_group_heartbeat import first_heartbeat


@pytest.mark.parametrize("version", versions("ConsumerGroupDescribe"))
def test_a_group_and_its_member_in_every_version(version: int) -> None:
    desk = Desk()
    desk.ask(first_heartbeat(), 1)
    request = ConsumerGroupDescribeRequest(group_ids=[GROUP], include_authorized_operations=True)
    group = desk.ask(request, version).groups[0]
    assert (group.error_code, group.group_state) == (Error.NONE, "Stable")
    assert (group.group_epoch, group.assignment_epoch, group.assignor_name) == (2, 2, "uniform")
    assert group.authorized_operations > 0
    member = group.members[0]
    assert member.assignment == member.target_assignment
    assert member.assignment.topic_partitions[0].topic_name == "orders"
    assert member.member_type == (1 if version >= 1 else -1)


def test_unknown_classic_and_nameless_groups() -> None:
    desk = Desk()
    join(desk)
    request = ConsumerGroupDescribeRequest(group_ids=["", "none", GROUP])
    groups = {one.group_id: one for one in desk.ask(request, 1).groups}
    assert groups[""].error_code == Error.INVALID_GROUP_ID
    assert groups["none"].error_message == "Group none not found."
    assert groups[GROUP].error_message == f"Group {GROUP} is not a consumer group."


def test_nameless_among_many_groups_whose_coordinator_is_writing() -> None:
    desk = Desk()
    for partition in desk.partitions:
        partition.is_lagging = True
    names = [f"group-{number}" for number in range(40)]
    one = OffsetCommitRequest.Partition(partition_index=0, committed_offset=1)
    commit = OffsetCommitRequest.Topic(name="orders", partitions=[one])
    for name in names:
        desk.send(OffsetCommitRequest(group_id=name, topics=[commit]), 7)
    asked = desk.send(ConsumerGroupDescribeRequest(group_ids=["", *names, ""]), 1)
    assert not asked.is_resolved
    for partition in desk.partitions:
        partition.commit()
    desk.clock.advance(1)  # so many are told in turns
    groups = asked.value.groups
    assert sorted(group.group_id for group in groups) == sorted(["", "", *names])
    assert {group.error_code for group in groups if not group.group_id} == {Error.INVALID_GROUP_ID}
