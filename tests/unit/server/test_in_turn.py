"""Connections that sent many requests at once: a turn of the loop answers a bounded number of them,
and each connection comes to its turn."""

from __future__ import annotations

from collections.abc import Callable

from kafkalite.env.slicing import SLICE_MS
from kafkalite.server.connection_info import ConnectionInfo
from kafkalite.server.in_turn import BACKLOGS_PER_TURN, FRAMES_PER_SHARE
from kafkalite.server.terms import Answer, Terms
from tests.unit.server.support import FakeLink, FakeService, World, frame

FRAMES_PER_TURN = 2 * FRAMES_PER_SHARE


class Planted(FakeService):
    """Does something before each answer."""

    def __init__(self) -> None:
        super().__init__()
        self.first: Callable[[], object] = int

    def answer(self, frame_: memoryview, connection: ConnectionInfo) -> Answer:
        self.first()
        return super().answer(frame_, connection)


class Turns:
    """Connections whose requests have come; what is answered in each turn from then on."""

    def __init__(self, connections: int) -> None:
        self.world, self.service = World(), Planted()
        self.links = [FakeLink() for _ in range(connections)]
        for link in self.links:
            self.world.connect(link, Terms(self.service))

    def send(self, frames: int) -> None:
        """By each of them, all of which are read in the same turn."""
        for link in self.links:
            self.world.feed(link, frame(b"x") * frames, turns=False)

    def next(self) -> int:
        """How many are answered in the next turn."""
        before, due = len(self.service.requests), len(self.world._soon)
        for _ in range(due):
            self.world._soon.popleft()()
        return len(self.service.requests) - before

    def all(self) -> list[int]:
        answered: list[int] = []
        while self.world._soon:
            answered.append(self.next())
        return answered


def test_a_turn_answers_so_many_of_one_connection():
    turns = Turns(1)
    turns.send(5 * FRAMES_PER_TURN)
    assert 1 + FRAMES_PER_SHARE <= len(turns.service.requests) <= 1 + FRAMES_PER_TURN
    assert max(turns.all()) <= 1 + FRAMES_PER_TURN
    assert len(turns.links[0].replies()) == 5 * FRAMES_PER_TURN


def test_and_no_more_of_very_many():
    connections = 3 * BACKLOGS_PER_TURN
    turns = Turns(connections)
    turns.send(20)
    assert len(turns.service.requests) <= connections + FRAMES_PER_TURN
    answered = turns.all()
    assert max(answered) <= BACKLOGS_PER_TURN + FRAMES_PER_TURN
    assert all(len(link.replies()) == 20 for link in turns.links)


def test_of_what_takes_long_a_turn_answers_little():
    turns = Turns(2)
    turns.service.first = lambda: turns.world.clock.spend(1)
    turns.send(10)
    assert len(turns.service.requests) <= 2 + 2 * SLICE_MS
    assert max(turns.all()) <= 2 + 2 * SLICE_MS
    assert all(len(link.replies()) == 10 for link in turns.links)


def test_who_was_put_off_first_goes_on_first():
    turns = Turns(2 * BACKLOGS_PER_TURN)
    turns.send(5 * FRAMES_PER_TURN)
    seen = [len(link.replies()) for link in turns.links]
    for first in (0, BACKLOGS_PER_TURN, 0):
        turns.next()
        now = [len(link.replies()) for link in turns.links]
        moved = {number for number, count in enumerate(now) if count > seen[number]}
        seen = now
        assert moved == set(range(first, first + BACKLOGS_PER_TURN))


def test_what_goes_wrong_with_one_keeps_no_other_waiting():
    turns = Turns(3)
    turns.send(2 * FRAMES_PER_TURN)

    def fail() -> None:
        turns.service.first = int
        raise ValueError("a planted mistake")

    turns.service.first = fail
    failures = 0
    while turns.world._soon:
        try:
            turns.world._soon.popleft()()
        except ValueError:
            failures += 1
    assert failures == 1
    assert [len(link.replies()) for link in turns.links[1:]] == [2 * FRAMES_PER_TURN] * 2


def test_a_connection_that_ended_goes_on_no_more():
    turns = Turns(2)
    turns.send(2 * FRAMES_PER_TURN)
    turns.links[0].abort()
    before = len(turns.service.requests)
    turns.all()
    left = 2 * FRAMES_PER_TURN - 1
    assert len(turns.service.requests) - before == left
    assert turns.world.memory.used == 0
