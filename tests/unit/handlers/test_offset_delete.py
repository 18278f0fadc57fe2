"""OffsetDelete: single offsets go; what does not exist is told one by one."""

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import OffsetDeleteRequest
from tests.unit.handlers.group_desk import Desk
from tests.unit.handlers.test_offset_commit import commit, committed, orders

Topic, Partition = OffsetDeleteRequest.Topic, OffsetDeleteRequest.Partition


def delete(*indexes: int) -> OffsetDeleteRequest:
    partitions = [Partition(partition_index=index) for index in indexes]
    return OffsetDeleteRequest(
        group_id="readers", topics=[Topic(name="orders", partitions=partitions)]
    )


def test_an_offset_goes_and_a_missing_partition_is_told() -> None:
    desk = Desk()
    desk.ask(commit(orders(desk, 1)), 9)
    response = desk.ask(delete(1, 99), 0)
    codes = {one.partition_index: one.error_code for one in response.topics[0].partitions}
    assert (response.error_code, len(response.topics)) == (Error.NONE, 1)
    assert codes == {1: Error.NONE, 99: Error.UNKNOWN_TOPIC_OR_PARTITION}
    assert committed(desk, 1) == (-1, "")


def test_an_unknown_group_is_told() -> None:
    assert Desk().ask(delete(1), 0).error_code == Error.GROUP_ID_NOT_FOUND


def test_a_group_without_a_name_is_refused() -> None:
    assert Desk().ask(OffsetDeleteRequest(), 0).error_code == Error.INVALID_GROUP_ID
