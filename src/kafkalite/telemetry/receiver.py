"""Who takes what clients push: one push after the other, by a worker.

Owns who waits for the worker. A push is answered when it has been read, so whoever pushes what
cannot be read hears of it; also where it is only taken out of its compression, because nobody wants
it.
"""

from __future__ import annotations

from collections import deque
from functools import partial

from kafkalite.env import Env
from kafkalite.env.dataclasses import dataclass
from kafkalite.env.later import Later
from kafkalite.env.slicing import Steps, caught
from kafkalite.telemetry.forwarding import Forwarding
from kafkalite.telemetry.payload import Payload, Sender, Unreadable, read
from kafkalite.telemetry.series import Series


@dataclass(slots=True, frozen=True)
class Pushed:
    """What came, and of whom."""

    metrics: bytes
    compression: int
    sender: Sender
    interval_ms: int
    is_last: bool


class Receiver:
    """Of one broker."""

    def __init__(
        self, env: Env, most_bytes: int, series: Series | None, forwarding: Forwarding | None
    ) -> None:
        """series: where they are told from; forwarding: where they go on. most_bytes: of a push out
        of its compression."""
        self._env, self._most_bytes = env, most_bytes
        self.series, self.forwarding = series, forwarding
        self._waiting: deque[tuple[Pushed, Later[Unreadable | None]]] = deque()
        self._reading: Later[Unreadable | None] | None = None
        self._is_over = False
        self.taken = self.unreadable = 0

    @property
    def wants_metrics(self) -> bool:
        return self.series is not None or self.forwarding is not None

    def take(self, pushed: Pushed) -> Later[Unreadable | None]:
        if self._is_over:
            return Later.of(None)
        told: Later[Unreadable | None] = Later()
        self._waiting.append((pushed, told))
        self._go_on()
        return told

    def stop(self) -> None:
        """Nobody waits any more."""
        self._is_over = True
        waiting = [told for _, told in self._waiting]
        self._waiting.clear()
        if self._reading is not None:
            waiting.insert(0, self._reading)
            self._reading = None
        for told in waiting:
            told.resolve(None)
        if self.forwarding is not None:
            self.forwarding.stop()

    def _go_on(self) -> None:
        if not self._waiting or self._reading is not None:
            return
        pushed, self._reading = self._waiting.popleft()
        job = partial(
            read, pushed.metrics, pushed.compression, self._most_bytes, pushed.sender,
            is_told=self.series is not None, is_forwarded=self.forwarding is not None,
        )  # fmt: skip
        self._env.background.submit(job, partial(self._read, pushed))

    def _read(self, pushed: Pushed, outcome: Payload | BaseException) -> None:
        if self._reading is not None:  # it was not stopped meanwhile
            self._env.slices.run(caught(self._taken(pushed, outcome)), self._over)

    def _over(self, outcome: Exception | None) -> None:
        """Who waits is told, also of a mistake of ours."""
        told, self._reading = self._reading, None
        if told is None:
            return  # it was stopped meanwhile
        try:
            if outcome is None or isinstance(outcome, Unreadable):
                told.resolve(outcome)
            else:
                told.fail(outcome)
        finally:
            self._go_on()

    def _taken(
        self, pushed: Pushed, outcome: Payload | BaseException
    ) -> Steps[Unreadable | None]:
        if isinstance(outcome, Unreadable):
            self.unreadable += 1
            return outcome
        if isinstance(outcome, BaseException):
            raise outcome
        self.taken += 1
        if self.series is not None:
            now_ms = self._env.clock.monotonic_ms()
            yield from self.series.take(
                pushed.sender.instance_id, outcome, pushed.interval_ms, pushed.is_last, now_ms
            )
        if self.forwarding is not None and outcome.forwarded:
            self.forwarding.send(outcome.forwarded)
        return None
