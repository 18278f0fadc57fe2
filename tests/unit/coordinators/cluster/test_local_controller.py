"""The cluster over its log: what is decided lasts, in one piece or not at all."""

import errno
from itertools import permutations

import pytest

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster.auto_creation import AutoCreation
from kafkalite.coordinators.cluster.brokers import (
    PRODUCER_ID_BLOCK,
    AllocateProducerIds,
    FenceBroker,
    RegisterBroker,
)
from kafkalite.coordinators.cluster.changes import Changes
from kafkalite.coordinators.cluster.controller import OutcomeUnknown
from kafkalite.coordinators.cluster.events import CreateTopics, DeleteTopics
from kafkalite.coordinators.cluster.local_controller import LocalController
from kafkalite.coordinators.cluster.metadata import Metadata
from kafkalite.coordinators.cluster.refusal import UnusableMetadata
from kafkalite.coordinators.cluster.snapshots import SnapshotId, list_snapshots
from kafkalite.coordinators.cluster.states import EndPoint
from kafkalite.coordinators.cluster.view import decided
from kafkalite.coordinators.effects import Record
from kafkalite.env import manual_env
from kafkalite.env.background import QueuedBackground
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


def open_controller(env, settings=None, node_ids=(1,), *, was_clean=True):
    home = LogHome(env, "/data", LogSettings())
    config = BrokerConfig({"node.id": "1", **(settings or {})})
    controller = LocalController(env, home, config, Metadata("a-cluster"))
    controller.read()
    controller.open()
    for node_id in node_ids:
        register(controller, node_id, was_clean=was_clean)
    return controller


def register(controller, node_id, *, was_clean=True):
    endpoint = EndPoint("PLAINTEXT", "", 9092, 0)
    directory = bytes([node_id]) * 16
    return controller.decide(
        RegisterBroker(node_id, [endpoint], None, [directory], was_clean)
    )


def create(controller, *names, partitions=1, factor=1):
    topics = [
        CreateTopicsRequest.Topic(name=name, num_partitions=partitions, replication_factor=factor)
        for name in names
    ]
    return controller.decide(CreateTopics(CreateTopicsRequest(topics=topics))).topics


def test_a_new_cluster_has_features_and_a_least_isr(env):
    controller = open_controller(env, {"min.insync.replicas": "2"}, node_ids=())
    assert controller.metadata.image.features["metadata.version"] == 30
    assert controller.metadata.image.config(4, "") == {"min.insync.replicas": "2"}
    assert controller.log.epoch == 1


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_restart_folds_to_the_same_image_in_a_new_epoch(env, is_clean):
    controller = open_controller(env)
    create(controller, "a", "b", partitions=3)
    controller.decide(DeleteTopics(DeleteTopicsRequest(topic_names=["a"])))
    if is_clean:
        controller.close()
    again = open_controller(env, node_ids=())
    assert again.metadata.image == controller.metadata.image
    assert again.log.epoch == 2
    assert again.log.end_offset == controller.log.end_offset + 1
    create(again, "c")
    assert open_controller(env, node_ids=()).metadata.image == again.metadata.image


def test_a_broker_epoch_is_the_offset_of_its_registration(env):
    controller = open_controller(env, node_ids=())
    offset = controller.log.end_offset
    assert register(controller, 1) == offset
    assert controller.metadata.image.brokers[1].epoch == offset
    assert register(controller, 1) > offset


def test_subscribers_hear_of_a_change_when_it_is_in_the_image(env):
    controller = open_controller(env)
    heard = []
    metadata = controller.metadata
    metadata.subscribe(lambda changes: heard.append((changes, list(metadata.image.topics))))
    create(controller, "t", partitions=2)
    changes, topics = heard[-1]
    assert topics == ["t"]
    assert [topic.name for topic in changes.created.values()] == ["t"]
    assert len(changes.partitions) == 2
    create(controller, "t")
    assert len(heard) == 1


