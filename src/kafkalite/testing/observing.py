"""Who looks on at what clients and a test's own broker say to each other.

Owns the last of it, bounded by its bytes, when it is to be kept. Invariant: who looks on never
changes what is said, and never fails the broker.
"""

from __future__ import annotations

import logging
import threading
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
        self._guard = threading.RLock()  # for what is kept and who watches, on any thread
        self._watching: dict[object, Observer] = {}
        self.is_kept = False
        self._kept: dict[int, tuple[Exchange, int]] = {}  # by number, with the bytes counted
        self._kept_bytes = 0
        self._numbers: dict[int, tuple[ConnectionInfo, int]] = {}
        self._count = self._asked = 0

    def __bool__(self) -> bool:
        return self.is_kept or bool(self._watching)

    def add(self, observer: Observer) -> Callable[[], None]:
        """Has everything told to somebody, on the broker's thread; returns what ends that."""
        key = object()  # the same observer may be there twice
        with self._guard:
            self._watching[key] = observer
        return lambda: self._forget(key)

    def _forget(self, key: object) -> None:
        with self._guard:
            self._watching.pop(key, None)

    @property
    def exchanges(self) -> list[Exchange]:
        """What is kept, in the order in which it was asked."""
        with self._guard:
            return [exchange for exchange, _ in self._kept.values()]

    def clear(self) -> None:
        with self._guard:
            self._kept.clear()
            self._kept_bytes = 0

    # --- on the loop ------------------------------------------------------------------------------

    def asked(self, info: ConnectionInfo, frame: memoryview, now_ms: int) -> tuple[int, Exchange]:
        """The exchange that begins, and its number."""
        from kafkalite.testing.exchange import Exchange  # a test that does not look needs it not

        self._asked += 1
        exchange = Exchange(self._asked, self._number(info), info, bytes(frame), now_ms)
        if self.is_kept:
            with self._guard:
                self._kept[self._asked] = exchange, 0
                self._count_bytes(self._asked, exchange)
        return self._asked, exchange

    def answered(self, number: int, exchange: Exchange, reply: Reply, now_ms: int) -> None:
        exchange.replied(reply, now_ms)
        with self._guard:
            self._count_bytes(number, exchange)
            watching = list(self._watching.values())
        for observer in watching:
            try:
                observer(exchange)
            # What pytest.fail() raises is no Exception; no thread but a test's own may end by it.
            except BaseException:  # noqa: BLE001 - it is the test's own mistake
                _LOG.exception("an observer of the broker failed")

    def _count_bytes(self, number: int, exchange: Exchange) -> None:
        """Of one that is kept still; what is too much goes, the oldest first. One that is too much
        by itself stays as far as its header goes."""
        if number not in self._kept:
            return
        if exchange.weight > KEPT_BYTES:
            exchange = exchange.shortened()
        self._kept_bytes += exchange.weight - self._kept[number][1]
        self._kept[number] = exchange, exchange.weight
        while self._kept_bytes > KEPT_BYTES:
            self._kept_bytes -= self._kept.pop(next(iter(self._kept)))[1]

    def _number(self, info: ConnectionInfo) -> int:
        known = self._numbers.get(id(info))
        if known is not None and known[0] is info:
            return known[1]
        for key in [key for key, (each, _) in self._numbers.items() if each.has_ended]:
            del self._numbers[key]
        self._count += 1
        self._numbers[id(info)] = (info, self._count)
        return self._count
