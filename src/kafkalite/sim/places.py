"""The places of a group's members in a world: who comes, dies, leaves, and who follows.

Owns their fates, and how a group ends: it is judged when everybody has had peace for long.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from kafkalite.sim.checker import Anomalies
from kafkalite.sim.client import Client
from kafkalite.sim.member import Gathering, Member
from kafkalite.sim.world import Stuck, World

SIZE = 3
BACK_MS = 400
M = TypeVar("M", bound=Member)
Anomaly = tuple[str, str]


@dataclass(slots=True)
class Place(Generic[M]):
    """Where one member follows another, of whichever kind."""

    number: int
    member: M
    client: Client
    incarnations: int = 1
    is_awaited: bool = False  # the one who follows


@dataclass(slots=True)
class Places(Generic[M]):
    """All members of one group."""

    world: World
    membership: Gathering
    places: list[Place[M]] = field(default_factory=list, kw_only=True)

    def make(self, number: int, incarnation: int, client: Client) -> M:
        raise NotImplementedError

    def check(self) -> Iterator[Anomaly]:
        """After long peace, while they still live."""
        raise NotImplementedError

    def settle(self, anomalies: Anomalies) -> None:
        """Judged while they live; then they leave."""
        try:
            self.world.run_until(lambda: not list(self.check()), "the group settles")
        except Stuck:
            for kind, what in self.check():
                anomalies.add(kind, what)
        self.membership.is_over = True
        self.world.run_until(
            lambda: not any(each.client.is_running for each in self.places), "every member leaves"
        )

    def come(self) -> None:
        for number in range(SIZE):
            client = self.world.client(may_be_late=False)
            place = Place(number, self.make(number, 1, client), client)
            self.places.append(place)
            client.start(place.member.script())

    def strike(self) -> None:
        """Somebody dies or leaves, and another follows some time later."""
        place = self.world.random.choice(self.places)
        if place.is_awaited:
            return
        place.is_awaited = True
        if self.world.random.random() < 0.5:
            place.client.kill()
            self.world.history.count("member kills")
        else:
            place.member.is_leaving = lambda: True
            self.world.history.count("members that left")
        delay_ms = self.world.random.randrange(BACK_MS)
        self.world.clock.call_later(delay_ms, lambda: self._follow(place))

    def _follow(self, place: Place[M]) -> None:
        place.incarnations += 1
        place.is_awaited = False
        place.client = self.world.client(may_be_late=False)
        place.member = self.make(place.number, place.incarnations, place.client)
        place.client.start(place.member.script())
