"""Who is in, for how long, and how often somebody may try."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from starlette.types import ASGIApp

from kafkalite.client.cluster import ClientFailed, Cluster, NotLetIn
from kafkalite.console import clients
from kafkalite.console import sessions as module
from kafkalite.console.clients import Clients
from kafkalite.console.guard import OF_PAGE
from kafkalite.console.server import Terms, app
from kafkalite.console.sessions import Session, Sessions, TooOften
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


# --- threads --------------------------------------------------------------------------------------

COOKIE = "kafkalite-console-8080"


SLOW, EACH = 6, 12


class Several:
    """Sessions of users whose cluster does not answer, and of one whose cluster does."""

    asks_login = True

    def __init__(self, by_token: dict[str, Session]) -> None:
        self._by_token = by_token

    def found(self, token: str | None) -> Session | None:
        return self._by_token.get(token or "")


def test_a_cluster_that_does_not_answer_holds_up_no_other_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clients, "WAIT_SECONDS", 1.0)
    goes_on = threading.Event()
    under_way: list[None] = []

    def never() -> Cluster:
        under_way.append(None)
        goes_on.wait(30)
        raise ClientFailed("it is too late")

    def at_nobody() -> Cluster:
        raise ClientFailed("told at once")

    names = [f"slow {number}" for number in range(SLOW)]
    found = {name: Session(Clients(never), name) for name in names}
    sessions: Any = Several({**found, "quick": Session(Clients(at_nobody), "quick")})
    page = app(sessions, Terms(False, None, None), 8080)
    held = SLOW * clients.MOST_AT_ONCE  # more than there are threads for all

    async def all_of_them() -> tuple[str, list[str]]:
        slow = [asyncio.create_task(asked(page, name)) for name in names * EACH]
        try:
            quick = await asyncio.wait_for(asked(page, "quick"), 5)
            async with asyncio.timeout(20):
                while sum(each.done() for each in slow) < len(slow) - held:
                    await asyncio.sleep(0.02)
        finally:
            goes_on.set()
        return quick, await asyncio.gather(*slow)

    quick, slow = asyncio.run(all_of_them())
    assert "told at once" in quick
    assert len(under_way) == held
    assert sum("it is too late" in each for each in slow) == held
    assert sum("are under way already" in each for each in slow) == len(slow) - held


async def asked(page: ASGIApp, token: str) -> str:
    """As a server asks it, all on one loop."""
    headers = [(b"host", b"127.0.0.1:8080"), (OF_PAGE.encode(), b"1"),
               (b"cookie", f'{COOKIE}="{token}"'.encode())]  # fmt: skip
    scope = {"type": "http", "method": "POST", "path": "/api/topics", "query_string": b"",
             "headers": headers, "scheme": "http", "server": ("127.0.0.1", 8080)}  # fmt: skip
    answer = bytearray()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message: Any) -> None:
        answer.extend(message.get("body", b""))

    await page(scope, receive, send)
    return answer.decode()
