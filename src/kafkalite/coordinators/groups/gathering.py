"""How a new group waits for members that start in the same moment.

Owns who has asked where a group's coordinator is, which every client does just before it joins:
whoever asked and has not come is on the way. Invariant: no more is remembered than was asked in
the last half second.
"""

from __future__ import annotations

from collections.abc import Hashable

from kafkalite.env.dataclasses import dataclass, field

RECENT_MS = 500


@dataclass(slots=True, frozen=True)
class Gathering:
    """How long a new group waits.

    For whoever is known to be on the way, to the longest; otherwise until nobody has come for a
    while, which a lone consumer hardly notices. Clients of one test or deployment (kafka-python,
    aiokafka, Java) come within some milliseconds; librdkafka looks every 50 ms whether it should.
    """

    quiet_ms: int = 60
    longest_ms: int = 220

    def delay_ms(self, come: int, known: int, left_ms: int) -> int:
        """How long to wait for the next one, of as many as are known to come."""
        quiet_ms = self.longest_ms if known > come else self.quiet_ms
        return max(min(quiet_ms, left_ms), 0)


@dataclass(slots=True)
class LookUps:
    """Who asked for which group's coordinator, and when."""

    _asked: dict[str, dict[Hashable, int]] = field(default_factory=dict)  # oldest group first

    def note(self, group_id: str, client: Hashable, now_ms: int) -> None:
        clients = self._asked.pop(group_id, {})
        clients.pop(client, None)
        clients[client] = now_ms
        while clients[oldest := next(iter(clients))] <= now_ms - RECENT_MS:
            del clients[oldest]
        self._asked[group_id] = clients
        self._forget_old(now_ms - RECENT_MS)

    def _forget_old(self, until_ms: int) -> None:
        while self._asked:
            group_id, clients = next(iter(self._asked.items()))
            if clients[next(reversed(clients))] > until_ms:
                break
            del self._asked[group_id]

    def clients(self, group_id: str, now_ms: int) -> int:
        """How many have asked of late."""
        asked = self._asked.get(group_id, {})
        return sum(now_ms - RECENT_MS < at_ms <= now_ms for at_ms in asked.values())

    def forget(self, group_id: str) -> None:
        """They have come, or will come too late."""
        self._asked.pop(group_id, None)
