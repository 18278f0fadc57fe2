"""Crowds who say hello: what each costs, how many are answered, and who is heard next."""

from __future__ import annotations

import ssl
from contextlib import suppress
from functools import partial

import pytest

from kafkalite.env import handshakes
from kafkalite.env.handshakes import HALFWAY_MS
from kafkalite.env.tls import client_context, server_context
from kafkalite.env.tls_link import TlsLink
from tests.unit.security import keys
from tests.unit.security.wire import TIMEOUT_MS, End, World, offer


class Crowd:
    """Peers who say hello to one server, and nothing more unless they are told to."""

    def __init__(self, count: int) -> None:
        self.world = World()
        self.ends: list[End] = []
        self.outcomes: dict[int, object] = {}
        for number in range(count):
            near, far = End(f"client-{number}", 1 << 20), End("server", 1 << 20)
            near.other, far.other = far, near
            context = server_context(offer(keys.server()))
            told = partial(self.outcomes.__setitem__, number)
            self.world.handshakes.answer(near, context, told)
            self.ends.append(far)

    def say(self, words: bytes, *numbers: int) -> None:
        for number in numbers or range(len(self.ends)):
            self.drip(number, words)
        self.turn()

    def drip(self, number: int, words: bytes = b"\x16") -> None:
        """Without a turn of this side's."""
        self.ends[number].send([words])
        self.ends[number].carry()

    def turn(self) -> None:
        while self.world.soon:
            self.world.soon.popleft()()

    @property
    def answered(self) -> list[int]:
        return [number for number, end in enumerate(self.ends) if end.other.out]


def test_what_a_peer_announces_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[TlsLink] = []
    monkeypatch.setattr(TlsLink, "_begin", lambda link: made.append(link))
    crowd = Crowd(3)
    crowd.say(hello()[:-1])
    assert not made, "OpenSSL is asked when all of a hello is there"


def test_only_so_many_are_answered_until_they_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshakes, "MOST_HALFWAY", 2)
    crowd = Crowd(6)
    crowd.say(hello())
    assert crowd.answered == [0, 1]
    crowd.world.clock.advance(HALFWAY_MS - 1)
    crowd.turn()
    assert not crowd.outcomes
    crowd.world.clock.advance(1)
    crowd.turn()
    why = f"it did not go on within {HALFWAY_MS} ms, and others waited for their turn"
    assert {number: str(one) for number, one in crowd.outcomes.items()} == {0: why, 1: why}
    assert crowd.answered == [0, 1, 4, 5], "in a flood the last ones come first"


def test_who_drips_behind_its_hello_keeps_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshakes, "MOST_HALFWAY", 2)
    crowd = Crowd(3)
    crowd.say(hello())
    for _ in range(10):
        crowd.say(b"\x16", 0, 1)
        crowd.world.clock.advance(HALFWAY_MS // 10)
    crowd.turn()
    assert 2 in crowd.answered


def test_a_hello_has_its_turn_beside_those_who_never_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    drips = 2 * handshakes.STEPS_PER_TURN
    crowd = Crowd(drips + 1)
    crowd.say(hello(), *range(drips))
    for number in range(drips):
        crowd.drip(number)
    crowd.drip(drips, hello())
    for _ in range(4):
        crowd.world.soon.popleft()()
        for number in range(drips):
            crowd.drip(number)
    assert drips in crowd.answered


def test_for_who_said_hello_and_has_gone_nobody_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshakes, "MOST_HALFWAY", 2)
    crowd = Crowd(4)
    crowd.say(hello())
    for number in (2, 3):
        crowd.ends[number].other.abort()
    crowd.turn()
    crowd.world.clock.advance(HALFWAY_MS)
    crowd.turn()
    assert sorted(crowd.outcomes) == [2, 3], "they have gone, and nobody waits"


def test_nobody_is_cut_off_while_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshakes, "MOST_HALFWAY", 2)
    crowd = Crowd(2)
    crowd.say(hello())
    crowd.world.clock.advance(TIMEOUT_MS - 1)
    assert not crowd.outcomes


def hello() -> bytes:
    """What a client says first."""
    said = ssl.MemoryBIO()
    caller = client_context(offer()).wrap_bio(ssl.MemoryBIO(), said, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        caller.do_handshake()
    return said.read()
