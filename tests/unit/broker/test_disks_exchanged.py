"""A broker process whose disk is exchanged, and that gets an earlier one back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafkalite.broker import replicas
from kafkalite.coordinators.cluster.brokers import AssignDirectories
from kafkalite.coordinators.cluster.directories import directory_of
from kafkalite.env.later import Later
from kafkalite.log.checkpoints import write_properties
from kafkalite.peers.wire_controller import WireController
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.replication.partition import Partition
from tests.unit.broker.processes import CLUSTER_ID, Processes, every_wait_ends
from tests.unit.log.making import batch


@pytest.fixture
def processes() -> Iterator[Processes]:
    made = Processes()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def every_wait_ends_with_the_broker() -> Iterator[None]:
    with every_wait_ends():
        yield


def replica(processes: Processes, node_id: int) -> Partition:
    return processes.brokers[node_id].partitions.find("t", 0)


def leads(processes: Processes, node_id: int) -> bool:
    partition = processes.brokers[node_id].partitions.held("t", 0)
    return partition is not None and partition.is_leader


def end(processes: Processes, node_id: int) -> int | None:
    """None while its log is being made."""
    partition = processes.brokers[node_id].partitions.held("t", 0)
    return None if partition is None else partition.log.log_end_offset


def append(processes: Processes, node_id: int, *values: bytes) -> None:
    leader = replica(processes, node_id)
    now_ms = processes.brokers[node_id].env.clock.now_ms()
    leader.append(batch(values, timestamp=now_ms), now_ms)
    reached = leader.log.log_end_offset
    processes.until(lambda: leader.high_watermark == reached, "committed")


def is_in_sync(processes: Processes, node_id: int) -> bool:
    state = processes.brokers[node_id].metadata.image.partition("t", 0)
    return state is not None and sorted(state.isr) == [1, 2]


def copied_anew(processes: Processes) -> tuple[int, int]:
    """A topic of two brokers, after one of these has got an empty disk; who has it, and who not."""
    processes.start_controller(default_replication_factor="2")
    for node_id in (1, 2):
        processes.start(node_id)
    assert processes.value(processes.brokers[1].create_topic("t", 1, {})) is None
    processes.until(lambda: all(is_in_sync(processes, each) for each in (1, 2)), "in sync")
    processes.until(lambda: any(leads(processes, each) for each in (1, 2)), "led")
    other, first = sorted((1, 2), key=lambda each: leads(processes, each))
    append(processes, first, b"before")
    processes.until(lambda: end(processes, other) == 1, "copied")
    processes.kill(first)
    earlier = processes.disks.pop(first)
    processes.start(first)
    processes.until(lambda: is_in_sync(processes, other), "in sync again")
    processes.disks[-first] = earlier
    return first, other


@pytest.mark.parametrize("is_alone", [True, False])
def test_an_earlier_disk_that_comes_back_is_no_leaders(
    processes: Processes, is_alone: bool
) -> None:
    """What was acknowledged since is on the disk that is away now, unless another has it."""
    first, other = copied_anew(processes)
    if is_alone:
        processes.kill(other)
        processes.until(lambda: leads(processes, first), "leads")
        append(processes, first, b"after", b"after it")
    else:
        append(processes, other, b"after", b"after it")
    processes.stop(first)
    later = processes.disks[first]
    processes.disks[first] = processes.disks[-first]
    again = processes.start(first)
    if not is_alone:
        processes.until(lambda: is_in_sync(processes, other), "in sync with the earlier disk")
        assert end(processes, first) == 3
        return
    assert ("t", 0) in again.partitions.offline
    [offline] = again.logs.offline
    assert "put the directory back" in offline.reason
    processes.stop(first)
    processes.disks[first] = later
    processes.start(first)
    processes.until(lambda: leads(processes, first), "leads with the later disk")
    assert end(processes, first) == 3


def test_a_disk_that_lost_its_name_is_served(processes: Processes) -> None:
    """The only replica cannot have been copied to another disk meanwhile."""
    processes.start_controller()
    for _ in range(3):  # so that the log has no record of its last epochs
        broker = processes.start(1)
        if broker.metadata.image.partition("t", 0) is None:
            assert processes.value(broker.create_topic("t", 1, {})) is None
        processes.until(lambda: leads(processes, 1), "leads")
        processes.kill(1)
    formatted = {"version": "1", "cluster.id": CLUSTER_ID, "node.id": "1"}
    write_properties(processes.disks[1], "/data/meta.properties", formatted)
    processes.start(1)
    processes.until(lambda: leads(processes, 1), "leads on a disk of another name")


def test_directories_are_told_until_the_controller_knows_them(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be away for longer than it is asked again: see `wire_controller.PATIENCE_MS`."""
    refused: list[object] = []
    submit = WireController.submit

    def refusing(wire: WireController, event: Any) -> Any:
        if not isinstance(event, AssignDirectories) or len(refused) == 2:
            return submit(wire, event)
        refused.append(event)
        return Later.of(KafkaError(Error.REQUEST_TIMED_OUT, "the controller is not there"))

    monkeypatch.setattr(WireController, "submit", refusing)
    monkeypatch.setattr(replicas, "TELL_AGAIN_MS", 20)
    first, other = copied_anew(processes)
    own = processes.brokers[first].logs.directories[0].directory_id

    def is_named() -> bool:
        state = processes.brokers[other].metadata.image.partition("t", 0)
        return state is not None and directory_of(state, first) == own

    processes.until(is_named, "named")
    assert len(refused) == 2
