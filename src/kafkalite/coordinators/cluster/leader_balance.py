"""Decides that partitions are led again by the replicas that should, where these can; and by any
that may, where nobody leads and an unclean election is allowed by now.

Owns how many change together. Nobody asks for it: the controller looks from time to time, as Apache
Kafka's does, partition by partition, however the leaders of a broker are balanced as a whole.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkalite.coordinators.cluster.image import NO_LEADER_CHANGE
from kafkalite.coordinators.cluster.partition_change import (
    Election,
    Target,
    change_partition,
    online_election,
)
from kafkalite.coordinators.cluster.states import NO_LEADER, PartitionState
from kafkalite.coordinators.cluster.view import View, decided_in_steps
from kafkalite.coordinators.effects import Effects
from kafkalite.coordinators.events import Event
from kafkalite.env.dataclasses import dataclass
from kafkalite.env.slicing import Steps, chosen
from kafkalite.protocol.messages import PartitionChangeRecord

MOST_AT_ONCE = 1_000
ELECTED_PER_STEP = 16


@dataclass(slots=True)
class BalanceLeaders(Event[bool]):
    """A look at all partitions; the reply is whether there may be more to do."""


@dataclass(slots=True)
class ElectLeaderless(Event[bool]):
    """A look at partitions that nobody leads; the reply is the same."""


def balance_leaders(view: View, _: BalanceLeaders) -> Steps[Effects]:
    return _elected(view, _is_astray, Election.PREFERRED)


def _is_astray(state: PartitionState) -> bool:
    return state.leader != state.preferred_leader


def elect_leaderless(view: View, _: ElectLeaderless) -> Steps[Effects]:
    """Topics may have been given the setting since they lost their leaders."""

    def may_be_elected(state: PartitionState) -> bool:
        return state.leader == NO_LEADER and online_election(view, state) is Election.UNCLEAN

    return _elected(view, may_be_elected, Election.UNCLEAN)


def _elected(
    view: View, is_wanted: Callable[[PartitionState], bool], election: Election
) -> Steps[Effects]:
    states = (
        state for topic in view.image.topics.values() for state in topic.partitions.values()
    )
    wanted = yield from chosen(states, is_wanted)
    records: list[PartitionChangeRecord] = []
    for count, state in enumerate(wanted, 1):
        record = _led_by_another(view, state, election)
        if record is not None:
            records.append(record)
        if len(records) == MOST_AT_ONCE:
            break
        if count % ELECTED_PER_STEP == 0:
            yield
    return (yield from decided_in_steps(view, records, len(records) == MOST_AT_ONCE))


def _led_by_another(
    view: View, state: PartitionState, election: Election
) -> PartitionChangeRecord | None:
    """The election, unless it changes nothing."""
    target = Target.of(state)
    target.election = election
    record = change_partition(view, state, target)
    return None if record is None or record.leader == NO_LEADER_CHANGE else record
