"""The cluster over its log: what is decided lasts, in one piece or not at all."""

import pytest

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster.brokers import PRODUCER_ID_BLOCK, FenceBroker, RegisterBroker
from kafkalite.coordinators.cluster.cluster import Cluster
from kafkalite.coordinators.cluster.deciding import decided
from kafkalite.coordinators.cluster.image import Changes, EndPoint
from kafkalite.coordinators.cluster.refusal import UnusableMetadata
from kafkalite.coordinators.cluster.snapshots import SnapshotId, list_snapshots
from kafkalite.coordinators.effects import Record
from kafkalite.env import manual_env
from kafkalite.env.slicing import finish
from kafkalite.log.config import LogSettings
from kafkalite.log.home import LogHome
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    BeginTransactionRecord,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    EndTransactionRecord,
    TopicRecord,
)

DIRECTORY = "/data/__cluster_metadata-0"


@pytest.fixture
def env():
    env = manual_env(3)
    env.disk.make_directory("/data")
    return env


def open_cluster(env, settings=None, node_ids=(1,), *, was_clean=True):
    home = LogHome(env, "/data", LogSettings())
    cluster = Cluster(env, home, BrokerConfig(settings or {}), "a-cluster", 1)
    cluster.open()
    for node_id in node_ids:
        register(cluster, node_id, was_clean=was_clean)
    return cluster


def register(cluster, node_id, *, was_clean=True):
    endpoint = EndPoint("PLAINTEXT", "", 9092, 0)
    directory = bytes([node_id]) * 16
    return cluster.register_broker(
        RegisterBroker(node_id, [endpoint], None, [directory], was_clean)
    )


def create(cluster, *names, partitions=1, factor=1):
    topics = [
        CreateTopicsRequest.Topic(name=name, num_partitions=partitions, replication_factor=factor)
        for name in names
    ]
    return cluster.decide(CreateTopicsRequest(topics=topics)).topics


def test_a_new_cluster_has_features_and_a_least_isr(env):
    cluster = open_cluster(env, {"min.insync.replicas": "2"}, node_ids=())
    assert cluster.image.features["metadata.version"] == 30
    assert cluster.image.config(4, "") == {"min.insync.replicas": "2"}
    assert cluster.controller_epoch == 1


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_restart_folds_to_the_same_image_in_a_new_epoch(env, is_clean):
    cluster = open_cluster(env)
    create(cluster, "a", "b", partitions=3)
    cluster.decide(DeleteTopicsRequest(topic_names=["a"]))
    if is_clean:
        cluster.close()
    again = open_cluster(env, node_ids=())
    assert again.image == cluster.image
    assert again.controller_epoch == 2
    assert again.log.end_offset == cluster.log.end_offset + 1
    create(again, "c")
    assert open_cluster(env, node_ids=()).image == again.image


def test_a_broker_epoch_is_the_offset_of_its_registration(env):
    cluster = open_cluster(env, node_ids=())
    offset = cluster.log.end_offset
    assert register(cluster, 1) == offset
    assert cluster.image.brokers[1].epoch == offset
    assert register(cluster, 1) > offset


def test_subscribers_hear_of_a_change_when_it_is_in_the_image(env):
    cluster = open_cluster(env)
    heard = []
    cluster.subscribe(lambda changes: heard.append((changes, list(cluster.image.topics))))
    create(cluster, "t", partitions=2)
    changes, topics = heard[-1]
    assert topics == ["t"]
    assert [topic.name for topic in changes.created.values()] == ["t"]
    assert len(changes.partitions) == 2
    create(cluster, "t")
    assert len(heard) == 1


def test_what_cannot_be_written_has_not_happened(env):
    cluster = open_cluster(env)
    heard: list[Changes] = []
    cluster.subscribe(heard.append)
    image_before = open_cluster(env, node_ids=()).image

    def refuse(records):
        raise KafkaError(Error.KAFKA_STORAGE_ERROR)

    cluster.log.append, append = refuse, cluster.log.append
    with pytest.raises(KafkaError):
        create(cluster, "t")
    cluster.log.append = append
    assert heard == []
    assert cluster.image == image_before
    assert create(cluster, "t")[0].error_code == Error.NONE


