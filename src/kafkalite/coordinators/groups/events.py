"""The events a group shard decides on: requests with what matters of their call, and timers.

Owns nothing; plain values. Requests carry the protocol's own messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kafkalite.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
)


@dataclass(slots=True)
class Join:
    request: JoinGroupRequest
    version: int
    client_id: str
    client_host: str


@dataclass(slots=True)
class Sync:
    request: SyncGroupRequest


@dataclass(slots=True)
class Heartbeat:
    request: HeartbeatRequest


@dataclass(slots=True)
class Leave:
    request: LeaveGroupRequest


@dataclass(slots=True)
class CommitOffsets:
    request: OffsetCommitRequest
    version: int


@dataclass(slots=True)
class CommitTransactionalOffsets:
    request: TxnOffsetCommitRequest
    version: int


@dataclass(slots=True)
class FetchOffsets:
    request: OffsetFetchRequest.Group
    require_stable: bool


@dataclass(slots=True)
class DeleteOffsets:
    request: OffsetDeleteRequest


@dataclass(slots=True)
class ConsumerHeartbeat:
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


@dataclass(slots=True)
class TopicsDeleted:
    """Topics that are gone, by name and id: their offsets go too."""

    topics: list[tuple[str, bytes]]


@dataclass(slots=True)
class TopicsChanged:
    """Topics that were created, deleted or given partitions."""

    names: list[str]


# -- timers ---------------------------------------------------------------------------------


@dataclass(slots=True)
class SessionExpired:
    group_id: str
    member_id: str


@dataclass(slots=True)
class JoinPhaseExpired:
    group_id: str


@dataclass(slots=True)
class InitialDelayExpired:
    group_id: str
    delay_ms: int
    remaining_ms: int


@dataclass(slots=True)
class SyncPhaseExpired:
    group_id: str
    generation: int


@dataclass(slots=True)
class RebalanceExpired:
    """A consumer member was to give partitions back and did not leave its epoch."""

    group_id: str
    member_id: str
    member_epoch: int


@dataclass(slots=True)
class ClassicStepExpired:
    """A classic member of a consumer group did not join, or sync, in time."""

    group_id: str
    member_id: str


@dataclass(slots=True)
class OffsetSweep:
    """Time to look for expired offsets and deserted groups."""


# -- what follows a change of a group's kind -------------------------------------------------


@dataclass(slots=True)
class Downgraded:
    """A consumer group has become a classic one; `reply` is for whoever caused that."""

    group_id: str
    must_rebalance: bool
    reply: Any


# -- outcomes of appends --------------------------------------------------------------------


@dataclass(slots=True)
class AssignmentStored:
    group_id: str
    generation: int


@dataclass(slots=True)
class StaticMemberStored:
    """A static member came back under a new id; `old_id` is for taking that back."""

    group_id: str
    instance_id: str
    old_id: str
    new_id: str
    old_protocols: list[tuple[str, bytes]]
    old_rebalance_timeout_ms: int
    old_session_timeout_ms: int
