"""InitializeShareGroupState: a partition begins, or begins anew."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import InitializeShareGroupStateRequest
from tests.unit.handlers.share_states import GROUP, StateDesk


def test_what_was_known_is_forgotten() -> None:
    desk = StateDesk()
    assert desk.of("initialize", state_epoch=3, start_offset=-1).error_code == Error.NONE
    desk.write((0, 9, 2, 1), state_epoch=3)
    assert desk.of("initialize", state_epoch=4, start_offset=7).error_code == Error.NONE
    answer = desk.of("read", leader_epoch=-1)
    assert (answer.state_epoch, answer.start_offset, answer.state_batches) == (4, 7, [])


def test_who_comes_in_an_older_epoch_is_fenced() -> None:
    desk = StateDesk()
    desk.of("initialize", state_epoch=3, start_offset=-1)
    refused = desk.of("initialize", state_epoch=2, start_offset=-1)
    assert refused.error_code == Error.FENCED_STATE_EPOCH


def test_a_topic_without_partitions_does_not_keep_others_from_beginning() -> None:
    desk = StateDesk()
    kind = InitializeShareGroupStateRequest
    entry = kind.Partition(partition=0, state_epoch=3, start_offset=5)
    empty = kind.Topic(topic_id=b"\1" * 16, partitions=[])
    asked = kind.Topic(topic_id=desk.topic_id, partitions=[entry])
    answer = desk.ask(kind(group_id=GROUP, topics=[empty, asked]), 0)
    [told] = answer.results
    assert (told.topic_id, told.partitions[0].error_code) == (desk.topic_id, Error.NONE)
    assert desk.of("read", leader_epoch=-1).start_offset == 5


@pytest.mark.parametrize("what", ["initialize", "read", "write", "delete", "summarize"])
def test_a_partition_that_is_none_is_refused(what: str) -> None:
    desk = StateDesk()
    fields = {
        "initialize": {"state_epoch": 0, "start_offset": -1},
        "read": {"leader_epoch": 0},
        "write": {"state_epoch": 0, "leader_epoch": 0, "start_offset": 0},
        "delete": {},
        "summarize": {"leader_epoch": 0},
    }[what]
    negative = desk.of(what, partition=-1, **fields)
    assert (negative.error_code, negative.error_message) == (
        Error.INVALID_REQUEST, "The partition id cannot be a negative number."
    )  # fmt: skip
    if what not in ("read", "write"):  # they ask first whether it was begun with
        unknown = desk.of(what, topic_id=b"\1" * 16, **fields)
        assert unknown.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
        assert desk.of(what, partition=2, **fields).error_code == (
            Error.UNKNOWN_TOPIC_OR_PARTITION
        )
    assert desk.of(what, group_id="", **fields) is None
