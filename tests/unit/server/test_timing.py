"""What samples stand for, and how long each stage of a request is."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite.server.connection_info import ConnectionInfo
from kafkalite.server.terms import Answer
from kafkalite.server.timing import (
    LONG_NS,
    SAMPLES,
    SHORT_NS,
    STAGES,
    Timed,
    Times,
    Watch,
)
from tests.unit.server.support import FakeLink, FakeService, World, frame

SAMPLE = (1, 2, 3, 4, 5, 6)


def test_few_requests_are_timed_all() -> None:
    times = Times(0)
    for number in range(3):
        times.take(SAMPLE, number)
    assert (times.every, times.timed, times.samples) == (1, 3, [SAMPLE] * 3)
    assert times.sums == [3 * each for each in SAMPLE]


def test_of_many_one_stands_for_several() -> None:
    times = Times(0)
    for _ in range(SAMPLES):
        times.take(SAMPLE, SHORT_NS - 1)
    assert times.every == 2
    fast = Times(0)
    for _ in range(SAMPLES):
        fast.take(SAMPLE, SHORT_NS // 100)
    assert fast.every == 101
    times.take(SAMPLE, SHORT_NS)
    assert times.timed == SAMPLES + 2
    assert times.sums[0] == SAMPLES + 2


def test_of_few_again_each_is_timed_again() -> None:
    times = Times(0)
    times.every = 2
    for _ in range(SAMPLES):
        times.take(SAMPLE, LONG_NS + 1)
    assert times.every == 1


def test_the_oldest_samples_give_way() -> None:
    times = Times(0)
    for number in range(SAMPLES + 1):
        times.take((number, 0, 0, 0, 0, 0), LONG_NS // 2)
    assert len(times.samples) == SAMPLES
    assert (times.samples[0][0], times.samples[1][0]) == (SAMPLES, 1)


def test_stages_are_told_apart() -> None:
    times = Times(0)
    timed = Timed(times, queue_ns=1, local_ns=10)
    timed.came(100, is_work=False)
    timed.came(1_000, is_work=True)
    timed.ready(50_000, throttle_ms=3)
    timed.leaves(60_000)
    timed.leaves(90_000)  # the rest of it
    timed.taken(95_000)
    (sample,) = times.samples
    assert dict(zip(STAGES, sample, strict=True)) == {
        "RequestQueue": 1, "Local": 1_010, "Remote": 100, "ResponseQueue": 10_000,
        "ResponseSend": 35_000, "Throttle": 3_000_000,
    }  # fmt: skip


class Link:
    """A link that takes so much at once."""

    def __init__(self) -> None:
        self.unsent_bytes = 0
        self.takes = 1 << 30

    def send(self, parts: list[bytes]) -> None:
        self.unsent_bytes = max(0, sum(map(len, parts)) - self.takes)


class Peer:
    def __init__(self) -> None:
        self.timed: Timed | None = None


@pytest.fixture
def watch() -> Watch:
    moments = iter(range(100, 10_000, 100))
    return Watch(lambda: next(moments))


def sent(watch: Watch, link: Any, peer: Peer) -> Times:
    times = Times(0)
    peer.timed = Timed(times, 0, 0)
    peer.timed.ready(0, 0)
    watch.send(link, peer, [b"12345"])
    return times


def test_a_reply_that_is_taken_at_once(watch: Watch) -> None:
    peer = Peer()
    times = sent(watch, Link(), peer)
    assert peer.timed is None
    assert times.samples == [(0, 0, 0, 100, 100, 0)]


def test_a_reply_that_is_taken_later(watch: Watch) -> None:
    link, peer = Link(), Peer()
    link.takes = 2
    times = sent(watch, link, peer)
    assert (peer.timed is None, times.samples) == (False, [])
    watch.taken(peer)
    assert times.samples == [(0, 0, 0, 100, 100, 0)]
    watch.taken(peer)  # nothing is on its way any more
    assert len(times.samples) == 1


class Heard(FakeService):
    """Notes since when each request was heard."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[int] = []

    def answer(self, frame_: memoryview, connection: ConnectionInfo) -> Answer:
        self.heard.append(connection.heard_ns)
        return super().answer(frame_, connection)


@pytest.fixture
def world() -> World:
    world = World()
    world.service = Heard()
    world.common.watch = Watch(lambda: pytest.fail("asked for the time"))
    return world


def test_who_comes_alone_is_answered_without_a_look_at_the_clock(world: World) -> None:
    link = FakeLink()
    world.connect(link)
    for _ in range(2):
        world.feed(link, frame(b"12345"))
    assert world.common.watch is not None
    assert (world.service.heard, link.replies()) == ([0, 0], [b"12345"] * 2)  # type: ignore[attr-defined]
    assert world.common.watch.sent_bytes == len(link.sent)


def test_who_came_with_others_has_waited_since_then(world: World) -> None:
    world.common.watch = Watch(lambda: 700)
    link = FakeLink()
    world.connect(link)
    world.feed(link, frame(b"1") + frame(b"2") + frame(b"3"))
    world.feed(link, frame(b"4"))
    assert world.service.heard == [700, 700, 700, 0]  # type: ignore[attr-defined]
