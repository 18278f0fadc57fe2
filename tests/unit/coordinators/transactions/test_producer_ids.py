"""Producer ids over power cuts: the metadata that blocks come from lies on one disk, the
transactions that remember an id on another, and nothing orders their syncs but the broker."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from kafkalite.coordinators.transactions.events import InitProducerId, ProducerIdentity
from kafkalite.coordinators.transactions.front import TRANSACTIONS_TOPIC
from kafkalite.coordinators.transactions.producer_ids import ProducerIds
from kafkalite.env.later import Later
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.sim.world import World

OPERATIONS = 40  # more than it takes to give the first ids; see the test's last line
CRASHES = 6  # different disks that may be found after the same power cut


class PowerCut(BaseException):
    """Nobody hears of it."""


class Producers:
    """Who asks for ids, with a transactional id each, and takes down what it is told."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.told: dict[str, int] = {}

    def ask(self, name: str) -> None:
        def answered(answer: Any) -> None:
            if isinstance(answer, ProducerIdentity):
                self.told[name] = answer.producer_id

        event = InitProducerId(name, 60_000)
        self.world.broker.context.transactions.submit(name, event).then(answered)

    def remembered(self) -> Iterator[tuple[str, int]]:
        """What the coordinators know."""
        for runtime in self.world.broker.context.transactions.runtimes.values():
            for transaction in runtime.shard.transactions.values():  # type: ignore[union-attr]
                yield transaction.transactional_id, transaction.producer_id

    def check(self) -> None:
        owners: dict[int, str] = {}
        for name, producer_id in [*self.told.items(), *self.remembered()]:
            assert owners.setdefault(producer_id, name) == name, f"{producer_id} was given twice"


def world_with_two_disks(seed: int) -> World:
    world = World(seed, durability="fsync", directories="/data,/more")
    world.run_until(lambda: world.is_up, "the broker comes up")
    world.broker.context.auto_creation.create_internal(TRANSACTIONS_TOPIC)
    world.run(1_000)
    directories = {log.home.path for log in world.broker.logs if log.topic == TRANSACTIONS_TOPIC}
    assert directories == {"/data", "/more"}
    return world


def cut_at(operation: int, seed: int) -> bool:
    """Whether the power was cut at all: the producers may have been served before."""
    world = world_with_two_disks(seed)
    producers = Producers(world)
    last = world.disk.operations + operation

    def cut(kind: str, path: str, size: int) -> None:
        if world.disk.operations >= last:
            raise PowerCut

    world.disk.before_operation = cut
    was_cut = False
    try:
        for number in range(4):
            producers.ask(f"before-{number}")
            world.run(world.random.randrange(4))
        world.run(1_000)
    except PowerCut:
        was_cut = True
    world.disk.before_operation = None
    world.random = Random(seed * OPERATIONS + operation)
    world.die(is_power_cut=True)
    world.run_until(lambda: world.is_up, "the broker comes back")
    producers.check()
    for number in range(4):
        producers.ask(f"after-{number}")
    world.run(1_000)
    assert sum(name.startswith("after") for name in producers.told) == 4
    producers.check()
    return was_cut


@pytest.mark.parametrize("seed", range(CRASHES))
def test_no_producer_id_is_given_twice_whenever_the_power_is_cut(seed: int) -> None:
    cuts = [cut_at(operation, seed) for operation in range(1, OPERATIONS)]
    assert cuts[0]
    assert not cuts[-1]


# --- blocks ---------------------------------------------------------------------------------------


class Controller:
    """Gives blocks of two when the test says so."""

    def __init__(self) -> None:
        self.asked: list[Later[range | KafkaError]] = []
        self.first = 0

    def allocate(self) -> Later[range | KafkaError]:
        self.asked.append(Later())
        return self.asked[-1]

    def answer(self) -> None:
        block, self.first = range(self.first, self.first + 2), self.first + 2
        self.asked.pop(0).resolve(block)

    def refuse(self) -> None:
        self.asked.pop(0).resolve(KafkaError(Error.KAFKA_STORAGE_ERROR))


def test_ids_come_in_the_order_they_were_asked_for_over_blocks() -> None:
    controller = Controller()
    producer_ids = ProducerIds(controller.allocate)
    taken = [producer_ids.take() for _ in range(5)]
    assert len(controller.asked) == 1, "one block is asked for at a time"
    controller.answer()
    assert [one.is_resolved for one in taken] == [True, True, False, False, False]
    controller.answer()
    controller.answer()
    assert [one.value for one in taken] == [0, 1, 2, 3, 4]
    assert producer_ids.take().value == 5
    assert not controller.asked


def test_who_waits_for_a_block_that_does_not_come_may_ask_again() -> None:
    controller = Controller()
    producer_ids = ProducerIds(controller.allocate)
    taken = [producer_ids.take() for _ in range(2)]
    controller.refuse()
    assert [code_of(one) for one in taken] == [Error.COORDINATOR_LOAD_IN_PROGRESS] * 2
    again = producer_ids.take()
    controller.answer()
    assert again.value == 0


def test_who_waits_for_a_block_that_is_lost_by_a_mistake_may_ask_again() -> None:
    controller = Controller()
    producer_ids = ProducerIds(controller.allocate)
    taken = producer_ids.take()
    controller.asked.pop(0).fail(ZeroDivisionError())
    assert code_of(taken) == Error.COORDINATOR_LOAD_IN_PROGRESS
    again = producer_ids.take()
    controller.answer()
    assert again.value == 0


def test_after_a_stop_nobody_waits_for_an_id() -> None:
    controller = Controller()
    producer_ids = ProducerIds(controller.allocate)
    taken = producer_ids.take()
    producer_ids.stop()
    assert code_of(taken) == Error.COORDINATOR_LOAD_IN_PROGRESS
    controller.answer()


def code_of(taken: Later[int | KafkaError]) -> Error:
    assert isinstance(taken.value, KafkaError)
    return Error(taken.value.code)


def test_what_one_makes_of_its_id_keeps_nobody_waiting() -> None:
    def fail(_: object) -> None:
        raise ZeroDivisionError

    asked: list[Later[range | KafkaError]] = []

    def allocate() -> Later[range | KafkaError]:
        asked.append(Later())
        return asked[-1]

    ids = ProducerIds(allocate)
    first, second, third = (ids.take() for _ in range(3))
    first.then(fail)
    with pytest.raises(ZeroDivisionError):
        asked[0].resolve(range(2))
    assert (first.value, second.value) == (0, 1)
    asked[1].resolve(range(10, 11))
    assert third.value == 10
    fourth = ids.take()
    asked[2].resolve(range(20, 30))
    assert fourth.value == 20
    assert len(asked) == 3


def test_a_block_that_cannot_even_be_asked_for_is_a_refusal() -> None:
    def fail() -> Later[range | KafkaError]:
        raise ZeroDivisionError

    ids = ProducerIds(fail)
    for _ in range(2):
        assert isinstance(ids.take().value, KafkaError)
