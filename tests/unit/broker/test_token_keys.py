"""Keys of signed tokens: read at the start and when they are due, and never too often."""

from __future__ import annotations

import logging

import pytest

from kafkalite.broker import token_keys
from kafkalite.broker.large_tokens import LARGE, LargeTokens
from kafkalite.broker.token_keys import LEAST_BETWEEN_MS, MISSING_MS, TokenKeys
from kafkalite.env import manual_env
from kafkalite.env.background import QueuedBackground
from kafkalite.env.later import Later
from kafkalite.security.key_source import KeysUnreadable
from kafkalite.security.oauth_settings import SignedSettings
from kafkalite.security.oauthbearer import Bearer, NotTaken
from kafkalite.security.signed_tokens import SignedRules, checked
from kafkalite.server.limits import LimitedLog
from tests.unit.security.signing import claims, key_set, public, rsa_key, signed

REFRESH_MS = 1_000_000


class Source:
    """A set of keys that a test changes, or that cannot be read."""

    path = None

    def __init__(self) -> None:
        self.keys = [public(rsa_key("one"), "one")]
        self.failure: Exception | None = None
        self.readings = 0

    def __str__(self) -> str:
        return "https://issuer/keys"

    def read(self) -> bytes:
        self.readings += 1
        if self.failure is not None:
            raise self.failure
        return key_set(*self.keys)


