"""One conversation of those that talk with the pair at once: steps, acts of its own, and everything
read after each act of the pair. It ends at a difference, and where the two are in unlike states.

No timer of a broker runs out by itself while it lasts: at which moment would be chance.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kafkalite.client.wire import NoAnswer
from kafkalite.testing.comparison import differences
from kafkalite.testing.comparison.comparing import Difference
from tests.differential import acting
from tests.differential.everything import everything
from tests.differential.generating import Generator, Step
from tests.differential.ledger import Ledger
from tests.differential.memory import Memory
from tests.differential.pair import BROKER, SESSION_MS
from tests.differential.pools import REBALANCE_TIMEOUT_MS
from tests.differential.report import show
from tests.differential.restarting import (
    Restarting,
    without_epochs,
    without_epochs_of_coordinators,
)
from tests.differential.running import Outcome
from tests.differential.unlike import leaves_unlike, parts_states

THEMES = ("log", "log", "transactions", "classic groups", "consumer groups", "administration")
OWN_ACT_CHANCE = 0.75
USUAL_MS = {
    "JoinGroup": ("session_timeout_ms", 8_000),
    "InitProducerId": ("transaction_timeout_ms", 60_000),
    "ConsumerGroupHeartbeat": ("rebalance_timeout_ms", 5_000),
}


@dataclass(frozen=True, slots=True)
class Ended:
    """What came of a conversation, as it goes from one process to another."""

    name: str
    asked: tuple[tuple[str, int], ...]
    allowed: tuple[str, ...]  # the rows
    ledger: Ledger
    acts: tuple[str, ...]  # its own
    signature: tuple[str, str] | None
    text: str


class Conversation:
    def __init__(self, runner: Restarting, name: str) -> None:
        """`name` is the seed of all that is said."""
        runner.begin()
        self.runner, self.name = runner, name
        self.rng, self.memory, self.outcome = random.Random(name), Memory(), Outcome()
        self.generator = Generator(
            self.rng, self.memory, runner.served, self.rng.choice(THEMES)
        )
        self.acts: list[str] = []  # all that it went through
        self.own_acts: list[str] = []
        self.is_over = False
        self._say_all([acting.created()])

    def talk(self, count: int) -> int:
        """So many steps, or fewer if it is over then: how many."""
        for number in range(count):
            if self.is_over:
                return number
            self._say(self.generator.step())
        return count

    def act(self) -> None:
        """Something of its own, or nothing."""
        if self.is_over or self.rng.random() > OWN_ACT_CHANCE:
            return
        act = self.rng.choice(acting.OWN_ACTS)
        self.acts.append(act.__name__)
        self.own_acts.append(act.__name__)
        self._say_all(act(self.rng, self.generator))

    def before(self, act: str) -> None:
        self._say_all(acting.before(act))
        self.acts.append(act)

    def after(self, act: str) -> None:
        """What it has to do after an act of the pair, and everything that both keep."""
        self.runner.has_restarted = self.runner.has_restarted or act in acting.RESTARTS
        self._say_all(acting.after(act))
        self._say_all(everything(self.memory))

    def end(self) -> Ended:
        self.runner._clean_up(self.outcome)
        outcome, found = self.outcome, self.outcome.differences
        rows = [each.name for each in map(differences.explain, outcome.allowed) if each]
        return Ended(
            self.name,
            tuple((step.api, step.version) for step in outcome.steps),
            (*rows, *self.runner.apart.elements()),
            outcome.ledger,
            tuple(self.own_acts),
            found[0].signature if found else None,
            f"after {self.acts}\n{show(outcome)}\n{_around(found[0])}" if found else "",
        )

    def _say_all(self, steps: Iterable[Step]) -> None:
        for step in steps:
            if self.is_over:
                break
            self._say(step)

    def _say(self, step: Step) -> None:
        outcome = self.outcome
        reason = self._reason_to_leave_out(step)
        if reason:
            outcome.ledger.leave_out(step.api, reason)
            return
        if self.runner.has_restarted:
            without_epochs(step.request)
        if self.runner.is_old and step.api == "WriteTxnMarkers":
            without_epochs_of_coordinators(step.request)
        _have_patience(step)
        outcome.steps.append(step)
        try:
            self.runner._step(step, outcome, self.memory)
        except NoAnswer as trouble:
            outcome.differences.append(_troubled(step, trouble))
        self.is_over = self._are_unlike(step)

    def _are_unlike(self, step: Step) -> bool:
        outcome = self.outcome
        before = [each.request for each in outcome.steps[:-1]]
        return (
            bool(outcome.differences)
            or self.runner.has_parted
            or any(map(parts_states, outcome.allowed))
            or leaves_unlike(step.request, outcome.answers[-1], before)
        )

    def _reason_to_leave_out(self, step: Step) -> str:
        if _has_half_a_producer(step):
            return "a producer without an epoch, which Apache Kafka forgets when it recovers"
        if is_of_all_brokers(step):
            return "a setting of all brokers, which is not this conversation's alone"
        if self.runner.has_restarted and step.api == "OffsetForLeaderEpoch":
            return "epochs of leaders, which each counts its own way after a restart"
        return ""


def _has_half_a_producer(step: Step) -> bool:
    return step.api == "Produce" and any(
        partition.records is not None
        and partition.records.producer_id >= 0 > partition.records.epoch
        for topic in step.request.topic_data
        for partition in topic.partition_data
    )


def is_of_all_brokers(step: Step) -> bool:
    return step.api in ("AlterConfigs", "IncrementalAlterConfigs") and any(
        (one.resource_type, one.resource_name) == (BROKER, "") for one in step.request.resources
    )


def _have_patience(step: Step) -> None:
    """What usually runs out soon, for the sake of short conversations, does not here."""
    name, usual = USUAL_MS.get(step.api, ("", 0))
    if name and getattr(step.request, name) == usual:
        setattr(step.request, name, int(SESSION_MS))
    if step.api == "JoinGroup" and step.version == 0:
        step.version = 1  # in version 0 others wait for a member as long as its session
        step.request.rebalance_timeout_ms = REBALANCE_TIMEOUT_MS


def _around(difference: Difference) -> str:
    """What stands beside it: a conversation is too long to be shortened step by step."""
    if not difference.around:
        return ""
    ours, theirs = difference.around[-1]
    return f"around\n    kafkalite     {ours!r}\n    Apache Kafka  {theirs!r}"


def _troubled(step: Step, trouble: Any) -> Difference:
    path = "what is to come after the answer"
    return Difference(step.api, step.version, path, path, str(trouble), "", step.request)
