"""DescribeShareGroupOffsets: where a group stands, and how much is left to it."""

from typing import Any

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import DescribeShareGroupOffsetsRequest
from tests.unit.handlers.share_desk import ACCEPT, GROUP, ShareDesk, desk_with


def offsets(
    desk: ShareDesk, topics: list[tuple[str, list[int]]] | None = None, version: int = 1
) -> Any:
    kind = DescribeShareGroupOffsetsRequest
    named = None
    if topics is not None:
        named = [kind.Topic(topic_name=name, partitions=indexes) for name, indexes in topics]
    return desk.ask(kind(groups=[kind.Group(group_id=GROUP, topics=named)]), version).groups[0]


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("topics", [None, [("t", [0])]])
def test_what_is_left_is_what_is_neither_accepted_nor_rejected(version, topics) -> None:
    desk = desk_with(10)
    desk.acquired()
    desk.acknowledge((0, 3, ACCEPT))
    desk.acknowledge((6, 6, ACCEPT), epoch=2)
    group = offsets(desk, topics, version)
    assert group.error_code == Error.NONE
    (topic,) = group.topics
    (one,) = topic.partitions
    assert (topic.topic_name, topic.topic_id) == ("t", desk.topic_id)
    assert (one.start_offset, one.lag) == (4, 5 if version else -1)


def test_where_nobody_has_read_yet_nothing_is_known() -> None:
    (topic,) = offsets(desk_with(10)).topics
    assert (topic.partitions[0].start_offset, topic.partitions[0].lag) == (-1, -1)


def test_topics_that_are_not_there_are_told_so() -> None:
    desk = desk_with(1)
    (topic,) = offsets(desk, [("nothing", [0, 1])]).topics
    assert [one.start_offset for one in topic.partitions] == [-1, -1]
    assert topic.topic_id == bytes(16)


def test_a_topic_that_is_named_twice_is_told_once_with_all_its_partitions() -> None:
    desk = desk_with(1)
    (topic,) = offsets(desk, [("t", [1, 0]), ("t", [0, 0])]).topics
    assert [one.partition_index for one in topic.partitions] == [1, 0]


def test_a_group_that_is_none_has_no_offsets() -> None:
    assert offsets(ShareDesk()).topics == []
    assert offsets(ShareDesk(), []).topics == []


def test_without_the_feature_nothing_is_told() -> None:
    desk = ShareDesk()
    desk.context.metadata.image.features["share.version"] = 0
    assert offsets(desk).error_code == Error.UNSUPPORTED_VERSION
