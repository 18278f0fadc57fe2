"""Thousands of partitions whose in-sync replicas change together: no turn has them all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from kafkalite.broker import replicating
from kafkalite.coordinators.cluster import alter_partition
from kafkalite.env.slicing import STEPS_AT_ONCE, STEPS_PER_SLICE
from kafkalite.replication.leader import Leader
from tests.unit.broker.turns import TurnClock
from tests.unit.log.making import batch
from tests.unit.replication.cluster import Cluster

MANY = 1_200
LAG_MS = 10_000


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Broker 1 leads all partitions, and broker 2 copies them."""
    monkeypatch.setattr("kafkalite.env.ManualClock", TurnClock)
    cluster = Cluster({"replica.lag.time.max.ms": str(LAG_MS)})
    cluster.create_many([1, 2], MANY)
    cluster.passes(3_000)
    yield cluster
    cluster.close()


def counts_of(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> Counter[int]:
    """How often something is called in each turn from now on."""
    counts: Counter[int] = Counter()
    original, clock = getattr(owner, name), cluster.clock
    assert isinstance(clock, TurnClock)

    def counted(*given: Any, **named: Any) -> Any:
        counts[clock.turn] += 1
        return original(*given, **named)

    monkeypatch.setattr(owner, name, counted)
    return counts


def in_sync(cluster: Cluster) -> Counter[tuple[int, ...]]:
    states = cluster.metadata.image.topics["t"].partitions.values()
    return Counter(tuple(sorted(state.isr)) for state in states)


def test_no_turn_changes_the_in_sync_replicas_of_thousands(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided = counts_of(cluster, monkeypatch, alter_partition, "_alter")
    heard = counts_of(cluster, monkeypatch, Leader, "altered")
    asked = counts_of(cluster, monkeypatch, replicating, "_isr_of")
    assert in_sync(cluster) == {(1, 2): MANY}
    cluster.kill(2, is_noticed=False)
    for index in range(MANY):
        cluster.replica(1, "t", index).append(batch([b"v"]), cluster.clock.now_ms())
    cluster.passes(2 * LAG_MS)
    assert in_sync(cluster) == {(1,): MANY}
    cluster.start(2)
    cluster.passes(3_000)
    assert in_sync(cluster) == {(1, 2): MANY}
    steps = STEPS_PER_SLICE + STEPS_AT_ONCE
    assert sum(decided.values()) >= 2 * MANY
    assert max(decided.values()) <= steps * alter_partition.DECIDED_PER_STEP < MANY
    assert max(heard.values()) <= steps * replicating.TOLD_PER_STEP < MANY
    assert max(asked.values()) <= steps * replicating.LOOKED_AT_PER_STEP
