"""ShareFetch: sessions, waiting, modes of acquiring, and what is read of transactions."""

from typing import Any

import pytest

from kafkalite.env.later import Later
from kafkalite.env.slicing import Steps, finish
from kafkalite.handlers.share_fetch import MOST_UNKNOWN
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    DeleteRecordsRequest,
    ShareFetchRequest,
)
from kafkalite.server.connection_info import ConnectionInfo
from kafkalite.sharing.reading import Walk, walk
from kafkalite.sharing.shared_partition import SharedPartition
from tests.unit.handlers.share_desk import (
    ACCEPT,
    MEMBER,
    OTHER,
    RELEASE,
    RENEW,
    ShareDesk,
    desk_with,
)
from tests.unit.handlers.whole_broker import all_records
from tests.unit.handlers.writer import writer

TEN_DAYS_MS = 864_000_000

@pytest.mark.parametrize("version", [1, 2])
def test_records_are_handed_out_once(version: int) -> None:
    desk = desk_with(3)
    answer = desk.ask(desk.fetch_request(), version)
    assert (answer.error_code, answer.acquisition_lock_timeout_ms) == (Error.NONE, 30_000)
    (one,) = answer.responses[0].partitions
    assert [record.value for record in all_records(one.records)] == [b"0", b"1", b"2"]
    assert [(each.first_offset, each.last_offset) for each in one.acquired_records] == [(0, 2)]
    assert desk.acquired(OTHER) == []


def test_a_lock_that_expires_frees_its_records_until_they_were_delivered_often_enough() -> None:
    desk = desk_with(1, share_delivery_count_limit="3")
    desk.acquired()
    for count in (2, 3):
        desk.clock.advance(30_000)
        assert desk.acquired(MEMBER, count - 1) == [(0, 0, count)]
    desk.clock.advance(30_000)
    assert desk.acquired(MEMBER, 3) == []


def test_the_group_says_how_long_locks_last() -> None:
    desk = desk_with(1, share_record_lock_duration_ms="15000")
    desk.acquired()
    desk.clock.advance(14_999)
    assert desk.acquired(OTHER) == []
    desk.clock.advance(1)
    assert desk.acquired(OTHER, 1) == [(0, 0, 2)]


def test_whole_batches_or_so_many_records_and_no_more() -> None:
    desk = desk_with(10)
    assert desk.acquired(OTHER, max_records=3, share_acquire_mode=1) == [(0, 2, 1)]
    assert desk.acquired(OTHER, 1, max_records=3, share_acquire_mode=1) == [(3, 5, 1)]
    whole = desk_with(10)
    assert whole.acquired(OTHER, max_records=3) == [(0, 9, 1)]


def test_no_more_are_in_flight_than_the_group_allows() -> None:
    desk = desk_with(0, share_partition_max_record_locks="100")
    desk.fetch()
    for _ in range(15):
        desk.append(*[b"x"] * 10)
    assert desk.acquired(epoch=1, max_records=500)[-1][1] == 99
    assert desk.acquired(OTHER) == []
    desk.acknowledge((0, 99, ACCEPT), epoch=2)
    assert desk.acquired(OTHER, 1)[-1][1] == 149


@pytest.mark.parametrize(
    ("begins_at", "offsets"),
    [("earliest", [(0, 1, 1)]), ("latest", []), ("by_duration:PT1H", [(1, 1, 1)])],
)
def test_where_a_group_begins(begins_at: str, offsets: list[tuple[int, int, int]]) -> None:
    desk = ShareDesk()
    desk.configure(share_auto_offset_reset=begins_at)
    desk.append(b"old", timestamp=desk.now_ms - 7_200_000)
    desk.append(b"new")
    desk.join()
    assert desk.acquired() == offsets


def test_records_that_were_deleted_are_not_waited_for() -> None:
    desk = desk_with(5)
    desk.acquired(max_records=2, share_acquire_mode=1)
    kind = DeleteRecordsRequest
    partition = kind.Partition(partition_index=0, offset=4)
    desk.ask(kind(topics=[kind.Topic(name="t", partitions=[partition])]), 2)
    assert desk.acquired(MEMBER, 1) == []  # finds that the log begins elsewhere
    assert desk.acquired(MEMBER, 2) == [(4, 4, 1)]


def test_a_fetch_waits_for_records_and_for_locks_to_expire() -> None:
    desk = desk_with(1)
    desk.acquired(OTHER)
    came = desk.send(desk.fetch_request(max_wait_ms=60_000), 2)
    desk.clock.advance(29_000)
    assert not came.is_resolved
    desk.clock.advance(1_001)
    assert came.value.responses[0].partitions[0].acquired_records[0].delivery_count == 2
    again = desk.send(desk.fetch_request(epoch=1, max_wait_ms=500), 2)
    desk.append(b"one more")
    desk.clock.advance(0)
    assert again.value.responses[0].partitions[0].acquired_records[0].first_offset == 1


