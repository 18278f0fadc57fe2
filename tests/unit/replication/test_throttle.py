"""Copies to brokers that are not in sync keep to a rate, where topic and broker say so (KIP-73)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafkalite.broker.log_configs import log_config
from kafkalite.config import BrokerConfig
from kafkalite.handlers.fetch_sessions import FetchSessions
from kafkalite.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    IncrementalAlterConfigsRequest,
)
from kafkalite.quotas.rates import SimpleRate, Window
from kafkalite.replication.traffic import Traffic
from tests.unit.replication.cluster import Cluster

SIZE, COUNT = 50_000, 20  # of records, in batches of one
RATE = 2 * SIZE
BROKER = 4
SIDES = ("leader", "follower")
# One batch at a time, so that little comes before the rate is seen to be exceeded.
SETTINGS = {"replica.fetch.max.bytes": str(SIZE), "replica.fetch.response.max.bytes": str(SIZE)}

Make = Callable[..., Cluster]


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[Cluster] = []

    def make(*replicas: int, **topic: str) -> Cluster:
        """Broker 2 leads a topic with a megabyte."""
        cluster = Cluster(SETTINGS)
        made.append(cluster)
        cluster.create_at(*replicas, **topic)
        for _ in range(COUNT):
            cluster.produce(b"x" * SIZE)
        cluster.passes(1_000)
        return cluster

    yield make
    for cluster in made:
        cluster.close()


def limit(cluster: Cluster, side: str, node_id: int, rate: int) -> None:
    config = IncrementalAlterConfigsRequest.Config(
        name=f"{side}.replication.throttled.rate", config_operation=0, value=str(rate)
    )
    resource = IncrementalAlterConfigsRequest.Resource(
        resource_type=BROKER, resource_name=str(node_id), configs=[config]
    )
    [answer] = cluster.ask(
        IncrementalAlterConfigsRequest(resources=[resource]), 1, node_id
    ).responses
    assert answer.error_code == 0, answer
    cluster.turns()


def move(cluster: Cluster, *replicas: int) -> None:
    partition = AlterPartitionReassignmentsRequest.Partition(
        partition_index=0, replicas=[*replicas]
    )
    topic = AlterPartitionReassignmentsRequest.Topic(name="t", partitions=[partition])
    answer = cluster.ask(AlterPartitionReassignmentsRequest(topics=[topic]), 0)
    assert answer.responses[0].partitions[0].error_code == 0, answer
    cluster.turns()


def copied(cluster: Cluster) -> int:
    return cluster.replica(3).log.log_end_offset


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("replicas", ["*", "own"])
def test_a_copy_keeps_to_the_rate(make: Make, side: str, replicas: str) -> None:
    node_id = 2 if side == "leader" else 3
    own = f"1:{node_id},0:{node_id}" if replicas == "own" else replicas
    cluster = make(2, **{f"{side}_replication_throttled_replicas": own})
    limit(cluster, side, node_id, RATE)
    move(cluster, 2, 3)
    for seconds in (2, 4, 6):
        cluster.passes(2_000)
        expected = RATE * seconds // SIZE
        assert expected - 2 <= copied(cluster) <= expected + 3
        assert cluster.state().isr == (2,)
    cluster.passes(6_000)
    assert copied(cluster) == COUNT
    assert set(cluster.state().isr) == {2, 3}


@pytest.mark.parametrize("side", SIDES)
def test_a_rate_that_is_raised_counts_at_once(make: Make, side: str) -> None:
    node_id = 2 if side == "leader" else 3
    cluster = make(2, **{f"{side}_replication_throttled_replicas": "*"})
    limit(cluster, side, node_id, SIZE // 5)
    move(cluster, 2, 3)
    cluster.passes(3_000)
    assert copied(cluster) < COUNT // 2
    limit(cluster, side, node_id, 1 << 30)
    cluster.passes(2_000)
    assert copied(cluster) == COUNT


@pytest.mark.parametrize(
    ("side", "limited", "replicas"),
    [("leader", 2, "0:3"), ("follower", 3, "1:3"), ("leader", 3, "*"), ("follower", 2, "*")],
)
def test_what_nobody_named_is_copied_at_once(
    make: Make, side: str, limited: int, replicas: str
) -> None:
    cluster = make(2, **{f"{side}_replication_throttled_replicas": replicas})
    limit(cluster, side, limited, 1)
    move(cluster, 2, 3)
    cluster.passes(2_000)
    assert copied(cluster) == COUNT


@pytest.mark.parametrize("side", SIDES)
def test_who_is_in_sync_is_never_held_back(make: Make, side: str) -> None:
    cluster = make(2, 3, **{f"{side}_replication_throttled_replicas": "*"})
    limit(cluster, side, 2 if side == "leader" else 3, 0)
    for number in range(5):
        later = cluster.produce_later(b"x" * SIZE)
        cluster.passes(200)
        assert later.is_resolved, number
    assert cluster.state().isr == (2, 3)


def test_while_it_is_held_back_it_asks_now_and_then(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = make(2, leader_replication_throttled_replicas="*")
    limit(cluster, "leader", 2, 1)
    move(cluster, 2, 3)
    cluster.passes(1_000)
    before = cluster.replica(2).log.log_end_offset, copied(cluster)
    sessions = cluster.nodes[2].context.fetch_sessions
    asked: list[int] = []
    resume = sessions.open

    def counted(_: FetchSessions, *words: Any) -> Any:
        asked.append(1)
        return resume(*words)

    monkeypatch.setattr(FetchSessions, "open", counted)
    cluster.passes(5_000)
    assert (cluster.replica(2).log.log_end_offset, copied(cluster)) == before
    assert 5 <= len(asked) <= 15, "replica.fetch.wait.max.ms is 500"


def test_a_list_is_read_as_numbers() -> None:
    config = log_config(BrokerConfig(), {"leader.replication.throttled.replicas": "00:07, 1:8"})
    assert config.leader_replication_throttled_replicas == {"0:7", "1:8"}


def test_however_long_a_number_is_all_that_is_led_here_is_served(make: Make) -> None:
    """Also after a start, when settings that were taken before are all there."""
    long = "9" * 5_000
    cluster = make(2, leader_replication_throttled_replicas=f"{long}:{long},0:0{long},00:02")
    throttled = cluster.replica(2).log.config.leader_replication_throttled_replicas
    assert throttled == {f"{long}:{long}", f"0:{long}", "0:2"}
    cluster.kill(2)
    cluster.start(2)
    assert cluster.replica(2).log.log_end_offset == COUNT


def test_what_is_held_back_does_not_count_as_sent(make: Make) -> None:
    cluster = make(2, leader_replication_throttled_replicas="*")
    traffic = cluster.replica(2).traffic = Traffic()
    limit(cluster, "leader", 2, 1)
    move(cluster, 2, 3)
    cluster.passes(5_000)
    came = sum(segment.size for segment in cluster.replica(3).log.segments)
    assert 0 < came < COUNT * SIZE
    assert traffic.replication_bytes_out == came


def test_a_simple_rate_counts_a_first_burst_in_full() -> None:
    rate = SimpleRate(Window(11, 1_000))
    rate.record(0, 500)
    assert rate.value(0) == 500, "within one sample"
    assert rate.value(2_000) == 250
    rate.record(2_000, 300)
    assert rate.value(4_000) == 200
