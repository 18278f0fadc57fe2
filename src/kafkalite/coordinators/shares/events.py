"""What a shard of the share coordinator decides on: questions about one partition of one group.

Owns nothing; plain values. Each is answered by what was asked for, or refused.
"""

from __future__ import annotations

from kafkalite.coordinators.events import Event, R_co
from kafkalite.coordinators.shares.batches import StateBatch
from kafkalite.coordinators.shares.records import ShareKey, ShareState
from kafkalite.env.dataclasses import dataclass


class OfShare(Event[R_co]):
    """An event that concerns one partition of one group."""

    __slots__ = ()
    key: ShareKey

    @property
    def subject(self) -> str:
        return self.key.group_id


@dataclass(slots=True, eq=False)
class Initialize(OfShare[None]):
    """All that was known is forgotten."""

    key: ShareKey
    state_epoch: int
    start_offset: int


@dataclass(slots=True, eq=False)
class Read(OfShare[ShareState]):
    """Asked by the partition's leader, whose epoch holds from now on; -1 asks in no epoch."""

    key: ShareKey
    leader_epoch: int


@dataclass(slots=True, eq=False)
class Write(OfShare[None]):
    key: ShareKey
    state_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int
    batches: tuple[StateBatch, ...]


@dataclass(slots=True, eq=False)
class Delete(OfShare[None]):
    key: ShareKey


@dataclass(slots=True, eq=False)
class Summarize(OfShare[ShareState]):
    """The state, or the one that a partition has that nobody has initialized."""

    key: ShareKey


@dataclass(slots=True, eq=False)
class TopicsDeleted(Event[None]):
    topic_ids: frozenset[bytes]


@dataclass(slots=True, eq=False)
class PruneDue(Event[None]):
    """Time to look which records are of no use any more."""


@dataclass(slots=True, eq=False)
class SnapshotsDue(Event[None]):
    """Time to write whole states of what nobody has written to for long: they hold pruning up."""


@dataclass(slots=True, frozen=True)
class Prune:
    """An errand: nothing below this offset is of use."""

    offset: int
