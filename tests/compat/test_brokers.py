"""The two brokers themselves: they start, answer, stop, and start again on their data."""

import socket

from tests.compat.brokers import Broker
from tests.compat.conftest import StartBroker


def test_broker_accepts_connections(broker: Broker) -> None:
    with socket.create_connection((broker.host, broker.port), 5):
        pass


def test_broker_of_a_test_stops_and_starts_again(start_broker: StartBroker) -> None:
    first = start_broker({"num.partitions": "3"})
    first.stop()
    second = start_broker({"num.partitions": "3"}, folder=first.folder)
    with socket.create_connection((second.host, second.port), 5):
        pass
