"""ReadShareGroupState: what the leader of a partition goes on with."""

from kafkalite.protocol.errors import Error
from tests.unit.handlers.share_states import StateDesk


def test_a_newer_leader_fences_the_one_before() -> None:
    desk = StateDesk()
    desk.of("initialize", state_epoch=0, start_offset=5)
    assert desk.of("read", leader_epoch=2).start_offset == 5
    assert desk.of("read", leader_epoch=1).error_code == Error.FENCED_LEADER_EPOCH
    assert desk.write((5, 5, 2, 1), leader_epoch=1).error_code == Error.FENCED_LEADER_EPOCH
    assert desk.write((5, 5, 2, 1), leader_epoch=2).error_code == Error.NONE


def test_a_leader_is_fenced_after_a_restart_too() -> None:
    desk = StateDesk()
    desk.of("initialize", state_epoch=0, start_offset=5)
    desk.of("read", leader_epoch=2)
    desk.close()
    again = desk.started_again()
    assert again.of("read", leader_epoch=1).error_code == Error.FENCED_LEADER_EPOCH


def test_what_nobody_began_with_cannot_be_read() -> None:
    refused = StateDesk().of("read", leader_epoch=0)
    assert (refused.error_code, refused.error_message) == (
        Error.INVALID_REQUEST,
        "Read operation on uninitialized share partition not allowed.",
    )
