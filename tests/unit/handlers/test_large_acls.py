"""Very many access rules: described, removed and asked a slice per turn, however many there are."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
    MetadataRequest,
)
from kafkalite.security import acl as rules
from kafkalite.security.acl import Acl, acl_of
from kafkalite.sim.effort import CountingClock
from tests.unit.handlers.counted import asked, counted
from tests.unit.handlers.test_acls import ALICE, ROOT, SETTINGS, creation
from tests.unit.handlers.whole_broker import WholeBroker

MANY, PER_REQUEST = 12_000, 6_000
READS = acl_of("User:alice read topic t")
ANYTHING: dict[str, Any] = {
    "resource_type_filter": rules.ANY, "pattern_type_filter": rules.ANY, "operation": rules.ANY,
    "permission_type": rules.ANY, "resource_name_filter": None, "principal_filter": None,
    "host_filter": None,
}  # fmt: skip
DENIES = acl_of("deny User:bob write topic t*")


def made(prefix: str, count: int) -> CreateAclsRequest:
    acls: list[Acl] = []
    for number in range(count):
        kind = DENIES if number % 3 == 0 else READS
        acls.append(kind._replace(name=f"{prefix}{number}", principal=f"User:{number % 50}"))
    return CreateAclsRequest(creations=[creation(each) for each in acls])


@pytest.fixture(scope="module")
def broker() -> WholeBroker:
    broker = WholeBroker(SETTINGS, clock=CountingClock())
    broker.connection.principal = ROOT
    for number in range(MANY // PER_REQUEST):
        answer = broker.ask(made(f"topic-{number}-", PER_REQUEST), 3)
        assert {each.error_code for each in answer.results} == {Error.NONE}
    return broker


def described(**wanted: Any) -> DescribeAclsRequest:
    return DescribeAclsRequest(**{**ANYTHING, **wanted})


def deleted(**wanted: Any) -> DeleteAclsRequest:
    return DeleteAclsRequest(filters=[
        DeleteAclsRequest.Filter(**{**ANYTHING, **wanted})
    ])


def test_all_are_described(broker: WholeBroker) -> None:
    answer = asked(broker, described(), 3)
    assert sum(len(each.acls) for each in answer.resources) == MANY


def test_those_that_mean_a_name_are_found_among_them(broker: WholeBroker) -> None:
    wanted = described(
        resource_type_filter=rules.TOPIC, pattern_type_filter=rules.MATCH,
        resource_name_filter="topic-0-3000",
    )
    names = sorted(each.resource_name for each in asked(broker, wanted, 3).resources)
    assert names == ["topic-0-3", "topic-0-30", "topic-0-300", "topic-0-3000"]


def test_hundreds_are_removed_from_among_them(broker: WholeBroker) -> None:
    own = [READS._replace(name=f"own-{number}", principal="User:own") for number in range(240)]
    broker.ask(CreateAclsRequest(creations=[creation(each) for each in own]), 3)
    counted(broker, deleted(principal_filter="User:nobody"), 3)
    answer = counted(broker, deleted(principal_filter="User:own"), 3)
    [result] = answer.filter_results
    assert len(result.matching_acls) == len(own)
    assert counted(broker, described(principal_filter="User:own"), 3).resources == []


def test_more_than_a_request_may_change_are_not_removed(broker: WholeBroker) -> None:
    answer = counted(broker, deleted(), 3)
    [result] = answer.filter_results
    assert result.error_code != Error.NONE
    assert counted(broker, described(principal_filter="User:8"), 3).resources


def test_a_question_costs_no_more_than_among_few(broker: WholeBroker) -> None:
    broker.connection.principal = ALICE
    try:
        topics = [MetadataRequest.Topic(name=f"topic-0-{number}") for number in range(200)]
        answer = asked(broker, MetadataRequest(topics=topics), 9)
    finally:
        broker.connection.principal = ROOT
    assert {each.error_code for each in answer.topics} == {Error.TOPIC_AUTHORIZATION_FAILED}
