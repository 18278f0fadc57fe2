"""ShareAcknowledge: what may be said of records, and what comes of it."""

import pytest

from kafkalite.protocol.errors import Error
from tests.unit.handlers.share_desk import (
    ACCEPT,
    OTHER,
    REJECT,
    RELEASE,
    RENEW,
    desk_with,
)


@pytest.mark.parametrize("version", [1, 2])
def test_records_that_are_accepted_or_rejected_are_done_with(version: int) -> None:
    desk = desk_with(3)
    desk.acquired()
    answer = desk.acknowledge((0, 0, ACCEPT), (1, 1, REJECT), (2, 2, RELEASE), version=version)
    assert answer.responses[0].partitions[0].error_code == Error.NONE
    assert answer.acquisition_lock_timeout_ms == (30_000 if version == 2 else 0)
    assert desk.acquired(OTHER) == [(2, 2, 2)]


def test_one_batch_may_say_something_else_of_each_record() -> None:
    desk = desk_with(6)
    desk.acquired()
    desk.acknowledge((0, 5, ACCEPT, RELEASE, RELEASE, ACCEPT, REJECT, RELEASE))
    assert desk.acquired(OTHER) == [(1, 2, 2), (5, 5, 2)]


@pytest.mark.parametrize(
    "said",
    [
        [(1, 0, ACCEPT)],
        [(0, 0)],
        [(0, 2, ACCEPT, ACCEPT)],
        [(0, 0, 5)],
        [(0, 0, -1)],
        [(0, 0, RENEW)],
        [(2, 2, ACCEPT), (0, 0, ACCEPT)],
    ],
)
def test_what_contradicts_itself_is_refused(said) -> None:
    desk = desk_with(3)
    desk.acquired()
    assert desk.code_of(*said) == Error.INVALID_REQUEST
    assert desk.code_of((0, 2, ACCEPT), epoch=2) == Error.NONE


def test_what_a_member_does_not_have_it_says_nothing_of() -> None:
    desk = desk_with(3)
    desk.acquired(OTHER)
    desk.acquired()
    answer = desk.acknowledge((0, 2, ACCEPT))
    one = answer.responses[0].partitions[0]
    assert (one.error_code, one.error_message) == (
        Error.INVALID_RECORD_STATE, "Member is not the owner of batch record"
    )  # fmt: skip
    assert desk.code_of((7, 8, ACCEPT), epoch=2) == Error.INVALID_REQUEST
    assert desk.code_of((0, 2, ACCEPT), member=OTHER) == Error.NONE


def test_what_was_said_is_said_once() -> None:
    desk = desk_with(3)
    desk.acquired()
    assert desk.code_of((1, 1, ACCEPT)) == Error.NONE
    assert desk.code_of((1, 1, ACCEPT), epoch=2) == Error.INVALID_RECORD_STATE
    assert desk.code_of((0, 2, ACCEPT), epoch=3) == Error.INVALID_RECORD_STATE
    assert desk.code_of((0, 0, ACCEPT), (2, 2, ACCEPT), epoch=4) == Error.NONE


def test_a_lock_that_has_expired_is_no_longer_the_member_s() -> None:
    desk = desk_with(1)
    desk.acquired()
    desk.clock.advance(30_000)
    assert desk.code_of((0, 0, ACCEPT)) == Error.INVALID_RECORD_STATE


def test_a_lock_is_renewed_where_the_group_allows_it() -> None:
    desk = desk_with(2)
    desk.acquired()
    desk.clock.advance(20_000)
    assert desk.code_of((0, 0, RENEW), is_renew_ack=True) == Error.NONE
    desk.clock.advance(20_000)
    assert desk.acquired(OTHER) == [(1, 1, 2)]
    desk.configure(share_renew_acknowledge_enable="false")
    refused = desk.code_of((0, 0, RENEW), epoch=2, is_renew_ack=True)
    assert refused == Error.INVALID_RECORD_STATE


def test_sessions_have_epochs() -> None:
    desk = desk_with(1)
    assert desk.acknowledge((0, 0, ACCEPT)).error_code == Error.SHARE_SESSION_NOT_FOUND
    desk.acquired()
    for epoch in (0, 2):
        answer = desk.acknowledge((0, 0, ACCEPT), epoch=epoch)
        assert answer.error_code == Error.INVALID_SHARE_SESSION_EPOCH
    assert desk.code_of((0, 0, ACCEPT), epoch=-1) == Error.NONE
    assert desk.acknowledge((0, 0, ACCEPT)).error_code == Error.SHARE_SESSION_NOT_FOUND


def test_the_last_request_of_a_session_frees_what_is_left() -> None:
    desk = desk_with(3)
    desk.acquired()
    desk.acknowledge((0, 0, ACCEPT), epoch=-1)
    assert desk.acquired(OTHER) == [(1, 2, 2)]


def test_what_nobody_shares_cannot_be_acknowledged() -> None:
    desk = desk_with(1)
    desk.fetch(max_records=0)
    assert desk.code_of((0, 0, ACCEPT)) == Error.UNKNOWN_TOPIC_OR_PARTITION