def test_a_fetch_that_finds_nothing_says_nothing_of_its_partitions() -> None:
    desk = desk_with(0)
    assert len(desk.fetch().responses) == 1  # the first answer tells of all
    assert desk.fetch(epoch=1).responses == []


def test_sessions_have_epochs() -> None:
    desk = desk_with(1)
    assert desk.fetch(epoch=3).error_code == Error.SHARE_SESSION_NOT_FOUND
    assert desk.fetch(epoch=-1).error_code == Error.SHARE_SESSION_NOT_FOUND
    assert desk.fetch().error_code == Error.NONE
    assert desk.fetch(epoch=2).error_code == Error.INVALID_SHARE_SESSION_EPOCH
    assert desk.fetch(epoch=1).error_code == Error.NONE
    assert desk.fetch(epoch=-1, said=[(0, 0, ACCEPT)]).error_code == Error.NONE
    assert desk.fetch(epoch=2).error_code == Error.SHARE_SESSION_NOT_FOUND


def test_the_first_request_of_a_session_says_nothing_of_records() -> None:
    desk = desk_with(1)
    assert desk.fetch(said=[(0, 0, ACCEPT)]).error_code == Error.INVALID_REQUEST


def test_who_comes_when_all_sessions_are_taken_hears_of_it_after_its_wait() -> None:
    desk = ShareDesk({"group.share.max.share.sessions": "1"})
    desk.join()
    desk.fetch()
    came = desk.send(desk.fetch_request(OTHER, max_wait_ms=500), 2)
    desk.clock.advance(499)
    assert not came.is_resolved
    desk.clock.advance(1)
    assert came.value.error_code == Error.SHARE_SESSION_LIMIT_REACHED


def test_who_is_refused_after_a_while_waits_no_longer_than_its_client() -> None:
    desk = ShareDesk({"group.share.max.share.sessions": "1"})
    desk.join()
    desk.fetch()
    came = desk.send(desk.fetch_request(OTHER, max_wait_ms=TEN_DAYS_MS), 2)
    assert desk.context.waiting.parked
    desk.connection.has_gone()
    assert came.is_resolved
    assert not desk.context.waiting.parked


def test_nobody_waits_whose_client_ended_while_its_partitions_were_looked_for() -> None:
    desk = ShareDesk(partitions=200)
    desk.join()
    request = desk.fetch_request(max_wait_ms=TEN_DAYS_MS)
    kind = ShareFetchRequest.Partition
    request.topics[0].partitions = [kind(partition_index=index) for index in range(200)]
    came = desk.send(request, 2)
    assert not desk.context.waiting.parked, "it is to end before it waits"
    desk.connection.has_ended = True
    desk.connection.has_gone()
    desk.clock.advance(1_000)
    assert came.is_resolved
    assert not desk.context.waiting.parked


def test_of_many_members_that_go_at_once_the_last_one_has_what_they_shared_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = desk_with(1)
    for number in range(20):
        desk.fetch(f"member-{number}")
    looked_at: list[SharedPartition] = []
    settled = SharedPartition.settled

    def counted(shared: SharedPartition) -> Later[None]:
        looked_at.append(shared)
        return settled(shared)

    monkeypatch.setattr(SharedPartition, "settled", counted)
    desk.connection.has_gone()
    desk.clock.advance(0)
    assert len(looked_at) == 1


def test_what_a_session_that_ends_had_is_free() -> None:
    desk = desk_with(2)
    desk.acquired(OTHER)
    assert desk.fetch(OTHER, -1).error_code == Error.NONE
    assert desk.acquired() == [(0, 1, 2)]


def test_what_a_client_had_that_has_gone_is_free_and_nothing_is_handed_to_it() -> None:
    desk = desk_with(2)
    desk.acquired(OTHER)
    waiting = desk.send(desk.fetch_request(OTHER, 1, max_wait_ms=5_000), 2)
    desk.connection.has_gone()
    desk.clock.advance(0)
    assert waiting.value.responses == []
    assert desk.acquired() == [(0, 1, 2)]


def test_who_goes_while_its_records_are_looked_for_is_handed_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = desk_with(0)
    desk.acquired()  # by whom the partition is shared on, whoever goes
    desk.append(b"0", b"1")
    going = desk.connection = ConnectionInfo("PLAINTEXT", ("10.0.0.1", 9092), ("10.0.0.9", 40_001))

    def gone_meanwhile(*given: Any) -> Steps[Walk]:
        found = yield from walk(*given)
        going.has_gone()
        return found

    with monkeypatch.context() as patch:
        patch.setattr("kafkalite.handlers.share_fetch.walk", gone_meanwhile)
        assert desk.acquired(OTHER) == []
    desk.clock.advance(0)
    assert desk.acquired(epoch=1) == [(0, 1, 1)]


def test_all_that_a_session_had_is_freed_whatever_is_still_told_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sharing = desk_with(0).context.sharing
    places = [(bytes(16), index) for index in range(10)]
    session = sharing.sessions.open(("g", "m"), places)
    freed: list[int] = []
    monkeypatch.setattr(sharing, "known", lambda key: freed.append(key.partition))
    steps = sharing._free(session)
    next(steps)
    session.tells(places[3], has_records=True, has_error=False)
    finish(steps)
    assert freed == list(range(10))


