"""A worker process of the search: keeps some seats, in each of which a conversation sits.

All seats take a turn between two acts of the pair; a conversation that is over is replaced.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.differential.acting import RESTARTS
from tests.differential.conversing import Conversation, Ended
from tests.differential.restarting import Restarting
from tests.differential.running import Speaker

Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Turn:
    """What is said between two acts of the pair; a round has none before its first turn, and none
    after its last, which is without steps."""

    name: str  # seed and round
    steps: int
    last: str | None
    next: str | None
    is_old: bool  # whether the pair has been restarted


class Seat:
    def __init__(self, runner: Restarting, number: int) -> None:
        self.runner, self.number = runner, number
        self.conversation: Conversation | None = None
        self.ended: list[Ended] = []
        self.count = 0  # of the conversations of this round

    def take(self, turn: Turn) -> list[Ended]:
        self.ended = []
        self.runner.is_old = turn.is_old
        if turn.last is None:
            self.count = 0
        elif self.conversation is not None:
            self.conversation.after(turn.last)
        self._talk(turn)
        if self.conversation is not None and turn.next is not None:
            self.conversation.act()
            self.conversation.before(turn.next)
            if turn.next in RESTARTS:
                for side in self.runner.sides:
                    side.close()
        elif self.conversation is not None:
            self._end(self.conversation)
        return self.ended

    def _talk(self, turn: Turn) -> None:
        left = turn.steps
        while left > 0:
            if self.conversation is None or self.conversation.is_over:
                self._replace(turn)
            assert self.conversation is not None
            left -= max(1, self.conversation.talk(left))

    def _replace(self, turn: Turn) -> None:
        if self.conversation is not None:
            self._end(self.conversation)
        name = f"{turn.name}/{self.number}/{self.count}"
        self.conversation = Conversation(self.runner, name)
        self.count += 1

    def _end(self, conversation: Conversation) -> None:
        self.ended.append(conversation.end())
        self.conversation = None


_seats: list[Seat] = []


def begin(pair: list[Address], served: dict[str, range], numbers: list[int]) -> None:
    """In a new worker: the seats of these numbers."""
    for number in numbers:
        runner = Restarting(*(Speaker(*each) for each in pair), served=served)
        for side in runner.sides:
            side.name_addresses()
        _seats.append(Seat(runner, number))


def take(turn: Turn) -> list[Ended]:
    return [each for seat in _seats for each in seat.take(turn)]
