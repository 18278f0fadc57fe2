"""What each client had of one thing lately, against the limit that holds for it.

Owns the memory of it: a client that is idle is forgotten, since nothing would be different if it
were not, and of very many the one that came least lately.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from typing import Generic, TypeVar

from kafkalite.env.clock import Clock
from kafkalite.quotas.limits import Key, Limits
from kafkalite.quotas.rates import NO_LIMIT, Gauge, Mean, Window

MOST_CLIENTS = 16_384
FORGOTTEN_AT_ONCE = 2  # of those that are idle, when another one comes

G = TypeVar("G", bound=Gauge)


class Gauges(Generic[G]):
    """Those of one kind. Who has no limit is counted while anybody has one, as in Apache Kafka: a
    limit that comes holds for what was had before it, too."""

    def __init__(self, make: Callable[[Window], G], window: Window, clock: Clock) -> None:
        self.limits = Limits()
        self.window = window
        self.clock = clock
        self._make = make
        self._gauges: OrderedDict[Key, G] = OrderedDict()
        self._waits: dict[Key, Mean] = {}  # of those that had to

    def __len__(self) -> int:
        return len(self._gauges)

    def items(self) -> list[tuple[Key, G]]:
        """Each client's, or that which it shares with others."""
        return list(self._gauges.items())

    @property
    def is_on(self) -> bool:
        """Whether anybody is limited."""
        return len(self.limits) > 0

    def find(self, user: str, client_id: str) -> G:
        """A client's, which it may share with others."""
        key = self.limits.key(user, client_id)
        gauge = self._gauges.get(key)
        if gauge is None:
            self._forget()
            gauge = self._gauges[key] = self._make(self.window)
        else:
            self._gauges.move_to_end(key)
        limit = self.limits.of(key)
        gauge.limit = NO_LIMIT if limit is None else limit
        return gauge

    def _forget(self) -> None:
        now_ms = self.clock.monotonic_ms()
        for key in list(islice(self._gauges, FORGOTTEN_AT_ONCE)):
            if len(self._gauges) >= MOST_CLIENTS or self._gauges[key].is_idle(now_ms):
                del self._gauges[key]
                self._waits.pop(key, None)

    def record(self, user: str, client_id: str, amount: float) -> None:
        """What counts for the next request."""
        if self.is_on:
            self.find(user, client_id).record(self.clock.monotonic_ms(), amount)

    def take(self, user: str, client_id: str, amount: float) -> int:
        """Counts it, and says how long its client has to wait for that."""
        if not self.is_on:
            return 0
        now_ms, gauge = self.clock.monotonic_ms(), self.find(user, client_id)
        gauge.record(now_ms, amount)
        wait_ms = gauge.wait_ms(now_ms)
        if wait_ms:
            self.waited(user, client_id, wait_ms)
        return wait_ms

    def waited(self, user: str, client_id: str, wait_ms: int) -> None:
        """A client that is known has to, for so long."""
        key, now_ms = self.limits.key(user, client_id), self.clock.monotonic_ms()
        if key in self._gauges:
            self._waits.setdefault(key, Mean(now_ms)).record(now_ms, wait_ms)

    def waits(self) -> list[tuple[Key, float]]:
        """For how long each had to lately, in the mean."""
        now_ms = self.clock.monotonic_ms()
        found = ((key, mean.value(now_ms)) for key, mean in self._waits.items())
        return [(key, value) for key, value in found if value is not None]
