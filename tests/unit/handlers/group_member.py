"""A classic member at the desk, for tests of what happens once it is in its group."""

from __future__ import annotations

from kafkalite.protocol.messages import (
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from tests.unit.handlers.group_desk import Desk

GROUP = "readers"


def join_request(
    member_id: str = "", instance_id: str | None = None, session_timeout_ms: int = 10_000
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.Protocol(name="range", metadata=b"\0\0\0\0\0\0")],
    )


def join(desk: Desk) -> str:
    """One member alone in a stable group, in generation 1; its id."""
    member_id: str = desk.ask(join_request(), 9).member_id
    later = desk.send(join_request(member_id), 9)
    desk.clock.advance(0)
    assert later.value.generation_id == 1
    assert sync(desk, member_id).assignment == b"all"
    return member_id


def sync(desk: Desk, member_id: str, generation: int = 1) -> SyncGroupResponse:
    request = SyncGroupRequest(
        group_id=GROUP,
        generation_id=generation,
        member_id=member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[SyncGroupRequest.Assignment(member_id=member_id, assignment=b"all")],
    )
    response: SyncGroupResponse = desk.ask(request, 5)
    return response


def leave(desk: Desk, member_id: str) -> int:
    request = LeaveGroupRequest(
        group_id=GROUP, members=[LeaveGroupRequest.Member(member_id=member_id)]
    )
    response = desk.ask(request, 5)
    code: int = response.error_code or response.members[0].error_code
    return code
