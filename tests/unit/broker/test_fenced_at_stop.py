"""What the metadata says of a broker that has stopped: Apache Kafka takes it back at once then."""

from __future__ import annotations

from tests.unit.handlers.whole_broker import WholeBroker


def test_a_clean_stop_says_that_the_broker_is_gone_and_leaves_its_partitions_as_they_are() -> None:
    broker = WholeBroker()
    broker.create("t", 3)
    before = broker.context.metadata.image.partition("t", 1)
    broker.close()
    image = broker.context.metadata.image
    assert image.brokers[1].is_fenced
    assert image.partition("t", 1) == before
    again = broker.started_again().context.metadata.image
    assert not again.brokers[1].is_fenced
    assert again.brokers[1].epoch > image.brokers[1].epoch
    assert again.partition("t", 1) == before
