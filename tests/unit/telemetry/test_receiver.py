"""One push after the other is read by a worker; nobody waits for ever."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite.env import manual_env
from kafkalite.env.background import QueuedBackground
from kafkalite.env.clock import ManualClock
from kafkalite.env.slicing import finish
from kafkalite.telemetry.payload import Unreadable
from kafkalite.telemetry.receiver import Pushed, Receiver
from kafkalite.telemetry.series import Series
from tests.unit.telemetry.otlp import SENDER, Push

GOOD = Push().gauge("org.apache.kafka.a", 1).data


class Forwarding:
    def __init__(self) -> None:
        self.given: list[bytes] = []
        self.is_over = False

    def send(self, data: bytes) -> None:
        self.given.append(data)

    def stop(self) -> None:
        self.is_over = True


class World:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.env = env = manual_env(clock=self.clock)
        self.background = env.background = QueuedBackground()
        forwarding: Any = Forwarding()
        self.forwarding = forwarding
        self.series = Series()
        self.receiver = Receiver(env, 1 << 20, self.series, forwarding)

    def take(self, metrics: bytes = GOOD) -> Any:
        return self.receiver.take(Pushed(metrics, 0, SENDER, 1_000, False))


@pytest.fixture
def world() -> World:
    return World()


def test_one_after_the_other(world: World) -> None:
    told = [world.take() for _ in range(3)]
    assert len(world.background) == 1
    world.background.run_one()
    assert [each.is_resolved for each in told] == [True, False, False]
    world.background.run_all()
    assert [each.value for each in told] == [None] * 3
    assert (world.receiver.taken, len(world.forwarding.given)) == (3, 3)
    ((key, value),) = finish(world.series.taken_down(0))
    assert (key[0], value) == ("org_apache_kafka_a", 1)


def test_what_cannot_be_read_keeps_nobody_waiting(world: World) -> None:
    bad, good = world.take(b"\xff"), world.take()
    world.background.run_all()
    assert isinstance(bad.value, Unreadable)
    assert good.value is None
    assert (world.receiver.taken, world.receiver.unreadable) == (1, 1)


def test_a_mistake_of_ours_is_heard_of_and_ends_the_wait(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = world.take()

    def fail(*_: Any) -> None:
        raise ValueError("mistake")

    monkeypatch.setattr(world.series, "take", fail)
    world.background.run_all()
    with pytest.raises(ValueError, match="mistake"):
        told.value  # noqa: B018 - raises
    world.take()
    assert len(world.background) == 1


def test_nobody_waits_after_a_stop(world: World) -> None:
    told = [world.take() for _ in range(3)]
    world.receiver.stop()
    assert [each.value for each in told] == [None] * 3
    world.background.run_all()
    assert world.take().is_resolved
    assert (world.receiver.taken, world.forwarding.is_over) == (0, True)


def large() -> bytes:
    push = Push()
    for number in range(1_500):
        push.gauge(f"org.apache.kafka.a{number}", 1)
    return push.data


def test_what_is_large_is_kept_between_everything_else(world: World) -> None:
    told, other = world.take(large()), world.take()
    world.background.run_one()
    assert 0 < len(world.series) < 1_000
    assert not told.is_resolved
    world.clock.advance(0)
    assert told.value is None
    assert len(world.series) == 1_000
    world.background.run_all()
    assert other.value is None


def test_nobody_waits_after_a_stop_in_the_middle_of_what_is_large(world: World) -> None:
    told = world.take(large())
    world.background.run_one()
    world.receiver.stop()
    assert told.value is None
    world.clock.advance(0)
    assert len(world.env.slices) == 0
