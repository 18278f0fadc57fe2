"""The coordinator may stop between any two records: what was decided always comes to its end."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from kafkalite.coordinators.transactions import events
from kafkalite.coordinators.transactions.records import read_value
from kafkalite.coordinators.transactions.transaction import PREPARED, State, Transaction
from kafkalite.protocol.errors import Error, KafkaError
from tests.unit.coordinators.transactions.world import World

PARTITIONS = [("a", 0), ("a", 1), ("b", 0)]


def run(world: World, random: Random, steps: int) -> None:
    """A producer that goes on as it is told, now and then a second one, failures and restarts."""
    who = world.init()
    for _ in range(steps):
        match random.randrange(8):
            case 0:
                world.stop()
                world.start()
            case 1:
                world.partition.failures.append(KafkaError(Error.KAFKA_STORAGE_ERROR))
            case 2:
                where = random.choice(PARTITIONS)
                world.markers.failures.setdefault(where, []).append(Error.NOT_LEADER_OR_FOLLOWER)
            case 3:
                world.clock.advance(random.choice([10, 200, 61_000]))
            case 4:
                answer = world.init()
                who = answer if isinstance(answer, events.ProducerIdentity) else who
            case 5 | 6:
                world.add(who, *random.sample(PARTITIONS, random.randint(1, 3)))
            case _:
                answer = world.end(who, commit=random.random() < 0.5)
                who = answer if isinstance(answer, events.ProducerIdentity) else who


def shard_state(world: World) -> dict[str, Transaction]:
    shard = world.transactions.runtimes[0].shard
    assert shard is not None
    return dict(shard.transactions)  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", range(60))
def test_what_was_prepared_ends_in_markers_everywhere(seed: int) -> None:
    world, random = World(), Random(seed)
    run(world, random, steps=60)
    world.partition.failures.clear()
    world.markers.failures.clear()
    world.clock.advance(120_000)  # every open transaction times out
    final = shard_state(world)["t"]
    assert final.state not in (*PREPARED, State.ONGOING)
    check_markers(world)


def check_markers(world: World) -> None:
    """Each decision in the log has its markers, in order, on exactly its partitions."""
    expected: dict[tuple[str, int], list[tuple[tuple[int, int], bool]]] = {}
    for record in world.partition.log.records():
        if record.value is None:
            continue
        transaction = read_value("t", bytes(record.value))
        if transaction.state in PREPARED:
            for where in transaction.partitions:
                end = ((transaction.producer_id, transaction.producer_epoch), transaction.is_commit)
                expected.setdefault(where, []).append(end)
    assert world.markers.written == expected


@pytest.mark.parametrize("seed", range(30))
def test_the_state_is_the_fold_of_the_log(seed: int) -> None:
    world, random = World(), Random(seed)
    run(world, random, steps=40)
    before = shard_state(world)
    world.partition.failures = [KafkaError(Error.KAFKA_STORAGE_ERROR)] * 100
    world.stop()
    world.start()
    assert shard_state(world) == {
        name: replace(transaction, last_producer_epoch=-1) for name, transaction in before.items()
    }
