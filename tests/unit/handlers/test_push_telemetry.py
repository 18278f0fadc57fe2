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
def small(make_world):
    return make_world(settings={"telemetry.max.bytes": "10"})


@pytest.fixture
def push(small):
    asked = small.ask(GetTelemetrySubscriptionsRequest(client_instance_id=INSTANCE), 0)

    def push(**fields):
        given = {
            "client_instance_id": INSTANCE,
            "subscription_id": asked.subscription_id,
            "metrics": b"12345",
            **fields,
        }
        return small.ask(PushTelemetryRequest(**given), 0).error_code

    return push


def test_metrics_are_taken_once_an_interval(small, push):
    assert push() == Error.NONE
    assert push() == Error.THROTTLING_QUOTA_EXCEEDED
    small.env.clock.advance(300_000)
    assert push() == Error.NONE
    assert small.context.telemetry.pushed_bytes == 10


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"client_instance_id": ZERO_UUID}, Error.INVALID_REQUEST),
        ({"subscription_id": 12345}, Error.UNKNOWN_SUBSCRIPTION_ID),
        ({"compression_type": 9}, Error.UNSUPPORTED_COMPRESSION_TYPE),
        ({"metrics": b"x" * 11}, Error.TELEMETRY_TOO_LARGE),
    ],
)
def test_refuses_as_kafka_does(small, push, fields, code):
    assert push(**fields) == code
    assert small.context.telemetry.pushed_bytes == 0


def test_a_client_that_says_goodbye_may_push_once_more_and_no_more(small, push):
    assert push() == Error.NONE
    assert push(terminating=True) == Error.NONE
    small.env.clock.advance(300_000)
    assert push() == Error.INVALID_REQUEST
