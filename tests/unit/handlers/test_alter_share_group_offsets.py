"""AlterShareGroupOffsets: an empty group begins elsewhere."""

from typing import Any

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    AlterShareGroupOffsetsRequest,
    ShareGroupDescribeRequest,
)
from tests.unit.handlers.share_desk import ACCEPT, GROUP, ShareDesk, desk_with


def alter(desk: ShareDesk, *offsets: tuple[int, int], topic: str = "t", group: str = GROUP) -> Any:
    kind = AlterShareGroupOffsetsRequest
    partitions = [kind.Partition(partition_index=index, start_offset=at) for index, at in offsets]
    named = kind.Topic(topic_name=topic, partitions=partitions)
    return desk.ask(kind(group_id=group, topics=[named]), 0)


def test_a_group_begins_where_it_is_told() -> None:
    desk = desk_with(10)
    desk.acquired()
    desk.acknowledge((0, 9, ACCEPT), epoch=-1)
    desk.leave()
    answer = alter(desk, (0, 4), (7, 1))
    assert answer.error_code == Error.NONE
    codes = [one.error_code for one in answer.responses[0].partitions]
    assert codes == [Error.NONE, Error.UNKNOWN_TOPIC_OR_PARTITION]
    desk.join()
    assert desk.acquired() == [(4, 9, 1)]


def test_a_group_with_members_stays_where_it_is() -> None:
    desk = desk_with(1)
    assert alter(desk, (0, 4)).error_code == Error.NON_EMPTY_GROUP


def test_a_group_that_nobody_knew_is_made() -> None:
    desk = ShareDesk()
    desk.append(b"a", b"b")
    assert alter(desk, (0, 1)).responses[0].partitions[0].error_code == Error.NONE
    desk.join()
    assert desk.acquired() == [(1, 1, 1)]


def test_a_group_that_was_made_so_is_described_in_its_first_epoch() -> None:
    desk = ShareDesk()
    alter(desk, (0, 1))
    [group] = desk.ask(ShareGroupDescribeRequest(group_ids=[GROUP]), 1).groups
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Empty", 1, 1)


def test_a_topic_or_a_group_without_a_name_is_refused() -> None:
    desk = ShareDesk()
    (topic,) = alter(desk, (0, 1), topic="nothing").responses
    assert topic.partitions[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert alter(desk, (0, 1), group="").error_code == Error.INVALID_GROUP_ID


def test_a_refused_topic_that_is_named_twice_is_told_of_once() -> None:
    kind = AlterShareGroupOffsetsRequest
    named = kind.Topic(
        topic_name="nothing", partitions=[kind.Partition(partition_index=0, start_offset=1)]
    )
    answer = ShareDesk().ask(kind(group_id=GROUP, topics=[named, named]), 0)
    [topic] = answer.responses
    assert [each.partition_index for each in topic.partitions] == [0, 0]


def test_of_a_refused_topic_without_partitions_nothing_is_told() -> None:
    desk = ShareDesk()
    assert alter(desk, topic="nothing").responses == []
    [known] = alter(desk).responses
    assert (known.topic_name, known.partitions) == ("t", [])
