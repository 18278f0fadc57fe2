"""Groups whose coordinator assigns, described to somebody who may not describe all of them."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ShareGroupDescribeRequest,
    StreamsGroupDescribeRequest,
)
from kafkalite.security.acl import GROUP
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
