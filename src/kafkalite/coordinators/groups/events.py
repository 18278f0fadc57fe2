"""The events a group shard decides on: requests with what matters of their call, and timers.

Owns nothing; plain values. Requests carry the protocol's own messages, and so do most answers. What
takes long to tell is told in steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kafkalite.coordinators.events import Event, R_co
from kafkalite.coordinators.groups.streams_topology import InternalTopic
from kafkalite.env.dataclasses import dataclass, field
from kafkalite.env.slicing import InSteps
from kafkalite.protocol.messages import (
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DeleteGroupsResponse,
    DescribeGroupsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListGroupsResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    SyncGroupRequest,
    SyncGroupResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)


class OfGroup(Event[R_co]):
    """An event that concerns one group."""

    __slots__ = ()
    group_id: str

    @property
    def subject(self) -> str:
        return self.group_id


class _Request(Protocol):
    group_id: str


class OfRequest(Event[R_co]):
    """A request that concerns one group."""

    __slots__ = ()
    request: _Request

    @property
    def subject(self) -> str:
        return self.request.group_id


@dataclass(slots=True, eq=False)
class Join(OfRequest[JoinGroupResponse]):
    request: JoinGroupRequest
    version: int
    client_id: str
    client_host: str


@dataclass(slots=True, eq=False)
class Sync(OfRequest[SyncGroupResponse]):
    request: SyncGroupRequest


@dataclass(slots=True, eq=False)
class Heartbeat(OfRequest[HeartbeatResponse]):
    request: HeartbeatRequest


@dataclass(slots=True, eq=False)
class Leave(OfRequest[LeaveGroupResponse]):
    request: LeaveGroupRequest


@dataclass(slots=True, eq=False)
class CommitOffsets(OfRequest[OffsetCommitResponse]):
    request: OffsetCommitRequest
    version: int


@dataclass(slots=True, eq=False)
class CommitTransactionalOffsets(OfRequest[TxnOffsetCommitResponse]):
    request: TxnOffsetCommitRequest
    version: int


@dataclass(slots=True, eq=False)
class FetchOffsets(OfRequest[OffsetFetchResponse.Group | InSteps]):
    request: OffsetFetchRequest.Group
    require_stable: bool


@dataclass(slots=True, eq=False)
class DeleteOffsets(OfRequest[OffsetDeleteResponse]):
    request: OffsetDeleteRequest


@dataclass(slots=True, eq=False)
class ConsumerHeartbeat(OfRequest[ConsumerGroupHeartbeatResponse]):
    request: ConsumerGroupHeartbeatRequest
    version: int
    client_id: str
    client_host: str
    # Of the topics that its expression matches: which may be shown to the member. None: all.
    may_see: Callable[[str], bool] | None = None


@dataclass(slots=True, eq=False)
class ListGroups(Event[list[ListGroupsResponse.Group] | InSteps]):
    states: frozenset[str]
    types: frozenset[str]


@dataclass(slots=True, eq=False)
class DescribeGroups(Event[list[DescribeGroupsResponse.Group] | InSteps]):
    group_ids: list[str]
    version: int


@dataclass(slots=True, eq=False)
class DescribeConsumerGroups(Event[list[ConsumerGroupDescribeResponse.Group] | InSteps]):
    group_ids: list[str]


@dataclass(slots=True, eq=False)
class DeleteGroups(Event[list[DeleteGroupsResponse.Result]]):
    group_ids: list[str]
    # Of the first of them, as far as they are gone.
    results: list[DeleteGroupsResponse.Result] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class TopicsDeleted(Event[None]):
    """Topics that are gone, by name and id: their offsets go too."""

    topics: list[tuple[str, bytes]]
    # The groups that may have such offsets still, and where their records end: what was committed
    # later is of a new topic of that name.
    groups: list[str] | None = None
    end_offset: int = -1


@dataclass(slots=True, eq=False)
class TopicsChanged(Event[None]):
    """Topics that were created, deleted or given partitions."""

    names: list[str]


# -- share groups ---------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class ShareHeartbeat(OfRequest[ShareGroupHeartbeatResponse]):
    request: ShareGroupHeartbeatRequest
    client_id: str
    client_host: str


@dataclass(slots=True, eq=False)
class DescribeShareGroups(Event[list[ShareGroupDescribeResponse.Group] | InSteps]):
    group_ids: list[str]


@dataclass(slots=True, eq=False)
class ListShared(OfGroup[dict[bytes, tuple[int, ...]]]):
    """The partitions whose state is kept, by topic id."""

    group_id: str


@dataclass(slots=True, eq=False)
class AlterShareOffsets(OfGroup[int]):
    """These partitions are to begin elsewhere; answered with the group's epoch."""

    group_id: str
    partitions: dict[bytes, tuple[int, ...]]


