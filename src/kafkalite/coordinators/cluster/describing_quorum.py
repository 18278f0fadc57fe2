"""How far the metadata's log is, and who leads it, as somebody asks for it.

Reads only. The controller of this process is the only voter.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.view import View
from kafkalite.coordinators.effects import Effects
from kafkalite.coordinators.events import Event
from kafkalite.env.dataclasses import dataclass


@dataclass(slots=True, frozen=True)
class QuorumStanding:
    """The leader of the metadata's log, and the end of that log."""

    leader_id: int
    leader_epoch: int
    end_offset: int


@dataclass(slots=True)
class DescribeQuorum(Event[QuorumStanding]):
    """A wish to know of it."""


def describe_quorum(view: View, asked: DescribeQuorum) -> Effects:
    """Nothing is decided by that."""
    return Effects(reply=QuorumStanding(view.config.node_id, view.epoch, view.next_offset))