def test_what_cannot_be_written_has_not_happened(env):
    controller = open_controller(env)
    heard: list[Changes] = []
    controller.metadata.subscribe(heard.append)
    image_before = open_controller(env, node_ids=()).metadata.image

    def refuse(records):
        raise KafkaError(Error.KAFKA_STORAGE_ERROR)

    controller.log.append, append = refuse, controller.log.append
    with pytest.raises(KafkaError):
        create(controller, "t")
    controller.log.append = append
    assert heard == []
    assert controller.metadata.image == image_before
    assert create(controller, "t")[0].error_code == Error.NONE


def test_records_of_one_decision_are_one_batch(env):
    """Cut anywhere in its last batch, the log has all of a decision or nothing of it."""
    controller = open_controller(env)
    path = f"{DIRECTORY}/{0:020d}.log"
    before = env.disk.size_of(path)
    create(controller, "a", "b", "c", partitions=5)
    after = env.disk.size_of(path)
    for size in (*range(before, after, 37), after):
        copy = manual_env(3)
        copy.disk.make_directory(DIRECTORY)
        for name in env.disk.list_directory(DIRECTORY):
            source = env.disk.open(f"{DIRECTORY}/{name}")
            data = source.read_at(0, source.size())
            target = copy.disk.create(f"{DIRECTORY}/{name}")
            target.write_at(0, data[:size] if name.endswith(".log") else data)
        found = open_controller(copy, node_ids=()).metadata.image.topics
        assert set(found) == ({"a", "b", "c"} if size == after else set())


def test_an_unfinished_transaction_at_the_end_never_happened(env):
    controller = open_controller(env)
    half = [BeginTransactionRecord(), TopicRecord(name="half", topic_id=b"\1" * 16)]
    controller._write(decided(controller.shard.view, half, None))
    assert "half" not in controller.metadata.image.topics
    again = open_controller(env, node_ids=())
    assert "half" not in again.metadata.image.topics
    whole = [BeginTransactionRecord(), half[1], EndTransactionRecord()]
    again._write(decided(again.shard.view, whole, None))
    assert "half" in again.metadata.image.topics


def test_a_snapshot_replaces_what_it_covers(env):
    controller = open_controller(env)
    create(controller, "t", partitions=9)
    controller.write_snapshot()
    end_offset = controller.log.end_offset
    assert list_snapshots(env.disk, DIRECTORY) == [SnapshotId(end_offset, 1)]
    assert controller.log.log.log_start_offset == end_offset
    assert f"{0:020d}.log" not in env.disk.list_directory(DIRECTORY)
    create(controller, "u")
    controller.write_snapshot()
    assert len(list_snapshots(env.disk, DIRECTORY)) == 1
    assert open_controller(env, node_ids=()).metadata.image == controller.metadata.image


def test_snapshots_come_by_bytes_and_by_time(env):
    settings = {"metadata.log.max.record.bytes.between.snapshots": "20000"}
    controller = open_controller(env, settings)
    create(controller, "small")
    assert list_snapshots(env.disk, DIRECTORY) == []
    create(controller, "large", partitions=300)
    env.clock.advance(0)
    assert len(list_snapshots(env.disk, DIRECTORY)) == 1
    create(controller, "more")
    env.clock.advance(3_600_000)
    (newest,) = list_snapshots(env.disk, DIRECTORY)
    assert newest.end_offset == controller.log.end_offset
    env.clock.advance(3_600_000)
    assert list_snapshots(env.disk, DIRECTORY) == [newest]


def test_a_broken_snapshot_is_passed_over_for_an_older_one(env):
    controller = open_controller(env)
    create(controller, "t")
    controller.close()
    good = open_controller(env, node_ids=()).metadata.image
    name = SnapshotId(controller.log.end_offset + 1, 2).file_name
    file = env.disk.create(f"{DIRECTORY}/{name}")
    file.write_at(0, b"not a snapshot")
    assert open_controller(env, node_ids=()).metadata.image == good


