"""ShareGroupHeartbeat: joining, living and leaving, and errors with their words."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import ShareGroupDescribeRequest
from tests.unit.handlers.share_desk import GROUP, MEMBER, OTHER, ShareDesk


def assigned(answer) -> list[int] | None:
    if answer.assignment is None:
        return None
    return [index for one in answer.assignment.topic_partitions for index in one.partitions]


def test_a_member_has_partitions_once_their_state_is_kept() -> None:
    """As with Apache Kafka: the first answer has none, the next heartbeat brings them."""
    desk = ShareDesk(partitions=3)
    first = desk.beat()
    assert (first.error_code, first.member_epoch, assigned(first)) == (Error.NONE, 2, [])
    assert first.heartbeat_interval_ms == 5_000
    desk.clock.advance(5_000)
    second = desk.beat(MEMBER, 2)
    assert (second.error_code, second.member_epoch, assigned(second)) == (Error.NONE, 3, [0, 1, 2])
    third = desk.beat(MEMBER, 3)
    assert (third.member_epoch, assigned(third)) == (3, None)


def test_more_members_than_partitions_share_them() -> None:
    desk = ShareDesk()
    desk.join()
    desk.beat(OTHER)
    desk.clock.advance(5_000)
    both = [desk.beat(name, 0) for name in (MEMBER, OTHER)]
    assert [assigned(each) for each in both] == [[0], [0]]


def test_a_new_assignment_waits_for_its_interval() -> None:
    desk = ShareDesk()
    desk.join()
    assert assigned(desk.beat(OTHER)) == []  # within a second of the last one
    desk.clock.advance(1_000)
    assert assigned(desk.beat(OTHER, 0)) == [0]


@pytest.mark.parametrize(
    ("member", "epoch", "topics", "code", "message"),
    [
        ("", 0, None, Error.INVALID_REQUEST, None),
        ("x" * 37, 0, None, Error.INVALID_REQUEST, None),
        ("  ", 0, None, Error.INVALID_REQUEST, "MemberId can't be empty."),
        ("m", 0, [], Error.INVALID_REQUEST, "SubscribedTopicNames must be set in first request."),
        ("m", -2, None, Error.INVALID_REQUEST, "MemberEpoch is invalid."),
        ("m", 5, None, Error.GROUP_ID_NOT_FOUND, f"Share group {GROUP} not found."),
        ("m", -1, None, Error.GROUP_ID_NOT_FOUND, f"Group {GROUP} not found."),
    ],
)
def test_what_is_wrong_is_said(member, epoch, topics, code, message) -> None:
    answer = ShareDesk().beat(member, epoch, topics)
    assert (answer.error_code, answer.error_message) == (code, message)


def test_a_wrong_epoch_fences_but_that_of_an_answer_that_was_lost() -> None:
    desk = ShareDesk()
    epoch = desk.join()
    assert desk.beat(MEMBER, epoch - 1).error_code == Error.NONE
    for wrong in (epoch + 1, epoch - 2 or 1):
        assert desk.beat(MEMBER, wrong).error_code == Error.FENCED_MEMBER_EPOCH
    assert desk.beat(OTHER, epoch).error_code == Error.UNKNOWN_MEMBER_ID


def test_a_member_that_says_nothing_is_gone_after_its_session() -> None:
    desk = ShareDesk()
    epoch = desk.join()
    desk.clock.advance(45_000)
    assert desk.beat(MEMBER, epoch).error_code == Error.UNKNOWN_MEMBER_ID


def test_the_group_s_own_settings_hold() -> None:
    desk = ShareDesk()
    desk.configure(share_heartbeat_interval_ms="15000", share_session_timeout_ms="60000")
    answer = desk.beat()
    assert answer.heartbeat_interval_ms == 15_000
    desk.clock.advance(59_000)
    assert desk.beat(MEMBER, answer.member_epoch).error_code == Error.NONE


def test_a_group_is_full_at_its_limit() -> None:
    desk = ShareDesk({"group.share.max.size": "1"})
    desk.join()
    refused = desk.beat(OTHER)
    assert refused.error_code == Error.GROUP_MAX_SIZE_REACHED
    assert refused.error_message == "The share group has reached its maximum capacity of 1 members."


def test_a_group_is_there_after_a_restart() -> None:
    desk = ShareDesk()
    desk.join()
    desk.close()
    again = desk.started_again()
    assert again.beat(MEMBER, 3).error_code == Error.NONE  # it is there still
    described = again.ask(ShareGroupDescribeRequest(group_ids=[GROUP]), 1).groups[0]
    assert (described.group_state, described.group_epoch) == ("Stable", 3)


def test_without_the_feature_nobody_joins() -> None:
    desk = ShareDesk()
    desk.context.metadata.image.features["share.version"] = 0
    assert desk.beat().error_code == Error.UNSUPPORTED_VERSION
