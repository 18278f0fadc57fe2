"""What one request takes of its client's quotas: bytes, time and changes of topics.

Owns the sum, and when it runs: while the loop's thread is at work for the request, and not while
the request waits. Says in the end for how long its client has to be silent.
"""

from __future__ import annotations

from typing import TypeVar

from kafkalite.env.clock import Clock
from kafkalite.env.dataclasses import dataclass
from kafkalite.env.slicing import Steps
from kafkalite.quotas.gauges import Gauges
from kafkalite.quotas.limits import NOBODY
from kafkalite.quotas.permits import Mutations, Permits
from kafkalite.quotas.rates import NO_LIMIT, Rate

T = TypeVar("T")

PERCENT_PER_NS = 100 / 1_000_000_000


@dataclass(slots=True, frozen=True)
class Kinds:
    """What all clients had lately of each thing that may be limited."""

    clock: Clock
    produced: Gauges[Rate]
    fetched: Gauges[Rate]
    time: Gauges[Rate]
    mutations: Mutations

    @property
    def is_on(self) -> bool:
        kinds = self.produced, self.fetched, self.time, self.mutations
        return any(each.is_on for each in kinds)


class Meter:
    """Runs from the beginning. Who it is for is known once the request's header is read."""

    __slots__ = (
        "_client_id", "_is_settled", "_kinds", "_permits", "_since_ns", "_size", "_user", "_wait_ms"
    )  # fmt: skip

    def __init__(self, kinds: Kinds, principal: str, size: int) -> None:
        self._kinds = kinds
        self._size = size
        self._user = principal.partition(":")[2]
        self._client_id: str | None = None
        self._permits: Permits | None = None
        self._is_settled = False
        self._wait_ms = 0
        self._since_ns: int | None = None  # while it runs
        self.resume()

    def is_of(self, client_id: str | None) -> None:
        """A client without an id is one with an empty one."""
        self._client_id = client_id or NOBODY

    # --- time -------------------------------------------------------------------------------------

    def resume(self) -> bool:
        """Whether it ran already."""
        if self._since_ns is not None:
            return True
        if self._kinds.time.is_on:
            self._since_ns = self._kinds.clock.processor_ns()
        return False

    def pause(self) -> None:
        """What was spent counts, for the next request at the latest."""
        if self._client_id is not None and self._since_ns is not None:
            self._kinds.time.record(self._user, self._client_id, self._spent())
        self._since_ns = None

    def _spent(self) -> float:
        """Since this was last asked."""
        if self._since_ns is None:
            return 0.0
        since_ns, self._since_ns = self._since_ns, self._kinds.clock.processor_ns()
        return (self._since_ns - since_ns) * PERCENT_PER_NS

    def _take_time(self) -> int:
        """One sample's length is the longest that anybody waits for this."""
        time = self._kinds.time
        wait_ms = time.take(self._user, self._client_id or NOBODY, self._spent())
        return min(wait_ms, time.window.sample_ms)

    # --- what handlers ask ------------------------------------------------------------------------

    def most_fetched(self) -> float:
        """More than that at once is too much whatever was fetched before."""
        fetched = self._kinds.fetched
        if not fetched.is_on:
            return NO_LIMIT
        window = fetched.window
        limit = fetched.find(self._user, self._client_id or NOBODY).limit
        return limit * (window.samples - 1) * (window.sample_ms // 1000)

    def fetched(self, size: int) -> int:
        """A reply of so many bytes could go; who has to wait before that gets an empty one, and is
        not charged for it."""
        fetched, client_id = self._kinds.fetched, self._client_id or NOBODY
        self._wait_ms = max(self._take_time(), fetched.take(self._user, client_id, size))
        if self._wait_ms:
            fetched.record(self._user, client_id, -size)
        self._is_settled = True
        return self._wait_ms

    def permits(self, *, is_strict: bool, is_told: bool = True) -> Permits | None:
        """None when nobody's are limited. Who is not told does not wait for them."""
        mutations = self._kinds.mutations
        if not mutations.is_on:
            return None
        bucket = mutations.find(self._user, self._client_id or NOBODY)
        permits = Permits(bucket, mutations.clock, is_strict=is_strict)
        if is_told:
            self._permits = permits
        return permits

    # --- the end ----------------------------------------------------------------------------------

    def exempt(self) -> None:
        """What time it takes does not count."""
        self._client_id = None

    def settle(self, *, is_produce: bool, is_timed: bool) -> int:
        """For how long the client has to wait, with its reply in hand."""
        wait_ms, produced = self._wait_ms, self._kinds.produced
        if is_produce:
            wait_ms = produced.take(self._user, self._client_id or NOBODY, self._size)
        if is_timed and not self._is_settled:
            wait_ms = max(wait_ms, self._take_time())
        if not is_timed:
            self.exempt()
        return wait_ms if self._permits is None else max(wait_ms, self._permitted_in_ms())

    def _permitted_in_ms(self) -> int:
        wait_ms = 0 if self._permits is None else self._permits.wait_ms()
        if wait_ms:
            self._kinds.mutations.waited(self._user, self._client_id or NOBODY, wait_ms)
        return wait_ms


def metered(steps: Steps[T], meter: Meter) -> Steps[T]:
    """The same steps, in which the meter runs, and not between them."""
    while True:
        ran_already = meter.resume()
        try:
            next(steps)
        except StopIteration as end:
            value: T = end.value
            return value
        finally:
            if not ran_already:
                meter.pause()
        yield