class Desk:
    """The keys of one listener."""

    def __init__(self) -> None:
        self.env = manual_env()
        self.clock = self.env.clock
        self.background = self.env.background = QueuedBackground()
        self.source = Source()
        settings = SignedSettings(
            self.source, SignedRules(), REFRESH_MS, 100, 1_000  # type: ignore[arg-type]
        )
        self.keys = TokenKeys(
            self.env, settings, LimitedLog(self.clock), LargeTokens(self.env)
        )
        self.keys.start()

    def token(self, name: str = "one", key_id: str | None = None) -> str:
        said = claims(self.clock.now_ms() // 1000)
        return signed(said, rsa_key(name), key_id or name)

    def check(self, token: str | None = None) -> object:
        found = self.keys.check(token or self.token())
        return found.value if isinstance(found, Later) else found

    def pass_by(self, duration_ms: int) -> None:
        """A worker is quick, and time passes."""
        self.background.run_all()
        self.clock.advance(duration_ms)  # type: ignore[attr-defined]
        self.background.run_all()


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_who_comes_before_the_first_reading_waits_for_it(desk):
    found = desk.keys.check(desk.token())
    assert isinstance(found, Later)
    assert not found.is_resolved
    desk.background.run_all()
    assert isinstance(found.value, Bearer)


def test_or_is_refused_when_it_fails_and_taken_once_it_succeeds(desk, caplog):
    desk.source.failure = KeysUnreadable("nobody is there")
    found = desk.keys.check(desk.token())
    desk.background.run_all()
    assert isinstance(found, Later)
    assert isinstance(found.value, NotTaken)
    [line] = caplog.messages
    assert "https://issuer/keys: nobody is there" in line
    assert "no token is taken, and they are read again in 100 ms" in line
    desk.source.failure = None
    desk.pass_by(100)
    assert isinstance(desk.check(), Bearer)


def test_failures_are_tried_again_later_and_later(desk):
    desk.source.failure = KeysUnreadable("nobody is there")
    desk.background.run_all()
    for delay_ms in (100, 200, 400, 800, 1_000, 1_000):
        before = desk.source.readings
        desk.pass_by(delay_ms - 1)
        assert desk.source.readings == before
        desk.pass_by(1)
        assert desk.source.readings == before + 1


def test_keys_are_read_again_from_time_to_time_and_kept_when_that_fails(desk, caplog):
    desk.background.run_all()
    desk.source.keys = [public(rsa_key("two"), "two")]
    desk.pass_by(REFRESH_MS)
    assert isinstance(desk.check(desk.token("two")), Bearer)
    desk.source.failure = KeysUnreadable("the answer is 500")
    desk.pass_by(REFRESH_MS)
    assert isinstance(desk.check(desk.token("two")), Bearer)
    assert "those read before are kept" in caplog.messages[-1]


@pytest.mark.parametrize("garbage", [b"<html>", b"", b"{}", b'{"keys": 5}'])
def test_garbage_is_no_set_of_keys(desk, garbage, caplog, monkeypatch):
    desk.background.run_all()
    monkeypatch.setattr(Source, "read", lambda source: garbage)
    desk.pass_by(REFRESH_MS)
    assert isinstance(desk.check(), Bearer)
    assert len(caplog.messages) == 1


def test_an_unknown_key_is_looked_for_at_once(desk):
    desk.background.run_all()
    desk.source.keys.append(public(rsa_key("two"), "two"))
    assert isinstance(desk.check(desk.token("two")), NotTaken)
    desk.pass_by(LEAST_BETWEEN_MS)
    assert desk.source.readings == 2
    assert isinstance(desk.check(desk.token("two")), Bearer)


def test_and_not_again_for_a_minute(desk):
    desk.background.run_all()
    for _ in range(100):
        desk.check(desk.token("two"))
        desk.pass_by(MISSING_MS // 200)
    assert desk.source.readings == 2
    desk.pass_by(MISSING_MS // 2 + LEAST_BETWEEN_MS)
    desk.check(desk.token("two"))
    desk.pass_by(0)
    assert desk.source.readings == 3


def test_many_unknown_keys_are_one_reading_a_second(desk):
    desk.background.run_all()
    before = desk.source.readings
    for number in range(200):
        desk.check(desk.token("stranger", f"key-{number}"))
        desk.pass_by(50)
    assert desk.source.readings - before <= 11
    assert len(desk.keys._missing) <= 16


def test_the_name_of_a_key_may_be_too_long(desk):
    desk.background.run_all()
    desk.check(desk.token("stranger", "x" * 1_001))
    desk.pass_by(LEAST_BETWEEN_MS)
    assert desk.source.readings == 1
    assert desk.keys._missing == {}


def test_one_reading_at_a_time(desk):
    assert len(desk.background) == 1
    desk.clock.advance(10 * REFRESH_MS)
    assert len(desk.background) == 1
    desk.background.run_all()
    desk.check(desk.token("stranger"))
    desk.clock.advance(LEAST_BETWEEN_MS)
    desk.check(desk.token("stranger", "another"))
    desk.clock.advance(LEAST_BETWEEN_MS)
    assert len(desk.background) == 1


def test_who_has_stopped_reads_no_more(desk):
    waiting = desk.keys.check(desk.token())
    desk.keys.stop()
    assert isinstance(waiting, Later)
    assert isinstance(waiting.value, NotTaken)
    desk.background.run_all()
    desk.clock.advance(10 * REFRESH_MS)
    assert len(desk.background) == 0
    assert desk.source.readings == 1


def test_a_mistake_of_ours_is_told_with_its_stack(desk, caplog):
    desk.source.failure = ZeroDivisionError("mistake")
    desk.background.run_all()
    assert isinstance(desk.check(), NotTaken)
    assert [each.levelno for each in caplog.records] == [logging.ERROR, logging.WARNING]


def test_all_who_waited_for_the_first_reading_are_not_checked_in_one_turn(desk, monkeypatch):
    def slow(*given):
        desk.clock.spend(1)
        return checked(*given)

    monkeypatch.setattr(token_keys, "checked", slow)
    found = [desk.keys.check(desk.token()) for _ in range(200)]
    desk.background.run_all()
    assert sum(each.is_resolved for each in found) < 10
    desk.clock.advance(1_000)
    assert all(isinstance(each.value, Bearer) for each in found)


def test_a_large_token_is_read_by_a_worker(desk):
    desk.background.run_all()
    said = {**claims(desk.clock.now_ms() // 1000), "more": "x" * LARGE}
    found = desk.keys.check(signed(said, rsa_key("one"), "one"))
    assert isinstance(found, Later)
    assert not found.is_resolved
    desk.background.run_all()
    assert isinstance(found.value, Bearer)


def test_a_large_token_of_a_key_that_is_not_known_has_keys_read(desk):
    desk.background.run_all()
    said = {**claims(desk.clock.now_ms() // 1000), "more": "x" * LARGE}
    desk.source.keys.append(public(rsa_key("two"), "two"))
    desk.keys.check(signed(said, rsa_key("two"), "two"))
    desk.pass_by(1_000)
    assert desk.source.readings == 2
