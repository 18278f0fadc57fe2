"""Readers are sent to a replica of their rack (KIP-392), and read there what is committed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import FetchRequest, MetadataRequest
from kafkalite.replication.leader import Leader, Leadership, Moment, Neighbours, ReplicaFetch
from tests.unit.replication.cluster import Cluster

RACKS = ("a", "b", "c")  # of brokers 1 to 3, the second of which leads
SELECTOR = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
NOBODY = -1
LARGE = 1 << 20


def made(settings: dict[str, str], racks: tuple[str, ...] = RACKS) -> Iterator[Cluster]:
    cluster = Cluster(settings, racks)
    cluster.create_at(2, 3, 1)
    cluster.produce(b"one")
    cluster.passes(600)  # the followers hear what is committed
    yield cluster
    cluster.close()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    yield from made(SELECTOR)


@pytest.fixture
def without() -> Iterator[Cluster]:
    """A selector."""
    yield from made({})


def request(
    cluster: Cluster, offset: int = 0, *, rack: str = "", epoch: int = -1, **fields: Any
) -> FetchRequest:
    position = FetchRequest.Partition(
        partition=0, fetch_offset=offset, partition_max_bytes=LARGE, current_leader_epoch=epoch
    )
    topic = FetchRequest.Topic(topic_id=cluster.state().topic_id, topic="t", partitions=[position])
    return FetchRequest(min_bytes=1, topics=[topic], rack_id=rack, **fields)


def fetch(cluster: Cluster, node_id: int, offset: int = 0, version: int = 17, **more: Any) -> Any:
    response = cluster.ask(request(cluster, offset, **more), version, node_id)
    [topic] = response.responses
    [answer] = topic.partitions
    return answer


# --- where a reader is sent -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rack", "sent"),
    [("a", 1), ("c", 3), ("b", NOBODY), ("", NOBODY), ("elsewhere", NOBODY)],
)
def test_a_leader_sends_a_reader_to_its_rack(cluster: Cluster, rack: str, sent: int) -> None:
    answer = fetch(cluster, 2, rack=rack)
    assert (answer.error_code, answer.preferred_read_replica) == (0, sent)
    assert bool(answer.records) == (sent == NOBODY), "who is sent away is given nothing"
    assert (answer.high_watermark, answer.log_start_offset, answer.last_stable_offset) == (1, 0, 1)
    assert answer.aborted_transactions is None


def test_who_is_sent_away_does_not_wait(cluster: Cluster) -> None:
    later = cluster.ask_later(request(cluster, 1, rack="a", max_wait_ms=10_000), 17, 2)
    cluster.turns()
    assert later.value.responses[0].partitions[0].preferred_read_replica == 1


def test_without_a_selector_all_read_from_the_leader(without: Cluster) -> None:
    answer = fetch(without, 2, rack="a")
    assert (answer.preferred_read_replica, bool(answer.records)) == (NOBODY, True)


def test_versions_without_racks_read_from_the_leader(cluster: Cluster) -> None:
    assert fetch(cluster, 2, version=10).records
    assert fetch(cluster, 1, version=10).error_code == Error.NOT_LEADER_OR_FOLLOWER
    assert fetch(cluster, 1, version=11).records


def test_nobody_is_sent_to_who_lags(cluster: Cluster) -> None:
    cluster.kill(3, is_noticed=False)
    cluster.produce(b"two", acks=1)
    cluster.turns()
    assert cluster.state().isr == (2, 3, 1)
    assert fetch(cluster, 2, 1, rack="c").preferred_read_replica == 3, "it has all before that"
    assert fetch(cluster, 2, 2, rack="c").preferred_read_replica == NOBODY


def test_nobody_is_sent_to_who_is_not_up(cluster: Cluster) -> None:
    cluster.kill(3)
    assert fetch(cluster, 2, rack="c").preferred_read_replica == NOBODY


def test_an_old_epoch_is_told_so_before_anything(cluster: Cluster) -> None:
    answer = fetch(cluster, 2, rack="a", epoch=7)
    assert answer.error_code == Error.UNKNOWN_LEADER_EPOCH
    assert answer.preferred_read_replica == NOBODY


def test_a_session_says_each_time_where_to_go(cluster: Cluster) -> None:
    first = cluster.ask(request(cluster, 1, rack="a", session_epoch=0), 17, 2)
    assert first.session_id
    for epoch in (1, 2):
        again = FetchRequest(
            min_bytes=1, session_id=first.session_id, session_epoch=epoch, rack_id="a"
        )
        [topic] = cluster.ask(again, 17, 2).responses
        assert topic.partitions[0].preferred_read_replica == 1


def moment(end: int) -> Moment:
    return Moment(0, 0, end, end, end, 1, Neighbours(epochs={1: 1, 2: 2, 3: 3, 4: 4}))


def test_of_several_the_furthest_is_nearest() -> None:
    leader = Leader(1)
    leader.take(Leadership(1, 0, 0, (1, 2, 3, 4), (1, 2, 3), (2, 3, 4)), 9, 0)
    for broker_id, end, start in ((2, 5, 2), (3, 7, 4), (4, 9, 0)):
        leader.fetched(broker_id, ReplicaFetch(end, start), moment(9))
    everybody = (2, 3, 4)
    assert leader.nearest(everybody, 5) == 3
    assert leader.nearest(everybody, 3) == 2, "3 begins above that"
    assert leader.nearest(everybody, 8) is None, "4 is not in sync"
    assert leader.nearest(everybody, 1) is None
    assert leader.nearest((2,), 5) == 2
    leader.fetched(2, ReplicaFetch(7, 2), moment(9))
    assert leader.nearest(everybody, 5) == 3, "of equals the one with the higher id"


# --- what a follower serves -----------------------------------------------------------------------


@pytest.mark.parametrize("isolation_level", [0, 1])
def test_a_follower_serves_what_it_knows_to_be_committed(
    without: Cluster, isolation_level: int
) -> None:
    """Whoever comes, with a selector or without."""
    answer = fetch(without, 3, isolation_level=isolation_level)
    assert (answer.error_code, answer.high_watermark, bool(answer.records)) == (0, 1, True)
    assert bytes(answer.records) == without.contents(2)


def test_between_what_it_has_and_what_is_committed_a_reader_waits(without: Cluster) -> None:
    without.kill(3, is_noticed=False)  # nothing more is committed
    without.produce(b"two", acks=1)
    without.turns()
    assert without.replica(1).log.log_end_offset == 2
    for offset in (1, 2):
        answer = fetch(without, 1, offset)
        assert (answer.error_code, bool(answer.records), answer.high_watermark) == (0, False, 1)
    assert fetch(without, 1, 3).error_code == Error.OFFSET_OUT_OF_RANGE


def test_a_reader_that_waits_is_woken_when_the_follower_hears_of_a_commit(
    without: Cluster,
) -> None:
    told: list[bool] = []
    later = without.ask_later(request(without, 1, max_wait_ms=60_000), 17, 3)
    later.then(lambda _: told.append(True))
    without.produce(b"two")
    assert told == []
    without.passes(600)
    assert told == [True]
    assert later.value.responses[0].partitions[0].records


@pytest.mark.parametrize(
    ("epoch", "error"), [(-1, 0), (0, 0), (9, Error.UNKNOWN_LEADER_EPOCH)]
)
def test_a_reader_of_another_epoch_is_told_so(without: Cluster, epoch: int, error: int) -> None:
    assert fetch(without, 3, epoch=epoch).error_code == error


def test_a_reader_of_a_former_epoch_is_fenced(without: Cluster) -> None:
    without.kill(2)
    without.turns()
    assert without.leader == 3
    assert fetch(without, 1, epoch=0).error_code == Error.FENCED_LEADER_EPOCH


def test_who_has_no_replica_serves_nothing(without: Cluster) -> None:
    without.create_at(2, name="alone")
    topic = FetchRequest.Topic(
        topic_id=without.state("alone").topic_id,
        partitions=[FetchRequest.Partition(partition=0, partition_max_bytes=LARGE)],
    )
    [told] = without.ask(FetchRequest(topics=[topic]), 17, 3).responses
    assert told.partitions[0].error_code == Error.NOT_LEADER_OR_FOLLOWER
    assert told.partitions[0].current_leader.leader_id == 2


# --- racks ----------------------------------------------------------------------------------------


def test_metadata_names_the_racks(cluster: Cluster) -> None:
    brokers = cluster.ask(MetadataRequest(topics=[]), 12).brokers
    assert [each.rack for each in brokers] == [*RACKS]
