"""What holds for every unit test: a broker that was stopped keeps nobody waiting, and none that ran
held its loop up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from kafkalite.broker import Broker
from kafkalite.env.later import Later, open_waits, watch_waits
from kafkalite.env.turns import LongTurn, watch

# Of the loop's own computing, which a busy machine does not make more.
LONGEST_TURN_CPU_MS = 200
# What is done once in a process, or once on a machine: importing, and generating code.
ONCE = ("<module>", "importlib", "kafkalite.protocol.compiler", "kafkalite.protocol.layout")


class Waits:
    """Which waits were open when the last of a test's brokers had stopped."""

    def __init__(self) -> None:
        self.left: Counter[str] = Counter()
        self._running: set[Broker] = set()

    def started(self, broker: Broker) -> None:
        self._running.add(broker)

    def stopped(self, broker: Broker) -> None:
        self._running.discard(broker)
        if not self._running:
            self.left |= open_waits()


@pytest.fixture(autouse=True)
def every_wait_ends_with_the_broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Names each kind of wait that a broker's stop left open, by where it was made."""
    waits, start, stop = Waits(), Broker.start, Broker.stop

    def noted_start(broker: Broker) -> Later[Exception | None]:
        waits.started(broker)
        return start(broker)

    def noted_stop(broker: Broker, grace_ms: int = 500) -> Later[None]:
        is_first = broker._stopped is None
        stopped = stop(broker, grace_ms)
        if is_first:
            stopped.then(lambda _: waits.stopped(broker))
        return stopped

    monkeypatch.setattr(Broker, "start", noted_start)
    monkeypatch.setattr(Broker, "stop", noted_stop)
    watch_waits()
    yield
    watch_waits(False)
    assert not waits.left, f"still waited for after the broker stopped: {dict(waits.left)}"


@pytest.fixture(autouse=True)
def every_turn_is_short(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[LongTurn]]:
    """Names whoever held a loop up on which a broker ran."""
    noticed: list[LongTurn] = []
    monkeypatch.setattr(watch, "listeners", [noticed.append])
    yield noticed
    long = [str(turn) for turn in noticed if is_too_long(turn)]
    assert not long, f"held the loop up: {long}"


def is_too_long(turn: LongTurn) -> bool:
    is_once = any(name in place for place in turn.places for name in ONCE)
    return turn.cpu_ms > LONGEST_TURN_CPU_MS and not is_once
