"""Fetch sessions (KIP-227): what need not be said again, and whose session gives way to whose."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kafkalite.handlers.fetch_sessions import (
    EVICTION_MS,
    NO_SESSION,
    Fetch,
    FetchSessions,
    named_in,
)
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import FetchRequest
from tests.unit.handlers.test_fetch import values
from tests.unit.handlers.whole_broker import WholeBroker

Asked = dict[tuple[str, int], int]
NOTHING: Asked = {}


def request(
    session_id: int = 0,
    epoch: int = 0,
    asked: Asked = NOTHING,
    forgotten: tuple[str, ...] = (),
    **fields: Any,
) -> FetchRequest:
    """Partitions with the offsets that are wanted of them."""
    topics = [
        FetchRequest.Topic(topic=name, partitions=[FetchRequest.Partition(
            partition=index, fetch_offset=offset, partition_max_bytes=1 << 20
        )])
        for (name, index), offset in asked.items()
    ]  # fmt: skip
    gone = [FetchRequest.ForgottenTopicsData(topic=name, partitions=[0]) for name in forgotten]
    fields = {"max_wait_ms": 0, "min_bytes": 1, **fields}
    return FetchRequest(
        session_id=session_id, session_epoch=epoch, topics=topics, forgotten_topics_data=gone,
        **fields,
    )  # fmt: skip


def named(response: Any) -> list[str]:
    return [topic.topic for topic in response.responses]


class Fetcher:
    """A consumer that keeps to its session."""

    def __init__(self, broker: WholeBroker, asked: Asked) -> None:
        self.broker = broker
        self.response = broker.ask(request(asked=asked), 12)
        self.id = self.response.session_id
        self.epoch = 1

    def fetch(self, asked: Asked = NOTHING, forgotten: tuple[str, ...] = (), **fields: Any) -> Any:
        response = self.broker.ask(request(self.id, self.epoch, asked, forgotten, **fields), 12)
        self.epoch += 1
        return response


@pytest.fixture
def two(broker: WholeBroker) -> WholeBroker:
    """A broker that has the topics "t" and "u"."""
    broker.create("u")
    return broker


# --- incremental fetches --------------------------------------------------------------------------


def test_a_session_tells_only_what_is_new(two: WholeBroker) -> None:
    fetcher = Fetcher(two, {("t", 0): 0, ("u", 0): 0})
    assert fetcher.id > 0
    assert named(fetcher.response) == ["t", "u"], "a full fetch names everything"
    assert named(fetcher.fetch()) == []
    two.append(b"a", topic="u")
    response = fetcher.fetch()
    assert (named(response), values(response.responses[0].partitions[0])) == (["u"], [b"a"])
    assert response.session_id == fetcher.id


def test_an_offset_that_is_not_said_again_stays(two: WholeBroker) -> None:
    two.append(b"a")
    fetcher = Fetcher(two, {("t", 0): 0})
    for _ in range(2):
        assert values(fetcher.fetch().responses[0].partitions[0]) == [b"a"]
    assert named(fetcher.fetch({("t", 0): 1})) == []


def test_a_high_watermark_that_moved_is_news(two: WholeBroker) -> None:
    fetcher = Fetcher(two, {("t", 0): 1})
    assert fetcher.response.responses[0].partitions[0].error_code == Error.OFFSET_OUT_OF_RANGE
    two.append(b"a")
    response = fetcher.fetch()
    assert response.responses[0].partitions[0].high_watermark == 1
    assert named(fetcher.fetch()) == []


def test_a_log_start_that_moved_is_news(two: WholeBroker) -> None:
    two.append(b"a")
    fetcher = Fetcher(two, {("t", 0): 1})
    assert named(fetcher.fetch()) == []
    two.partition().delete_records_before(1)
    assert fetcher.fetch().responses[0].partitions[0].log_start_offset == 1
    assert named(fetcher.fetch()) == []


def test_an_error_is_told_again_and_so_is_its_end(two: WholeBroker) -> None:
    fetcher = Fetcher(two, {("late", 0): 0})
    unknown = Error.UNKNOWN_TOPIC_OR_PARTITION
    assert fetcher.fetch().responses[0].partitions[0].error_code == unknown
    two.create("late")
    assert fetcher.fetch().responses[0].partitions[0].error_code == 0
    assert named(fetcher.fetch()) == []


def test_partitions_join_and_are_forgotten(two: WholeBroker) -> None:
    fetcher = Fetcher(two, {("t", 0): 0})
    assert named(fetcher.fetch({("u", 0): 0})) == ["u"]
    fetcher.fetch(forgotten=("t",))
    two.append(b"a")
    two.append(b"b", topic="u")
    assert named(fetcher.fetch()) == ["u"]


def test_a_session_of_nothing_ends(two: WholeBroker) -> None:
    fetcher = Fetcher(two, {("t", 0): 0})
    assert fetcher.fetch(forgotten=("t",)).session_id == NO_SESSION
    assert fetcher.fetch().error_code == Error.FETCH_SESSION_ID_NOT_FOUND


def test_who_was_served_comes_last_the_next_time(two: WholeBroker) -> None:
    for name in ("t", "u"):
        two.append(b"x" * 1_000, topic=name)
    fetcher = Fetcher(two, {("t", 0): 0, ("u", 0): 0})
    first = [named(fetcher.fetch(max_bytes=1)) for _ in range(4)]
    assert first == [["t"], ["u"], ["t"], ["u"]], "a small max_bytes starves nobody"


def test_a_session_waits_like_any_fetch(two: WholeBroker) -> None:
    fetcher = Fetcher(two, {("t", 0): 0})
    came = two.send(request(fetcher.id, 1, max_wait_ms=500), 12)
    two.clock.advance(100)
    assert not came.is_resolved
    two.append(b"a")
    two.clock.advance(0)
    assert named(came.value) == ["t"]


# --- epochs ---------------------------------------------------------------------------------------


def test_an_epoch_comes_once(two: WholeBroker) -> None:
    fetcher = Fetcher(two, {("t", 0): 0})
    for wrong in (2, 5):
        response = two.ask(request(fetcher.id, wrong), 12)
        assert response.error_code == Error.INVALID_FETCH_SESSION_EPOCH
        assert (response.session_id, response.responses) == (0, [])
    assert fetcher.fetch().error_code == 0
    assert two.ask(request(fetcher.id, 1), 12).error_code == Error.INVALID_FETCH_SESSION_EPOCH


def test_a_session_that_is_not_known(two: WholeBroker) -> None:
    assert two.ask(request(4711, 1), 12).error_code == Error.FETCH_SESSION_ID_NOT_FOUND


def test_the_final_epoch_ends_a_session_and_fetches_without_one(two: WholeBroker) -> None:
    fetcher = Fetcher(two, {("t", 0): 0})
    response = two.ask(request(fetcher.id, -1, {("u", 0): 0}), 12)
    assert (response.session_id, named(response)) == (NO_SESSION, ["u"])
    assert fetcher.fetch().error_code == Error.FETCH_SESSION_ID_NOT_FOUND


def test_a_new_session_replaces_the_old_one_of_its_fetcher(two: WholeBroker) -> None:
    fetcher = Fetcher(two, {("t", 0): 0})
    response = two.ask(request(fetcher.id, 0, {("t", 0): 0}), 12)
    assert response.session_id not in (NO_SESSION, fetcher.id)
    assert len(two.context.fetch_sessions) == 1


def test_versions_without_topic_ids_do_not_share_a_session_with_those_that_have_them(
    two: WholeBroker,
) -> None:
    fetcher = Fetcher(two, {("t", 0): 0})
    response = two.ask(request(fetcher.id, 1), 13)
    assert response.error_code == Error.FETCH_SESSION_TOPIC_ID_ERROR
    assert fetcher.fetch().error_code == 0, "the session is as it was"


def test_versions_before_sessions_open_none(two: WholeBroker) -> None:
    two.ask(request(asked={("t", 0): 0}), 6)
    assert len(two.context.fetch_sessions) == 0


# --- eviction -------------------------------------------------------------------------------------


class Cache:
    """Sessions of a broker that has few places for them."""

    def __init__(self, slots: int) -> None:
        self.sessions = FetchSessions(slots, Random(1))
        self.now_ms = 0

    def open(self, size: int, *, replica_id: int = -1) -> int:
        asked = {(f"t{number}", 0): 0 for number in range(size)}
        full = request(asked=asked, replica_id=replica_id)
        fetch = self.sessions.open(full, named_in(full.topics, 12), 12, self.now_ms)
        return self.sessions.close(fetch, full, 12, self.now_ms)

    def use(self, session_id: int, epoch: int) -> Fetch:
        asked = request(session_id, epoch)
        return self.sessions.open(asked, named_in(asked.topics, 12), 12, self.now_ms)

    def has(self, session_id: int) -> bool:
        return self.use(session_id, -2).error is Error.INVALID_FETCH_SESSION_EPOCH


def test_without_a_place_there_is_no_session() -> None:
    assert Cache(0).open(1) == NO_SESSION


def test_a_full_house_takes_nobody_younger() -> None:
    cache = Cache(2)
    kept = [cache.open(1), cache.open(5)]
    assert cache.open(100) == NO_SESSION
    assert all(map(cache.has, kept))


def test_who_was_not_heard_of_for_long_gives_way_first() -> None:
    cache = Cache(2)
    silent, used = cache.open(9), cache.open(1)
    cache.now_ms = EVICTION_MS
    cache.use(used, 1)
    assert cache.open(1) == NO_SESSION, "two minutes are not over"
    cache.now_ms += 1
    assert cache.open(1) != NO_SESSION
    assert not cache.has(silent)
    assert cache.has(used)


def test_a_larger_newcomer_takes_the_place_of_the_least_settled_one() -> None:
    cache = Cache(2)
    small, large = cache.open(2), cache.open(5)
    cache.now_ms = EVICTION_MS + 1
    for each in (small, large):
        cache.use(each, 1)
    assert cache.open(2) == NO_SESSION
    assert cache.open(3) != NO_SESSION
    assert (cache.has(small), cache.has(large)) == (False, True)


def test_a_small_newcomer_does_not_protect_the_settled() -> None:
    cache = Cache(2)
    settled = cache.open(2)
    cache.now_ms = EVICTION_MS + 1
    cache.use(settled, 1)
    young = cache.open(1)
    assert cache.open(3) != NO_SESSION
    assert (cache.has(settled), cache.has(young)) == (False, True)


def test_a_replica_takes_the_place_of_any_consumer_and_not_the_other_way() -> None:
    cache = Cache(2)
    consumers = [cache.open(5), cache.open(6)]
    assert cache.open(1, replica_id=3) != NO_SESSION
    assert [cache.has(each) for each in consumers] == [False, True]
    assert cache.open(1, replica_id=3) != NO_SESSION
    assert not cache.has(consumers[1])
    cache.now_ms = EVICTION_MS
    assert cache.open(100) == NO_SESSION


def test_ids_are_positive_and_not_given_twice() -> None:
    cache = Cache(500)
    given = {cache.open(1) for _ in range(500)}
    assert len(given) == 500
    assert min(given) > 0
