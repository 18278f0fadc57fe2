"""DeleteShareGroupState: nothing is known afterwards."""

from kafkalite.protocol.errors import Error
from tests.unit.handlers.share_states import StateDesk


def test_what_is_deleted_is_not_begun_with() -> None:
    desk = StateDesk()
    desk.of("initialize", state_epoch=0, start_offset=5)
    assert desk.of("delete").error_code == Error.NONE
    assert desk.of("read", leader_epoch=0).error_code == Error.INVALID_REQUEST
    desk.close()
    assert desk.started_again().of("read", leader_epoch=0).error_code == Error.INVALID_REQUEST


def test_what_was_never_there_is_deleted_without_a_word() -> None:
    assert StateDesk().of("delete").error_code == Error.NONE