def test_an_unclean_start_begins_new_leader_epochs(env):
    controller = open_controller(env)
    create(controller, "t", partitions=2)
    topic = controller.metadata.image.topics["t"]
    epochs = [each.leader_epoch for each in topic.partitions.values()]
    assert epochs == [0, 0]
    again = open_controller(env)
    epochs = [each.leader_epoch for each in again.metadata.image.topics["t"].partitions.values()]
    assert epochs == [0, 0]
    again = open_controller(env, was_clean=False)
    epochs = [each.leader_epoch for each in again.metadata.image.topics["t"].partitions.values()]
    assert epochs == [1, 1]


def test_a_broker_that_is_back_leads_what_nobody_else_has(env):
    controller = open_controller(env, node_ids=(1, 2, 3))
    create(controller, "t", partitions=3)
    before = leaders(controller)
    controller.decide(FenceBroker(2))
    assert leaders(controller) == [-1, 1, 3]
    register(controller, 2)
    assert leaders(controller) == before


def test_others_lead_what_a_broker_leaves_and_go_on_when_it_is_back(env):
    controller = open_controller(env, node_ids=(1, 2, 3))
    create(controller, "t", partitions=3, factor=3)
    controller.decide(FenceBroker(2))
    states = controller.metadata.image.topics["t"].partitions
    assert all(each.leader in (1, 3) and set(each.isr) == {1, 3} for each in states.values())
    before = dict(states)
    register(controller, 2)
    assert controller.metadata.image.topics["t"].partitions == before


@pytest.mark.parametrize("order", list(permutations((1, 2, 3))))
def test_the_last_one_in_sync_leads_when_it_is_back(env, order):
    controller = open_controller(env, node_ids=(1, 2, 3))
    create(controller, "t", partitions=3, factor=3)
    for node_id in order:
        controller.decide(FenceBroker(node_id))
    for node_id in order[:2]:
        register(controller, node_id)
        assert leaders(controller) == [-1, -1, -1]
    register(controller, order[2])
    states = controller.metadata.image.topics["t"].partitions.values()
    assert all((each.leader, each.isr) == (order[2], (order[2],)) for each in states)


def test_brokers_that_did_not_start_again_are_fenced(env):
    """Until they do, which is what all of a process are about to: what they led waits for them."""
    controller = open_controller(env, node_ids=(1, 2, 3))
    create(controller, "t", partitions=3, factor=3)
    before = controller.metadata.image.topics["t"].partitions.copy()
    controller.close()
    again = open_controller(env, node_ids=())
    again.fence_absent()
    assert again.metadata.image.live_brokers() == [1]
    for node_id in (1, 3, 2):
        register(again, node_id)
    assert again.metadata.image.live_brokers() == [1, 2, 3]
    assert again.metadata.image.topics["t"].partitions == before


def test_others_take_over_from_who_went_while_the_controller_was_away(env):
    controller = open_controller(env, node_ids=(1, 2, 3))
    create(controller, "t", partitions=3, factor=3)
    controller.fence_absent({1, 3})
    assert leaders(controller) in ([1, 1, 3], [1, 3, 3])


def leaders(controller):
    return sorted(each.leader for each in controller.metadata.image.topics["t"].partitions.values())


def test_producer_ids_are_given_once_over_brokers_and_restarts(env):
    given = set()
    for _ in range(3):
        controller = open_controller(env, node_ids=(1, 2))
        for node_id in (1, 2):
            given |= set(controller.submit(AllocateProducerIds(node_id)).value)
    assert len(given) == 3 * 2 * PRODUCER_ID_BLOCK


def test_only_a_registered_broker_is_given_producer_ids(env):
    controller = open_controller(env)
    assert controller.submit(AllocateProducerIds(9)).value.code == Error.BROKER_ID_NOT_REGISTERED


