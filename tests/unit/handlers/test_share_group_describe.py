"""ShareGroupDescribe: state and members of share groups."""

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import ListGroupsRequest, ShareGroupDescribeRequest
from tests.unit.handlers.share_desk import GROUP, MEMBER, OTHER, ShareDesk


def described(desk: ShareDesk, *names: str):
    return desk.ask(ShareGroupDescribeRequest(group_ids=list(names)), 1).groups


def test_a_group_is_described_with_its_members() -> None:
    desk = ShareDesk()
    epoch = desk.join()
    (group,) = described(desk, GROUP)
    assert (group.group_state, group.assignor_name) == ("Stable", "simple")
    assert (group.group_epoch, group.assignment_epoch) == (epoch, epoch)
    (member,) = group.members
    assert (member.member_id, member.member_epoch, member.client_host) == (
        MEMBER, epoch, "/10.0.0.9"
    )  # fmt: skip
    assert member.subscribed_topic_names == ["t"]
    (topic,) = member.assignment.topic_partitions
    assert (topic.topic_name, topic.partitions) == ("t", [0])


def test_a_group_without_members_is_empty() -> None:
    desk = ShareDesk()
    desk.join()
    assert desk.leave().member_epoch == -1
    (group,) = described(desk, GROUP)
    assert (group.group_state, group.members) == ("Empty", [])


def test_a_group_that_is_none_is_told_so() -> None:
    desk = ShareDesk()
    nameless, nobody = described(desk, "nobody", "")
    assert (nobody.error_code, nobody.error_message) == (
        Error.GROUP_ID_NOT_FOUND, "Group nobody not found."
    )  # fmt: skip
    assert (nameless.group_id, nameless.error_code) == ("", Error.INVALID_GROUP_ID)


def test_share_groups_are_listed_by_their_type() -> None:
    desk = ShareDesk()
    desk.join()
    desk.join(OTHER)
    for types, names in (([], [GROUP]), (["share"], [GROUP]), (["consumer"], [])):
        answer = desk.ask(ListGroupsRequest(types_filter=types), 5)
        assert [one.group_id for one in answer.groups] == names
    assert desk.ask(ListGroupsRequest(), 5).groups[0].protocol_type == "share"
