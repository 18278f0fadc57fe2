"""Server-side assignors: who gets which partitions (KIP-848).

Owns `uniform` and `range`. Pure: no clock, no chance, no order of sets. Invariant: every
partition of a topic with subscribers goes to exactly one of them, and `uniform` moves no more
than balance asks for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from kafkalite.coordinators.groups.consumer_group import Target
from kafkalite.coordinators.groups.topics import TopicView
from kafkalite.env.slicing import Steps

# Rounds of the last, improving phase: each about halves what is left to improve.
MAX_BALANCING_ROUNDS = 16
WORK_PER_STEP = 128


@dataclass(slots=True)
class Candidate:
    """A member as an assignor sees it."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    topic_ids: frozenset[bytes]
    former: Target = field(default_factory=dict)


Topics = dict[bytes, TopicView]
Assignor = Callable[[list[Candidate], Topics], Steps[dict[str, Target]]]
Place = tuple[bytes, int]


def assign_range(candidates: list[Candidate], topics: Topics) -> Steps[dict[str, Target]]:
    """Topic by topic, a contiguous range to each member, in the order of their ids."""
    ordered = sorted(candidates, key=_range_order)
    targets: dict[str, Target] = {one.member_id: {} for one in ordered}
    rest = Rest()
    for topic_id in sorted(topics):
        if rest.after(len(ordered) + topics[topic_id].partition_count):
            yield
        subscribers = [one for one in ordered if topic_id in one.topic_ids]
        count = topics[topic_id].partition_count
        start = 0
        for position, one in enumerate(subscribers):
            least, extra = divmod(count, len(subscribers))
            end = start + least + (position < extra)
            if start < end:
                targets[one.member_id][topic_id] = tuple(range(start, end))
            start = end
    return targets


def _range_order(one: Candidate) -> tuple[bool, str]:
    """Static members first, by their instance, so that they keep their ranges."""
    if one.instance_id is None:
        return True, one.member_id
    return False, one.instance_id


def assign_uniform(candidates: list[Candidate], topics: Topics) -> Steps[dict[str, Target]]:
    """As even as possible over all topics together, and as sticky as evenness allows."""
    board = _Board(candidates, topics)
    yield from board.find_subscribers()
    yield from board.keep_former()
    yield from board.place_rest()
    yield from board.balance()
    return (yield from board.targets())


class Rest:
    """Says after how much of the work a step is over."""

    def __init__(self) -> None:
        self._done = 0

    def after(self, work: int) -> bool:
        """So much was done."""
        self._done += work
        if self._done < WORK_PER_STEP:
            return False
        self._done = 0
        return True


