"""Connections beyond the limits: who waits, who is sent away and when, on both brokers."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from bench.raw_client import RawClient, frame_of
from kafkalite.protocol.messages import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    ApiVersionsRequest,
)
from tests.compat.brokers import Broker

SOON_S, NEVER_S = 10, 1.5


class Guest:
    """Somebody who connects and asks what is served."""

    def __init__(self, broker: Broker) -> None:
        self.link = socket.create_connection((broker.host, broker.port), SOON_S)
        self.link.sendall(frame_of(ApiVersionsRequest(), 0, 1))

    def fate(self, within_s: float) -> str:
        """What becomes of it in this time."""
        self.link.settimeout(within_s)
        try:
            return "served" if self.link.recv(4) else "sent away"
        except TimeoutError:
            return "waits"
        except ConnectionResetError:
            return "sent away"

    def leave(self) -> None:
        self.link.close()


Come = Callable[[Broker], Guest]


@pytest.fixture
def come() -> Iterator[Come]:
    """Has somebody connect, and leave when the test is over."""
    with ExitStack() as stack:

        def connect(broker: Broker) -> Guest:
            guest = Guest(broker)
            stack.callback(guest.leave)
            return guest

        yield connect


def test_who_comes_when_all_places_are_taken_waits_for_one(start_broker, come) -> None:
    broker = start_broker({"max.connections": "3"})
    inside = [come(broker) for _ in range(3)]
    assert [each.fate(SOON_S) for each in inside] == ["served"] * 3
    waiting = [come(broker) for _ in range(2)]
    assert [each.fate(NEVER_S) for each in waiting] == ["waits"] * 2
    for gone, comes in zip(inside, waiting, strict=False):
        gone.leave()
        assert comes.fate(SOON_S) == "served"


def test_who_comes_from_an_address_that_has_its_share_is_sent_away(start_broker, come) -> None:
    broker = start_broker({"max.connections.per.ip": "2"})
    time.sleep(2)  # until the place of who looked whether it serves is free
    inside = [come(broker) for _ in range(2)]
    assert [each.fate(SOON_S) for each in inside] == ["served"] * 2
    assert come(broker).fate(SOON_S) == "sent away"
    inside[0].leave()
    time.sleep(0.5)
    assert come(broker).fate(SOON_S) == "served"


def test_more_new_ones_than_the_rate_allows_wait_and_are_served(start_broker, come) -> None:
    broker = start_broker({"max.connection.creation.rate": "2"})
    began = time.monotonic()
    guests = [come(broker) for _ in range(25)]
    assert [each.fate(20) for each in guests] == ["served"] * 25
    assert 2 <= time.monotonic() - began <= 20


def test_an_address_that_comes_too_fast_is_sent_away_after_a_while(start_broker, come) -> None:
    broker = start_broker({})
    client = RawClient(broker.host, broker.port)
    request = AlterClientQuotasRequest
    limit = request.Entry(
        entity=[request.Entity(entity_type="ip", entity_name=None)],
        ops=[request.Op(key="connection_creation_rate", value=1.0, remove=False)],
    )
    asked = request(entries=[limit], validate_only=False)
    (answer,) = client.call(asked, 1, AlterClientQuotasResponse).entries
    assert answer.error_code == 0, answer
    time.sleep(1)
    guests = [come(broker) for _ in range(14)]
    began = time.monotonic()
    fates = [each.fate(SOON_S) for each in guests]
    assert fates[:9] == ["served"] * 9
    assert fates[-1] == "sent away"
    assert "waits" not in fates
    assert 0.1 <= time.monotonic() - began <= 5, "not at once: it would come again"
    client.close()
