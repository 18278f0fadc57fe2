"""DeleteShareGroupOffsets, and what becomes of a share group that is deleted."""

from typing import Any

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    AlterShareGroupOffsetsRequest,
    DeleteGroupsRequest,
    DeleteShareGroupOffsetsRequest,
    ShareGroupDescribeRequest,
)
from tests.unit.handlers.share_desk import ACCEPT, GROUP, ShareDesk, desk_with
from tests.unit.handlers.test_describe_share_group_offsets import offsets


def delete(desk: ShareDesk, *topics: str, group: str = GROUP) -> Any:
    kind = DeleteShareGroupOffsetsRequest
    named = [kind.Topic(topic_name=name) for name in topics]
    return desk.ask(kind(group_id=group, topics=named), 0)


def desk_that_was_left() -> ShareDesk:
    desk = desk_with(3)
    desk.acquired()
    desk.acknowledge((0, 1, ACCEPT), epoch=-1)
    desk.leave()
    return desk


def test_a_group_begins_anew_where_its_offsets_were_deleted() -> None:
    desk = desk_that_was_left()
    (answer,) = delete(desk, "t").responses
    assert (answer.topic_name, answer.topic_id, answer.error_code) == (
        "t", desk.topic_id, Error.NONE
    )  # fmt: skip
    assert offsets(desk).topics == []
    (again,) = delete(desk, "t").responses
    assert (again.error_code, again.error_message) == (
        Error.UNKNOWN_TOPIC_OR_PARTITION, "There is no offset information to delete."
    )  # fmt: skip
    desk.join()
    assert desk.acquired() == [(0, 2, 1)]


def test_a_group_with_members_and_one_that_is_none_are_refused() -> None:
    desk = desk_with(1)
    assert delete(desk, "t").error_code == Error.NON_EMPTY_GROUP
    refused = delete(desk, "t", group="nobody")
    assert (refused.error_code, refused.error_message) == (
        Error.GROUP_ID_NOT_FOUND, "Group nobody not found."
    )  # fmt: skip
    assert delete(desk, "t", group="").error_code == Error.INVALID_GROUP_ID


RULES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.mark.parametrize(
    "request_of", [DeleteShareGroupOffsetsRequest, AlterShareGroupOffsetsRequest]
)
def test_who_may_not_is_told_so_in_words(request_of: Any) -> None:
    desk = ShareDesk(RULES)
    desk.connection.principal = "User:alice"
    refused = desk.ask(request_of(group_id=GROUP, topics=[]), 0)
    assert (refused.error_code, refused.error_message) == (
        Error.GROUP_AUTHORIZATION_FAILED, "Group authorization failed."
    )  # fmt: skip


def test_a_topic_that_is_not_there_is_told_so() -> None:
    (answer,) = delete(desk_that_was_left(), "nothing").responses
    assert answer.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION


def test_a_share_group_is_deleted_with_the_state_of_its_partitions() -> None:
    desk = desk_with(3)
    request = DeleteGroupsRequest(groups_names=[GROUP, "nobody"])
    codes = {one.group_id: one.error_code for one in desk.ask(request, 2).results}
    assert codes == {GROUP: Error.NON_EMPTY_GROUP, "nobody": Error.GROUP_ID_NOT_FOUND}
    desk.acquired()
    desk.acknowledge((0, 1, ACCEPT), epoch=-1)
    desk.leave()
    codes = {one.group_id: one.error_code for one in desk.ask(request, 2).results}
    assert codes == {GROUP: Error.NONE, "nobody": Error.GROUP_ID_NOT_FOUND}
    (group,) = desk.ask(ShareGroupDescribeRequest(group_ids=[GROUP]), 1).groups
    assert group.error_code == Error.GROUP_ID_NOT_FOUND
    desk.join()
    assert desk.acquired() == [(0, 2, 1)]
