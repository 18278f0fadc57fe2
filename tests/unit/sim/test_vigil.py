"""The vigil: a transaction that nobody ends is seen, and one that takes its time is not."""

import pytest

from kafkalite.coordinators.effects import Effects, Timer
from kafkalite.coordinators.transactions import shard
from kafkalite.coordinators.transactions.events import TimedOut
from kafkalite.coordinators.transactions.marker_delivery import Errands
from kafkalite.coordinators.transactions.shard import TransactionShard
from kafkalite.sim.client import Script
from kafkalite.sim.producers import TRANSACTION_KEY, TransactionalProducer
from kafkalite.sim.vigil import OVERDUE_MS, UNATTENDED_MS, Vigil
from kafkalite.sim.world import World

TIMEOUT_MS = 1_000


def watched() -> tuple[World, Vigil]:
    world = World(2)
    vigil = Vigil(world)
    vigil.begin()
    world.run_until(lambda: world.is_up, "the broker starts")
    world.create_topic("t", 1)
    return world, vigil


def transact(world: World, *, is_ended: bool) -> None:
    """A producer that dies in its transaction, or when it has committed it."""
    producer = TransactionalProducer(
        "p", world.random, world.clock.now_ms, world.history, [("t", 0)], lambda: False
    )
    producer.is_new = False
    producer.timeout_ms = TIMEOUT_MS

    def script() -> Script:
        yield from producer.find_coordinator(producer.transactional_id, TRANSACTION_KEY)
        yield from producer.initialize()
        attempt = world.history.begin(is_transactional=True)
        producer.begun = set()
        yield from producer.work(attempt)
        if is_ended:
            yield from producer.end(attempt, is_commit=True)

    client = world.client()
    client.start(script())
    world.run_until(lambda: not client.is_running, "the producer has done its part")


@pytest.mark.parametrize("is_ended", [True, False])
def test_a_sound_coordinator_is_not_accused(is_ended: bool) -> None:
    world, vigil = watched()
    transact(world, is_ended=is_ended)
    world.clock.jump(-900_000)
    world.run(TIMEOUT_MS + OVERDUE_MS + UNATTENDED_MS)
    assert not vigil.found


def test_a_transaction_that_ends_by_a_clock_that_was_set_back_is_seen(monkeypatch) -> None:
    def by_the_wall(self: TransactionShard, event: TimedOut, now_ms: int) -> Effects:
        current = self.transactions[event.transactional_id]
        left_ms = current.started_ms + current.timeout_ms - now_ms
        return Effects(timers=[Timer(event.transactional_id, left_ms, event)])

    monkeypatch.setitem(shard._DECISIONS, TimedOut, by_the_wall)
    world, vigil = watched()
    transact(world, is_ended=False)
    world.clock.jump(-900_000)
    world.run(TIMEOUT_MS + OVERDUE_MS + UNATTENDED_MS)
    assert [kind for kind, _ in vigil.found] == ["open for too long"]


def test_a_prepared_transaction_whose_errand_is_lost_is_seen(monkeypatch) -> None:
    monkeypatch.setattr(Errands, "run", lambda *_, **__: None)
    world, vigil = watched()
    transact(world, is_ended=True)
    world.run(2 * UNATTENDED_MS)
    assert [kind for kind, _ in vigil.found] == ["unattended"]
