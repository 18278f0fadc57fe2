"""Nobody's request is left open, whoever waits in whatever state when somebody else comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafkalite.coordinators.groups.gathering import Gathering
from kafkalite.env.later import Later
from tests.unit.coordinators.script import perform
from tests.unit.coordinators.stage import Stage
from tests.unit.coordinators.tickets import check_tickets

# Longer than any session, rebalance and pause of these groups.
LONG_MS = 600_000
FORMED = ["ana joins", "bob joins", "150ms pass"]
STABLE = [*FORMED, "bob syncs", "ana assigns as consumers do: ana=orders:0,1 bob=orders:2,3"]
CONSUMERS = ["consumer eve enters", "consumer fay enters", "150ms pass"]

# The states of a group, each with everyone who may be waiting in it.
STATES = {
    "no group": [],
    "classic, empty": [*STABLE, "ana leaves", "bob leaves"],
    "classic, first join phase": ["ana joins", "bob joins"],
    "classic, an id given and not used": ["ana joins once"],
    "classic, some wait to join": [*STABLE, "dan joins"],
    "classic, some wait to sync": [*FORMED, "bob syncs"],
    "classic, stable": STABLE,
    "classic, static, waits to join": [*STABLE, "dan is static member d", "dan joins"],
    "classic, static, waits to sync": ["ana is static member a", *FORMED, "ana syncs"],
    "consumer, first heartbeats wait": ["consumer eve enters", "consumer fay enters"],
    "consumer, stable": CONSUMERS,
    "consumer, reconciling": [*CONSUMERS, "consumer gus enters"],
    "consumer, assigning": [*CONSUMERS, "consumer eve leaves"],
    "consumer, empty": [*CONSUMERS, "consumer eve leaves", "consumer fay leaves"],
    "both protocols": [*STABLE, "consumer eve enters"],
    "both protocols, in mid-rebalance": [*FORMED, "bob syncs", "consumer eve enters", "bob joins"],
}
ACTS = {
    "nothing": [],
    "a classic member comes": ["cat joins"],
    "a classic member that asks for its id comes": ["cat joins once"],
    "a static member comes": ["cat is static member c", "cat joins"],
    "a static member comes again": ["cat is static member a", "cat joins"],
    "a member of an old client comes": ["cat speaks version 3", "cat joins"],
    "a consumer comes": ["consumer cat enters"],
    "two consumers come": ["consumer cat enters", "consumer dot enters"],
    "a consumer comes and goes": ["consumer cat enters", "consumer cat leaves"],
    "a member leaves": ["bob leaves"],
    "an admin deletes the group": ["an admin deletes the group"],
    "the coordinator restarts": ["the coordinator restarts"],
    "an append fails": ["the next append fails with NOT_ENOUGH_REPLICAS", "consumer cat enters"],
    "an append of a classic member fails": [
        "the next append fails with NOT_ENOUGH_REPLICAS", "cat joins", "ana joins",
    ],
}  # fmt: skip


class Waiting(Stage):
    """Remembers every request."""

    def __init__(self) -> None:
        self.requests: list[Later[Any]] = []
        super().__init__()

    def submit(self, event: Any, tell: Callable[[Any], None]) -> Later[Any]:
        later = super().submit(event, tell)
        self.requests.append(later)
        return later


@pytest.mark.parametrize("gathers", [False, True])
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("state", STATES)
def test_every_request_is_answered(state: str, act: str, gathers: bool) -> None:
    stage = Waiting()
    stage.settings.gathering = Gathering() if gathers else None
    for line in [*STATES[state], *ACTS[act]]:
        perform(stage, line)
        check_tickets(stage.runtime)
    stage.clock.advance(LONG_MS)
    assert all(later.is_resolved for later in stage.requests)
