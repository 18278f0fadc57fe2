"""A client that had too much gets its reply at once, and is not heard for a while (KIP-219)."""

from __future__ import annotations

import pytest

from kafkalite.env.later import Later
from kafkalite.server.connection import Connection
from kafkalite.server.connection_info import ConnectionInfo
from kafkalite.server.terms import Answer, Outcome, Terms, Throttled
from tests.unit.server.support import FakeLink, FakeService, World, frame


class Strict(FakeService):
    """`wait-N` and `mute-N` are throttled for N ms, the latter without a reply; `slow-N` later."""

    def answer(self, frame_: memoryview, connection: ConnectionInfo) -> Answer:
        body = bytes(frame_)
        kind, _, wait = body.partition(b"-")
        if kind == b"wait":
            self.requests.append(body)
            return Throttled([frame(body)], int(wait))
        if kind == b"mute":
            self.requests.append(body)
            return Throttled(None, int(wait))
        if kind == b"slow":
            self.requests.append(body)
            self.laters[body] = Later[Outcome]()
            return self.laters[body]
        return super().answer(frame_, connection)

    def resolve_throttled(self, name: bytes) -> None:
        wait_ms = int(name.partition(b"-")[2])
        self.laters.pop(name).resolve(Throttled([frame(name)], wait_ms))


class Scene:
    def __init__(self) -> None:
        self.world, self.link, self.service = World(), FakeLink(), Strict()
        self.connection: Connection = self.world.connect(self.link, Terms(self.service))

    def feed(self, *bodies: bytes) -> None:
        self.world.feed(self.link, b"".join(map(frame, bodies)))

    def is_heard(self) -> bool:
        return self.link.is_reading

    def pass_ms(self, duration_ms: int) -> None:
        self.world.clock.advance(duration_ms)
        self.world.turn()


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_the_reply_goes_first_and_what_is_behind_waits_to_the_millisecond(scene: Scene) -> None:
    scene.feed(b"wait-1500", b"two", b"three")
    assert scene.link.replies() == [b"wait-1500"]
    assert not scene.is_heard()
    scene.pass_ms(1_499)
    assert scene.service.requests == [b"wait-1500"]
    scene.pass_ms(1)
    assert scene.link.replies() == [b"wait-1500", b"two", b"three"]
    assert scene.is_heard()
    assert scene.world.memory.used == 0


def test_nothing_is_read_though_nothing_has_come(scene: Scene) -> None:
    scene.feed(b"wait-100")
    assert not scene.is_heard()
    scene.pass_ms(100)
    assert scene.is_heard()


def test_a_request_that_nobody_answers_mutes_as_well(scene: Scene) -> None:
    scene.feed(b"mute-200", b"two")
    assert scene.link.replies() == []
    assert not scene.is_heard()
    scene.pass_ms(200)
    assert scene.link.replies() == [b"two"]


def test_replies_that_were_owed_before_go_out_meanwhile(scene: Scene) -> None:
    scene.feed(b"later-1", b"wait-5000", b"three")
    assert scene.link.replies() == []
    scene.service.resolve(b"later-1")
    scene.world.turn()
    assert scene.link.replies() == [b"later-1", b"wait-5000"]
    assert scene.service.requests == [b"later-1", b"wait-5000"]
    scene.pass_ms(5_000)
    assert scene.link.replies()[-1] == b"three"


def test_a_reply_that_comes_late_mutes_from_then_on(scene: Scene) -> None:
    scene.feed(b"slow-700")
    scene.pass_ms(10_000)
    assert scene.is_heard()
    scene.service.resolve_throttled(b"slow-700")
    scene.world.turn()
    assert scene.link.replies() == [b"slow-700"]
    assert not scene.is_heard()
    scene.pass_ms(700)
    assert scene.is_heard()


def test_of_two_mutes_the_one_that_ends_later_counts(scene: Scene) -> None:
    scene.feed(b"slow-1000", b"slow-300", b"slow-2000")
    for name in (b"slow-1000", b"slow-300"):
        scene.service.resolve_throttled(name)
    scene.pass_ms(999)
    assert not scene.is_heard()
    scene.service.resolve_throttled(b"slow-2000")
    scene.pass_ms(1_999)
    assert not scene.is_heard()
    scene.pass_ms(1)
    assert scene.is_heard()


def test_a_frame_of_which_half_has_come_is_not_too_slow_while_muted(scene: Scene) -> None:
    scene.world.feed(scene.link, frame(b"wait-120000") + frame(b"x" * 20_000)[:9_000])
    scene.world.sweep(100_000)
    assert not scene.link.is_ended
    scene.world.sweep(20_000)
    assert scene.is_heard()


def test_a_muted_connection_that_ends_leaves_nothing_behind(scene: Scene) -> None:
    scene.feed(b"wait-60000", b"two")
    scene.link.abort()
    assert scene.world.ended == [scene.connection]
    assert scene.world.memory.used == 0
    scene.pass_ms(120_000)
    assert scene.service.requests == [b"wait-60000"]


def test_a_reply_that_comes_after_the_end_mutes_nobody(scene: Scene) -> None:
    scene.feed(b"slow-60000")
    scene.link.abort()
    scene.service.resolve_throttled(b"slow-60000")
    scene.pass_ms(60_000)
    assert scene.world.memory.used == 0


def test_a_peer_that_sends_nothing_more_gets_what_it_asked_for_when_it_is_heard(
    scene: Scene,
) -> None:
    scene.feed(b"wait-1000", b"two")
    scene.connection.finished()
    assert not scene.link.is_ended
    scene.pass_ms(1_000)
    assert scene.link.replies() == [b"wait-1000", b"two"]
    assert scene.link.is_ended
