"""The assignor of share groups, `simple`: who may read from which partitions (KIP-932).

Owns its rule: each partition is given to as many members as it takes that everybody has one, and no
member to more than its part of that; who has one keeps it. Where members subscribe to the same
topics all partitions are shared out together, else topic by topic. Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from math import ceil

from kafkalite.coordinators.groups.assignors import Place, Rest
from kafkalite.coordinators.groups.consumer_group import Target
from kafkalite.env.slicing import Steps

NAME = "simple"


def assign_simple(
    subscribed: dict[str, frozenset[bytes]],
    former: dict[str, Target],
    assignable: dict[bytes, list[int]],
) -> Steps[dict[str, Target]]:
    """By member: topics that each subscribes to, and what it had; of topics, what can be given."""
    topic_ids = sorted({topic_id for ids in subscribed.values() for topic_id in ids})
    is_same = len(set(subscribed.values())) == 1
    given: dict[str, set[Place]] = {member_id: set() for member_id in subscribed}
    for some in [topic_ids] if is_same else [[topic_id] for topic_id in topic_ids]:
        members = [name for name in sorted(subscribed) if subscribed[name].issuperset(some)]
        places = [(each, index) for each in some for index in assignable.get(each, ())]
        board = _Board(members, places)
        yield from board.keep(former)
        yield from board.place_rest()
        for name, held in board.held.items():
            given[name] |= held
    return {name: _target(places) for name, places in given.items()}


def _target(places: Iterable[Place]) -> Target:
    target: dict[bytes, list[int]] = {}
    for topic_id, index in sorted(places):
        target.setdefault(topic_id, []).append(index)
    return {topic_id: tuple(indexes) for topic_id, indexes in target.items()}


class _Board:
    """Some partitions while they are shared out to some members."""

    def __init__(self, members: list[str], places: list[Place]) -> None:
        self.places = places
        self.sharing = ceil(len(members) / len(places)) if places else 0
        fair = self.sharing * len(places) / len(members) if members else 0.0
        self.quota = {
            name: ceil(fair * (number + 1)) - ceil(fair * number)
            for number, name in enumerate(members)
        }
        self.held: dict[str, set[Place]] = {name: set() for name in members}
        self.holders: dict[Place, set[str]] = {place: set() for place in places}
        self._rest = Rest()

    def keep(self, former: dict[str, Target]) -> Steps[None]:
        for name in self.held:
            for topic_id, indexes in former.get(name, {}).items():
                for index in indexes:
                    self._keep_one(name, (topic_id, index))
                if self._rest.after(1 + len(indexes)):
                    yield

    def _keep_one(self, name: str, place: Place) -> None:
        holders = self.holders.get(place)
        if holders is None or len(holders) >= self.sharing:
            return
        if len(self.held[name]) < self.quota[name]:
            self._give(name, place)

    def place_rest(self) -> Steps[None]:
        waiting = deque(name for name in self.held if len(self.held[name]) < self.quota[name])
        for place in self.places:
            missing = self.sharing - len(self.holders[place])
            for _ in range(len(waiting)):
                if missing <= 0:
                    break
                name = waiting.popleft()
                if place not in self.held[name]:
                    self._give(name, place)
                    missing -= 1
                if len(self.held[name]) < self.quota[name]:
                    waiting.append(name)
            if self._rest.after(1 + self.sharing):
                yield

    def _give(self, name: str, place: Place) -> None:
        self.held[name].add(place)
        self.holders[place].add(name)
