"""ConsumerGroupHeartbeat: both versions, and errors with their words."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kafkalite.security.acl import acl_of
from kafkalite.security.authorizer import Authorizer
from tests.unit.handlers.group_desk import Desk, versions


def first_heartbeat(member_id: str = "m1") -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id="readers",
        member_id=member_id,
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["orders"],
        topic_partitions=[],
    )


@pytest.mark.parametrize("version", versions("ConsumerGroupHeartbeat"))
def test_a_first_heartbeat_is_answered_with_everything(version: int) -> None:
    desk = Desk()
    response = desk.ask(first_heartbeat(), version)
    assert (response.error_code, response.member_epoch) == (Error.NONE, 2)
    assert response.heartbeat_interval_ms == 5_000
    assigned = response.assignment.topic_partitions[0]
    assert (assigned.topic_id, assigned.partitions) == (desk.orders, [0, 1, 2])


def test_only_in_version_0_the_broker_makes_up_the_member_id() -> None:
    assert Desk().ask(first_heartbeat(""), 0).member_id
    refused = Desk().ask(first_heartbeat(""), 1)
    assert (refused.error_code, refused.error_message) == (
        Error.INVALID_REQUEST,
        "MemberId can't be empty.",
    )


def test_a_coordinator_elsewhere_is_told() -> None:
    desk = Desk()
    desk.stop_coordinating()
    assert desk.ask(first_heartbeat(), 1).error_code == Error.NOT_COORDINATOR


def test_without_the_feature_or_the_protocol_nobody_joins_a_consumer_group() -> None:
    """A directory that an older Apache Kafka may get back has no records of such groups."""
    unfinalized = Desk()
    unfinalized.cluster.image.features = {"metadata.version": 21}
    for desk in (unfinalized, Desk(group_coordinator_rebalance_protocols="classic")):
        assert desk.ask(first_heartbeat(), 1).error_code == Error.UNSUPPORTED_VERSION
        request = ConsumerGroupDescribeRequest(group_ids=["a", "b"])
        described = desk.ask(request, 1).groups
        assert [(one.group_id, one.error_code) for one in described] == [
            ("a", Error.UNSUPPORTED_VERSION), ("b", Error.UNSUPPORTED_VERSION),
        ]  # fmt: skip


@pytest.mark.parametrize("is_given", [True, False])
def test_a_pattern_follows_the_rights_that_change(is_given: bool) -> None:
    """After the interval at the latest, also when no topic comes or goes."""
    desk = Desk(group_consumer_regex_refresh_interval_ms="20000")
    desk.context.authorizer = authorizer = Authorizer()
    rules = [acl_of("User:ANONYMOUS read group readers"), acl_of("User:ANONYMOUS read topic or*")]
    for each in rules if not is_given else rules[:1]:
        authorizer.add(each)

    def beat(epoch: int) -> ConsumerGroupHeartbeatResponse:
        request = ConsumerGroupHeartbeatRequest(
            group_id="readers", member_id="m", member_epoch=epoch
        )
        if epoch == 0:
            request.rebalance_timeout_ms, request.topic_partitions = 60_000, []
            request.subscribed_topic_names, request.subscribed_topic_regex = [], "ord.*"
        answer: ConsumerGroupHeartbeatResponse = desk.ask(request, 1)
        assert answer.error_code == Error.NONE
        return answer

    def assigned(answer: ConsumerGroupHeartbeatResponse) -> bool | None:
        given = answer.assignment
        return None if given is None else bool(given.topic_partitions)

    answer = beat(0)
    assert assigned(answer) is not is_given
    for _ in range(3):
        answer = beat(answer.member_epoch)
    (authorizer.add if is_given else authorizer.remove)(rules[1])
    assert assigned(beat(answer.member_epoch)) is None
    desk.clock.advance(20_000)
    assert assigned(beat(answer.member_epoch)) is is_given
