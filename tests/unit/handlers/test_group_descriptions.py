"""Groups whose coordinator assigns, described to somebody who may not describe all of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafkalite.handlers import group_descriptions
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ShareGroupDescribeRequest,
    StreamsGroupDescribeRequest,
)
from kafkalite.security.acl import GROUP, TOPIC
from tests.unit.handlers.streams_desk import StreamsDesk

KINDS = [
    ("group.version", ConsumerGroupDescribeRequest, 1),
    ("share.version", ShareGroupDescribeRequest, 1),
    ("streams.version", StreamsGroupDescribeRequest, 0),
]


class Rules:
    """Nobody may do anything with the groups that are named."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def may(self, principal: str, host: str, operation: int, kind: int, name: str,
            *, is_quiet: bool = False) -> bool:  # fmt: skip
        return kind != GROUP or name not in self.names


@pytest.mark.parametrize(("feature", "request_kind", "version"), KINDS)
def test_what_one_may_not_describe_is_refused_alone(
    feature: str, request_kind: Any, version: int
) -> None:
    desk = StreamsDesk()
    desk.context.authorizer = Rules("hidden")  # type: ignore[assignment]
    groups = desk.ask(request_kind(group_ids=["none", "hidden"]), version).groups
    assert [(one.group_id, Error(one.error_code).name) for one in groups] == [
        ("hidden", "GROUP_AUTHORIZATION_FAILED"), ("none", "GROUP_ID_NOT_FOUND"),
    ]  # fmt: skip


@pytest.mark.parametrize(("feature", "request_kind", "version"), KINDS)
def test_that_there_are_none_is_told_to_who_may_describe_nothing(
    feature: str, request_kind: Any, version: int
) -> None:
    desk = StreamsDesk({"kafkalite.features": f"{feature}=0"})
    desk.context.authorizer = Rules("hidden")  # type: ignore[assignment]
    (group,) = desk.ask(request_kind(group_ids=["hidden"]), version).groups
    assert (group.group_id, group.error_code) == ("hidden", Error.UNSUPPORTED_VERSION)


class NoTopic(Rules):
    def may(self, principal: str, host: str, operation: int, kind: int, name: str,
            *, is_quiet: bool = False) -> bool:  # fmt: skip
        return kind != TOPIC or name not in self.names


def shown(topics: list[str], members: int) -> tuple[Any, int]:
    """A group whose members all have these topics, to who may not see one of them; in how many
    steps."""
    connection = SimpleNamespace(principal="User:ana", peer_address=("127.0.0.1", 1))
    context: Any = SimpleNamespace(authorizer=NoTopic("hidden"))
    call: Any = SimpleNamespace(connection=connection)
    all_of_them: Any = [topics] * members
    group = ConsumerGroupDescribeResponse.Group(group_id="g", members=all_of_them)
    response = ConsumerGroupDescribeResponse(groups=[group])
    steps = group_descriptions._shown(
        context, call, response, lambda one: (name for each in one.members for name in each),
        "why", ConsumerGroupDescribeResponse(groups=[]),
    )  # fmt: skip
    count = sum(1 for _ in steps)
    return response.groups[0], count


def test_topics_of_many_members_are_looked_at_in_steps() -> None:
    group, steps = shown([f"topic-{number}" for number in range(20)], 1_000)
    assert group.error_code == Error.NONE
    assert steps > 50


def test_a_topic_that_one_may_not_see_hides_its_group() -> None:
    group, _ = shown(["orders", "hidden"], 3)
    assert group.error_code == Error.TOPIC_AUTHORIZATION_FAILED
    assert group.members == []