def test_a_fetch_says_what_became_of_other_records() -> None:
    desk = desk_with(2)
    desk.acquired()
    answer = desk.fetch(epoch=1, said=[(0, 0, ACCEPT), (1, 1, RELEASE)])
    (one,) = answer.responses[0].partitions
    assert one.acknowledge_error_code == Error.NONE
    assert [each.first_offset for each in one.acquired_records] == [1]
    refused = desk.fetch(epoch=2, said=[(0, 0, ACCEPT)])
    # Its start has passed the record: what is said of it is nothing to anybody.
    assert refused.responses[0].partitions[0].acknowledge_error_code == Error.NONE


def test_who_renews_asks_for_nothing_besides() -> None:
    desk = desk_with(1)
    desk.acquired()
    said = [(0, 0, RENEW)]
    assert desk.fetch(epoch=1, said=said, is_renew_ack=True).error_code == Error.INVALID_REQUEST
    nothing: dict[str, Any] = {"min_bytes": 0, "max_bytes": 0, "max_records": 0}
    desk.clock.advance(20_000)
    answer = desk.fetch(epoch=1, said=said, is_renew_ack=True, **nothing)
    assert answer.responses[0].partitions[0].acknowledge_error_code == Error.NONE
    desk.clock.advance(20_000)
    assert desk.acquired(OTHER) == []


@pytest.mark.parametrize("member", [None, "", "x" * 37])
def test_a_member_needs_a_name(member: str | None) -> None:
    desk = desk_with(0)
    request = desk.fetch_request()
    request.member_id = member
    assert desk.ask(request, 2).error_code == Error.INVALID_REQUEST


def test_a_topic_that_nobody_knows_is_told() -> None:
    desk = desk_with(0)
    request = desk.fetch_request()
    request.topics[0].topic_id = b"\1" * 16
    (one,) = desk.ask(request, 2).responses[0].partitions
    assert one.error_code == Error.UNKNOWN_TOPIC_ID
    other = desk.fetch_request(OTHER)
    other.topics[0].partitions[0].partition_index = 7
    (one,) = desk.ask(other, 2).responses[0].partitions
    assert one.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION


def test_a_partition_that_was_never_begun_with_is_refused() -> None:
    desk = ShareDesk()
    (one,) = desk.fetch().responses[0].partitions
    assert one.error_code == Error.UNKNOWN_SERVER_ERROR


def test_without_the_feature_nobody_is_served() -> None:
    desk = desk_with(1)
    desk.context.metadata.image.features["share.version"] = 0
    assert desk.fetch().error_code == Error.UNSUPPORTED_VERSION


def test_who_forgets_a_partition_is_told_nothing_more_of_it() -> None:
    desk = desk_with(0)
    desk.fetch()
    desk.append(b"x")
    request = desk.fetch_request(epoch=1)
    request.topics = []
    request.forgotten_topics_data = [
        ShareFetchRequest.ForgottenTopicsData(topic_id=desk.topic_id, partitions=[0])
    ]
    assert desk.ask(request, 2).responses == []


@pytest.mark.parametrize(
    ("level", "is_shown"), [("read_committed", False), ("read_uncommitted", True)]
)
def test_records_of_aborted_transactions(level: str, is_shown: bool) -> None:
    desk = desk_with(0, share_isolation_level=level)
    writer(desk).transact(b"gone", commit=False)
    desk.append(b"there")
    expected = [(0, 2, 1)] if is_shown else [(1, 2, 1)]
    assert desk.acquired() == expected


def test_what_is_in_flight_is_handed_out_anew_after_a_restart_and_what_is_done_is_not() -> None:
    desk = desk_with(5)
    desk.acquired()
    desk.acknowledge((1, 1, ACCEPT), (3, 3, RELEASE))
    desk.close()
    again = desk.started_again()
    assert again.acquired(OTHER) == [(0, 0, 1), (2, 2, 1), (3, 3, 2), (4, 4, 1)]


def test_a_session_does_not_grow_by_partitions_that_are_nowhere() -> None:
    desk = desk_with(1)
    topics = desk.context.metadata.image.topics.values()
    most = sum(len(topic.partitions) for topic in topics) + MOST_UNKNOWN
    desk.fetch(max_records=0)
    request = desk.fetch_request(epoch=1, max_records=0)
    request.topics[0].partitions = [
        ShareFetchRequest.Partition(partition_index=index, acknowledgement_batches=[])
        for index in range(most + 1)
    ]
    assert desk.ask(request, 2).error_code == Error.INVALID_REQUEST
    request.topics[0].partitions.pop()
    assert desk.ask(request, 2).error_code == Error.NONE
    request = desk.fetch_request(epoch=2)
    request.topics[0].partitions[0].partition_index = most
    assert desk.ask(request, 2).error_code == Error.INVALID_REQUEST
    assert desk.acquired(epoch=2) == [(0, 0, 1)], "the session is as it was"
