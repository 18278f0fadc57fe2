"""What an explorer has chosen for a request: a value between who chooses and who does it.

Owns the slot that holds who chooses now, for all lives of the brokers. Does nothing by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from kafkalite.broker.broker import Broker
    from kafkalite.env.later import Later
    from kafkalite.server.terms import Outcome
    from kafkalite.testing.faults import Act
    from kafkalite.testing.understanding import Request
    from kafkalite.testing.where import Known

# What is chosen for these depends on what the broker would say.
DONE_FIRST = frozenset({"Fetch"})


@dataclass(slots=True, frozen=True)
class World:
    """What an explorer looks at besides the request."""

    known: Known
    broker: Callable[[], Broker | None]  # none while it makes way for another one
    brokers: Callable[[], Iterable[Broker]]  # all of its cluster that serve


def unaltered(_: Request, outcome: Outcome) -> Outcome:
    return outcome


@dataclass(slots=True, frozen=True, kw_only=True)
class Deed:
    """What becomes of one request."""

    act: Act
    duration_ms: int = 0
    alter: Callable[[Request, Outcome], Outcome] = unaltered
    before: Callable[[], Later[Any]] | None = None  # what happens in the cluster first


class Chooser(Protocol):
    """On the broker's loop."""

    def concerns(self, api: str) -> bool: ...

    def choose(self, asked: Request, world: World) -> Deed | None: ...

    def told(self, asked: Request, outcome: Outcome) -> None:
        """What the broker said, whatever its client is told."""
        ...


@dataclass(slots=True)
class Explored:
    """Who chooses, if anybody: set on any thread."""

    chooser: Chooser | None = None
