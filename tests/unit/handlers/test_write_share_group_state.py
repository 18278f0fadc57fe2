"""WriteShareGroupState: what is said later is laid over what was said before."""

import pytest

from kafkalite.coordinators.shares.front import STATE_TOPIC
from kafkalite.protocol.errors import Error
from tests.unit.handlers.share_states import StateDesk

AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


def begun(settings: dict[str, str] | None = None) -> StateDesk:
    desk = StateDesk(settings)
    desk.of("initialize", state_epoch=0, start_offset=0)
    return desk


@pytest.mark.parametrize("version", [0, 1])
def test_more_deliveries_and_later_states_hold(version: int) -> None:
    desk = begun()
    desk.write((0, 9, AVAILABLE, 1), version=version)
    desk.write((3, 5, ACKNOWLEDGED, 1), version=version)
    desk.write((2, 3, AVAILABLE, 1), version=version)  # says less of 3
    desk.write((8, 12, AVAILABLE, 2), version=version)
    assert desk.known() == [
        (0, 2, AVAILABLE, 1), (3, 5, ACKNOWLEDGED, 1), (6, 7, AVAILABLE, 1), (8, 12, AVAILABLE, 2)
    ]  # fmt: skip


def test_what_lies_before_the_start_is_forgotten_and_neighbours_are_one() -> None:
    desk = begun()
    desk.write((0, 4, ACKNOWLEDGED, 1), (5, 9, ARCHIVED, 1))
    desk.write((10, 11, ARCHIVED, 1), start_offset=7)
    assert desk.known() == [(7, 11, ARCHIVED, 1)]
    assert desk.of("summarize", leader_epoch=-1).start_offset == 7


def test_a_start_of_minus_one_leaves_it() -> None:
    desk = begun()
    desk.write((4, 4, ARCHIVED, 1), start_offset=3)
    desk.write((5, 5, ARCHIVED, 1), start_offset=-1)
    assert desk.of("summarize", leader_epoch=-1).start_offset == 3


def test_what_was_written_is_there_after_a_restart() -> None:
    desk = begun({"share.coordinator.snapshot.update.records.per.snapshot": "3"})
    for offset in range(8):
        desk.write((offset, offset, ACKNOWLEDGED, offset + 1))
        desk.write((0, 0, ACKNOWLEDGED, 1), partition=1)  # nobody began with that
    known = desk.known()
    desk.close()
    assert len(known) == 8
    assert known == desk.started_again().known()


def test_whole_states_follow_so_many_changes_and_what_is_before_them_is_pruned() -> None:
    settings = {"share.coordinator.snapshot.update.records.per.snapshot": "3"}
    desk = begun(settings)
    for offset in range(10):
        desk.write((offset, offset, ACKNOWLEDGED, offset + 1))
    logs = [each.log for each in desk.context.partitions if each.topic == STATE_TOPIC]
    [log] = [each for each in logs if each.log_end_offset]
    assert (log.log_start_offset, log.log_end_offset) == (0, 11)
    desk.clock.advance(300_000)
    assert log.log_start_offset == 8  # the third whole state: after each there are three changes
    known = desk.known()
    desk.close()
    assert desk.started_again().known() == known


def test_states_that_nobody_writes_to_are_written_anew_so_that_others_can_be_pruned() -> None:
    desk = begun()
    desk.of("initialize", partition=1, state_epoch=0, start_offset=0)
    for turn in range(3):
        desk.clock.advance(150_000)
        desk.write((turn, turn, ACKNOWLEDGED, 1))
    desk.clock.advance(600_000)
    starts = [
        each.log.log_start_offset for each in desk.context.partitions if each.topic == STATE_TOPIC
    ]
    assert any(starts)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"state_epoch": 2}, Error.FENCED_STATE_EPOCH),
        ({"state_epoch": -1, "leader_epoch": -1}, Error.NONE),
        ({"state_epoch": 9, "leader_epoch": 9}, Error.NONE),
    ],
)
def test_who_may_write(fields: dict[str, int], code: Error) -> None:
    desk = StateDesk()
    desk.of("initialize", state_epoch=3, start_offset=0)
    assert desk.write((0, 0, ACKNOWLEDGED, 1), **fields).error_code == code


def test_what_nobody_began_with_cannot_be_written() -> None:
    refused = StateDesk().write((0, 0, ACKNOWLEDGED, 1))
    assert (refused.error_code, refused.error_message) == (
        Error.INVALID_REQUEST,
        "Write operation on uninitialized share partition not allowed.",
    )


def test_states_of_a_topic_that_is_deleted_go_with_it() -> None:
    desk = begun()
    desk.delete("t")
    desk.create("u")
    assert desk.of("read", leader_epoch=-1).error_code == Error.INVALID_REQUEST
