"""The numbers that clients pushed last, for as long as they push.

Owns them by client instance, and their bounds. What clients tell as added since the push before is
summed up, as Prometheus wants it. Invariants: no more than `MOST_SERIES` are kept, and of one
client `MOST_OF_ONE`; a client that has been silent for three of its intervals is forgotten, and one
that said it is about to go after `LEAST_KEPT_MS`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from kafkalite.env.dataclasses import dataclass, field
from kafkalite.env.slicing import Steps
from kafkalite.telemetry.payload import Key, Payload, Point

MOST_SERIES = 20_000
MOST_OF_ONE = 1_000
INTERVALS = 3
LEAST_KEPT_MS = 60_000  # some scrapes
POINTS_PER_STEP = 64  # each with its labels, dozens of them


@dataclass(slots=True)
class _OfClient:
    until_ms: int
    values: dict[Key, float] = field(default_factory=dict)


class Series:
    """Of all clients of one broker."""

    def __init__(self, most: int = MOST_SERIES) -> None:
        self._most = most
        self._clients: dict[str, _OfClient] = {}
        self._count = 0
        self.left_out = 0

    def __len__(self) -> int:
        return self._count

    def take(
        self, instance_id: str, payload: Payload, interval_ms: int, is_last: bool, now_ms: int
    ) -> Steps[None]:
        """Some points in each step, which are in the payload no more."""
        if self._count >= self._most:
            self.forget_silent(now_ms)
        self.left_out += payload.left_out
        kept_ms = LEAST_KEPT_MS if is_last else max(LEAST_KEPT_MS, INTERVALS * interval_ms)
        client = self._clients.get(instance_id)
        if client is None and payload.points:
            client = self._clients[instance_id] = _OfClient(0)
        if client is None:
            return
        client.until_ms = now_ms + kept_ms
        points = payload.points
        points.reverse()
        while points:
            for each in (points.pop() for _ in range(min(len(points), POINTS_PER_STEP))):
                self._put(client.values, each)
            yield

    def _put(self, values: dict[Key, float], point: Point) -> None:
        before = values.get(point.key)
        if before is None:
            if len(values) >= MOST_OF_ONE or self._count >= self._most:
                self.left_out += 1
                return
            self._count += 1
        values[point.key] = point.value + (before or 0.0) if point.is_delta else point.value

    def forget_silent(self, now_ms: int) -> None:
        gone = [id_ for id_, each in self._clients.items() if each.until_ms <= now_ms]
        for id_ in gone:
            self._count -= len(self._clients.pop(id_).values)

    def taken_down(self, now_ms: int) -> Steps[list[tuple[Key, float]]]:
        """All of them, of some clients in each step."""
        self.forget_silent(now_ms)
        found: list[tuple[Key, float]] = []
        clients = iter(list(self._clients.values()))
        while some := list(islice(clients, 8)):
            found.extend(_values(some))
            yield
        return found


def _values(clients: Iterable[_OfClient]) -> Iterable[tuple[Key, float]]:
    for each in clients:
        yield from each.values.items()
