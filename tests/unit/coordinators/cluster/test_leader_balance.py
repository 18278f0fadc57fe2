"""Leaders return to where they belong, without being asked, and as far as that can be."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster import leader_balance
from kafkalite.coordinators.cluster.image import Image, changed_partition
from kafkalite.coordinators.cluster.leader_balance import (
    BalanceLeaders,
    ElectLeaderless,
    balance_leaders,
    elect_leaderless,
)
from kafkalite.coordinators.cluster.looks import looks_of
from kafkalite.coordinators.cluster.records import decode_record
from kafkalite.coordinators.cluster.states import BrokerState, PartitionState, Topic
from kafkalite.coordinators.cluster.view import View
from kafkalite.coordinators.effects import Effects
from kafkalite.coordinators.events import Event
from kafkalite.env.clock import ManualClock
from kafkalite.env.later import Later
from kafkalite.env.slicing import finish
from kafkalite.protocol.errors import KafkaError

ID = b"\1" * 16
AWAY = PartitionState(
    ID, 0, (1, 2, 3), (1, 2, 3), 2, 4, 7, tuple(bytes([each]) * 16 for each in (1, 2, 3))
)


def view_of(*states: PartitionState, down: int | None = None, **settings: str) -> View:
    image = Image()
    image.features["metadata.version"] = 30
    for broker_id in (1, 2, 3):
        image.brokers[broker_id] = BrokerState(
            broker_id, 0, b"", (), (), None, broker_id == down, False,
            (bytes([broker_id]) * 16,), (),
        )  # fmt: skip
    found = {number: replace(each, index=number) for number, each in enumerate(states)}
    image.topics["t"] = image.by_id[ID] = Topic("t", ID, found)
    config = BrokerConfig({name.replace("_", "."): value for name, value in settings.items()})
    return View(image, config, Random(1))


def balanced(view: View) -> tuple[Effects, dict[int, PartitionState]]:
    return changed_by(view, finish(balance_leaders(view, BalanceLeaders())))


def changed_by(view: View, effects: Effects) -> tuple[Effects, dict[int, PartitionState]]:
    changed = {}
    for record in effects.records:
        assert record.value is not None
        change = decode_record(record.value)
        changed[change.partition_id] = changed_partition(
            view.image.topics["t"].partitions[change.partition_id], change
        )
    return effects, changed


def test_who_should_lead_leads_again_in_a_new_epoch() -> None:
    there = replace(AWAY, leader=1)
    effects, changed = balanced(view_of(AWAY, there, AWAY))
    assert changed.keys() == {0, 2}
    assert {(each.leader, each.leader_epoch, each.isr) for each in changed.values()} == {
        (1, 5, (1, 2, 3))
    }
    assert effects.reply is False


@pytest.mark.parametrize("view", [
    view_of(replace(AWAY, isr=(2, 3))), view_of(AWAY, down=1), view_of(replace(AWAY, leader=1)),
])  # fmt: skip
def test_nothing_changes_where_that_cannot_be_or_is_so(view: View) -> None:
    effects, _ = balanced(view)
    assert effects.records == []


def test_there_is_more_when_as_many_as_may_be_were_elected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader_balance, "MOST_AT_ONCE", 2)
    effects, changed = balanced(view_of(AWAY, AWAY, AWAY))
    assert changed.keys() == {0, 1}
    assert effects.reply is True


@pytest.mark.parametrize("is_allowed", [True, False])
def test_what_nobody_leads_is_led_by_any_once_that_is_allowed(is_allowed: bool) -> None:
    """As the setting may be given to a topic that has lost its leader."""
    nobodys = replace(AWAY, leader=-1, isr=(1,))
    allowed = str(is_allowed).lower()
    view = view_of(nobodys, AWAY, down=1, unclean_leader_election_enable=allowed)
    effects, changed = changed_by(view, finish(elect_leaderless(view, ElectLeaderless())))
    assert effects.reply is False
    assert changed.keys() == ({0} if is_allowed else set())
    if is_allowed:
        assert (changed[0].leader, changed[0].isr, changed[0].leader_recovery_state) == (2, (2,), 1)


class Asked:
    def __init__(self, kind: type[Event[bool]] = BalanceLeaders) -> None:
        self.kind, self.count, self.has_more = kind, 0, False

    def submit(self, event: Event[bool]) -> Later[bool | KafkaError]:
        assert type(event) is self.kind
        self.count += 1
        return Later.of(self.has_more and self.count < 5)


def test_the_controller_looks_now_and_then_and_again_while_there_is_more() -> None:
    clock, asked = ManualClock(), Asked()
    config = BrokerConfig({"leader.imbalance.check.interval.seconds": "7"})
    [look, _] = looks_of(clock, config, asked.submit)
    look.start()
    clock.advance(6_999)
    assert asked.count == 0
    clock.advance(1)
    assert asked.count == 1
    asked.has_more = True
    clock.advance(7_000)
    assert asked.count == 5
    look.stop()
    clock.advance(70_000)
    assert asked.count == 5


def test_leaders_stay_where_they_are_to_and_what_nobody_leads_is_looked_for() -> None:
    clock, asked = ManualClock(), Asked(ElectLeaderless)
    config = BrokerConfig(
        {"auto.leader.rebalance.enable": "false", "unclean.leader.election.interval.ms": "900"}
    )
    [look] = looks_of(clock, config, asked.submit)
    look.start()
    clock.advance(899)
    assert asked.count == 0
    clock.advance(1)
    assert asked.count == 1
    look.stop()
