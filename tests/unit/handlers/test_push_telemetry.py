"""PushTelemetry: metrics are checked as Kafka checks them."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    ZERO_UUID,
    GetTelemetrySubscriptionsRequest,
    PushTelemetryRequest,
)

INSTANCE = b"\7" * 16


@pytest.fixture
def push(make_world):
    world = make_world(settings={"telemetry.max.bytes": "10"})
    asked = world.ask(GetTelemetrySubscriptionsRequest(client_instance_id=INSTANCE), 0)

    def push(**fields):
        given = {
            "client_instance_id": INSTANCE,
            "subscription_id": asked.subscription_id,
            "metrics": b"12345",
            **fields,
        }
        return world.ask(PushTelemetryRequest(**given), 0).error_code

    push.world = world
    return push


def test_metrics_are_taken_once_an_interval(push):
    assert push() == Error.NONE
    assert push() == Error.THROTTLING_QUOTA_EXCEEDED
    push.world.env.clock.advance(300_000)
    assert push() == Error.NONE
    assert push.world.context.telemetry.pushed_bytes == 10


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"client_instance_id": ZERO_UUID}, Error.INVALID_REQUEST),
        ({"subscription_id": 12345}, Error.UNKNOWN_SUBSCRIPTION_ID),
        ({"compression_type": 9}, Error.UNSUPPORTED_COMPRESSION_TYPE),
        ({"metrics": b"x" * 11}, Error.TELEMETRY_TOO_LARGE),
    ],
)
def test_refuses_as_kafka_does(push, fields, code):
    assert push(**fields) == code
    assert push.world.context.telemetry.pushed_bytes == 0


def test_a_client_that_says_goodbye_may_push_once_more_and_no_more(push):
    assert push() == Error.NONE
    assert push(terminating=True) == Error.NONE
    push.world.env.clock.advance(300_000)
    assert push() == Error.INVALID_REQUEST
