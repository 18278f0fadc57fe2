"""How many partitions a client may have come and go, of a bucket that fills with time (KIP-599).

Owns the two ways of it: a strict one takes nothing while something is owed, and a lenient one, for
clients that do not know of this, lets them go into debt and wait for it.
"""

from __future__ import annotations

from kafkalite.config.broker import BrokerConfig
from kafkalite.env.clock import Clock
from kafkalite.quotas.gauges import Gauges
from kafkalite.quotas.rates import TokenBucket, Window

Mutations = Gauges[TokenBucket]


def mutations(config: BrokerConfig, clock: Clock) -> Mutations:
    """Of all clients of one controller."""
    seconds = config.get_int("controller.quota.window.size.seconds")
    window = Window(config.get_int("controller.quota.window.num"), seconds * 1000)
    return Gauges(TokenBucket, window, clock)


class Permits:
    """One request's."""

    __slots__ = ("_bucket", "_clock", "_is_strict", "_owed_ms", "_seen_ms")

    def __init__(self, bucket: TokenBucket, clock: Clock, *, is_strict: bool) -> None:
        self._bucket = bucket
        self._clock = clock
        self._is_strict = is_strict
        self._owed_ms = self._seen_ms = 0

    def take(self, partitions: int) -> bool:
        """Whether so many may come, or go."""
        now_ms, bucket = self._clock.monotonic_ms(), self._bucket
        may = not (self._is_strict and bucket.tokens(now_ms) < 0)
        if may:
            bucket.record(now_ms, partitions)
        if not (may and self._is_strict) and bucket.tokens(now_ms) < 0:
            self._owed_ms, self._seen_ms = bucket.wait_ms(now_ms), now_ms
        return may

    def wait_ms(self) -> int:
        """How long the client has to wait now for what it took, or was refused."""
        return max(0, self._owed_ms - (self._clock.monotonic_ms() - self._seen_ms))
