"""ReadShareGroupStateSummary: where a partition begins, and how much of it is done with."""

import pytest

from kafkalite.protocol.errors import Error
from tests.unit.handlers.share_states import StateDesk


@pytest.mark.parametrize("version", [0, 1])
def test_what_is_known(version: int) -> None:
    desk = StateDesk()
    desk.of("initialize", state_epoch=3, start_offset=-1)
    desk.of("read", leader_epoch=2)
    desk.write((5, 6, 2, 1), state_epoch=3, leader_epoch=2, start_offset=5,
               delivery_complete_count=2)  # fmt: skip
    answer = desk.of("summarize", version, leader_epoch=-1)
    assert (answer.error_code, answer.start_offset) == (Error.NONE, 5)
    assert (answer.state_epoch, answer.leader_epoch) == (3, 2)
    assert answer.delivery_complete_count == (2 if version else -1)


def test_of_what_nobody_began_with_nothing_is_known() -> None:
    answer = StateDesk().of("summarize", leader_epoch=-1)
    assert (answer.error_code, answer.start_offset) == (Error.NONE, -1)
    assert answer.delivery_complete_count == -1
