"""What members of every kind of group have in common: how one lives, and what it may be told.

Owns the life of one: it finds its coordinator, joins, lives on until it is to leave, and begins
again when it is told that nobody knows it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import FindCoordinatorRequest
from kafkalite.sim.client import Ask, Script, Sleep
from kafkalite.sim.history import History
from kafkalite.sim.producers import GROUP_KEY, PASSING

SESSION_MS = 2_000
REBALANCE_MS = 1_000
BEAT_MS, PEACEFUL_BEAT_MS = 120, 900

# A member that is told one of these begins again, and owns nothing until it has joined.
FORGOTTEN = (
    Error.UNKNOWN_MEMBER_ID,
    Error.FENCED_INSTANCE_ID,
    Error.FENCED_MEMBER_EPOCH,
    Error.GROUP_ID_NOT_FOUND,
)
# ... and one of these has its place, and joins the next generation.
OUTDATED = (Error.REBALANCE_IN_PROGRESS, Error.ILLEGAL_GENERATION, Error.STALE_MEMBER_EPOCH)


class Gathering(Protocol):
    """What the members of one group share."""

    group_id: str
    is_peaceful: bool
    is_over: bool


@dataclass(slots=True)
class Member:
    """One incarnation of a member."""

    name: str
    random: Random
    history: History
    membership: Gathering
    member_id: str = field(default="", kw_only=True)
    epoch: int = field(default=-1, kw_only=True)
    is_steady: bool = field(default=False, kw_only=True)
    is_leaving: Callable[[], bool] = field(default=lambda: False, kw_only=True)

    def script(self) -> Script:
        yield from self._find_coordinator()
        self.forget()
        while not (self.is_leaving() or self.membership.is_over):
            yield from self.live()
        if self.member_id:
            yield from self.leave()
        self.has_left()

    def live(self) -> Script:
        raise NotImplementedError

    def leave(self) -> Script:
        raise NotImplementedError

    def forget(self) -> None:
        """It begins again."""
        self.has_left()

    def has_left(self) -> None:
        self.is_steady = False

    def beat(self) -> Sleep:
        longest_ms = PEACEFUL_BEAT_MS if self.membership.is_peaceful else BEAT_MS
        return Sleep(self.random.randrange(longest_ms // 3, longest_ms))

    def told(self, code: Error, what: str) -> None:
        """Nothing that is not expected of a member in this world."""
        self.is_steady = False
        if code in FORGOTTEN:
            self.forget()
        elif code not in PASSING and code not in OUTDATED:
            self.history.complain(f"{self.name}: {what} got {code.name}")
            self.forget()

    def _find_coordinator(self) -> Script:
        group_id = self.membership.group_id
        request = FindCoordinatorRequest(key_type=GROUP_KEY, coordinator_keys=[group_id])
        while True:
            [answer] = yield Ask([(request, 4)])
            if answer is not None and answer.coordinators[0].error_code == Error.NONE:
                return
            yield self.beat()
