"""PushTelemetry: metrics are checked as Kafka checks them."""

from typing import Any

import pytest

from kafkalite.env.later import Later
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    ZERO_UUID,
    GetTelemetrySubscriptionsRequest,
    PushTelemetryRequest,
)
from kafkalite.telemetry.payload import Unreadable
from tests.unit.handlers.whole_broker import WholeBroker

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


def test_a_push_that_is_refused_was_one_all_the_same(small, push):
    assert push(subscription_id=12345) == Error.UNKNOWN_SUBSCRIPTION_ID
    assert push() == Error.THROTTLING_QUOTA_EXCEEDED
    telemetry = small.context.telemetry
    assert (telemetry.unknown_subscriptions, telemetry.throttled) == (1, 1)


def test_a_last_push_out_of_time_moves_no_interval(small, push):
    assert push() == Error.NONE
    small.env.clock.advance(299_999)
    assert push(terminating=True) == Error.NONE
    now_ms = small.env.clock.now_ms()
    assert small.context.telemetry._instances[INSTANCE].last_push_ms == now_ms - 299_999


class Receiver:
    """Reads when a test says so."""

    def __init__(self):
        self.pushed, self.told = [], []

    def take(self, pushed):
        self.pushed.append(pushed)
        self.told.append(Later())
        return self.told[-1]

    def stop(self):
        pass


@pytest.fixture
def broker():
    broker = WholeBroker()
    receiver: Any = Receiver()
    broker.context.telemetry.receiver = receiver
    yield broker
    broker.close()


@pytest.fixture
def receiver(broker):
    return broker.context.telemetry.receiver


def begin(broker, **fields):
    asked = broker.ask(GetTelemetrySubscriptionsRequest(client_instance_id=INSTANCE), 0)
    fields = {"subscription_id": asked.subscription_id, "metrics": b"12345", **fields}
    return broker.send(PushTelemetryRequest(client_instance_id=INSTANCE, **fields), 0)


def test_a_push_is_answered_when_it_has_been_read(broker, receiver):
    answer = begin(broker, compression_type=4)
    assert not answer.is_resolved
    (pushed,) = receiver.pushed
    assert (pushed.metrics, pushed.compression, pushed.is_last) == (b"12345", 4, False)
    assert (pushed.sender.client_id, pushed.interval_ms) == (broker.client_id, 300_000)
    assert pushed.sender.instance_id == "BwcHBwcHBwcHBwcHBwcHBw"
    receiver.told[0].resolve(None)
    assert answer.value.error_code == Error.NONE


def test_what_cannot_be_read_is_an_invalid_record(broker, receiver):
    answer = begin(broker)
    receiver.told[0].resolve(Unreadable("no OTLP"))
    assert answer.value.error_code == Error.INVALID_RECORD


def test_a_push_of_nothing_is_not_read(broker, receiver):
    assert begin(broker, metrics=b"").value.error_code == Error.NONE
    assert receiver.pushed == []
