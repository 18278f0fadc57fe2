"""Three brokers whose replicas copy from each other, on a clock that a test owns."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    DeleteRecordsRequest,
    ElectLeadersRequest,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
)
from kafkalite.replication.follower import Follower, State
from kafkalite.replication.leader import Leader
from tests.unit.replication.cluster import Cluster

Make = Callable[..., Cluster]


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[Cluster] = []

    def make(
        *replicas: int, settings: dict[str, str] | None = None, **topic: str
    ) -> Cluster:
        """Broker 2 leads unless others are named."""
        cluster = Cluster(settings)
        made.append(cluster)
        cluster.create_at(*(replicas or (2, 3, 1)), **topic)
        return cluster

    yield make
    for cluster in made:
        cluster.close()


# --- copies ---------------------------------------------------------------------------------------


def test_acks_all_is_answered_when_all_in_sync_have_it(make: Make) -> None:
    cluster = make()
    answer = cluster.produce(b"a", b"b")
    assert (answer.error_code, answer.base_offset) == (0, 0)
    assert [cluster.replica(each).log.log_end_offset for each in (1, 2, 3)] == [2, 2, 2]
    cluster.check_same(1, 2, 3)
    assert cluster.replica(2).high_watermark == 2


def test_what_is_not_everywhere_yet_is_not_committed(make: Make) -> None:
    cluster = make()
    cluster.kill(3, is_noticed=False)
    cluster.produce(b"a", acks=1)
    cluster.passes(1_000)
    assert [cluster.replica(each).log.log_end_offset for each in (1, 2)] == [1, 1]
    assert cluster.replica(2).high_watermark == 0


def test_many_batches_come_whole_and_in_order(make: Make) -> None:
    cluster = make()
    for number in range(300):
        cluster.produce(b"%d" % number, acks=1)
    cluster.produce(*[b"x" * 1_000] * 900)
    cluster.check_same(1, 2, 3)
    assert cluster.replica(1).high_watermark == 1_200


def test_a_topic_with_one_replica_is_as_ever(make: Make) -> None:
    cluster = make(2)
    assert cluster.produce(b"a").error_code == 0
    leader = cluster.replica(2).role
    assert isinstance(leader, Leader)
    assert leader.followers == {}


def test_with_fsync_a_follower_asks_when_all_below_is_on_its_disk(make: Make) -> None:
    """What it asks from is what its leader counts."""
    cluster = make(settings={"kafkalite.durability": "fsync"})
    assert cluster.produce(b"a").error_code == 0
    log = cluster.replica(3).log
    log.durability.hold()
    cluster.produce(b"b", acks=1)
    cluster.passes(2_000)
    assert (log.log_end_offset, log.durability.durable_offset) == (2, 1)
    assert cluster.replica(2).high_watermark == 1
    log.durability.release()
    cluster.passes(1_000)
    assert cluster.replica(2).high_watermark == 2


def test_a_damaged_batch_is_asked_for_again_and_never_copied(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = make()
    cluster.produce(b"whole")
    cluster.unreachable.add(2)
    cluster.passes(600)
    cluster.produce(b"damaged", acks=1)
    segment = cluster.replica(2).log.active
    disk, place = cluster.nodes[2].env.disk, segment.size - 3

    def flip() -> None:
        file = disk.open(segment.path(".log"))
        file.write_at(place, bytes([file.read_at(place, 1)[0] ^ 1]))
        file.close()

    flip()
    cluster.unreachable.clear()
    with caplog.at_level(logging.ERROR):
        cluster.passes(3_000)
    assert "t-0: what broker 2 sent is not appended, and asked for again" in caplog.text
    assert [cluster.replica(each).log.log_end_offset for each in (1, 3)] == [1, 1]
    flip()
    cluster.passes(3_000)
    cluster.check_same(1, 2, 3)
    assert cluster.replica(3).high_watermark == 2


# --- in-sync replicas -----------------------------------------------------------------------------


def test_who_does_not_fetch_leaves_and_joins_when_it_has_all(make: Make) -> None:
    cluster = make(settings={"replica.lag.time.max.ms": "10000"})
    cluster.produce(b"a")
    cluster.kill(3, is_noticed=False)
    cluster.produce(b"b", acks=1)
    cluster.passes(8_000)
    assert cluster.state().isr == (2, 3, 1)
    cluster.passes(9_000)
    assert cluster.state().isr == (2, 1)
    assert cluster.produce(b"c").error_code == 0
    cluster.start(3)
    cluster.passes(3_000)
    assert set(cluster.state().isr) == {1, 2, 3}
    cluster.check_same(1, 2, 3)


def test_fewer_than_wanted_in_sync_take_no_acks_all(make: Make) -> None:
    cluster = make(1, 2, 3, min_insync_replicas="2")
    cluster.kill(2)
    assert cluster.produce(b"a").error_code == 0
    cluster.kill(3)
    assert (cluster.state().isr, cluster.state().elr) == ((1,), (3,))
    assert cluster.produce(b"a").error_code == Error.NOT_ENOUGH_REPLICAS
    assert cluster.produce(b"a", acks=1).error_code == 0
    cluster.passes(1_000)
    assert cluster.replica(1).high_watermark == 1
    cluster.start(2)
    cluster.passes(3_000)
    assert set(cluster.state().isr) == {1, 2}
    assert cluster.replica(1).high_watermark == 2


def test_what_too_few_have_by_the_time_it_is_committed_is_told_so(make: Make) -> None:
    cluster = make(1, 2, min_insync_replicas="2")
    assert not cluster.replica(1).lacks_in_sync
    later = cluster.produce_later(b"a")
    cluster.turns(1)
    cluster.kill(2)
    assert cluster.replica(1).lacks_in_sync
    assert later.is_resolved == (cluster.replica(1).high_watermark == 1)


# --- fail-over ------------------------------------------------------------------------------------


def test_nothing_acknowledged_is_lost_when_leaders_die(make: Make) -> None:
    cluster = make()
    written = 0

    def write() -> None:
        nonlocal written
        for _ in range(5):
            assert cluster.produce(b"%d" % written).error_code == 0
            written += 1

    for victim in (2, 3, 2, 3):
        write()
        cluster.kill(victim)
        assert cluster.leader not in (-1, victim)
        write()
        cluster.start(victim)
        cluster.passes(3_000)
        assert set(cluster.state().isr) == {1, 2, 3}
    cluster.check_same(1, 2, 3)
    assert cluster.replica(1).log.log_end_offset == written


def test_a_tail_that_nobody_else_had_is_cut(make: Make) -> None:
    cluster = make()
    cluster.produce(b"kept")
    cluster.unreachable.add(2)
    cluster.passes(600)
    for _ in range(3):
        cluster.produce(b"lost", acks=1)
    assert cluster.replica(2).log.log_end_offset == 4
    cluster.kill(2)
    assert cluster.leader == 3
    cluster.unreachable.clear()
    assert cluster.produce(b"won").base_offset == 1
    cluster.start(2)
    cluster.passes(3_000)
    cluster.check_same(1, 2, 3)
    assert b"lost" not in cluster.contents(2)
    assert cluster.epochs(2) == [(0, 0), (1, 1)]


def test_a_new_leader_answers_a_retry_as_a_duplicate(make: Make) -> None:
    """Its producers are those of what it copied."""
    cluster = make()
    by_producer: dict[str, Any] = {"producer_id": 9, "producer_epoch": 0}
    for sequence in range(6):
        answer = cluster.produce(b"%d" % sequence, base_sequence=sequence, **by_producer)
        assert (answer.error_code, answer.base_offset) == (0, sequence)
    cluster.kill(2)
    assert cluster.leader == 3
    for sequence in range(1, 6):
        again = cluster.produce(b"%d" % sequence, base_sequence=sequence, **by_producer)
        assert (again.error_code, again.base_offset) == (0, sequence)
    assert cluster.replica(3).log.log_end_offset == 6
    gap = cluster.produce(b"gap", base_sequence=8, **by_producer)
    assert gap.error_code == Error.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_who_was_not_in_sync_does_not_lead(make: Make) -> None:
    cluster = make(2, 3)
    cluster.kill(3)
    cluster.produce(b"a")
    cluster.kill(2)
    assert (cluster.leader, cluster.state().isr, cluster.state().elr) == (-1, (), (2,))
    cluster.start(3)
    assert cluster.leader == -1
    cluster.start(2)  # unclean, but there is nobody else: the last known leader
    assert cluster.leader == 2
    cluster.passes(3_000)
    cluster.check_same(2, 3)
    assert cluster.replica(3).log.log_end_offset == 1


def test_unclean_election_where_it_is_configured_loses_what_only_the_other_had(
    make: Make,
) -> None:
    cluster = make(2, 3, unclean_leader_election_enable="true")
    cluster.kill(3)
    cluster.produce(b"a")
    cluster.metadata.image.features["eligible.leader.replicas.version"] = 0
    cluster.kill(2)
    cluster.start(3)
    assert cluster.leader == 3
    assert cluster.produce(b"b").base_offset == 0
    cluster.start(2)
    cluster.passes(3_000)
    cluster.check_same(2, 3)
    assert b"a" not in cluster.contents(2)[60:]


def test_a_preferred_leader_is_elected_when_it_is_back_in_sync(make: Make) -> None:
    cluster = make()
    cluster.kill(2)
    cluster.start(2)
    request = ElectLeadersRequest(
        election_type=0,
        topic_partitions=[ElectLeadersRequest.TopicPartitions(topic="t", partitions=[0])],
    )
    cluster.passes(3_000)
    assert cluster.leader == 3
    cluster.ask(request, 2)
    cluster.turns()
    assert cluster.leader == 2
    assert cluster.produce(b"a").error_code == 0
    cluster.check_same(1, 2, 3)


def test_a_partition_moves_to_other_brokers_with_its_records(make: Make) -> None:
    cluster = make(2, 3)
    for number in range(20):
        cluster.produce(b"%d" % number)
    partition = AlterPartitionReassignmentsRequest.Partition(partition_index=0, replicas=[1, 3])
    topic = AlterPartitionReassignmentsRequest.Topic(name="t", partitions=[partition])
    answer = cluster.ask(AlterPartitionReassignmentsRequest(topics=[topic]), 0)
    assert answer.responses[0].partitions[0].error_code == 0
    cluster.passes(3_000)
    state = cluster.state()
    assert (state.replicas, set(state.isr), state.is_reassigning) == ((1, 3), {1, 3}, False)
    assert cluster.leader in (1, 3)
    assert cluster.nodes[2].partitions.get("t", 0) is None
    assert cluster.produce(b"after").base_offset == 20
    cluster.check_same(1, 3)


# --- the log's start ------------------------------------------------------------------------------


def test_deleted_records_are_so_on_all_replicas_that_are_up(make: Make) -> None:
    cluster = make()
    for number in range(5):
        cluster.produce(b"%d" % number)
    cluster.kill(3)
    cluster.passes(1_000)
    partition = DeleteRecordsRequest.Partition(partition_index=0, offset=3)
    topic = DeleteRecordsRequest.Topic(name="t", partitions=[partition])
    request = DeleteRecordsRequest(topics=[topic], timeout_ms=5_000)
    later = cluster.ask_later(request, 2, cluster.leader)
    cluster.turns()
    assert not later.is_resolved
    cluster.passes(2_000)
    [answer] = later.value.topics[0].partitions
    assert (answer.error_code, answer.low_watermark) == (0, 3)
    assert [cluster.replica(each).log.log_start_offset for each in (1, 2)] == [3, 3]


def test_a_follower_whose_records_are_all_gone_begins_where_its_leader_does(make: Make) -> None:
    cluster = make()
    cluster.produce(b"a")
    cluster.kill(3)
    for number in range(5):
        cluster.produce(b"%d" % number)
    cluster.replica(2).delete_records_before(4)
    cluster.start(3)
    cluster.passes(4_000)
    assert set(cluster.state().isr) == {1, 2, 3}
    log = cluster.replica(3).log
    assert (log.log_start_offset, log.log_end_offset) == (4, 6)
    cluster.passes(1_000)
    cluster.check_same(1, 2, 3)


# --- what followers are told ----------------------------------------------------------------------


def fetch(cluster: Cluster, node_id: int, *, by: int = 3, **asked: Any) -> Any:
    partition = FetchRequest.Partition(partition=0, partition_max_bytes=1 << 20, **asked)
    topic = FetchRequest.Topic(topic_id=cluster.state().topic_id, partitions=[partition])
    request = FetchRequest(
        replica_state=FetchRequest.ReplicaState(replica_id=by, replica_epoch=-1), topics=[topic]
    )
    [answer] = cluster.ask(request, 18, node_id).responses[0].partitions
    return answer


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"fetch_offset": 0, "current_leader_epoch": 1}, Error.UNKNOWN_LEADER_EPOCH),
        ({"fetch_offset": 9, "last_fetched_epoch": -1}, Error.OFFSET_OUT_OF_RANGE),
        ({"fetch_offset": 0, "by": 7}, Error.NOT_LEADER_OR_FOLLOWER),
        ({"fetch_offset": 0, "by": 7, "current_leader_epoch": 0}, Error.UNKNOWN_LEADER_EPOCH),
        ({"fetch_offset": 0, "node_id": 1}, Error.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_each_refusal(make: Make, asked: dict[str, int], error: Error) -> None:
    cluster = make()
    cluster.produce(b"a")
    assert fetch(cluster, asked.pop("node_id", 2), **asked).error_code == error


def test_an_old_epoch_is_told_so(make: Make) -> None:
    cluster = make()
    cluster.produce(b"a")
    cluster.kill(2)
    assert fetch(cluster, 3, by=1, fetch_offset=1, current_leader_epoch=0).error_code == (
        Error.FENCED_LEADER_EPOCH
    )


def test_where_logs_part_is_told_before_that_an_offset_is_out_of_range(make: Make) -> None:
    cluster = make()
    cluster.produce(b"a")
    answer = fetch(cluster, 2, fetch_offset=9, last_fetched_epoch=0)
    assert (answer.error_code, answer.diverging_epoch) == (
        0, FetchResponse.DivergingEpoch(epoch=0, end_offset=1),
    )  # fmt: skip
    leader = cluster.replica(2).role
    assert isinstance(leader, Leader)
    assert leader.followers[3].end_offset == 1  # it says nothing of what the follower has


def test_a_replica_is_told_where_the_log_ends_and_a_client_where_it_is_committed(
    make: Make,
) -> None:
    cluster = make()
    cluster.kill(3, is_noticed=False)
    cluster.produce(b"a", acks=1)
    for replica_id, end in ((-1, 0), (3, 1), (-2, 1)):
        wanted = ListOffsetsRequest.Partition(partition_index=0, timestamp=-1)
        topic = ListOffsetsRequest.Topic(name="t", partitions=[wanted])
        request = ListOffsetsRequest(replica_id=replica_id, topics=[topic])
        [answer] = cluster.ask(request, 7, 2).topics[0].partitions
        assert answer.offset == end


def test_a_topic_that_is_deleted_is_copied_no_more(make: Make) -> None:
    cluster = make()
    cluster.produce(b"a")
    partition = cluster.replica(3)
    cluster.delete("t")
    cluster.passes(2_000)
    assert not isinstance(partition.role, Follower) or partition.role.state is State.FAILED
    cluster.create_at(2, 3, 1)
    assert cluster.produce(b"b").base_offset == 0
    cluster.check_same(1, 2, 3)


def test_an_empty_log_tells_where_earlier_epochs_ended(make: Make) -> None:
    """As in Apache Kafka, whose followers keep epochs in which they led without a record."""
    cluster = make()
    cluster.kill(2)
    assert cluster.leader == 3
    leader = cluster.replica(3)
    assert leader.leader_epoch > 0
    assert leader.end_offset_for_epoch(0) == (0, 0)
    assert leader.end_offset_for_epoch(leader.leader_epoch + 1) == (-1, -1)
