"""What a runtime keeps in line, what it has parked and how it stands, as plain values.

Owns nothing and decides nothing.
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

from kafkalite.coordinators.effects import Producer
from kafkalite.coordinators.events import Event
from kafkalite.env.dataclasses import dataclass
from kafkalite.env.later import Later
from kafkalite.protocol.errors import Error

Waiter: TypeAlias = Later[Any]  # for an answer of the kind that its event says
Reply: TypeAlias = tuple[Waiter, object]  # who waits, and for what


class State(Enum):
    UNLOADED = "unloaded"
    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"


# What a request gets while the shard is not active.
REFUSALS = {
    State.UNLOADED: Error.NOT_COORDINATOR,
    State.LOADING: Error.COORDINATOR_LOAD_IN_PROGRESS,
    State.FAILED: Error.NOT_COORDINATOR,
}


class Asked(NamedTuple):
    """An event for the shard, who waits for its reply, and which timer brought it, if one did."""

    event: Event[object]
    later: Waiter | None = None
    timer: Hashable = None


@dataclass(slots=True)
class Parked:
    """What waits until the high watermark reaches `end_offset`."""

    end_offset: int
    deadline_ms: int
    replies: list[Reply]
    on_committed: Event[object] | None
    on_failed: Event[object] | None
    sends: list[object]

    @property
    def is_wanted(self) -> bool:
        """Whether anything follows the commit."""
        return bool(self.replies or self.sends) or self.on_committed is not None


@dataclass(slots=True)
class Marker(Event[None]):
    """The internal event of a transaction's end; see `Runtime.end_transaction`."""

    producer: Producer
    coordinator_epoch: int
    committed: bool
    transaction_version: int


class Loaded(Event[None]):
    """Nothing is asked: what a shard wants done once it is loaded."""
