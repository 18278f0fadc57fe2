"""The events a group shard decides on: requests with what matters of their call, and timers.

Owns nothing; plain values. Requests carry the protocol's own messages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kafkalite.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsResponse,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
)


class OfGroup:
    """An event that concerns one group."""

    __slots__ = ()

    @property
    def subject(self) -> str:
        """The group's id."""
        of_request: Any = getattr(self, "request", self)
        group_id: str = of_request.group_id
        return group_id


@dataclass(slots=True)
class Join(OfGroup):
    request: JoinGroupRequest
    version: int
    client_id: str
    client_host: str


@dataclass(slots=True)
class Sync(OfGroup):
    request: SyncGroupRequest


@dataclass(slots=True)
class Heartbeat(OfGroup):
    request: HeartbeatRequest


@dataclass(slots=True)
class Leave(OfGroup):
    request: LeaveGroupRequest


@dataclass(slots=True)
class CommitOffsets(OfGroup):
    request: OffsetCommitRequest
    version: int


@dataclass(slots=True)
class CommitTransactionalOffsets(OfGroup):
    request: TxnOffsetCommitRequest
    version: int


@dataclass(slots=True)
class FetchOffsets(OfGroup):
    request: OffsetFetchRequest.Group
    require_stable: bool


@dataclass(slots=True)
class DeleteOffsets(OfGroup):
    request: OffsetDeleteRequest


@dataclass(slots=True)
class ConsumerHeartbeat(OfGroup):
    request: ConsumerGroupHeartbeatRequest
    version: int
    client_id: str
    client_host: str


@dataclass(slots=True)
class ListGroups:
    states: frozenset[str]
    types: frozenset[str]


@dataclass(slots=True)
class DescribeGroups:
    group_ids: list[str]
    version: int


@dataclass(slots=True)
class DescribeConsumerGroups:
    group_ids: list[str]


@dataclass(slots=True)
class DeleteGroups:
    group_ids: list[str]
    # Of the first of them, as far as they are gone.
    results: list[DeleteGroupsResponse.Result] = field(default_factory=list)


@dataclass(slots=True)
class TopicsDeleted:
    """Topics that are gone, by name and id: their offsets go too."""

    topics: list[tuple[str, bytes]]
    # The groups that may have such offsets still, and where their records end: what was committed
    # later is of a new topic of that name.
    groups: list[str] | None = None
    end_offset: int = -1


@dataclass(slots=True)
class TopicsChanged:
    """Topics that were created, deleted or given partitions."""

    names: list[str]


# -- timers ---------------------------------------------------------------------------------


@dataclass(slots=True)
class SessionExpired(OfGroup):
    group_id: str
    member_id: str


@dataclass(slots=True)
class JoinPhaseExpired(OfGroup):
    group_id: str


@dataclass(slots=True)
class InitialDelayExpired(OfGroup):
    group_id: str
    delay_ms: int
    remaining_ms: int


@dataclass(slots=True)
class SyncPhaseExpired(OfGroup):
    group_id: str
    generation: int


@dataclass(slots=True)
class RebalanceExpired(OfGroup):
    """A consumer member was to give partitions back and did not leave its epoch."""

    group_id: str
    member_id: str
    member_epoch: int


@dataclass(slots=True)
class ClassicStepExpired(OfGroup):
    """A classic member of a consumer group did not join, or sync, in time."""

    group_id: str
    member_id: str


@dataclass(slots=True)
class GatheringOver(OfGroup):
    """Nobody else has come to a new consumer group for a moment."""

    group_id: str


@dataclass(slots=True)
class OffsetSweep:
    """Time to look for expired offsets and deserted groups."""


# -- what follows a change of a group's kind -------------------------------------------------


@dataclass(slots=True)
class Downgraded(OfGroup):
    """A consumer group has become a classic one; `reply` is for whoever caused that."""

    group_id: str
    must_rebalance: bool
    reply: Any


# -- outcomes of appends --------------------------------------------------------------------


@dataclass(slots=True)
class AssignmentStored(OfGroup):
    group_id: str
    generation: int


@dataclass(slots=True)
class StaticMemberStored(OfGroup):
    """A static member came back under a new id; `old_id` is for taking that back."""

    group_id: str
    instance_id: str
    old_id: str
    new_id: str
    old_protocols: list[tuple[str, bytes]]
    old_rebalance_timeout_ms: int
    old_session_timeout_ms: int
