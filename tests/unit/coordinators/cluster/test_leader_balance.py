"""Leaders return to where they belong, without being asked, and as far as that can be."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster import leader_balance
from kafkalite.coordinators.cluster.image import Image, changed_partition
from kafkalite.coordinators.cluster.leader_balance import BalanceLeaders, balance_leaders
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


def view_of(*states: PartitionState, down: int | None = None) -> View:
    image = Image()
    image.features["metadata.version"] = 30
    for broker_id in (1, 2, 3):
        image.brokers[broker_id] = BrokerState(
            broker_id, 0, b"", (), (), None, broker_id == down, False,
            (bytes([broker_id]) * 16,), (),
        )  # fmt: skip
    found = {number: replace(each, index=number) for number, each in enumerate(states)}
    image.topics["t"] = image.by_id[ID] = Topic("t", ID, found)
    return View(image, BrokerConfig(), Random(1))


def balanced(view: View) -> tuple[Effects, dict[int, PartitionState]]:
    effects = finish(balance_leaders(view, BalanceLeaders()))
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


class Asked:
    def __init__(self) -> None:
        self.count, self.has_more = 0, False

    def submit(self, event: Event[bool]) -> Later[bool | KafkaError]:
        assert type(event) is BalanceLeaders
        self.count += 1
        return Later.of(self.has_more and self.count < 5)


def test_the_controller_looks_now_and_then_and_again_while_there_is_more() -> None:
    clock, asked = ManualClock(), Asked()
    config = BrokerConfig({"leader.imbalance.check.interval.seconds": "7"})
    [look] = looks_of(clock, config, asked.submit)
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


def test_nobody_looks_where_leaders_are_to_stay() -> None:
    config = BrokerConfig({"auto.leader.rebalance.enable": "false"})
    assert looks_of(ManualClock(), config, Asked().submit) == []
