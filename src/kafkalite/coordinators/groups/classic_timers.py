"""The names of a group's timers, and the one that every sign of life moves.

Owns the keys; two timers never share one. Nothing here looks at a group's state.
"""

from __future__ import annotations

from collections.abc import Hashable

from kafkalite.coordinators.groups.events import SessionExpired
from kafkalite.coordinators.groups.turn import Turn


def session_key(group_id: str, member_id: str) -> Hashable:
    return ("session", group_id, member_id)


def join_key(group_id: str) -> Hashable:
    return ("join", group_id)


def sync_key(group_id: str) -> Hashable:
    return ("sync", group_id)


def arm_session(turn: Turn, group_id: str, member_id: str, timeout_ms: int) -> None:
    turn.arm(session_key(group_id, member_id), timeout_ms, SessionExpired(group_id, member_id))