def test_records_of_one_decision_are_one_batch(env):
    """Cut anywhere in its last batch, the log has all of a decision or nothing of it."""
    cluster = open_cluster(env)
    path = f"{DIRECTORY}/{0:020d}.log"
    before = env.disk.size_of(path)
    create(cluster, "a", "b", "c", partitions=5)
    after = env.disk.size_of(path)
    for size in (*range(before, after, 37), after):
        copy = manual_env(3)
        copy.disk.make_directory(DIRECTORY)
        for name in env.disk.list_directory(DIRECTORY):
            source = env.disk.open(f"{DIRECTORY}/{name}")
            data = source.read_at(0, source.size())
            target = copy.disk.create(f"{DIRECTORY}/{name}")
            target.write_at(0, data[:size] if name.endswith(".log") else data)
        found = open_cluster(copy, node_ids=()).image.topics
        assert set(found) == ({"a", "b", "c"} if size == after else set())


def test_an_unfinished_transaction_at_the_end_never_happened(env):
    cluster = open_cluster(env)
    half = [BeginTransactionRecord(), TopicRecord(name="half", topic_id=b"\1" * 16)]
    cluster._write(decided(cluster.shard.view, half, None))
    assert "half" not in cluster.image.topics
    again = open_cluster(env, node_ids=())
    assert "half" not in again.image.topics
    whole = [BeginTransactionRecord(), half[1], EndTransactionRecord()]
    again._write(decided(again.shard.view, whole, None))
    assert "half" in again.image.topics


def test_a_snapshot_replaces_what_it_covers(env):
    cluster = open_cluster(env)
    create(cluster, "t", partitions=9)
    cluster.write_snapshot()
    end_offset = cluster.log.end_offset
    assert list_snapshots(env.disk, DIRECTORY) == [SnapshotId(end_offset, 1)]
    assert cluster.log.log.log_start_offset == end_offset
    assert f"{0:020d}.log" not in env.disk.list_directory(DIRECTORY)
    create(cluster, "u")
    cluster.write_snapshot()
    assert len(list_snapshots(env.disk, DIRECTORY)) == 1
    assert open_cluster(env, node_ids=()).image == cluster.image


def test_snapshots_come_by_bytes_and_by_time(env):
    settings = {"metadata.log.max.record.bytes.between.snapshots": "20000"}
    cluster = open_cluster(env, settings)
    create(cluster, "small")
    assert list_snapshots(env.disk, DIRECTORY) == []
    create(cluster, "large", partitions=300)
    env.clock.advance(0)
    assert len(list_snapshots(env.disk, DIRECTORY)) == 1
    create(cluster, "more")
    env.clock.advance(3_600_000)
    (newest,) = list_snapshots(env.disk, DIRECTORY)
    assert newest.end_offset == cluster.log.end_offset
    env.clock.advance(3_600_000)
    assert list_snapshots(env.disk, DIRECTORY) == [newest]


def test_a_broken_snapshot_is_passed_over_for_an_older_one(env):
    cluster = open_cluster(env)
    create(cluster, "t")
    cluster.close()
    good = open_cluster(env, node_ids=()).image
    name = SnapshotId(cluster.log.end_offset + 1, 2).file_name
    file = env.disk.create(f"{DIRECTORY}/{name}")
    file.write_at(0, b"not a snapshot")
    assert open_cluster(env, node_ids=()).image == good


def test_an_unclean_start_begins_new_leader_epochs(env):
    cluster = open_cluster(env)
    create(cluster, "t", partitions=2)
    epochs = [each.leader_epoch for each in cluster.image.topics["t"].partitions.values()]
    assert epochs == [0, 0]
    again = open_cluster(env)
    epochs = [each.leader_epoch for each in again.image.topics["t"].partitions.values()]
    assert epochs == [0, 0]
    again = open_cluster(env, was_clean=False)
    epochs = [each.leader_epoch for each in again.image.topics["t"].partitions.values()]
    assert epochs == [1, 1]


def test_a_broker_that_is_back_leads_what_it_led(env):
    cluster = open_cluster(env, node_ids=(1, 2, 3))
    create(cluster, "t", partitions=3, factor=3)
    before = {key: each.leader for key, each in cluster.image.topics["t"].partitions.items()}
    cluster.decide(FenceBroker(2))
    states = cluster.image.topics["t"].partitions.values()
    assert sorted(each.leader for each in states) == [-1, 1, 3]
    assert all(2 not in each.isr for each in states)
    register(cluster, 2)
    states = cluster.image.topics["t"].partitions
    assert {key: each.leader for key, each in states.items()} == before
    assert all(set(each.isr) == {1, 2, 3} for each in states.values())


