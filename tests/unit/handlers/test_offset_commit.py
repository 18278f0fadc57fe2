"""OffsetCommit: names and ids of topics, partitions that do not exist, every version."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import OffsetCommitRequest, OffsetFetchRequest
from tests.unit.handlers.group_desk import Desk, versions

Topic = OffsetCommitRequest.Topic
Partition = OffsetCommitRequest.Partition


def commit(*topics: Topic, group_id: str = "readers") -> OffsetCommitRequest:
    return OffsetCommitRequest(group_id=group_id, topics=list(topics))


def orders(desk: Desk, *indexes: int, offset: int = 7) -> Topic:
    partitions = [
        Partition(partition_index=index, committed_offset=offset, committed_metadata="note")
        for index in indexes
    ]
    return Topic(name="orders", topic_id=desk.orders, partitions=partitions)


def committed(desk: Desk, index: int) -> tuple[int, str]:
    topic = OffsetFetchRequest.GroupTopic(name="orders", partition_indexes=[index])
    group = OffsetFetchRequest.Group(group_id="readers", topics=[topic])
    response = desk.ask(OffsetFetchRequest(groups=[group]), 9)
    found = response.groups[0].topics[0].partitions[0]
    return found.committed_offset, found.metadata


@pytest.mark.parametrize("version", versions("OffsetCommit"))
def test_an_offset_is_kept_in_every_version(version: int) -> None:
    desk = Desk()
    response = desk.ask(commit(orders(desk, 1)), version)
    assert response.topics[0].partitions[0].error_code == Error.NONE
    assert committed(desk, 1) == (7, "note")


def test_a_partition_that_does_not_exist_does_not_fail_the_others() -> None:
    desk = Desk()
    response = desk.ask(commit(orders(desk, 1, 99)), 9)
    codes = {one.partition_index: one.error_code for one in response.topics[0].partitions}
    assert codes == {1: Error.NONE, 99: Error.UNKNOWN_TOPIC_OR_PARTITION}
    assert len(response.topics) == 1


def test_unknown_topics_by_name_and_by_id() -> None:
    desk = Desk()
    unknown = Topic(name="nowhere", topic_id=b"\7" * 16, partitions=[Partition()])
    by_name = desk.ask(commit(unknown), 9).topics[0].partitions[0]
    by_id = desk.ask(commit(unknown), 10).topics[0].partitions[0]
    assert by_name.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert by_id.error_code == Error.UNKNOWN_TOPIC_ID


def test_every_partition_hears_why_the_commit_was_refused() -> None:
    desk = Desk()
    request = commit(orders(desk, 0, 1))
    request.generation_id_or_member_epoch = 3
    for version, code in ((9, Error.GROUP_ID_NOT_FOUND), (8, Error.ILLEGAL_GENERATION)):
        response = desk.ask(request, version)
        assert [one.error_code for one in response.topics[0].partitions] == [code, code]


def test_a_commit_without_a_group_name_is_kept_as_in_apache_kafka() -> None:
    desk = Desk()
    response = desk.ask(commit(orders(desk, 0), group_id=""), 9)
    assert response.topics[0].partitions[0].error_code == Error.NONE


def test_version_1_says_when_the_commit_was_made() -> None:
    desk = Desk()
    topic = orders(desk, 0)
    topic.partitions[0].commit_timestamp = 1_234
    desk.ask(commit(topic), 1)
    shard = desk.groups.runtimes[desk.groups.partition_for("readers")].shard
    kept = shard.state.offsets.get("readers", "orders", 0)  # type: ignore[union-attr]
    assert kept.commit_timestamp_ms == 1_234
