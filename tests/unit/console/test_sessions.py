"""Who is in, for how long, and how often somebody may try."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite.client.cluster import NotLetIn
from kafkalite.console import sessions as module
from kafkalite.console.sessions import Sessions, TooOften
from kafkalite.security.client_login import Login


class World:
    """In place of brokers that know one password."""

    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.tried: list[tuple[str, str]] = []
        self.closed = 0
        self.sessions = Sessions(self.connect, ("SCRAM-SHA-512", "PLAIN"), lambda: self.now_s)

    def connect(self, login: Login | None) -> Any:
        return Client(self, login)


class Client:
    def __init__(self, world: World, login: Login | None) -> None:
        self._world, self._login = world, login

    def ask_any(self, _: object) -> None:
        assert self._login is not None
        self._world.tried.append((self._login.mechanism, self._login.password))
        if (self._login.mechanism, self._login.password) != ("PLAIN", "secret"):
            raise NotLetIn("no login at broker:9092: no", "no")

    def close(self) -> None:
        self._world.closed += 1


@pytest.fixture
def world() -> World:
    return World()


def test_a_password_is_tried_by_each_mechanism(world: World) -> None:
    token = world.sessions.log_in("alice", "secret")
    assert [name for name, _ in world.tried] == ["SCRAM-SHA-512", "PLAIN"]
    assert world.closed == 2
    session = world.sessions.found(token)
    assert session is not None
    assert session.user == "alice"
    world.sessions.log_out(token)
    assert world.sessions.found(token) is None
    for wrong in (None, "", "x" * 100_000, "\ud800"):
        assert world.sessions.found(wrong) is None


def test_a_session_ends(world: World) -> None:
    token = world.sessions.log_in("alice", "secret")
    for _ in range(30):
        world.now_s += module.IDLE_SECONDS / 2
        if world.sessions.found(token) is None:
            break
    assert world.now_s - 1_000 > module.LONGEST_SECONDS
    token = world.sessions.log_in("alice", "secret")
    world.now_s += module.IDLE_SECONDS + 1
    assert world.sessions.found(token) is None


def test_passwords_are_not_tried_for_ever(world: World) -> None:
    for _ in range(module.MOST_FAILURES):
        with pytest.raises(NotLetIn):
            world.sessions.log_in("alice", "guess")
    count = len(world.tried)
    with pytest.raises(TooOften):
        world.sessions.log_in("alice", "secret")
    assert len(world.tried) == count
    world.now_s += module.FAILURE_SECONDS
    assert world.sessions.log_in("alice", "secret")


def test_there_are_so_many_sessions(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SESSIONS", 2)
    tokens = []
    for _ in range(3):
        world.now_s += 1
        tokens.append(world.sessions.log_in("alice", "secret"))
    assert [world.sessions.found(each) is not None for each in tokens] == [False, True, True]


def test_brokers_that_ask_for_no_login(world: World) -> None:
    sessions = Sessions(world.connect, ())
    assert not sessions.asks_login
    assert sessions.found(None) is sessions.found("anything")