@dataclass(slots=True, eq=False)
class DeleteShareOffsets(OfGroup["dict[bytes, tuple[int, ...]] | None"]):
    """Of these topics, by id and name, nothing is to be known any more. None: nothing was."""

    group_id: str
    topics: dict[bytes, str]


@dataclass(slots=True, eq=False)
class ShareOffsetsDeleted(OfGroup[None]):
    group_id: str
    topic_ids: frozenset[bytes]


@dataclass(slots=True, eq=False)
class BeginShareDeletion(OfGroup[dict[bytes, tuple[int, ...]]]):
    """The group is to be deleted, once the state of its partitions is."""

    group_id: str


@dataclass(slots=True, eq=False)
class SharesInitialized(OfGroup[None]):
    group_id: str
    partitions: dict[bytes, tuple[int, ...]]


@dataclass(slots=True, eq=False)
class SharesNotInitialized(OfGroup[None]):
    group_id: str
    partitions: dict[bytes, tuple[int, ...]]


@dataclass(slots=True, frozen=True)
class InitializeShares:
    """An errand: share coordinators are to begin to keep the state of these partitions."""

    group_id: str
    starts: dict[tuple[bytes, int], int]
    state_epoch: int


# -- streams groups -------------------------------------------------------------------------


@dataclass(slots=True)
class StreamsBeat:
    """What a member of a streams group is told, and internal topics that are to be made for it."""

    response: StreamsGroupHeartbeatResponse
    missing: dict[str, InternalTopic] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class StreamsHeartbeat(OfRequest[StreamsBeat]):
    request: StreamsGroupHeartbeatRequest
    client_id: str
    client_host: str


@dataclass(slots=True, eq=False)
class DescribeStreamsGroups(Event[list[StreamsGroupDescribeResponse.Group] | InSteps]):
    group_ids: list[str]


# -- timers ---------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class SessionExpired(OfGroup[None]):
    group_id: str
    member_id: str


@dataclass(slots=True, eq=False)
class JoinPhaseExpired(OfGroup[None]):
    group_id: str


@dataclass(slots=True, eq=False)
class InitialDelayExpired(OfGroup[None]):
    group_id: str
    delay_ms: int
    remaining_ms: int


@dataclass(slots=True, eq=False)
class SyncPhaseExpired(OfGroup[None]):
    group_id: str
    generation: int


@dataclass(slots=True, eq=False)
class RebalanceExpired(OfGroup[None]):
    """A consumer member was to give partitions back and did not leave its epoch."""

    group_id: str
    member_id: str
    member_epoch: int


@dataclass(slots=True, eq=False)
class ClassicStepExpired(OfGroup[None]):
    """A classic member of a consumer group did not join, or sync, in time."""

    group_id: str
    member_id: str


@dataclass(slots=True, eq=False)
class GatheringOver(OfGroup[None]):
    """Nobody else has come to a new consumer group for a moment."""

    group_id: str


@dataclass(slots=True, eq=False)
class PatternsDue(OfGroup[None]):
    """What the expressions of a consumer group match is to be looked at, for who may see it."""

    group_id: str
    expressions: list[str]
    may_see: Callable[[str], bool]


@dataclass(slots=True, eq=False)
class StreamsDelayOver(OfGroup[None]):
    """A new streams group has waited for more members."""

    group_id: str


@dataclass(slots=True, eq=False)
class OffsetSweep(Event[None]):
    """Time to look for expired offsets and deserted groups."""


# -- what follows a change of a group's kind -------------------------------------------------


@dataclass(slots=True, eq=False)
class Downgraded(OfGroup[object]):
    """A consumer group has become a classic one; `reply` is for whoever caused that."""

    group_id: str
    must_rebalance: bool
    reply: object


# -- outcomes of appends --------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class AssignmentStored(OfGroup[None]):
    group_id: str
    generation: int


@dataclass(slots=True, eq=False)
class StaticMemberStored(OfGroup[None]):
    """A static member came back under a new id; `old_id` is for taking that back."""

    group_id: str
    instance_id: str
    old_id: str
    new_id: str
    old_protocols: list[tuple[str, bytes]]
    old_rebalance_timeout_ms: int
    old_session_timeout_ms: int
