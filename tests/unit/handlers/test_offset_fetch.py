"""OffsetFetch: one group or many, all topics, ids, and errors where the version has them."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import OffsetCommitRequest, OffsetFetchRequest
from tests.unit.handlers.group_desk import Desk, versions

Group = OffsetFetchRequest.Group


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    partition = OffsetCommitRequest.Partition(
        partition_index=1, committed_offset=7, committed_leader_epoch=4, committed_metadata="note"
    )
    topic = OffsetCommitRequest.Topic(name="orders", partitions=[partition])
    desk.ask(OffsetCommitRequest(group_id="readers", topics=[topic]), 9)
    return desk


def request_for(desk: Desk, topics: bool = True) -> OffsetFetchRequest:
    new = OffsetFetchRequest.GroupTopic(
        name="orders", topic_id=desk.orders, partition_indexes=[0, 1]
    )
    old = OffsetFetchRequest.Topic(name="orders", partition_indexes=[0, 1])
    return OffsetFetchRequest(
        group_id="readers",
        topics=[old] if topics else None,
        groups=[Group(group_id="readers", topics=[new] if topics else None)],
    )


@pytest.mark.parametrize("version", versions("OffsetFetch"))
def test_offsets_are_told_in_every_version(desk: Desk, version: int) -> None:
    response = desk.ask(request_for(desk), version)
    group = response.groups[0] if version >= 8 else response
    found = {one.partition_index: one for one in group.topics[0].partitions}
    assert (found[0].committed_offset, found[0].error_code) == (-1, Error.NONE)
    assert (found[1].committed_offset, found[1].metadata) == (7, "note")
    if version >= 5:
        assert found[1].committed_leader_epoch == 4


@pytest.mark.parametrize("version", [2, 7, 8, 10])
def test_null_means_all_topics(desk: Desk, version: int) -> None:
    response = desk.ask(request_for(desk, topics=False), version)
    group = response.groups[0] if version >= 8 else response
    assert [one.partition_index for one in group.topics[0].partitions] == [1]
    if version >= 10:
        assert group.topics[0].topic_id == desk.orders


def test_many_groups_are_answered_in_their_order(desk: Desk) -> None:
    names = ["b", "readers", "a"]
    request = OffsetFetchRequest(groups=[Group(group_id=name, topics=None) for name in names])
    response = desk.ask(request, 9)
    assert [group.group_id for group in response.groups] == names
    assert [len(group.topics) for group in response.groups] == [0, 1, 0]


def test_an_unknown_topic_id_is_told_beside_the_known_ones(desk: Desk) -> None:
    request = request_for(desk)
    assert request.groups[0].topics is not None
    request.groups[0].topics.append(
        OffsetFetchRequest.GroupTopic(topic_id=b"\7" * 16, partition_indexes=[0])
    )
    known, unknown = desk.ask(request, 10).groups[0].topics
    assert known.partitions[1].committed_offset == 7
    assert unknown.partitions[0].error_code == Error.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("version", versions("OffsetFetch"))
def test_a_coordinator_elsewhere_is_told_where_the_version_can(desk: Desk, version: int) -> None:
    desk.stop_coordinating()
    response = desk.ask(request_for(desk), version)
    if version < 2:
        codes = {one.error_code for one in response.topics[0].partitions}
        assert codes == {Error.NOT_COORDINATOR}
    else:
        group = response.groups[0] if version >= 8 else response
        assert group.error_code == Error.NOT_COORDINATOR
