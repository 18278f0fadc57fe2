"""Who looks on at what clients and a test's own broker say to each other.

Owns the last of it, bounded by its bytes, when it is to be kept. Invariant: who looks on never
changes what is said, and never fails the broker.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkalite.server.connection_info import ConnectionInfo
    from kafkalite.testing.exchange import Exchange, Reply

_LOG = logging.getLogger(__name__)
KEPT_BYTES = 16 * 1024 * 1024

Observer = Callable[["Exchange"], Any]


class Observers:
    """Who looks on, and the last of what was said when it is kept."""

    def __init__(self) -> None:
        self._watching: tuple[Observer, ...] = ()  # replaced, never changed
        self.is_kept = False
        self._kept: deque[Exchange] = deque()
        self._kept_bytes = 0
        self._numbers: dict[int, tuple[ConnectionInfo, int]] = {}
        self._count = self._asked = 0

    def __bool__(self) -> bool:
        return self.is_kept or bool(self._watching)

    def add(self, observer: Observer) -> Callable[[], None]:
        """Has everything told to somebody, on the broker's thread; returns what ends that."""
        self._watching += (observer,)
        return lambda: self._forget(observer)

    def _forget(self, observer: Observer) -> None:
        self._watching = tuple(each for each in self._watching if each is not observer)

    @property
    def exchanges(self) -> list[Exchange]:
        """What is kept, in the order in which it was asked."""
        return list(self._kept)

    def clear(self) -> None:
        self._kept.clear()
        self._kept_bytes = 0

    # --- on the loop ------------------------------------------------------------------------------

    def asked(self, info: ConnectionInfo, frame: memoryview, now_ms: int) -> Exchange:
        from kafkalite.testing.exchange import Exchange  # a test that does not look needs it not

        self._asked += 1
        exchange = Exchange(self._asked, self._number(info), info, bytes(frame), now_ms)
        if self.is_kept:
            self._kept.append(exchange)
            self._kept_bytes += exchange.size
        return exchange

    def answered(self, exchange: Exchange, reply: Reply, now_ms: int) -> None:
        before = exchange.size
        exchange.replied(reply, now_ms)
        if self.is_kept:
            self._kept_bytes += exchange.size - before
            while self._kept_bytes > KEPT_BYTES and self._kept:
                self._kept_bytes -= self._kept.popleft().size
        for observer in self._watching:
            try:
                observer(exchange)
            except Exception:  # noqa: BLE001 - it is the test's own mistake
                _LOG.exception("an observer of the broker failed")

    def _number(self, info: ConnectionInfo) -> int:
        known = self._numbers.get(id(info))
        if known is not None and known[0] is info:
            return known[1]
        for key in [key for key, (each, _) in self._numbers.items() if each.has_ended]:
            del self._numbers[key]
        self._count += 1
        self._numbers[id(info)] = (info, self._count)
        return self._count