def test_with_fsync_a_reply_waits_until_what_it_tells_of_lasts(env):
    controller = open_controller(env, {"kafkalite.durability": "fsync"})
    env.clock.advance(1_000)
    controller.log.log.durability.hold()
    topic = CreateTopicsRequest.Topic(name="t", num_partitions=1, replication_factor=1)
    wanted = CreateTopics(CreateTopicsRequest(topics=[topic]))
    created = controller.submit(wanted)
    again = controller.submit(wanted)
    env.clock.advance(1_000)
    assert not controller.metadata.lasts
    assert not created.is_resolved
    assert not again.is_resolved  # what is refused because of it
    controller.log.log.durability.release()
    env.clock.advance(1_000)
    assert controller.metadata.lasts
    assert created.value.topics[0].error_code == Error.NONE
    assert again.value.topics[0].error_code == Error.TOPIC_ALREADY_EXISTS
    assert controller.submit(wanted).is_resolved


@pytest.mark.parametrize("is_well", [True, False])
def test_a_controller_that_leaves_leaves_nobody_waiting_for_its_disk(env, monkeypatch, is_well):
    """Other brokers of its process go on, and follow what was decided; also where its last sync
    fails, in a directory that is being closed."""
    controller = open_controller(env, {"kafkalite.durability": "fsync"})
    env.clock.advance(1_000)
    env.background = QueuedBackground()
    topic = CreateTopicsRequest.Topic(name="t", num_partitions=1, replication_factor=1)
    created = controller.submit(CreateTopics(CreateTopicsRequest(topics=[topic])))
    followed, released = controller.metadata.once_it_lasts(None), []
    controller.once_durable(lambda: released.append("it lasts"))
    env.clock.advance(0)
    assert not created.is_resolved
    controller.log.home.refuse_writes()
    if not is_well:
        def fail(*_):
            raise OSError(errno.EIO, "a planted failure")

        monkeypatch.setattr("kafkalite.log.partition_log.sync_all", fail)
    controller.leave()
    env.clock.advance(0)
    if is_well:
        assert created.value.topics[0].error_code == Error.NONE
        assert (followed.value, released) == (None, ["it lasts"])
    else:
        assert isinstance(created.value, OutcomeUnknown)
        assert isinstance(followed.value, OutcomeUnknown)
        assert released == []
    monkeypatch.undo()
    controller.come_back(LogHome(env, "/data", LogSettings()), bytes(16))
    controller.open()
    env.background.run_all()
    env.clock.advance(0)
    assert released == ["it lasts"]


def auto_creation(controller):
    return AutoCreation(controller.metadata, controller, controller.config)


def test_internal_topics_have_no_more_replicas_than_there_are_brokers(env):
    controller = open_controller(env, node_ids=(1, 2))
    created = auto_creation(controller).create_internal("__transaction_state")
    env.clock.advance(0)
    assert created.value is None
    state = controller.metadata.image.partition("__transaction_state", 49)
    assert len(state.replicas) == 2
    settings = controller.metadata.image.config(2, "__transaction_state")
    assert settings["cleanup.policy"] == "compact"
    assert settings["min.insync.replicas"] == "2"
    created = auto_creation(controller).create_internal("__transaction_state")
    env.clock.advance(0)
    assert created.value is None


def test_a_log_that_does_not_fold_keeps_the_broker_from_starting(env):
    controller = open_controller(env)
    broken = [Record(None, b"\x01\x09\x00" + b"\1" * 16 + b"\0")]
    controller.log.append(finish(controller.log.batch_of(broken)))
    with pytest.raises(UnusableMetadata, match="is damaged"):
        open_controller(env)


@pytest.mark.parametrize(
    ("settings", "name", "why"),
    [
        ({"offsets.topic.segment.bytes": "6000"}, "__consumer_offsets", "segment.bytes"),
        ({"default.replication.factor": "3"}, "orders", "Lower default.replication.factor"),
    ],
)
def test_a_topic_that_cannot_be_created_on_demand_is_told_once(env, caplog, settings, name, why):
    """Who asks is told a code, and asks again for ever: only the log can say what is wrong."""
    creation = auto_creation(open_controller(env, settings))
    for _ in range(3):
        creation.create([name])
    told = [record.getMessage() for record in caplog.records if name in record.getMessage()]
    assert len(told) == 1
    assert why in told[0]
