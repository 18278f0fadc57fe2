"""What a follower says of thousands of partitions is said once, and again only where it is news."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafkalite.env.later import Later
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import FetchRequest, FetchResponse
from kafkalite.replication.session import MAX_EPOCH
from tests.unit.handlers.world import Way
from tests.unit.replication.cluster import Cluster

COUNT = 5


class Ear:
    """Hears what brokers ask each other for, and may answer in their place."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fetches: list[FetchRequest] = []
        self.times: list[int] = []
        self.errors: list[Error] = []
        original = Way.ask

        def ask(way: Way, request: Any, versions: range) -> Later[Any]:
            if isinstance(request, FetchRequest):
                self.fetches.append(request)
                self.times.append(way.world.clock.now_ms())
                if self.errors:
                    return self._refused(way, self.errors.pop(0))
            return original(way, request, versions)

        monkeypatch.setattr(Way, "ask", ask)

    def _refused(self, way: Way, error: Error) -> Later[Any]:
        later: Later[Any] = Later()
        is_lost = error is Error.NETWORK_EXCEPTION
        answer = KafkaError(error) if is_lost else FetchResponse(error_code=error)
        way.world.clock.call_later(0, lambda: later.resolve(answer))
        return later

    @property
    def last(self) -> FetchRequest:
        return self.fetches[-1]


def named(request: FetchRequest) -> list[int]:
    return sorted(each.partition for topic in request.topics for each in topic.partitions)


def forgotten(request: FetchRequest) -> list[int]:
    return sorted(each for topic in request.forgotten_topics_data for each in topic.partitions)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Broker 1 leads the partitions, and broker 2 copies them."""
    cluster = Cluster()
    cluster.create_many([1, 2], COUNT)
    yield cluster
    cluster.close()


@pytest.fixture
def ear(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Ear:
    cluster.passes(2_000)
    ear = Ear(monkeypatch)
    cluster.passes(1_000)
    return ear


def test_who_has_nothing_new_to_say_says_nothing(cluster: Cluster, ear: Ear) -> None:
    assert len(ear.fetches) > 1
    assert len({each.session_id for each in ear.fetches}) == 1
    assert all(named(each) == forgotten(each) == [] for each in ear.fetches)
    epochs = [each.session_epoch for each in ear.fetches]
    assert epochs == list(range(epochs[0], epochs[0] + len(epochs)))
    assert ear.last.session_id > 0


def test_only_what_was_copied_is_said_anew(cluster: Cluster, ear: Ear) -> None:
    ear.fetches.clear()
    assert cluster.produce(b"a").error_code == 0
    cluster.passes(1_000)
    assert {tuple(named(each)) for each in ear.fetches} == {(0,), ()}
    cluster.check_same(1, 2)


def test_a_partition_that_is_followed_no_longer_is_forgotten(cluster: Cluster, ear: Ear) -> None:
    ear.fetches.clear()
    cluster.create_at(1, 2, name="another")
    cluster.passes(1_000)
    cluster.delete("another")
    cluster.passes(1_000)
    assert {tuple(forgotten(each)) for each in ear.fetches} == {(0,), ()}


@pytest.mark.parametrize("error", [Error.FETCH_SESSION_ID_NOT_FOUND, Error.NETWORK_EXCEPTION])
def test_after_any_doubt_all_of_it_is_said(cluster: Cluster, ear: Ear, error: Error) -> None:
    had = ear.last.session_id
    ear.fetches.clear()
    ear.errors = [error]
    cluster.passes(3_000)
    refused = next(number for number, each in enumerate(ear.fetches) if each.session_epoch == 0)
    assert ear.fetches[refused].session_id == had
    assert named(ear.fetches[refused]) == list(range(COUNT))
    assert named(ear.last) == []
    assert ear.last.session_id != had
    assert cluster.produce(b"a").error_code == 0
    cluster.check_same(1, 2)


def test_a_session_that_the_leader_lost_costs_no_pause(cluster: Cluster, ear: Ear) -> None:
    ear.fetches.clear()
    ear.times.clear()
    ear.errors = [Error.INVALID_FETCH_SESSION_EPOCH]
    cluster.passes(1_000)
    assert ear.fetches[1].session_epoch == 0
    assert ear.times[1] - ear.times[0] < 10


def test_numbers_begin_again_behind_the_last(cluster: Cluster, ear: Ear) -> None:
    [fetcher] = cluster.nodes[2].replicating._fetchers.values()
    [session] = cluster.nodes[1].context.fetch_sessions._sessions.values()
    fetcher._session.epoch = session.epoch = MAX_EPOCH
    # What is under way has another number: it is refused, and all is said anew.
    cluster.passes(2_000)
    assert 0 < fetcher._session.epoch < MAX_EPOCH
    assert cluster.produce(b"a").error_code == 0
    cluster.check_same(1, 2)


def test_who_was_cut_learns_what_is_committed_though_nothing_more_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The leader has told it together with where to cut, and would not say it again."""
    cluster = Cluster()
    cluster.create_at(2, 3, 1)
    cluster.produce(b"a")
    cluster.unreachable.add(2)
    cluster.produce(b"b", acks=1)
    cluster.kill(2)
    cluster.unreachable.clear()
    cluster.start(2)
    cluster.check_same(1, 2, 3)
    cluster.close()
