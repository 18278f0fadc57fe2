"""FetchSnapshot: a snapshot of the metadata, piece by piece."""

import pytest

from kafkalite.coordinators.cluster.snapshots import list_snapshots
from kafkalite.env.disk import read_whole
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import FetchSnapshotRequest

Partition = FetchSnapshotRequest.Partition
SnapshotId = FetchSnapshotRequest.SnapshotId


def ask(desk, end_offset, epoch, position=0, max_bytes=1 << 20, leader_epoch=None, name=None):
    asked = Partition(
        partition=0,
        current_leader_epoch=desk.world.controller.log.epoch
        if leader_epoch is None
        else leader_epoch,
        snapshot_id=SnapshotId(end_offset=end_offset, epoch=epoch),
        position=position,
    )
    topic = FetchSnapshotRequest.Topic(name=name or "__cluster_metadata", partitions=[asked])
    response = desk.world.ask(
        FetchSnapshotRequest(replica_id=7, max_bytes=max_bytes, topics=[topic]), 1
    )
    assert response.error_code == Error.NONE
    return response.topics[0].partitions[0], response


@pytest.fixture
def snapshot(desk):
    desk.world.create("t", 3)
    desk.world.controller.write_snapshot()
    log = desk.world.controller.log
    found = list_snapshots(log.disk, log.directory)[-1]
    return found, read_whole(log.disk, f"{log.directory}/{found.file_name}")


def test_pieces_come_to_the_file(desk, snapshot):
    found, data = snapshot
    pieces = bytearray()
    while len(pieces) < len(data):
        part, response = ask(desk, found.end_offset, found.epoch, len(pieces), max_bytes=100)
        assert (part.size, part.position) == (len(data), len(pieces))
        pieces += bytes(part.unaligned_records)
    assert pieces == data
    assert [each.port for each in response.node_endpoints] == [9093]


def test_what_is_not_there_is_told(desk, snapshot):
    found, data = snapshot
    place = (found.end_offset, found.epoch)
    assert ask(desk, 10**6, 1)[0].error_code == Error.SNAPSHOT_NOT_FOUND
    assert ask(desk, *place, len(data))[0].error_code == Error.POSITION_OUT_OF_RANGE
    assert ask(desk, *place, -1)[0].error_code == Error.POSITION_OUT_OF_RANGE
    assert ask(desk, *place, leader_epoch=99)[0].error_code == Error.UNKNOWN_LEADER_EPOCH
    assert ask(desk, *place, leader_epoch=0)[0].error_code == Error.FENCED_LEADER_EPOCH
    assert ask(desk, *place, name="t")[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION


def test_one_piece_is_asked_for_at_a_time(desk, snapshot):
    """Each would be read from the disk in the same turn."""
    found, _ = snapshot
    epoch = desk.world.controller.log.epoch
    asked = Partition(
        partition=0, current_leader_epoch=epoch,
        snapshot_id=SnapshotId(end_offset=found.end_offset, epoch=found.epoch), position=0,
    )  # fmt: skip
    for partitions in ([asked] * 2, []):
        topic = FetchSnapshotRequest.Topic(name="__cluster_metadata", partitions=partitions)
        response = desk.world.ask(
            FetchSnapshotRequest(replica_id=7, max_bytes=1 << 20, topics=[topic]), 1
        )
        assert (response.error_code, response.topics) == (Error.INVALID_REQUEST, [])
