"""What a broker's own pages tell is what was done with it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kafkalite.env.slicing import finish
from kafkalite.metrics.broker_pages import BrokerPages, percentiles
from kafkalite.metrics.inside import ApiTimes, Inside, look
from kafkalite.metrics.loop_share import EVERY_MS, Lately
from kafkalite.metrics.spellings import QUANTILES
from kafkalite.protocol.messages import (
    CreateTopicsRequest,
    FetchRequest,
    InitProducerIdRequest,
    JoinGroupRequest,
    OffsetCommitRequest,
    ShareGroupHeartbeatRequest,
)
from kafkalite.server.counting import Counts
from kafkalite.server.timing import STAGES
from tests.unit.handlers.producing import batch_of, request
from tests.unit.handlers.whole_broker import WholeBroker

Rows = dict[str, dict[tuple[str, ...], float]]


@pytest.fixture
def broker() -> Iterator[WholeBroker]:
    broker = WholeBroker(counts=Counts(lambda: 0))
    broker.create("t", 2)
    yield broker
    broker.close()


@pytest.fixture
def lately(broker: WholeBroker) -> Iterator[Lately]:
    lately = Lately(broker.broker)
    lately.start()
    yield lately
    lately.stop()


def looked(broker: WholeBroker, lately: Lately) -> Inside:
    return finish(look(broker.broker, lately))


def rows(inside: Inside, key: str) -> dict[tuple[str, ...], float]:
    return dict(inside.rows[key])


def rows_of(text: str) -> Rows:
    """By name, and by the values of labels in the order of their names."""
    found: Rows = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = tuple(sample.labels[name] for name in sorted(sample.labels))
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


def produce(broker: WholeBroker, *values: bytes, topic: str = "t") -> int:
    batch = batch_of(broker, *values)
    broker.ask(request(batch, topic=topic), 9)
    return len(batch)


def fetch(broker: WholeBroker, offset: int = 0, epoch: int = -1) -> None:
    asked = FetchRequest.Partition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topic = FetchRequest.Topic(topic="t", partitions=[asked])
    broker.ask(FetchRequest(topics=[topic], max_wait_ms=0, min_bytes=1, session_epoch=epoch), 11)


def test_what_went_through_a_topic(broker: WholeBroker, lately: Lately) -> None:
    size = produce(broker, b"1", b"22", b"333")
    produce(broker, b"1", topic="none")  # there is no such topic
    for offset in (0, 0, 3, 99):  # the end, and beyond it
        fetch(broker, offset)
    found = looked(broker, lately)
    for name, value in (
        ("MessagesInPerSec", 3), ("BytesInPerSec", size), ("BytesOutPerSec", 2 * size),
        ("TotalProduceRequestsPerSec", 1), ("TotalFetchRequestsPerSec", 4),
        ("FailedProduceRequestsPerSec", 0), ("FailedFetchRequestsPerSec", 0),
    ):  # fmt: skip
        of_topics = rows(found, f"BrokerTopicMetrics.{name}")
        assert (name, of_topics[("t",)]) == (name, value)
        assert (name, of_topics[()]) == (name, value)


def test_what_was_refused(broker: WholeBroker, lately: Lately) -> None:
    broker.create("small", 1, **{"max.message.bytes": "80"})
    size = produce(broker, b"x" * 100, topic="small")
    broken = batch_of(broker, b"v")
    broken[40] ^= 1
    broker.ask(request(broken), 9)
    found = looked(broker, lately)
    assert rows(found, "BrokerTopicMetrics.BytesRejectedPerSec")[("small",)] == size
    failed = rows(found, "BrokerTopicMetrics.FailedProduceRequestsPerSec")
    assert failed == {(): 0, ("t",): 0, ("small",): 0}  # both are what clients expect


def test_a_duplicate_counts_once(broker: WholeBroker, lately: Lately) -> None:
    for _ in range(2):
        batch = batch_of(broker, b"v", producer_id=9, producer_epoch=0, base_sequence=0)
        broker.ask(request(batch), 9)
    found = looked(broker, lately)
    assert rows(found, "BrokerTopicMetrics.MessagesInPerSec")[("t",)] == 1
    assert rows(found, "BrokerTopicMetrics.TotalProduceRequestsPerSec")[("t",)] == 2


def test_a_topic_that_is_deleted_is_told_no_more_and_not_forgotten(
    broker: WholeBroker, lately: Lately
) -> None:
    produce(broker, b"v")
    broker.delete("t")
    broker.clock.advance(1_000)
    assert rows(looked(broker, lately), "BrokerTopicMetrics.MessagesInPerSec") == {(): 1}


def test_partitions_and_their_logs(broker: WholeBroker, lately: Lately) -> None:
    size = produce(broker, b"1", b"22")
    found = looked(broker, lately)
    assert rows(found, "Log.Size") == {("t", "0"): size, ("t", "1"): 0}
    assert rows(found, "Log.LogEndOffset")["t", "0"] == 2
    assert rows(found, "Log.NumLogSegments")["t", "0"] == 1
    assert rows(found, "Partition.ReplicasCount")["t", "0"] == 1
    assert rows(found, "Partition.UnderMinIsr")["t", "0"] == 0
    assert rows(found, "Partition.AtMinIsr")["t", "0"] == 1
    assert rows(found, "ReplicaManager.LeaderCount") == {(): 2}
    broker.stop_leading()
    found = looked(broker, lately)
    assert rows(found, "Partition.ReplicasCount")["t", "0"] == 0
    assert rows(found, "ReplicaManager.LeaderCount") == {(): 0}
    assert rows(found, "KafkaController.OfflinePartitionsCount") == {(): 2}


def test_the_cluster_as_its_controller_sees_it(broker: WholeBroker, lately: Lately) -> None:
    broker.add_peer(2)
    broker.create_on("far", 2)
    found = looked(broker, lately)
    for key, value in (
        ("KafkaController.ActiveControllerCount", 1),
        ("KafkaController.GlobalTopicCount", 2),
        ("KafkaController.GlobalPartitionCount", 3),
        ("KafkaController.ActiveBrokerCount", 2),
        ("raft-metrics.current-leader", 1),
    ):
        assert (key, rows(found, key)) == (key, {(): value})
    assert found.survey.topics["far"].partitions[0].ends is None  # that is for broker 2 to tell
    assert found.survey.topics["t"].partitions[0].ends == 0


def test_groups_transactions_and_sessions(broker: WholeBroker, lately: Lately) -> None:
    broker.create("__consumer_offsets", 2)
    broker.create("__transaction_state", 2)
    broker.create("__share_group_state", 1)
    broker.clock.advance(1_000)
    protocol = JoinGroupRequest.Protocol(name="range", metadata=b"")
    broker.send(
        JoinGroupRequest(
            group_id="joining", protocol_type="consumer", protocols=[protocol],
            session_timeout_ms=10_000, rebalance_timeout_ms=10_000,
        ),
        3,
    )  # fmt: skip
    topic = OffsetCommitRequest.Topic(
        name="t", partitions=[OffsetCommitRequest.Partition(partition_index=1, committed_offset=5)]
    )
    broker.ask(OffsetCommitRequest(group_id="simple", topics=[topic]), 7)
    broker.send(
        ShareGroupHeartbeatRequest(
            group_id="sharing", member_id="m", member_epoch=0, subscribed_topic_names=["t"]
        ),
        1,
    )
    broker.send(InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1_000), 2)
    fetch(broker, epoch=0)
    broker.clock.advance(10)
    found = looked(broker, lately)
    groups = rows(found, "kafkalite_groups")
    assert groups["classic", "PreparingRebalance"] == 1
    assert groups["classic", "Empty"] == 1
    assert groups["share", "Stable"] == 1
    assert rows(found, "GroupMetadataManager.NumGroups") == {(): 2}
    assert rows(found, "GroupMetadataManager.NumGroupsEmpty") == {(): 1}
    assert rows(found, "GroupMetadataManager.NumOffsets") == {(): 1}
    assert rows(found, "kafkalite_transactions") == {("Empty",): 1}
    assert rows(found, "FetchSessionCache.NumIncrementalFetchSessions") == {(): 1}
    assert rows(found, "FetchSessionCache.NumIncrementalFetchPartitionsCached") == {(): 1}
    assert found.survey.groups["simple"].committed == {("t", 1): 5}


def test_what_waits_is_told_by_its_kind(broker: WholeBroker, lately: Lately) -> None:
    asked = FetchRequest.Partition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = FetchRequest.Topic(topic="t", partitions=[asked])
    waiting = FetchRequest(topics=[topic], max_wait_ms=500, min_bytes=1, session_epoch=-1)
    broker.send(waiting, 11)
    sizes = rows(looked(broker, lately), "DelayedOperationPurgatory.PurgatorySize")
    assert sizes[("Fetch",)] == 1
    assert sum(sizes.values()) == 1


def test_what_clients_had_and_how_long_they_wait(broker: WholeBroker, lately: Lately) -> None:
    quotas = broker.context.quotas
    quotas.set((("client-id", "me"),), {"producer_byte_rate": 10.0})
    quotas.set((("client-id", None),), {"controller_mutation_rate": 1.0})
    produce(broker, b"x" * 1_000)
    broker.create("u", 1)
    topic = CreateTopicsRequest.Topic(name="many", num_partitions=50, replication_factor=1)
    broker.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1_000), 5)
    found = looked(broker, lately)
    ((whose, rate),) = rows(found, "Produce.byte-rate").items()
    assert whose == ("", "me")
    assert rate > 10
    assert rows(found, "Produce.throttle-time")[whose] == broker_wait(rate, 10)
    assert rows(found, "ControllerMutation.tokens")[whose] < 0
    assert rows(found, "ControllerMutation.throttle-time")[whose] > 1_000
    assert "Fetch.throttle-time" not in found.rows
    broker.clock.advance(60_000)
    assert "Produce.throttle-time" not in looked(broker, lately).rows


def broker_wait(rate: float, limit: float) -> int:
    """As Apache Kafka reckons it over ten samples of a second."""
    return round((rate - limit) / limit * 10_000)


def test_compaction_is_told(lately: Lately, broker: WholeBroker) -> None:
    cleaner = broker.broker.logs.periodic.cleaner
    finish(cleaner.choose())
    broker.clock.advance(1_000)
    found = looked(broker, lately)
    assert rows(found, "LogCleanerManager.time-since-last-run-ms") == {(): 1_000}
    assert rows(found, "LogCleanerManager.max-dirty-percent") == {(): 0}
    assert rows(found, "LogCleanerManager.uncleanable-partitions-count") == {("/data",): 0}
    cleaner.dirtiest_ratio = 0.756
    log = broker.partition().log
    cleaner._hinder(log, log.segments[0])
    found = looked(broker, lately)
    assert rows(found, "LogCleanerManager.max-dirty-percent") == {(): 75}
    assert rows(found, "LogCleanerManager.uncleanable-partitions-count") == {("/data",): 1}


def test_producers_that_logs_know(broker: WholeBroker, lately: Lately) -> None:
    for producer_id in (7, 8):
        batch = batch_of(broker, b"v", producer_id=producer_id, producer_epoch=0, base_sequence=0)
        broker.ask(request(batch), 9)
    assert rows(looked(broker, lately), "ReplicaManager.ProducerIdCount") == {(): 2}


def test_the_loop_of_the_last_minute(broker: WholeBroker, lately: Lately) -> None:
    clock = broker.clock
    clock.spend(250)
    clock.advance(750)
    idle = rows(looked(broker, lately), "kafkalite_loop_idle_ratio")[()]
    assert idle == pytest.approx(0.75)
    clock.advance(100 * EVERY_MS)
    assert lately.idle_share() == 1
    assert lately.connection_rates("PLAINTEXT") == (0, 0)


def test_a_look_is_taken_in_small_steps(broker: WholeBroker, lately: Lately) -> None:
    broker.create("wide", 1_000)
    assert sum(1 for _ in look(broker.broker, lately)) > 1_000 / 64


# --- pages ----------------------------------------------------------------------------------------


def pages(broker: WholeBroker, lately: Lately) -> BrokerPages:
    return BrokerPages(lambda: looked(broker, lately))


def page(broker: WholeBroker, lately: Lately, path: str) -> Rows:
    return rows_of(pages(broker, lately).page(path).decode())


def test_each_page_has_its_names(broker: WholeBroker, lately: Lately) -> None:
    produce(broker, b"v")
    for path, name in (
        ("/metrics", "kafka_server_brokertopicmetrics_messagesin_total"),
        ("/metrics", "kafka_topic_partition_current_offset"),
        ("/metrics", "kafka_partition_latest_offset"),
        ("/metrics", "kafkalite_info"),
        ("/metrics", "process_open_fds"),
        ("/metrics/reporter", "kafka_server_brokertopicmetrics_messagesinpersec_total"),
        ("/metrics/confluent", "kafka_server_brokertopicmetrics_messagesinpersec"),
        ("/metrics/kminion", "kminion_kafka_topic_partition_high_water_mark"),
    ):
        assert (path, name, bool(page(broker, lately, path).get(name))) == (path, name, True)


def test_who_asks_within_a_moment_shares_a_look(broker: WholeBroker, lately: Lately) -> None:
    looks: list[Inside] = []
    now = [0.0]

    def taken() -> Inside:
        looks.append(looked(broker, lately))
        return looks[-1]

    shared = BrokerPages(taken, lambda: now[0])
    for moment in (0.0, 0.9, 2.0):
        now[0] = moment
        shared.page("/metrics")
    assert len(looks) == 2


def test_a_page_is_written_once_for_all_who_ask_meanwhile(
    broker: WholeBroker, lately: Lately, monkeypatch: pytest.MonkeyPatch
) -> None:
    askers: set[threading.Thread] = set()
    written: list[str] = []
    now = [100.0]

    def now_s() -> float:
        askers.add(threading.current_thread())
        return now[0]

    shared = BrokerPages(lambda: looked(broker, lately), now_s)
    others = [threading.Thread(target=shared.page, args=("/metrics",)) for _ in range(20)]

    def write(path: str) -> bytes:
        written.append(path)
        for each in others:
            each.start()
        for _ in range(1_000):
            if len(askers) > len(others):
                break
            time.sleep(0.01)
        now[0] += 60
        return b"page"

    monkeypatch.setattr(shared, "_write", write)
    shared.page("/metrics")
    for each in others:
        each.join(10)
    assert (len(askers), written) == (21, ["/metrics"])


def test_percentiles_are_of_what_was_seen() -> None:
    assert percentiles([]) == [0] * len(QUANTILES)
    assert percentiles([5]) == [5] * len(QUANTILES)
    assert percentiles(list(range(1_000, 0, -1))) == [501, 751, 951, 981, 991, 1_000]


def test_all_fetches_are_those_of_consumers_and_of_followers(
    broker: WholeBroker, lately: Lately
) -> None:
    found = looked(broker, lately)
    count = len(STAGES)
    found.times = [
        ApiTimes("FetchConsumer", [(1_000_000,) * count], [1_000_000] * count, 1),
        ApiTimes("FetchFollower", [(3_000_000,) * count], [6_000_000] * count, 2),
    ]
    told = rows_of(BrokerPages(lambda: found).page("/metrics").decode())
    sums = told["kafka_network_requestmetrics_localtimems_sum"]
    assert sums == {("FetchConsumer",): 1, ("FetchFollower",): 6, ("Fetch",): 7}
    counts = told["kafka_network_requestmetrics_totaltimems_count"]
    assert counts[("Fetch",)] == 3
    highest = told["kafka_network_requestmetrics_totaltimems"]["0.999", "Fetch"]
    assert highest == 3 * (count - 1)  # but for the silence of its client
