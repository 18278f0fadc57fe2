"""ShareAcknowledge: what may be said of records, and what comes of it."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.server.connection_info import ConnectionInfo
from kafkalite.sim.effort import MOST_CALLS, CountingClock
from tests.unit.handlers.counted import begun
from tests.unit.handlers.share_desk import (
    ACCEPT,
    OTHER,
    REJECT,
    RELEASE,
    RENEW,
    ShareDesk,
    desk_with,
)

AT_A_TIME = 500  # as many as a stock member asks for
IN_FLIGHT = 2_000  # as many as a partition has, at most, unless it is told otherwise


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


def test_what_is_on_its_way_when_the_last_member_goes_is_not_handed_out_again() -> None:
    desk = desk_with(2)
    desk.acquired()
    persister = desk.context.persister
    peer_of, persister._peer_of = persister._peer_of, lambda _: None
    desk.send(desk.acknowledge_request((0, 1, ACCEPT)), 2)
    desk.connection.has_gone()  # and the session with it
    persister._peer_of = peer_of
    later = desk.send(desk.fetch_request(OTHER, max_wait_ms=500), 2)
    desk.clock.advance(1_000)
    parts = [one for topic in later.value.responses for one in topic.partitions]
    assert [(one.error_code, one.acquired_records) for one in parts] == [(Error.NONE, [])]


def test_something_else_of_each_of_many_records_is_heard_without_a_long_turn() -> None:
    desk, clock = counted_desk(AT_A_TIME)
    kinds = [(ACCEPT, RELEASE)[number % 2] for number in range(AT_A_TIME)]
    assert len(desk.acquired(max_records=AT_A_TIME, batch_size=1)) == AT_A_TIME
    clock.begin()
    came = begun(desk, desk.acknowledge_request((0, AT_A_TIME - 1, *kinds)), 2)
    clock.advance(0)
    assert 500 < clock.heaviest.calls < MOST_CALLS, clock.heaviest
    assert came().responses[0].partitions[0].error_code == Error.NONE


def test_one_lock_is_renewed_many_times_without_a_long_turn() -> None:
    desk, clock = counted_desk(1)
    desk.acquired()
    request = desk.acknowledge_request(*[(0, 0, RENEW)] * 3_000, is_renew_ack=True)
    clock.begin()
    came = begun(desk, request, 2)
    clock.advance(0)
    assert 500 < clock.heaviest.calls < MOST_CALLS, clock.heaviest
    assert came().responses[0].partitions[0].error_code == Error.NONE


def test_locks_of_many_records_that_expire_at_once_make_no_long_turn() -> None:
    desk, clock = counted_desk(IN_FLIGHT)
    assert len(desk.acquired(max_records=IN_FLIGHT, batch_size=1)) == IN_FLIGHT
    clock.begin()
    clock.advance(31_000)
    assert 500 < clock.heaviest.calls < MOST_CALLS, clock.heaviest
    again = desk.acquired(epoch=1, max_records=IN_FLIGHT, batch_size=1)
    assert {deliveries for _, _, deliveries in again} == {2}
    assert len(again) == IN_FLIGHT


def test_all_that_a_member_had_is_free_without_a_long_turn() -> None:
    desk, clock = counted_desk(IN_FLIGHT)
    assert len(desk.acquired(max_records=IN_FLIGHT, batch_size=1)) == IN_FLIGHT
    clock.begin()
    clock.turn(desk.connection.has_gone)
    clock.advance(0)
    assert 500 < clock.heaviest.calls < MOST_CALLS, clock.heaviest
    desk.connection = ConnectionInfo("PLAINTEXT", ("10.0.0.1", 9092), ("10.0.0.8", 40_000))
    found = desk.acquired(OTHER, max_records=IN_FLIGHT, batch_size=1)
    assert sum(last - first + 1 for first, last, _ in found) == IN_FLIGHT


def test_who_comes_back_at_once_keeps_what_it_is_handed_then() -> None:
    desk, clock = counted_desk(IN_FLIGHT)
    assert len(desk.acquired(max_records=IN_FLIGHT, batch_size=1)) == IN_FLIGHT
    last = desk.send(desk.fetch_request(epoch=-1), 2)
    first = desk.send(desk.fetch_request(max_records=10, batch_size=1), 2)
    assert last.is_resolved
    assert not first.is_resolved  # what it had is not free yet
    clock.advance(0)
    (answer,) = first.value.responses[0].partitions
    assert [one.delivery_count for one in answer.acquired_records] == [2] * 10
    assert desk.code_of((0, 9, ACCEPT)) == Error.NONE


def counted_desk(count: int) -> tuple[ShareDesk, CountingClock]:
    """With records that were brought one by one."""
    clock = CountingClock()
    desk = desk_with(0, clock)
    for number in range(count):
        desk.append(b"%d" % number)
    return desk, clock
