"""Connections to others, by real sockets on both event loops."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from kafkalite.env import connecting
from kafkalite.env.network import Link
from kafkalite.env.sockets import SocketNetwork
from tests.unit.env.test_sockets import LOOPS, Collector


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> Iterator[asyncio.AbstractEventLoop]:
    loop = LOOPS[request.param]()
    before = len(os.listdir("/proc/self/fd"))
    yield loop
    assert len(os.listdir("/proc/self/fd")) <= before
    loop.close()


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)
        yield server


def port_of_nobody() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def connect(loop: asyncio.AbstractEventLoop, host: str, port: int) -> Link | OSError:
    told: asyncio.Future[Any] = loop.create_future()
    SocketNetwork(loop).connect(host, port, told.set_result)
    assert not told.done(), "it must be told in a later turn"
    return loop.run_until_complete(asyncio.wait_for(told, 20))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::ffff:127.0.0.1"])
def test_bytes_go_both_ways(
    loop: asyncio.AbstractEventLoop, listening: socket.socket, host: str
) -> None:
    link = connect(loop, host, listening.getsockname()[1])
    assert not isinstance(link, OSError), link
    collector = Collector(link, loop)
    peer, _ = listening.accept()
    assert link.peer_address == listening.getsockname()
    assert link.local_address == peer.getpeername()
    link.send([b"there"])
    assert peer.recv(100) == b"there"
    peer.sendall(b"and back")
    peer.close()

    async def until_ended() -> None:
        while not collector.ends:
            await asyncio.sleep(0.01)

    loop.run_until_complete(asyncio.wait_for(until_ended(), 10))
    assert collector.got == b"and back"


def test_a_refusal_is_told(loop: asyncio.AbstractEventLoop) -> None:
    assert isinstance(connect(loop, "127.0.0.1", port_of_nobody()), ConnectionRefusedError)


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 64 + ".example", "a..b"])
def test_a_name_that_nobody_has_is_told(
    loop: asyncio.AbstractEventLoop, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = socket.getaddrinfo

    def nobody(name: str, *rest: Any, **options: Any) -> Any:
        if name == "no-such-host.invalid":  # no test asks a name server
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return asked(name, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    assert isinstance(connect(loop, host, 9092), OSError)


def test_the_next_address_of_a_name_is_tried(
    loop: asyncio.AbstractEventLoop, listening: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = listening.getsockname()[1]
    kind = (socket.SOCK_STREAM, 6, "")
    found = [
        (socket.AF_INET6, *kind, ("::1", port, 0, 0)),
        (socket.AF_INET, *kind, ("127.0.0.1", port_of_nobody())),
        (socket.AF_INET, *kind, ("127.0.0.1", port)),
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: list(found))
    link = connect(loop, "several", port)
    assert not isinstance(link, OSError), link
    assert link.peer_address == ("127.0.0.1", port)
    Collector(link, loop)
    link.abort()


def test_what_is_cancelled_is_told_to_nobody(
    loop: asyncio.AbstractEventLoop, listening: socket.socket
) -> None:
    told: list[Any] = []
    for host in ("127.0.0.1", "localhost"):
        for turns in range(4):
            attempt = SocketNetwork(loop).connect(host, listening.getsockname()[1], told.append)

            async def wait(turns: int = turns) -> None:
                for _ in range(turns):
                    await asyncio.sleep(0)

            if turns:
                loop.run_until_complete(wait())
            if not told:
                attempt.cancel()
                attempt.cancel()
            loop.run_until_complete(asyncio.sleep(0.05))
            for link in told:  # it had been told before
                Collector(link, loop)
                link.abort()
            assert turns > 0 or not told
            told.clear()


def test_no_descriptor_left_is_told(
    loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(*_: Any, **__: Any) -> Any:
        raise OSError(24, "Too many open files")

    instead = SimpleNamespace(**{**vars(socket), "socket": none_left})  # for this module alone
    monkeypatch.setattr(connecting, "socket", instead)
    outcome = connect(loop, "127.0.0.1", 9092)
    assert isinstance(outcome, OSError)
    assert outcome.errno == 24


def test_a_socket_that_cannot_be_prepared_is_closed(
    loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []

    class Refusing(socket.socket):
        def setsockopt(self, *_: Any) -> None:
            made.append(self)
            raise OSError(22, "Invalid argument")

    instead = SimpleNamespace(**{**vars(socket), "socket": Refusing})
    monkeypatch.setattr(connecting, "socket", instead)
    outcome = connect(loop, "127.0.0.1", 9092)
    assert isinstance(outcome, OSError)
    assert outcome.errno == 22
    assert made[0].fileno() == -1


def test_a_name_is_looked_up_once_at_a_time(
    loop: asyncio.AbstractEventLoop, listening: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system may take many seconds, and whoever asks again does not wait for it."""
    port, may_answer = listening.getsockname()[1], threading.Event()
    asked: list[str] = []

    def slow(host: str, *_: Any, flags: int = 0, **__: Any) -> list[Any]:
        if flags:
            raise socket.gaierror(socket.EAI_NONAME, "no address")
        asked.append(host)
        assert may_answer.wait(10)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    network = SocketNetwork(loop)
    told: list[Any] = []
    for _ in range(20):
        network.connect("slow", port, told.append).cancel()
    for _ in range(2):
        network.connect("slow", port, told.append)
    may_answer.set()

    async def until_told() -> None:
        while len(told) < 2:
            await asyncio.sleep(0.01)

    loop.run_until_complete(asyncio.wait_for(until_told(), 10))
    assert asked == ["slow"]
    for link in told:
        Collector(link, loop)
        link.abort()
    link = connect(loop, "slow", port)
    assert not isinstance(link, OSError), link
    Collector(link, loop)
    link.abort()
    assert asked == ["slow"] * 2


def test_no_thread_left_is_told(
    loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", none_left)
        assert isinstance(connect(loop, "localhost", 9092), OSError)
