"""How fast something comes, reckoned as Apache Kafka does: in samples of time, or from a bucket.

Owns that arithmetic and nothing else; every moment is the caller's, in milliseconds of a clock that
never goes back. Invariant: what is idle may be forgotten as in Apache Kafka: one that was just made
would say the same.
"""

from __future__ import annotations

import math
from typing import Protocol

from kafkalite.env.dataclasses import dataclass

LONGEST_MS = 2**31 - 1  # that a reply can tell
NO_LIMIT = float(2**63 - 1)
# A bucket is filled when it is looked at, at the limit of that moment: it is kept though it would
# be full by now.
FORGOTTEN_MS = 3_600_000
MEAN_SAMPLE_MS = 30_000


@dataclass(slots=True, frozen=True)
class Window:
    """How many samples are looked back on, and how long each is."""

    samples: int
    sample_ms: int

    @property
    def duration_ms(self) -> int:
        return self.samples * self.sample_ms


class Gauge(Protocol):
    """What somebody had lately, against a limit per second."""

    limit: float

    def record(self, now_ms: int, amount: float) -> None: ...

    def wait_ms(self, now_ms: int) -> int:
        """How long nothing may come until it is within the limit again."""
        ...

    def is_idle(self, now_ms: int) -> bool:
        """Whether nothing of what came counts any more."""
        ...


class Rate:
    """A sum per second, over samples that begin when something comes. One more is kept than is
    looked back on, for that which lies half within the window."""

    __slots__ = ("_current", "_samples", "_window", "limit")

    def __init__(self, window: Window) -> None:
        self.limit = NO_LIMIT
        self._window = window
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, now_ms: int, amount: float) -> None:
        """Something came; a negative amount takes it back."""
        sample = self._samples[self._current] if self._samples else self._next(0, now_ms)
        if now_ms - sample.began_ms >= self._window.sample_ms:
            sample = self._next((self._current + 1) % (self._window.samples + 1), now_ms)
        sample.amount += amount
        sample.last_ms = now_ms

    def _next(self, number: int, now_ms: int) -> _Sample:
        self._current = number
        if number == len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[number].empty(now_ms)
        return self._samples[number]

    def wait_ms(self, now_ms: int) -> int:
        value, span_ms = self._measured(now_ms)
        if not value > self.limit:
            return 0
        return rounded((value - self.limit) / self.limit * span_ms) if self.limit else LONGEST_MS

    def value(self, now_ms: int) -> float:
        """In a second, lately."""
        return self._measured(now_ms)[0]

    def _measured(self, now_ms: int) -> tuple[float, int]:
        """The rate, and the time that it is of: what has passed since the oldest sample, and at
        least all samples but one, so that a first burst is not taken for a habit."""
        oldest_ms, total = now_ms, 0.0
        for sample in self._samples:
            if now_ms - sample.last_ms >= self._window.duration_ms:
                sample.empty(now_ms)
            oldest_ms = min(oldest_ms, sample.began_ms)
            total += sample.amount
        span_ms = self._span_ms(now_ms - oldest_ms)
        return total / (span_ms / 1000), span_ms

    def _span_ms(self, passed_ms: int) -> int:
        missing = self._window.samples - 1 - passed_ms // self._window.sample_ms
        return max(passed_ms + max(missing, 0) * self._window.sample_ms, 1)

    def is_idle(self, now_ms: int) -> bool:
        last_ms = self._samples[self._current].last_ms if self._samples else now_ms
        return now_ms - last_ms >= self._window.duration_ms


class SimpleRate(Rate):
    """One that takes a first burst for a habit: it is of what has passed, and at least a sample."""

    __slots__ = ()

    def _span_ms(self, passed_ms: int) -> int:
        return max(passed_ms, self._window.sample_ms)


class _Sample:
    """What came in a part of the window."""

    __slots__ = ("amount", "began_ms", "last_ms")

    def __init__(self, now_ms: int) -> None:
        self.empty(now_ms)

    def empty(self, now_ms: int) -> None:
        self.amount = 0.0
        self.began_ms = self.last_ms = now_ms


class Mean:
    """Of what came lately: of this half minute and the one before, as Apache Kafka tells it."""

    __slots__ = ("_before", "_now")

    def __init__(self, now_ms: int) -> None:
        self._before = self._now = (now_ms, 0.0, 0)  # since when, the sum, how many

    def record(self, now_ms: int, value: float) -> None:
        if now_ms - self._now[0] >= MEAN_SAMPLE_MS:
            self._before, self._now = self._now, (now_ms, 0.0, 0)
        since_ms, total, count = self._now
        self._now = since_ms, total + value, count + 1

    def value(self, now_ms: int) -> float | None:
        """None where nothing came lately."""
        lately = [each for each in {self._before, self._now}
                  if now_ms - each[0] < 2 * MEAN_SAMPLE_MS]  # fmt: skip
        count = sum(each[2] for each in lately)
        return sum(each[1] for each in lately) / count if count else None


class TokenBucket:
    """Fills at the limit up to what a whole window allows; what is taken may leave it in debt."""

    __slots__ = ("_at_ms", "_tokens", "_window", "limit")

    def __init__(self, window: Window) -> None:
        self.limit = NO_LIMIT
        self._window = window
        self._tokens = math.inf
        self._at_ms = 0

    def record(self, now_ms: int, amount: float) -> None:
        self._tokens = min(self._burst, self.tokens(now_ms) - amount)

    def wait_ms(self, now_ms: int) -> int:
        """How long until nothing is owed."""
        tokens = self.tokens(now_ms)
        return rounded(-tokens / self.limit * 1000) if tokens < 0 else 0

    def is_idle(self, now_ms: int) -> bool:
        return now_ms - self._at_ms >= FORGOTTEN_MS

    def tokens(self, now_ms: int) -> float:
        tokens = self._tokens + self.limit * ((now_ms - self._at_ms) / 1000)
        self._tokens, self._at_ms = min(self._burst, tokens), now_ms
        return self._tokens

    @property
    def _burst(self) -> float:
        return self._window.samples * (self._window.sample_ms / 1000) * self.limit


def rounded(milliseconds: float) -> int:
    """To the nearest, as Java does; no longer than can be told."""
    return min(math.floor(min(milliseconds, LONGEST_MS) + 0.5), LONGEST_MS)
