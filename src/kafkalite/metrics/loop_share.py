"""How much of the last minute a loop's thread computed, and how fast what rises has risen.

Owns the looks of that minute, which it takes of itself every few seconds.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass

from kafkalite.broker.broker import Broker
from kafkalite.env.clock import Timer

EVERY_MS, LOOKS = 5_000, 13


@dataclass(slots=True)
class Look:
    """What was so at one moment."""

    at_ms: int
    computed_ns: int
    records: int  # of the metadata
    opened: Counter[str]  # connections, by listener
    closed: Counter[str]


class Lately:
    """Of one broker, on whose loop it is begun and ended."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._looks: deque[Look] = deque(maxlen=LOOKS)
        self._timer: Timer | None = None

    def start(self) -> None:
        self._looks.append(self._look())
        self._timer = self._broker.env.clock.call_later(EVERY_MS, self.start)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> Look:
        clock, server = self._broker.env.clock, self._broker.server
        return Look(
            clock.monotonic_ms(), clock.processor_ns(), self._broker.metadata.offset,
            server.opened.copy(), server.closed.copy(),
        )  # fmt: skip

    def _since(self) -> tuple[Look, Look, float]:
        """The first look, what is so now, and how many seconds lie between."""
        first, now = self._looks[0], self._look()
        return first, now, max(now.at_ms - first.at_ms, 1) / 1000

    def idle_share(self) -> float:
        first, now, seconds = self._since()
        return min(max(1 - (now.computed_ns - first.computed_ns) / 1e9 / seconds, 0.0), 1.0)

    def record_rate(self) -> float:
        first, now, seconds = self._since()
        return (now.records - first.records) / seconds

    def connection_rates(self, listener: str) -> tuple[float, float]:
        """Of those that came, and of those that ended."""
        first, now, seconds = self._since()
        return (
            (now.opened[listener] - first.opened[listener]) / seconds,
            (now.closed[listener] - first.closed[listener]) / seconds,
        )
