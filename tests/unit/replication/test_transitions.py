"""Every way from one state of a role to another is played by some scenario text.

A transition that no text shows is an error here, and so is one that nobody has listed.
"""

from __future__ import annotations

from kafkalite.replication.follower import Follower, State
from kafkalite.replication.leader import Leader
from kafkalite.replication.partition import Role
from tests.unit.replication.script import perform
from tests.unit.replication.stage import Stage
from tests.unit.replication.test_scenarios import SCENARIOS
from tests.unit.script import scenes

Pair = tuple[str, str]

ROLES = {
    ("Idle", "Leader"), ("Idle", "Follower"), ("Leader", "Idle"), ("Leader", "Follower"),
    ("Follower", "Idle"), ("Follower", "Leader"),
}  # fmt: skip
# Of the in-sync replicas: by the controller's answer, or by the metadata.
IN_SYNC = {
    ("settled", "joining"), ("settled", "leaving"), ("joining", "settled"), ("leaving", "settled"),
}  # fmt: skip
STARTING, FETCHING, LOST, FENCED = (
    each.value for each in (State.STARTING, State.FETCHING, State.LOST, State.FENCED)
)
# A log that is changed at once passes through CHANGING within a sentence; see test_follower.
FOLLOWING = {
    (STARTING, FETCHING), (STARTING, LOST), (STARTING, FENCED), (FETCHING, STARTING),
    (FETCHING, LOST), (FETCHING, FENCED), (LOST, FETCHING), (LOST, FENCED), (LOST, STARTING),
    (FENCED, STARTING),
}  # fmt: skip


class Watch:
    """The states that the replicas went through, pair by pair."""

    def __init__(self) -> None:
        self.roles: set[Pair] = set()
        self.in_sync: set[Pair] = set()
        self.following: set[Pair] = set()

    def look(self, before: dict[int, Pair], after: dict[int, Pair]) -> None:
        for broker_id, (role, state) in after.items():
            was_role, was_state = before.get(broker_id, ("Idle", ""))
            if role != was_role:
                self.roles.add((was_role, role))
            elif state != was_state:
                found = self.in_sync if role == "Leader" else self.following
                found.add((was_state, state))


def _state_of(role: Role) -> Pair:
    state = ""
    if isinstance(role, Leader):
        state = "settled"
        if role.pending is not None:
            state = "leaving" if role.pending.joining is None else "joining"
    elif isinstance(role, Follower):
        state = role.state.value
    return type(role).__name__, state


def test_every_transition_has_a_scenario() -> None:
    watch = Watch()
    for path in sorted(SCENARIOS.glob("*.txt")):
        for _, lines in scenes(path):
            stage, before = Stage(), dict[int, Pair]()
            for line in lines:
                if not line.startswith(" "):
                    perform(stage, line)
                    after = {key: _state_of(one.partition.role) for key, one in stage.nodes.items()}
                    watch.look(before, after)
                    before = after
    assert watch.roles == ROLES
    assert watch.in_sync == IN_SYNC
    assert watch.following == FOLLOWING
