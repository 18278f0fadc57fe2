"""StreamsGroupDescribe: the topology, with what was decided of it, and the members."""

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import StreamsGroupDescribeRequest
from tests.unit.handlers.streams_desk import (
    GROUP,
    MEMBER,
    Request,
    StreamsDesk,
    stateful,
    tasks,
    topology,
)


def test_a_group_is_described_with_its_topology_and_members() -> None:
    desk = StreamsDesk()
    desk.join(
        MEMBER, topology(stateful()), rack_id="r",
        user_endpoint=Request.Endpoint(host="h", port=7),
        client_tags=[Request.KeyValue(key="zone", value="a")],
    )  # fmt: skip
    assert changelog(desk.described()) == ("app-store-changelog", 0)
    desk.clock.advance(10)
    desk.beat(MEMBER, 2, [])
    group = desk.described()
    assert (group.error_code, group.group_state) == (Error.NONE, "Stable")
    assert (group.group_epoch, group.assignment_epoch, group.topology.epoch) == (3, 3, 0)
    assert changelog(group) == ("app-store-changelog", 4)
    (member,) = group.members
    assert (member.member_id, member.member_epoch, member.rack_id) == (MEMBER, 3, "r")
    assert (member.user_endpoint.host, member.user_endpoint.port) == ("h", 7)
    assert [(tag.key, tag.value) for tag in member.client_tags] == [("zone", "a")]
    for assigned in (member.assignment, member.target_assignment):
        assert tasks(assigned.active_tasks) == {"0": [0, 1, 2, 3]}
    assert member.process_id == f"process of {MEMBER}"


def changelog(group) -> tuple[str, int]:
    (subtopology,) = group.topology.subtopologies
    (topic,) = subtopology.state_changelog_topics
    return topic.name, topic.partitions


def test_groups_that_are_none_are_said_to_be() -> None:
    desk = StreamsDesk()
    request = StreamsGroupDescribeRequest(group_ids=["nobody", ""])
    groups = {one.group_id: one for one in desk.ask(request, 0).groups}
    assert groups["nobody"].error_code == Error.GROUP_ID_NOT_FOUND
    assert groups["nobody"].error_message == "Group nobody not found."
    assert groups[""].error_code == Error.INVALID_GROUP_ID
    assert GROUP not in groups


def test_a_group_that_one_may_not_describe_is_not_described() -> None:
    desk = StreamsDesk({
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    })
    desk.join(MEMBER, topology(stateful()))
    assert desk.described().error_code == Error.NONE
    desk.connection.principal = "User:alice"
    for name in (GROUP, "nobody"):
        [group] = desk.ask(StreamsGroupDescribeRequest(group_ids=[name]), 0).groups
        assert (group.group_id, group.error_code) == (name, Error.GROUP_AUTHORIZATION_FAILED)
        assert (group.error_message, group.topology, group.members) == (None, None, [])
