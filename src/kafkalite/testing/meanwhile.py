"""What happens in a cluster while a client asks: a group rebalances, a leader is elected anew.

Owns how it is brought about by what members and controllers do, so that everything that clients
hear afterwards is what the broker says by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafkalite.coordinators.cluster.leading_anew import LeadAnew
from kafkalite.coordinators.groups.events import ConsumerHeartbeat, Join, Leave
from kafkalite.env.later import Later
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
)
from kafkalite.testing.chosen import World

if TYPE_CHECKING:
    from kafkalite.coordinators.groups.front import Groups

# As a member that was there for a moment.
PASSER_BY, HOST = "kafkalite-explorer", "/127.0.0.1"
SESSION_MS = 10_000
LEFT_EPOCH = -1
JOIN_VERSION = 9  # in which a member is given its id first
HEARTBEAT_VERSION = 1


def lead_anew(world: World, partitions: list[tuple[str, int]]) -> Later[Any]:
    """The leaders of these partitions begin a new epoch."""
    broker = world.broker()
    if broker is None:
        return Later.of(None)
    return broker.controller.submit(LeadAnew(partitions))


def rebalance(world: World, joined: Any) -> Later[Any]:
    """The group of a member, by what it joined with, rebalances: another one comes and goes."""
    if isinstance(joined, JoinGroupRequest):
        return _classic(world, joined)
    return _consumer(world, joined)


def coordinator_of(world: World, group_id: str) -> Groups | None:
    """Who coordinates a group that has members."""
    found = (broker.context.groups for broker in world.brokers())
    return next((groups for groups in found if groups.has_members(group_id)), None)


def _classic(world: World, joined: JoinGroupRequest) -> Later[Any]:
    group_id = joined.group_id
    groups = coordinator_of(world, group_id)
    if groups is None:
        return Later.of(None)
    asked = JoinGroupRequest(
        group_id=group_id, session_timeout_ms=max(SESSION_MS, joined.session_timeout_ms),
        rebalance_timeout_ms=joined.rebalance_timeout_ms, member_id="",
        protocol_type=joined.protocol_type, protocols=joined.protocols,
    )  # fmt: skip

    def named(answer: JoinGroupResponse | Exception) -> Later[Any]:
        if not isinstance(answer, JoinGroupResponse) or (
            answer.error_code != Error.MEMBER_ID_REQUIRED
        ):
            return Later.of(None)
        asked.member_id = answer.member_id
        groups.submit(group_id, Join(asked, JOIN_VERSION, PASSER_BY, HOST))
        member = LeaveGroupRequest.Member(member_id=asked.member_id, group_instance_id=None)
        leaving = LeaveGroupRequest(group_id=group_id, members=[member])
        return groups.submit(group_id, Leave(leaving))

    return groups.submit(group_id, Join(asked, JOIN_VERSION, PASSER_BY, HOST)).then_ask(named)


def _consumer(world: World, joined: ConsumerGroupHeartbeatRequest) -> Later[Any]:
    group_id = joined.group_id
    groups = coordinator_of(world, group_id)
    if groups is None:
        return Later.of(None)
    asked = ConsumerGroupHeartbeatRequest(
        group_id=group_id, member_id=PASSER_BY, member_epoch=0, topic_partitions=[],
        rebalance_timeout_ms=joined.rebalance_timeout_ms,
        subscribed_topic_names=joined.subscribed_topic_names,
        subscribed_topic_regex=joined.subscribed_topic_regex,
    )  # fmt: skip
    leaving = ConsumerGroupHeartbeatRequest(
        group_id=group_id, member_id=PASSER_BY, member_epoch=LEFT_EPOCH
    )
    for each in (asked, leaving):
        event = ConsumerHeartbeat(each, HEARTBEAT_VERSION, PASSER_BY, HOST)
        last = groups.submit(group_id, event)
    return last.map(lambda _: None)
