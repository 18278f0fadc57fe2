"""What clients pushed is on the broker's own page, as Prometheus reads it, and on no other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kafkalite.env.slicing import finish
from kafkalite.metrics.broker_pages import BrokerPages
from kafkalite.metrics.inside import look
from kafkalite.metrics.loop_share import Lately
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    ApiVersionsRequest,
    GetTelemetrySubscriptionsRequest,
    PushTelemetryRequest,
)
from kafkalite.server.counting import Counts
from tests.unit.handlers.whole_broker import WholeBroker
from tests.unit.telemetry.otlp import Push

INSTANCE = b"\7" * 16
PUSH_KEY = 72


@pytest.fixture
def broker() -> Iterator[WholeBroker]:
    broker = WholeBroker(counts=Counts(lambda: 0))
    yield broker
    broker.close()


def push(broker: WholeBroker, data: bytes, instance_id: bytes = INSTANCE) -> int:
    asked = broker.ask(GetTelemetrySubscriptionsRequest(client_instance_id=instance_id), 0)
    request = PushTelemetryRequest(
        client_instance_id=instance_id, subscription_id=asked.subscription_id, metrics=data
    )
    code: int = broker.ask(request, 0).error_code
    broker.clock.advance(asked.push_interval_ms)
    return code


Samples = list[tuple[str, dict[str, str], float]]


def page(broker: WholeBroker, path: str = "/metrics") -> dict[str, Samples]:
    """Samples by family."""
    lately = Lately(broker.broker)
    lately.start()
    text = BrokerPages(lambda: finish(look(broker.broker, lately))).page(path).decode()
    lately.stop()
    return {
        family.name: [(each.name, each.labels, each.value) for each in family.samples]
        for family in text_string_to_metric_families(text)
    }


def test_pushes_are_told(broker: WholeBroker) -> None:
    metrics = Push(group_id="g").gauge("org.apache.kafka.consumer.lag", 3, topic='"t\\\n"')
    metrics.sum("org.apache.kafka.consumer.polls.total", 5)
    assert push(broker, metrics.data) == Error.NONE
    assert push(broker, metrics.data) == Error.NONE
    found = page(broker)
    ((name, labels, value),) = found["org_apache_kafka_consumer_lag"]
    assert (name, value) == ("org_apache_kafka_consumer_lag", 3)
    assert labels == {
        "client_id": "me", "client_instance_id": "BwcHBwcHBwcHBwcHBwcHBw", "group_id": "g",
        "client_software_name": "unknown", "client_software_version": "unknown", "topic": '"t\\\n"',
    }  # fmt: skip
    ((name, _, value),) = found["org_apache_kafka_consumer_polls"]
    assert (name, value) == ("org_apache_kafka_consumer_polls_total", 10)
    assert found["kafkalite_telemetry_series"][0][2] == 2
    assert found["kafka_server_client_metrics_plugin_export_count"][0][2] == 2
    for other in ("/metrics/confluent", "/metrics/reporter"):
        assert "org_apache_kafka_consumer_lag" not in page(broker, other)


def test_a_push_that_cannot_be_read_is_refused_and_counted(broker: WholeBroker) -> None:
    assert push(broker, b"\xff") == Error.INVALID_RECORD
    assert page(broker)["kafka_server_client_metrics_plugin_error_count"][0][2] == 1


def test_where_pushes_are_taken_clients_are_told_that_they_may(broker: WholeBroker) -> None:
    keys = {each.api_key for each in broker.ask(ApiVersionsRequest(), 0).api_keys}
    assert PUSH_KEY in keys
    other = WholeBroker()
    try:
        keys = {each.api_key for each in other.ask(ApiVersionsRequest(), 0).api_keys}
        assert PUSH_KEY not in keys
    finally:
        other.close()
