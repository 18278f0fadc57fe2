"""A question that is asked again while the transaction before is ending: a stop does not wait."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite.coordinators.transactions.front import RETRY_MS, Transactions
from kafkalite.coordinators.transactions.peer import Admission
from kafkalite.env.later import Later
from kafkalite.protocol.errors import Error, KafkaError
from tests.unit.coordinators.transactions.world import World

A, B = ("a", 0), ("b", 0)


def test_who_waits_to_be_admitted_is_told_of_a_stop() -> None:
    world = World()
    who = world.init()
    world.add(who, A)
    world.markers.failures[A] = [Error.NOT_LEADER_OR_FOLLOWER] * 10
    who = world.end(who, commit=True)
    asked = Admission("t", who.producer_id, who.producer_epoch, (B,), is_adding=True)
    admitted = world.transactions.ask(asked, knows_abortable=True)
    assert world.state == "PrepareCommit"
    world.clock.advance(RETRY_MS)
    assert not admitted.is_resolved
    world.transactions.stop()
    assert admitted.value[B].code == Error.NOT_COORDINATOR
    world.clock.advance(10 * RETRY_MS)


def test_who_is_not_answered_by_a_mistake_of_ours_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    who = world.init()
    asked = Admission("t", who.producer_id, who.producer_epoch, (B,), is_adding=True)
    answer: Later[Any] = Later()
    monkeypatch.setattr(Transactions, "admit", lambda *_: answer)
    admitted = world.transactions.ask(asked, knows_abortable=True)
    answer.fail(ZeroDivisionError())
    assert admitted.value[B].code == Error.NOT_COORDINATOR


@pytest.mark.parametrize(
    "code",
    [
        Error.NETWORK_EXCEPTION, Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_COORDINATOR,
        Error.COORDINATOR_NOT_AVAILABLE, Error.CONCURRENT_TRANSACTIONS,
    ],
)
def test_why_a_coordinator_cannot_tell_is_told_as_it_is(
    code: Error, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a Produce makes of it is nothing that a TxnOffsetCommit may say."""
    world = World()
    who = world.init()
    asked = Admission("t", who.producer_id, who.producer_epoch, (B,), is_adding=False)
    refusal = Later.of({B: KafkaError(code)})
    monkeypatch.setattr(Transactions, "admit", lambda *_: refusal)
    admitted = world.transactions.ask(asked, knows_abortable=True)
    assert admitted.value[B].code == code
