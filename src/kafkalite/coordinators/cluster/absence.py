"""A controller that is away while brokers of its cluster go on.

Owns how long somebody waits for it: as Apache Kafka's brokers, which ask the controller for their
clients, wait for one. Whatever it decides waits in its line meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from kafkalite.coordinators.cluster.line import Line
from kafkalite.coordinators.effects import Refused
from kafkalite.env.clock import Clock, Timer
from kafkalite.env.later import Later
from kafkalite.protocol.errors import Error, KafkaError

PATIENCE_MS = 60_000
AWAY = "the controller is stopped"

R = TypeVar("R")


class Absence:
    """Between `begin` and `end`; who waits goes on with `resume`, when its broker is there, too."""

    def __init__(self, clock: Clock, line: Line[Any]) -> None:
        self._clock, self._line = clock, line
        self._timers: list[Timer] = []
        self._afterwards: list[Callable[[], None]] = []
        self._asked: list[tuple[Callable[[], Any], Later[Any]]] = []
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
        afterwards, self._afterwards = self._afterwards, []
        asked, self._asked = self._asked, []
        for each in afterwards:
            each()
        for answer, later in asked:
            later.resolve(answer())
        self._line.resume()

    def abandon(self) -> None:
        """It does not come back."""
        self._cancel()
        self._afterwards.clear()
        for _, later in list(self._asked):
            self._refuse(later, Error.NOT_CONTROLLER)

    def limit(self, answer: Later[Any]) -> None:
        """Who asks now is told after a while, unless the controller is back."""
        if self.is_now:
            expired = partial(self._line.refuse, [answer], KafkaError(Error.REQUEST_TIMED_OUT))
            self._timers.append(self._clock.call_later(PATIENCE_MS, expired))

    def check(self) -> None:
        """KafkaError for what cannot wait."""
        if self.is_now:
            raise KafkaError(Error.NOT_CONTROLLER, AWAY)

    def answered(self, answer: Callable[[], R]) -> R | Later[R | Refused]:
        """What the controller itself is asked, and any broker of it could tell."""
        if not self.is_now:
            return answer()
        later: Later[R | Refused] = Later()
        self._asked.append((answer, later))
        expired = partial(self._refuse, later, Error.REQUEST_TIMED_OUT)
        self._timers.append(self._clock.call_later(PATIENCE_MS, expired))
        return later

    def _refuse(self, later: Later[Any], code: Error) -> None:
        self._asked = [each for each in self._asked if each[1] is not later]
        later.resolve(Refused(KafkaError(code)))

    def afterwards(self, what: Callable[[], None]) -> bool:
        """Has something done when the controller is back; False when it is there."""
        if self.is_now:
            self._afterwards.append(what)
        return self.is_now

    def _cancel(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
