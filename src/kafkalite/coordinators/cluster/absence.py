"""A controller that is away while brokers of its cluster go on.

Owns how long somebody waits for it: as Apache Kafka's brokers, which ask the controller for their
clients, wait for one. Whatever it decides waits in its line meanwhile.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from kafkalite.coordinators.cluster.line import Answer, Line
from kafkalite.env.clock import Clock, Timer
from kafkalite.protocol.errors import Error, KafkaError

PATIENCE_MS = 60_000
AWAY = "the controller is stopped"


class Absence:
    """Between `begin` and `end`; who waits goes on with `resume`, when its broker is there, too."""

    def __init__(self, clock: Clock, line: Line[Any]) -> None:
        self._clock, self._line = clock, line
        self._timers: list[Timer] = []
        self.is_now = False

    def begin(self) -> None:
        """The controller goes."""
        self._line.pause()
        self.is_now = True
        for answer in self._line.waiting:
            self.limit(answer)

    def end(self) -> None:
        """The controller is back, and decides what cannot wait."""
        self.is_now = False

    def resume(self) -> None:
        """Has everything done that waits."""
        self._cancel()
        self._line.resume()

    def abandon(self) -> None:
        """It does not come back."""
        self._cancel()

    def limit(self, answer: Answer) -> None:
        """Who asks now is told after a while, unless the controller is back."""
        if self.is_now:
            expired = partial(self._line.refuse, [answer], KafkaError(Error.REQUEST_TIMED_OUT))
            self._timers.append(self._clock.call_later(PATIENCE_MS, expired))

    def check(self) -> None:
        """KafkaError for what cannot wait."""
        if self.is_now:
            raise KafkaError(Error.NOT_CONTROLLER, AWAY)

    def _cancel(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
