"""The pages of brokers over HTTP: who answers, and what is said while nobody can."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from kafkalite.metrics import broker_server
from kafkalite.metrics.broker_server import SHOWN, Brokers, MetricsServer
from kafkalite.server.counting import Counts
from tests.unit.handlers.whole_broker import WholeBroker

NOWHERE: Any = None  # in place of a socket


class Loop:
    """In place of a loop: what it is told is done at once, unless it hangs."""

    def __init__(self) -> None:
        self.hangs = self.is_closed = False
        self.told: list[Any] = []

    def call_soon_threadsafe(self, act: Any) -> None:
        if self.is_closed:
            raise RuntimeError("Event loop is closed")
        if self.hangs:
            self.told.append(act)
        else:
            act()

    def act(self) -> None:
        self.hangs = False
        while self.told:
            self.told.pop()()


class World:
    def __init__(self) -> None:
        self.loop: Any = Loop()
        self.broker = WholeBroker(counts=Counts(lambda: 0))
        self.found: dict[int, Any] = {1: self.broker.broker}
        self.brokers = Brokers(lambda: self.loop, lambda: self.found)
        self.client = TestClient(MetricsServer(self.brokers, NOWHERE)._app())

    def get(self, path: str) -> tuple[int, str]:
        answer = self.client.get(path)
        return answer.status_code, answer.text


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(broker_server, "ANSWER_SECONDS", 0.05)
    world = World()
    world.broker.clock.advance(10)
    yield world
    world.broker.close()


def test_a_broker_that_serves(world: World) -> None:
    assert world.get("/health/live") == (200, "live\n")
    assert world.get("/health/ready") == (200, "ready\n")
    status, text = world.get("/metrics")
    assert (status, "kafka_server_kafkaserver_brokerstate 3.0" in text) == (200, True)
    assert world.get("/metrics?broker=1")[0] == 200
    assert world.get("/")[1].split() == list(SHOWN)
    assert world.get("/other")[0] == 404


@pytest.mark.parametrize("asked", ["", "-1", "x", "9" * 5_000, "1%00", "\u0661"])
def test_what_is_no_number_of_a_broker(world: World, asked: str) -> None:
    status, text = world.get(f"/metrics?broker={asked}")
    assert (status, "is no number of a broker" in text) == (400, True)
    assert len(text) < 200


def test_a_broker_that_is_not_there(world: World) -> None:
    assert world.get("/metrics?broker=7") == (503, "broker 7 does not serve\n")


def test_before_and_after_there_is_a_broker(world: World) -> None:
    world.found = {}
    assert world.get("/metrics") == (503, "the broker does not serve\n")
    assert world.get("/health/ready")[0] == 503
    assert world.get("/health/live")[0] == 200
    world.loop = None
    assert world.get("/metrics") == (503, "the broker has not started\n")
    assert world.get("/health/live")[0] == 503
    world.loop = Loop()
    world.loop.is_closed = True
    assert world.get("/metrics") == (503, "the broker has stopped\n")


def test_a_broker_that_stops(world: World) -> None:
    world.broker.broker.stop(0)
    assert world.get("/health/ready")[0] == 503
    assert world.get("/metrics") == (503, "the broker does not serve\n")


def test_a_loop_that_hangs(world: World) -> None:
    world.loop.hangs = True
    assert world.get("/health/live")[0] == 503
    assert world.get("/health/ready")[0] == 503
    assert world.get("/metrics") == (503, "the broker did not answer within 0 s\n")


def test_who_waits_for_pages_keeps_nobody_from_asking_for_the_health(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_server, "MOST_ASKING", 1)
    monkeypatch.setattr(broker_server, "ANSWER_SECONDS", 5.0)
    client = TestClient(MetricsServer(world.brokers, NOWHERE)._app())
    world.loop.hangs = True
    asker = threading.Thread(target=client.get, args=("/metrics",))
    asker.start()
    for _ in range(500):
        if world.loop.told:
            break
        time.sleep(0.01)
    answer = client.get("/metrics")
    assert (answer.status_code, answer.text) == (503, "1 others wait for their pages\n")
    world.loop.act()
    asker.join(10)
    assert client.get("/metrics").status_code == 200


def test_another_broker_in_its_place_is_looked_at(world: World) -> None:
    assert world.get("/metrics?broker=1")[0] == 200
    other = WholeBroker(counts=Counts(lambda: 0))
    other.clock.advance(10)
    world.found = {2: other.broker}
    try:
        status, text = world.get("/metrics?broker=2")
    finally:
        other.close()
    assert (status, 'node_id="1"' in text) == (200, True)


def test_it_ends_with_its_threads() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        loop = asyncio.new_event_loop()
        server = MetricsServer(Brokers(lambda: loop, dict), listener)
        before = threading.active_count()
        server.start()
        server.stop()
        loop.close()
    assert threading.active_count() <= before
