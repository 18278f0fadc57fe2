"""Records of __transaction_state that other brokers wrote, and what is written for them."""

from __future__ import annotations

import pytest

from kafkalite.coordinators.transactions import events
from kafkalite.coordinators.transactions.records import key_of
from kafkalite.protocol.errors import Error
from kafkalite.records.record import BatchBuilder
from tests.unit.coordinators.transactions.world import World


def append(world: World, key: bytes, value: bytes | None) -> None:
    builder = BatchBuilder()
    builder.append(1_000, key, value)
    world.partition.log.append(memoryview(builder.build()), 0)
    world.partition.commit()
    world.stop()
    world.start()


@pytest.mark.parametrize("value", [b"\0\2?", b"\0\0" + bytes(14) + b"\x63" + bytes(20)])
def test_what_a_newer_broker_wrote_is_kept_and_keeps_only_its_id_from_being_served(
    value: bytes,
) -> None:
    world = World()
    append(world, key_of("t"), value)
    before = world.partition.log.records()
    assert world.init() == Error.NOT_COORDINATOR
    assert world.partition.log.records() == before
    append(world, key_of("t"), None)
    assert isinstance(world.init(), events.ProducerIdentity)


def test_a_key_of_an_unknown_type_is_passed_over() -> None:
    world = World()
    append(world, b"\0\7?", b"\0\0")
    assert isinstance(world.init(), events.ProducerIdentity)


@pytest.mark.parametrize(("server_version", "value_version"), [(0, 0), (1, 1), (2, 1)])
def test_values_are_written_in_the_version_that_the_finalized_feature_allows(
    server_version: int, value_version: int
) -> None:
    world = World(server_version)
    world.init()
    world.stop()
    world.start()
    world.init()
    values = [one.value for one in world.partition.log.records()]
    assert {int.from_bytes(value[:2], "big") for value in values} == {value_version}
