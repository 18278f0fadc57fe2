"""Brokers whose controller is elsewhere: over sockets they come, copy, fail over and go."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkalite.coordinators.cluster.brokers import AllocateProducerIds
from kafkalite.coordinators.cluster.configs import AlterConfigs, Operation, ResourceChange, Step
from kafkalite.coordinators.cluster.directories import directory_of
from kafkalite.coordinators.cluster.states import TOPIC, PartitionState
from kafkalite.log.checkpoints import write_properties
from kafkalite.log.directory import WrongDirectory
from kafkalite.protocol.errors import KafkaError
from tests.unit.broker.processes import Processes, every_wait_ends


@pytest.fixture
def processes() -> Iterator[Processes]:
    made = Processes()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def every_wait_ends_with_the_broker() -> Iterator[None]:
    with every_wait_ends():
        yield


def state(processes: Processes, node_id: int, topic: str = "t") -> PartitionState | None:
    return processes.brokers[node_id].metadata.image.partition(topic, 0)


def leader_of(processes: Processes, node_id: int) -> int | None:
    found = state(processes, node_id)
    return None if found is None else found.leader


def in_sync(processes: Processes, node_id: int) -> list[int]:
    found = state(processes, node_id)
    return [] if found is None else sorted(found.isr)


def create(processes: Processes, node_id: int, name: str, **configs: str) -> None:
    made = processes.brokers[node_id].create_topic(name, 1, configs)
    assert processes.value(made) is None
    processes.until(lambda: all(
        broker.metadata.image.topics.get(name) for broker in processes.brokers.values()
    ), f"for {name}")  # fmt: skip


def test_brokers_come_are_told_of_each_other_and_share_topics(processes: Processes) -> None:
    controller = processes.start_controller(default_replication_factor="3")
    for node_id in (1, 2, 3):
        processes.start(node_id)
    create(processes, 2, "t")
    brokers = list(processes.brokers.values())
    image = controller.metadata.image
    processes.until(lambda: all(each.metadata.image == image for each in brokers))
    assert image.live_brokers() == [1, 2, 3]
    processes.until(lambda: all(each.partitions.held("t", 0) for each in brokers))
    processes.until(lambda: in_sync(processes, 1) == [1, 2, 3])
    assert controller.context.quorum is not None
    assert sorted(controller.context.quorum.observers) == [1, 2, 3]


def test_who_is_killed_is_fenced_and_comes_back_in_sync(processes: Processes) -> None:
    processes.start_controller(default_replication_factor="3")
    for node_id in (1, 2, 3):
        processes.start(node_id)
    create(processes, 1, "t")
    first = leader_of(processes, 1)
    assert first is not None
    processes.kill(first)
    other = next(iter(processes.brokers))
    processes.until(lambda: leader_of(processes, other) not in (first, -1), "for a new leader")
    processes.start(first)
    processes.until(lambda: in_sync(processes, other) == [1, 2, 3], "in sync")


@pytest.mark.parametrize("is_alone", [False, True])
def test_who_lost_its_disk_copies_all_of_it_anew(processes: Processes, is_alone: bool) -> None:
    controller = processes.start_controller(default_replication_factor="3")
    for node_id in (1, 2, 3):
        processes.start(node_id)
    create(processes, 1, "t")
    processes.until(lambda: in_sync(processes, 1) == [1, 2, 3], "all in sync")
    first, *others = sorted(processes.brokers)
    processes.kill(first)
    del processes.disks[first]
    if is_alone:  # nobody leads when it comes back
        for node_id in others:
            processes.kill(node_id)
        processes.until(lambda: not controller.metadata.image.live_brokers(), "fenced")
    again = processes.start(first)
    if is_alone:
        assert ("t", 0) in again.partitions.offline
        for node_id in others:
            processes.start(node_id)
    processes.until(lambda: in_sync(processes, others[0]) == [1, 2, 3], "in sync again")
    assert again.partitions.find("t", 0).log.home is again.logs.directories[0].home
    known = state(processes, others[0])
    assert known is not None
    assert directory_of(known, first) == again.logs.directories[0].directory_id


def test_what_was_on_a_lost_disk_alone_stays_offline(processes: Processes) -> None:
    processes.start_controller()
    processes.start(1)
    create(processes, 1, "t")
    processes.kill(1)
    del processes.disks[1]
    again = processes.start(1)
    assert ("t", 0) in again.partitions.offline
    create(processes, 1, "other")
    processes.until(lambda: again.partitions.held("other", 0))
    assert ("t", 0) in again.partitions.offline


def test_who_stops_hands_over_first_and_its_clean_stop_is_known(processes: Processes) -> None:
    controller = processes.start_controller(default_replication_factor="2")
    for node_id in (1, 2):
        processes.start(node_id)
    create(processes, 1, "t")
    first = leader_of(processes, 1)
    assert first is not None
    leaving = processes.brokers[first]
    epoch = leaving.lifecycle.epoch
    processes.stop(first)
    assert leaving.lifecycle.is_let_go
    other = next(iter(processes.brokers))
    assert leader_of(processes, other) == other
    again = processes.start(first)
    assert again.logs.directories[0].broker_epoch == epoch
    assert controller.metadata.image.live_brokers() == [1, 2]


def test_what_a_broker_asks_of_its_controller_is_answered(processes: Processes) -> None:
    processes.start_controller()
    broker = processes.start(1)
    create(processes, 1, "t")
    blocks = [processes.value(broker.asked.submit(AllocateProducerIds(1))) for _ in range(2)]
    assert blocks[1].start == blocks[0].stop
    steps = [Step("retention.ms", Operation.SET, "5000"), Step("no.such", Operation.SET, "1")]
    changes = [ResourceChange(TOPIC, "t", steps[:1]), ResourceChange(TOPIC, "u", steps[:1])]
    good, bad = processes.value(broker.asked.submit(AlterConfigs(changes)))
    assert good is None
    assert isinstance(bad, KafkaError)
    processes.until(
        lambda: broker.metadata.image.config(TOPIC, "t") == {"retention.ms": "5000"}
    )


def test_a_controller_that_comes_back_finds_its_brokers(processes: Processes) -> None:
    first = processes.start_controller()
    broker = processes.start(1)
    create(processes, 1, "t")
    processes.value(first.stop(0))
    waiting = broker.create_topic("later", 1)
    second = processes.start_controller()
    assert processes.value(waiting) is None
    processes.until(lambda: broker.metadata.image.topics.keys() == {"t", "later"})
    assert second.metadata.image.live_brokers() == [1]
    assert second.controller.log.epoch > first.controller.log.epoch


def test_who_comes_late_begins_with_a_snapshot(processes: Processes) -> None:
    controller = processes.start_controller(controller_quorum_fetch_snapshot_max_bytes="300")
    processes.start(1)
    for number in range(5):
        create(processes, 1, f"t{number}")
    controller.controller.write_snapshot()
    assert controller.controller.log.log.log_start_offset > 0
    late = processes.start(2, controller_quorum_fetch_snapshot_max_bytes="300")
    processes.until(lambda: late.metadata.image == controller.metadata.image)


def test_a_directory_that_nobody_formatted_is_no_members(processes: Processes) -> None:
    processes.start_controller()
    processes.env_of(1).disk.remove("/data/meta.properties")
    with pytest.raises(WrongDirectory, match="kafka-storage"):
        processes.new_broker(1)


def test_another_cluster_is_refused_and_said(
    processes: Processes, caplog: pytest.LogCaptureFixture
) -> None:
    processes.start_controller()
    other = {"version": "1", "cluster.id": "AAAAAAAAAAAAAAAAAAAAAA", "node.id": "1"}
    write_properties(processes.env_of(1).disk, "/data/meta.properties", other)
    broker = processes.new_broker(1)
    failure = processes.value(broker.start())
    assert isinstance(failure, OSError)
    assert "INCONSISTENT_CLUSTER_ID" in str(failure)
    assert "cannot follow the metadata" in caplog.text
