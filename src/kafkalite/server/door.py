"""The way in through one listener: who has to wait before it, and who is turned away.

Owns the connections that have come and are not let in yet. While one waits the port takes no other:
those wait where the system keeps them, in turn, and nobody at another listener does. Invariant: a
connection is let in, or ended, exactly once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from kafkalite.env.clock import Clock, Timer
from kafkalite.env.network import Link, Port
from kafkalite.server.limits import LimitedLog
from kafkalite.server.quotas import ConnectionQuotas

# How often a full listener looks whether a setting has changed; who leaves is heard of at once.
LOOK_MS = 250


class Door:
    """One listener's."""

    port: Port

    def __init__(
        self,
        name: str,
        quotas: ConnectionQuotas,
        clock: Clock,
        log: LimitedLog,
        let_in: Callable[[str, Link], None],
    ) -> None:
        self._name = name
        self._quotas = quotas
        self._clock = clock
        self._log = log
        self._let_in = let_in
        self._waiting: deque[Link] = deque()  # more than one only if the port had them at hand
        self._open_ms = 0  # when the first of them may come in
        self._timer: Timer | None = None
        self._is_looking = self._is_shut = False
        self._kept: dict[Link, Timer] = {}  # turned away, and told so later

    def arrived(self, link: Link) -> None:
        """Somebody has connected."""
        self._waiting.append(link)
        if len(self._waiting) == 1:
            self._rate_first()
            self.look_again()

    def _rate_first(self) -> None:
        wait_ms = self._quotas.arrived(self._name)
        self._open_ms = self._clock.monotonic_ms() + wait_ms
        if wait_ms:
            self._warn("max.connection.creation.rate", "so many new ones come in a second")

    def look_again(self) -> None:
        """Lets in who may come in now, and takes no others while somebody waits."""
        if self._is_looking or not self._waiting:
            return
        self._is_looking = True
        while self._waiting and self._may_enter():
            self._enter(self._waiting.popleft())
            if self._waiting:
                self._rate_first()
        self._is_looking = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._is_shut = bool(self._waiting)
        if self._is_shut:
            self.port.pause()
            wait_ms = self._open_ms - self._clock.monotonic_ms()
            self._timer = self._clock.call_later(
                wait_ms if 0 < wait_ms < LOOK_MS else LOOK_MS, self._look_later
            )
        else:
            self.port.resume()

    def _look_later(self) -> None:
        self._timer = None
        self.look_again()

    def _may_enter(self) -> bool:
        if self._clock.monotonic_ms() < self._open_ms:
            return False
        limit = self._quotas.full_by(self._name)
        if limit is not None:
            self._warn(limit, "as many are open")
        return limit is None

    def _warn(self, limit: str, why: str) -> None:
        """Once until somebody comes in."""
        if self._is_shut:
            return
        self._log.warn(
            limit,
            f"new connections to listener {self._name} wait, since {why} as {limit} allows. Raise "
            "it, or lower connections.max.idle.ms, or have fewer clients connect",
        )

    def _enter(self, link: Link) -> None:
        host = link.peer_address[0]
        refusal = self._quotas.enter(self._name, host)
        if refusal is None:
            self._let_in(self._name, link)
            return
        self._log.warn(
            refusal.limit, f"a connection from {host} was refused by {refusal.limit}"
        )
        if not refusal.delay_ms:
            link.abort()
            return

        def end() -> None:
            del self._kept[link]
            link.abort()

        self._kept[link] = self._clock.call_later(refusal.delay_ms, end)

    def close(self) -> None:
        """Nobody comes in any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, deque()
        kept, self._kept = self._kept, {}
        for timer in kept.values():
            timer.cancel()
        for link in (*waiting, *kept):
            link.abort()
