"""A partition and its role: who decides what is committed, and what that costs those who wait."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import kafkalite
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.replication.follower import Follower
from kafkalite.replication.leader import Leader, Leadership
from kafkalite.replication.partition import FetchPosition, Idle, Partition, Role
from kafkalite.replication.partitions import Partitions
from tests.unit.log.making import START_MS, TOPIC_ID, World, batch

PACKAGE = Path(kafkalite.__file__).parent
MOVES = ("replicated", "raise_to", "lower_to", "cut_to", "take_watermark")


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def partition(world: World) -> Partition:
    return Partition("t", 0, TOPIC_ID, 1, world.log())


def said(leader_id: int, epoch: int, *copying: int) -> Leadership:
    return Leadership(leader_id, epoch, epoch, (1, 2), (1, 2), copying)


def lead(partition: Partition, epoch: int = 0, *copying: int) -> None:
    if partition.take(said(1, epoch, *copying)):
        partition.begin_epoch()


def append(partition: Partition) -> None:
    partition.append(batch([b"x"], timestamp=START_MS), START_MS)


def test_it_has_one_role_at_a_time(partition: Partition) -> None:
    roles: list[type[Role]] = []
    for leader_id in (1, 2, -1, 1):
        partition.take(said(leader_id, len(roles)))
        roles.append(type(partition.role))
        assert (partition.role.leader_id, partition.leader_epoch) == (leader_id, len(roles) - 1)
    assert roles == [Leader, Follower, Idle, Leader]


def test_only_a_new_epoch_of_ours_begins(partition: Partition) -> None:
    assert partition.take(said(1, 0))
    assert not partition.take(said(1, 0))
    assert not partition.take(said(2, 1))
    assert partition.take(said(1, 2))


def test_a_follower_commits_nothing_by_itself(partition: Partition) -> None:
    partition.take(said(2, 0))
    with pytest.raises(KafkaError) as raised:
        append(partition)
    assert raised.value.code is Error.NOT_LEADER_OR_FOLLOWER
    told = partition.log.durability.on_moved
    assert told is not None
    told()  # more of its log lasts
    assert partition.high_watermark == 0


def test_replicas_that_go_no_longer_hold_back_who_waits(partition: Partition, world: World) -> None:
    lead(partition, 0, 1, 2)
    append(partition)
    committed = partition.when_committed(1)
    world.clock.advance(0)
    assert not committed.is_resolved
    partition.take(Leadership(1, 0, 1, (1,), (1,), (1,)))
    world.clock.advance(0)
    assert committed.value is None


def test_who_waits_for_a_lost_role_is_told(partition: Partition, world: World) -> None:
    lead(partition, 0, 1, 2)
    append(partition)
    committed = partition.when_committed(1)
    partition.take(said(2, 1))
    partition.give_up(KafkaError(Error.NOT_LEADER_OR_FOLLOWER))
    world.clock.advance(0)
    assert isinstance(committed.value, KafkaError)


def test_a_reader_below_the_logs_start_is_out_of_range_wherever_the_logs_part(
    partition: Partition,
) -> None:
    for epoch in (0, 0, 0, 0, 5):
        lead(partition, epoch)
        append(partition)
    partition.delete_records_before(2)
    position = FetchPosition(1, 1_000, last_fetched_epoch=3)
    with pytest.raises(KafkaError) as raised:
        partition.read(position, is_committed_only=False, min_one=True)
    assert raised.value.code is Error.OFFSET_OUT_OF_RANGE
    position.offset = 3
    found = partition.read(position, is_committed_only=False, min_one=True)
    assert found.diverging is not None


def test_a_partition_that_is_removed_keeps_its_epoch(partition: Partition) -> None:
    """So that a client of an older one is told that it is behind."""
    partitions = Partitions(1)
    partitions.add(partition)
    lead(partition, 3)
    partitions.remove("t", 0)
    assert isinstance(partition.role, Idle)
    with pytest.raises(KafkaError) as raised:
        partition.check_leader(2)
    assert raised.value.code is Error.FENCED_LEADER_EPOCH


def test_what_is_committed_outlasts_a_restart(partition: Partition, world: World) -> None:
    """As far as it was written down; a leader finds out the rest, a follower is told."""
    lead(partition)
    for _ in range(3):
        append(partition)
    assert world.restart(clean=True).high_watermark == 3


def test_a_log_is_never_committed_beyond_its_end(partition: Partition) -> None:
    lead(partition)
    append(partition)
    with pytest.raises(AssertionError):
        partition.log.replicated(2)
    with pytest.raises(AssertionError):
        World().log().raise_start(1)


def test_one_place_decides_what_is_committed() -> None:
    """A log's own code moves its watermark where it is opened, emptied or cut; else a role does."""
    assert _callers() == {
        "replicated": ["replication/partition.py advance"],
        "raise_to": [
            "log/durability.py _is_durable_up_to",
            "log/log_state.py begin_at",
            "log/log_state.py replicated",
        ],
        "lower_to": [
            "log/durability.py took_over",
            "log/log_state.py begin_at",
            "log/watermark.py cut_to",
        ],
        "cut_to": ["log/durability.py truncated", "log/log_state.py cut"],
        "take_watermark": ["log/mover.py _replace"],
    }


def _callers() -> dict[str, list[str]]:
    """Of what moves a watermark; but a log's producers, which are told of the same."""
    found: dict[str, list[str]] = {name: [] for name in MOVES}
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        if any(name in text for name in MOVES):
            for function in ast.walk(ast.parse(text)):
                if isinstance(function, ast.FunctionDef):
                    where = f"{path.relative_to(PACKAGE).as_posix()} {function.name}"
                    for name in _moves_in(function):
                        found[name].append(where)
    return {name: sorted(callers) for name, callers in found.items()}


def _moves_in(function: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        called = node.func if isinstance(node, ast.Call) else None
        if not isinstance(called, ast.Attribute) or called.attr not in MOVES:
            continue
        if not ast.unparse(called.value).endswith("producers"):
            yield called.attr