class _Board:
    """The assignment while it is being made."""

    def __init__(self, candidates: list[Candidate], topics: Topics) -> None:
        self.candidates = candidates
        self.topics = topics
        self.subscribers: dict[bytes, list[int]] = {}
        self.scarcest: list[bytes] = []
        self.sizes = [0] * len(candidates)
        self.owner: dict[Place, int] = {}
        self._rest = Rest()

    def find_subscribers(self) -> Steps[None]:
        for topic_id in self.topics:
            self.subscribers[topic_id] = [
                n for n, one in enumerate(self.candidates) if topic_id in one.topic_ids
            ]
            if self._rest.after(len(self.candidates)):
                yield
        self.scarcest = sorted(self.topics, key=self._scarcity)

    def keep_former(self) -> Steps[None]:
        """Members keep what they had, as far as a fair share goes."""
        quotas = self._quotas()
        for number, one in enumerate(self.candidates):
            for topic_id, indexes in one.former.items():
                if self._rest.after(1 + len(indexes)):
                    yield
                if topic_id not in self.topics or topic_id not in one.topic_ids:
                    continue
                for index in indexes:
                    is_there = index < self.topics[topic_id].partition_count
                    is_free = (topic_id, index) not in self.owner
                    if is_there and is_free and self.sizes[number] < quotas[number]:
                        self._give((topic_id, index), number)

    def _quotas(self) -> list[int]:
        """How much each may keep. With equal subscriptions: its fair share, the odd ones going
        to those who have most now. Else everything: balancing takes what is too much."""
        count = len(self.candidates)
        total = sum(view.partition_count for view in self.topics.values())
        if len({one.topic_ids for one in self.candidates}) != 1:
            return [total] * count
        least, extra = divmod(total, count)
        had = [sum(len(indexes) for indexes in one.former.values()) for one in self.candidates]
        richest = sorted(range(count), key=lambda number: (-had[number], number))
        quotas = [least] * count
        for number in richest[:extra]:
            quotas[number] += 1
        return quotas

    def place_rest(self) -> Steps[None]:
        """Gives what is left to the least loaded, first to members that sit beside a replica."""
        for topic_id in self.scarcest:
            subscribers = self.subscribers[topic_id]
            for index in range(self.topics[topic_id].partition_count):
                place = (topic_id, index)
                if subscribers and place not in self.owner:
                    self._give(place, self._cheapest(subscribers, place))
                    if self._rest.after(1 + len(subscribers)):
                        yield

    def _cheapest(self, subscribers: list[int], place: Place) -> int:
        return min(subscribers, key=lambda number: self._cost(number, place))

    def _scarcity(self, topic_id: bytes) -> tuple[float, int, bytes]:
        """Topics with many partitions per subscriber go first: they have the least choice."""
        subscribers = len(self.subscribers[topic_id])
        share = self.topics[topic_id].partition_count / max(subscribers, 1)
        return -share, subscribers, topic_id

    def _cost(self, number: int, place: Place) -> tuple[int, bool, int]:
        return self.sizes[number], not self._is_near(number, place), number

    def _is_near(self, number: int, place: Place) -> bool:
        racks = self.topics[place[0]].racks
        rack_id = self.candidates[number].rack_id
        return rack_id is not None and place[1] < len(racks) and rack_id in racks[place[1]]

    def balance(self) -> Steps[None]:
        """Moves single partitions from the most to the least loaded while that helps."""
        for _ in range(MAX_BALANCING_ROUNDS):
            has_moved = False
            for topic_id in self.scarcest:
                if (yield from self._balance_topic(topic_id)):
                    has_moved = True
            if not has_moved:
                return

    def _balance_topic(self, topic_id: bytes) -> Steps[bool]:
        held: dict[int, list[int]] = {}
        for index in range(self.topics[topic_id].partition_count):
            number = self.owner.get((topic_id, index))
            if number is not None:
                held.setdefault(number, []).append(index)
            if self._rest.after(1):
                yield
        subscribers = self.subscribers[topic_id]
        has_moved = False
        while held:
            if self._rest.after(1 + len(subscribers)):
                yield
            poorest = min(subscribers, key=lambda n: (self.sizes[n], n))
            richest = max(held, key=lambda n: (self.sizes[n], -n))
            if self.sizes[richest] - self.sizes[poorest] <= 1:
                break
            index = held[richest].pop()
            if not held[richest]:
                del held[richest]
            held.setdefault(poorest, []).append(index)
            self._give((topic_id, index), poorest)
            has_moved = True
        return has_moved

    def _give(self, place: Place, number: int) -> None:
        former = self.owner.get(place)
        if former is not None:
            self.sizes[former] -= 1
        self.owner[place] = number
        self.sizes[number] += 1

    def targets(self) -> Steps[dict[str, Target]]:
        lists: dict[str, dict[bytes, list[int]]] = {one.member_id: {} for one in self.candidates}
        for (topic_id, index), number in sorted(self.owner.items()):
            lists[self.candidates[number].member_id].setdefault(topic_id, []).append(index)
            if self._rest.after(1):
                yield
        return {
            member_id: {topic_id: tuple(indexes) for topic_id, indexes in topics.items()}
            for member_id, topics in lists.items()
        }


ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}