def test_brokers_that_did_not_start_again_are_fenced(env):
    cluster = open_cluster(env, node_ids=(1, 2, 3))
    create(cluster, "t", partitions=3, factor=3)
    cluster.close()
    again = open_cluster(env, node_ids=())
    again.fence_absent()
    assert again.image.live_brokers() == [1]
    assert leaders(again) == [-1, -1, 1]
    register(again, 1)
    assert leaders(again) == [-1, -1, 1]
    register(again, 3)
    assert again.image.live_brokers() == [1, 3]
    assert leaders(again) == [-1, 1, 3]


def leaders(cluster):
    return sorted(each.leader for each in cluster.image.topics["t"].partitions.values())


def test_producer_ids_are_given_once_over_brokers_and_restarts(env):
    given = set()
    for _ in range(3):
        cluster = open_cluster(env, node_ids=(1, 2))
        for node_id in (1, 2):
            given |= set(cluster.allocate_producer_ids(node_id).value)
    assert len(given) == 3 * 2 * PRODUCER_ID_BLOCK


def test_only_a_registered_broker_is_given_producer_ids(env):
    cluster = open_cluster(env)
    assert cluster.allocate_producer_ids(9).value.code == Error.BROKER_ID_NOT_REGISTERED


def test_with_fsync_a_reply_waits_until_what_it_tells_of_lasts(env):
    cluster = open_cluster(env, {"kafkalite.durability": "fsync"})
    env.clock.advance(1_000)
    cluster.log.log.durability.hold()
    topic = CreateTopicsRequest.Topic(name="t", num_partitions=1, replication_factor=1)
    created = cluster.submit(CreateTopicsRequest(topics=[topic]))
    again = cluster.submit(CreateTopicsRequest(topics=[topic]))
    env.clock.advance(1_000)
    assert not cluster.lasts
    assert not created.is_resolved
    assert not again.is_resolved  # what is refused because of it
    cluster.log.log.durability.release()
    env.clock.advance(1_000)
    assert cluster.lasts
    assert created.value.topics[0].error_code == Error.NONE
    assert again.value.topics[0].error_code == Error.TOPIC_ALREADY_EXISTS
    assert cluster.submit(CreateTopicsRequest(topics=[topic])).is_resolved


def test_internal_topics_have_no_more_replicas_than_there_are_brokers(env):
    cluster = open_cluster(env, node_ids=(1, 2))
    created = cluster.create_internal_topic("__transaction_state")
    env.clock.advance(0)
    assert created.value is None
    state = cluster.image.partition("__transaction_state", 49)
    assert len(state.replicas) == 2
    settings = cluster.image.config(2, "__transaction_state")
    assert settings["cleanup.policy"] == "compact"
    assert settings["min.insync.replicas"] == "2"
    created = cluster.create_internal_topic("__transaction_state")
    env.clock.advance(0)
    assert created.value is None


def test_a_log_that_does_not_fold_keeps_the_broker_from_starting(env):
    cluster = open_cluster(env)
    broken = [Record(None, b"\x01\x09\x00" + b"\1" * 16 + b"\0")]
    cluster.log.append(finish(cluster.log.batch_of(broken)))
    with pytest.raises(UnusableMetadata, match="is damaged"):
        open_cluster(env)


@pytest.mark.parametrize(
    ("settings", "name", "why"),
    [
        ({"offsets.topic.segment.bytes": "6000"}, "__consumer_offsets", "segment.bytes"),
        ({"default.replication.factor": "3"}, "orders", "Lower default.replication.factor"),
    ],
)
def test_a_topic_that_cannot_be_created_on_demand_is_told_once(env, caplog, settings, name, why):
    """Who asks is told a code, and asks again for ever: only the log can say what is wrong."""
    cluster = open_cluster(env, settings)
    for _ in range(3):
        cluster.create_missing([name])
    told = [record.getMessage() for record in caplog.records if name in record.getMessage()]
    assert len(told) == 1
    assert why in told[0]
