"""Settings of thousands of resources, changed in one request: a slice of it per turn."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import AlterConfigsRequest, IncrementalAlterConfigsRequest
from kafkalite.sim.effort import CountingClock
from tests.unit.handlers.counted import asked
from tests.unit.handlers.whole_broker import WholeBroker

MANY = 6_000
TOPIC, UNKNOWN = 2, 99


def whole(kind: int) -> AlterConfigsRequest:
    resource, config = AlterConfigsRequest.Resource, AlterConfigsRequest.Config
    configs = [config(name="retention.ms", value="5")]
    return AlterConfigsRequest(
        resources=[
            resource(resource_type=kind, resource_name=f"t{number}", configs=configs)
            for number in range(MANY)
        ]
    )


def single(kind: int) -> IncrementalAlterConfigsRequest:
    resource = IncrementalAlterConfigsRequest.Resource
    config = IncrementalAlterConfigsRequest.Config
    configs = [config(name="retention.ms", config_operation=0, value="5")]
    return IncrementalAlterConfigsRequest(
        resources=[
            resource(resource_type=kind, resource_name=f"t{number}", configs=configs)
            for number in range(MANY)
        ]
    )


@pytest.mark.parametrize(("make", "version"), [(whole, 2), (single, 1)])
@pytest.mark.parametrize(
    ("kind", "code"),
    [(TOPIC, Error.UNKNOWN_TOPIC_OR_PARTITION), (UNKNOWN, Error.INVALID_REQUEST)],
)
def test_no_turn_is_long(make: Any, version: int, kind: int, code: Error) -> None:
    broker = WholeBroker(clock=CountingClock())
    answer = asked(broker, make(kind), version)
    assert [each.resource_name for each in answer.responses] == [f"t{n}" for n in range(MANY)]
    assert {each.error_code for each in answer.responses} == {code}
    broker.close()


def test_what_is_named_twice_far_apart_is_refused() -> None:
    broker = WholeBroker()
    broker.create("t0")
    request = single(TOPIC)
    request.resources = [*request.resources[:500], request.resources[0]]
    answer = broker.ask(request, 1)
    codes = [each.error_code for each in answer.responses]
    assert codes[0] == codes[-1] == Error.INVALID_REQUEST
    assert set(codes[1:-1]) == {Error.UNKNOWN_TOPIC_OR_PARTITION}
    broker.close()
