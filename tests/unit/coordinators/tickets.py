"""The law of open requests: whoever left one is a member that will be answered."""

from __future__ import annotations

from kafkalite.coordinators.groups.classic_group import ClassicGroup
from kafkalite.coordinators.groups.shard import GroupShard
from kafkalite.coordinators.runtime import Runtime


def check_tickets(runtime: Runtime) -> None:
    """Every request that is left open is known to the member it is of, who will be answered."""
    shard = runtime.shard
    assert isinstance(shard, GroupShard)
    known = {
        ticket
        for group in shard.state.groups.values()
        if isinstance(group, ClassicGroup)
        for member in group.members.values()
        for ticket in (member.join_ticket, member.sync_ticket)
        if ticket is not None
    }
    for arrivals in shard.state.arrivals.values():
        known |= {arrival.ticket for arrival in arrivals.waiting}
    assert runtime._tickets.keys() <= known, "a request is open, and nobody will answer it"
