"""Requests for states that name a partition more than once: all of it is done, in their order, and
the partition is told of once, as the last of it went."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite.protocol.errors import Error
from tests.unit.handlers.share_states import GROUP, KINDS, StateDesk

OTHER_TOPIC = bytes(range(16))
REFUSED, DONE = {"state_epoch": 1, "start_offset": 9}, {"state_epoch": 3, "start_offset": 4}


def asked(desk: StateDesk, what: str, *topics: tuple[bytes, list[dict[str, Any]]]) -> Any:
    kind: Any = KINDS[what]
    told = [
        kind.Topic(topic_id=topic_id, partitions=[kind.Partition(**entry) for entry in entries])
        for topic_id, entries in topics
    ]
    return desk.ask(kind(group_id=GROUP, topics=told), kind.SPEC.api.versions.stop - 1).results


@pytest.mark.parametrize("what", list(KINDS))
def test_a_partition_that_is_named_twice_is_told_of_once(what: str) -> None:
    desk = StateDesk()
    entries = [{"partition": index} for index in (1, 0, 1)]
    again = [{"partition": 0}]
    results = asked(desk, what, (desk.topic_id, entries), (OTHER_TOPIC, again),
                    (desk.topic_id, again))  # fmt: skip
    told = {one.topic_id: [each.partition for each in one.partitions] for one in results}
    assert told == {desk.topic_id: [1, 0], OTHER_TOPIC: [0]}


@pytest.mark.parametrize("what", ["initialize", "write"])
def test_the_last_of_it_is_told(what: str) -> None:
    desk = StateDesk()
    desk.of("initialize", state_epoch=2, start_offset=0)
    for entries, expected in (
        ((REFUSED, DONE), Error.NONE),
        ((DONE, REFUSED), Error.FENCED_STATE_EPOCH),
    ):
        (result,) = asked(desk, what, (desk.topic_id, [dict(each) for each in entries]))
        assert [one.error_code for one in result.partitions] == [expected]
        assert desk.of("read", leader_epoch=-1).start_offset == 4
