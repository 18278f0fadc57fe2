"""Every way from one state of a group to another is played by some scenario text.

A transition that no text shows is an error here, and so is one that nobody has listed.
"""

from __future__ import annotations

from kafkalite.coordinators.groups.classic_group import TRANSITIONS, ClassicGroup, ClassicState
from kafkalite.coordinators.groups.consumer_group import ConsumerGroup, ConsumerState, MemberState
from tests.unit.coordinators.script import perform
from tests.unit.coordinators.stage import GROUP, Stage
from tests.unit.coordinators.test_scenarios import FILES
from tests.unit.script import scenes

CLASSIC = {(before.value, TRANSITIONS[before, step].value) for before, step in TRANSITIONS}
LOADED = {(ClassicState.EMPTY.value, ClassicState.STABLE.value)}  # with members, from the log
EMPTY, ASSIGNING, RECONCILING, STABLE = (
    state.value
    for state in (
        ConsumerState.EMPTY, ConsumerState.ASSIGNING, ConsumerState.RECONCILING,
        ConsumerState.STABLE,
    )
)
# Who comes is given a target at once; what those who leave had waits for the next heartbeat.
CONSUMER = {
    (EMPTY, STABLE), (STABLE, RECONCILING), (STABLE, ASSIGNING), (STABLE, EMPTY),
    (RECONCILING, STABLE), (RECONCILING, ASSIGNING), (ASSIGNING, RECONCILING),
    (ASSIGNING, STABLE), (ASSIGNING, EMPTY),
}
REVOKING, WAITING, SETTLED = (
    MemberState.UNREVOKED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS, MemberState.STABLE
)
MEMBER = {
    (SETTLED, REVOKING), (SETTLED, WAITING), (REVOKING, SETTLED), (REVOKING, WAITING),
    (WAITING, SETTLED), (WAITING, REVOKING),
}


class Watch:
    """The states that a group and its members went through, pair by pair."""

    def __init__(self) -> None:
        self.classic: set[tuple[str, str]] = set()
        self.consumer: set[tuple[str, str]] = set()
        self.member: set[tuple[MemberState, MemberState]] = set()
        self._group = ""
        self._members: dict[str, MemberState] = {}

    def look(self, stage: Stage) -> None:
        group = stage.state.groups.get(GROUP)
        if isinstance(group, ClassicGroup):
            if group.state_timestamp_ms >= 0:
                self._add(self.classic, group.previous_state.value, group.state.value)
            self._group, self._members = "", {}
        elif isinstance(group, ConsumerGroup):
            self._add(self.consumer, self._group, group.state.value)
            self._group = group.state.value
            states = {name: member.state for name, member in group.members.items()}
            for name, state in states.items():
                before = self._members.get(name, state)
                if before is not state:
                    self.member.add((before, state))
            self._members = states

    @staticmethod
    def _add(seen: set[tuple[str, str]], before: str, after: str) -> None:
        if before and before != after:
            seen.add((before, after))


def test_every_transition_has_a_scenario() -> None:
    watch = Watch()
    for path in FILES:
        for _, lines in scenes(path):
            stage = Stage()
            for line in lines:
                if not line.startswith(" "):
                    perform(stage, line)
                    watch.look(stage)
    assert watch.classic == CLASSIC | LOADED
    assert watch.consumer == CONSUMER
    assert watch.member == MEMBER


def test_every_state_of_a_classic_group_is_in_the_table() -> None:
    """But that of a group which is not there, a word for those who ask."""
    assert {state for state, _ in TRANSITIONS} == set(ClassicState) - {ClassicState.DEAD}
