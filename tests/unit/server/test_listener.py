"""The whole server on real sockets and both event loops, with a service that echoes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import pytest
import uvloop

from kafkalite.config.broker import BrokerConfig
from kafkalite.config.listeners import BROKER, CONTROLLER, Listener
from kafkalite.env.clock import ManualClock, RealClock
from kafkalite.env.slicing import Slices
from kafkalite.env.sockets import SocketNetwork
from kafkalite.server.connection_info import ConnectionInfo
from kafkalite.server.limits import LimitedLog
from kafkalite.server.listener import Server
from kafkalite.server.terms import Terms
from tests.unit.server.support import FakeService, frame

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


class Running:
    """A server, and blocking clients that let its loop turn while they wait."""

    def __init__(self, loop: asyncio.AbstractEventLoop, **settings: str) -> None:
        self.loop = loop
        given = {name.replace("_", "."): text for name, text in settings.items()}
        given.setdefault("listeners", "PLAINTEXT://127.0.0.1:0")
        clock = RealClock(loop)
        self.service = FakeService()
        self.infos: list[ConnectionInfo] = []
        self.server = Server(
            SocketNetwork(loop),
            clock,
            Slices(clock),
            BrokerConfig(given),
            self.terms_of,
            LimitedLog(clock),
        )
        self.server.start()
        self.clients: list[socket.socket] = []

    def terms_of(self, info: ConnectionInfo) -> Terms:
        self.infos.append(info)
        return Terms(self.service, owed_replies=1 if info.listener == "NARROW" else 2)

    def connect(self, name: str = "PLAINTEXT") -> socket.socket:
        client = socket.create_connection(self.server.addresses[name])
        client.setblocking(False)
        self.clients.append(client)
        return client

    def until(self, condition: Any) -> None:
        for _ in range(5_000):
            if condition():
                return
            self.loop.run_until_complete(asyncio.sleep(0.001))
        raise AssertionError("it never happened")

    def settle(self) -> None:
        """Lets the loop do what it has to."""
        for _ in range(20):
            self.loop.run_until_complete(asyncio.sleep(0.001))

    def read(self, client: socket.socket, count: int) -> bytes:
        """Up to `count` bytes; fewer when the connection ends."""
        data = b""
        is_over = False

        def step() -> bool:
            nonlocal data, is_over
            try:
                piece = client.recv(count - len(data))
                is_over = not piece
                data += piece
            except BlockingIOError:
                pass
            except ConnectionResetError:
                is_over = True
            return is_over or len(data) == count

        self.until(step)
        return data

    def stop(self) -> None:
        done = self.server.stop(0)
        self.until(lambda: done.is_resolved)
        for client in self.clients:
            client.close()


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> Iterator[asyncio.AbstractEventLoop]:
    loop = LOOPS[request.param]()
    yield loop
    loop.close()


def test_requests_are_answered_in_order(loop):
    running = Running(loop)
    client = running.connect()
    client.send(frame(b"later-1") + frame(b"two"))
    running.until(lambda: len(running.service.requests) == 2)
    running.service.resolve(b"later-1")
    expected = frame(b"later-1") + frame(b"two")
    assert running.read(client, len(expected)) == expected
    running.stop()


def test_a_frame_in_single_bytes_is_one_request(loop):
    running = Running(loop)
    client = running.connect()
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in frame(b"slowly"):
        client.send(bytes([byte]))
        loop.run_until_complete(asyncio.sleep(0))
    assert running.read(client, 10) == frame(b"slowly")
    running.stop()


def test_listeners_have_names_and_free_ports(loop):
    running = Running(
        loop,
        listeners="INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        listener_security_protocol_map="INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
    )
    inside, outside = (running.server.addresses[name] for name in ("INSIDE", "OUTSIDE"))
    assert inside[1] != outside[1] != 0
    for name in ("INSIDE", "OUTSIDE"):
        client = running.connect(name)
        client.send(frame(b"hello"))
        assert running.read(client, 9) == frame(b"hello")
    running.stop()


def test_a_port_in_use_is_an_error_and_leaves_nothing_open(loop):
    running = Running(loop)
    port = running.server.addresses["PLAINTEXT"][1]
    with pytest.raises(OSError):
        Running(loop, listeners=f"PLAINTEXT://127.0.0.1:{port}")
    running.stop()


def test_connections_beyond_the_limit_wait_and_the_others_go_on(loop, caplog):
    running = Running(loop, max_connections="2")
    clients = [running.connect() for _ in range(4)]
    for client in clients:
        client.send(frame(b"hello"))
    for client in clients[:2]:
        assert running.read(client, 9) == frame(b"hello")
    loop.run_until_complete(asyncio.sleep(0.05))
    assert len(running.server._connections) == 2
    assert "max.connections" in caplog.text
    for gone, comes in ((0, 2), (1, 3)):
        clients[gone].close()
        assert running.read(clients[comes], 9) == frame(b"hello")
    running.stop()


def test_a_broker_that_comes_in_sends_away_who_has_been_silent_for_longest(loop):
    running = Running(
        loop,
        listeners="INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        listener_security_protocol_map="INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        inter_broker_listener_name="INSIDE",
        max_connections="2",
    )
    silent, lively = (running.connect("OUTSIDE") for _ in range(2))
    running.until(lambda: len(running.server._connections) == 2)
    silent.send(frame(b"hello"))
    assert running.read(silent, 9) == frame(b"hello")
    loop.run_until_complete(asyncio.sleep(0.6))
    lively.send(frame(b"hello"))
    assert running.read(lively, 9) == frame(b"hello")
    broker = running.connect("INSIDE")
    broker.send(frame(b"hello"))
    assert running.read(broker, 9) == frame(b"hello")
    assert running.read(silent, 1) == b""
    assert len(running.server._connections) == 2
    running.stop()


def test_stopping_ends_the_idle_at_once_and_the_busy_within_the_grace(loop):
    running = Running(loop)
    idle, busy, stuck = (running.connect() for _ in range(3))
    busy.send(frame(b"later-busy"))
    stuck.send(frame(b"later-stuck"))
    running.until(lambda: len(running.service.requests) == 2)
    done = running.server.stop(grace_ms=300)
    assert running.read(idle, 1) == b""
    assert not done.is_resolved
    running.service.resolve(b"later-busy")
    assert running.read(busy, 100) == frame(b"later-busy")
    running.until(lambda: done.is_resolved)
    assert running.read(stuck, 1) == b""
    assert len(running.server._connections) == 0
    for client in (idle, busy, stuck):
        client.close()


def test_each_listener_has_its_own_terms_and_what_is_known_of_it_its_connections_know(loop):
    running = Running(
        loop,
        listeners="WIDE://127.0.0.1:0,NARROW://127.0.0.1:0",
        listener_security_protocol_map="WIDE:PLAINTEXT,NARROW:SASL_SSL",
    )
    for name in ("NARROW", "WIDE"):
        running.connect(name).send(frame(name.encode()))
        running.until(lambda name=name: name.encode() in running.service.requests)
    assert [(each.listener, each.protocol, each.kind) for each in running.infos] == [
        ("NARROW", "SASL_SSL", BROKER),
        ("WIDE", "PLAINTEXT", BROKER),
    ]
    for client in running.clients:
        client.send(frame(b"later-1") + frame(b"later-2"))
        running.until(lambda: b"later-1" in running.service.laters)
        if client is running.clients[1]:
            running.until(lambda: b"later-2" in running.service.laters)
        else:
            running.settle()
            assert b"later-2" not in running.service.laters
    running.stop()


def test_a_listener_of_controllers_is_one_to_its_connections(loop):
    running = Running(loop)
    running.server.stop_listening()
    running.server.start([Listener("PLAINTEXT", "127.0.0.1", 0, "PLAINTEXT", CONTROLLER)])
    client = running.connect()
    client.send(frame(b"hello"))
    assert running.read(client, 9) == frame(b"hello")
    assert [(each.listener, each.kind) for each in running.infos] == [("PLAINTEXT", CONTROLLER)]
    running.stop()


def test_stopping_with_nobody_connected_is_done_at_once(loop):
    running = Running(loop)
    assert running.server.stop(10_000).is_resolved
    assert running.server.addresses == {}


@pytest.mark.parametrize(
    ("given", "expected"), [({}, 4_096), ({"socket.listen.backlog.size": "7"}, 7)]
)
def test_as_many_may_wait_to_be_accepted_as_is_configured(given, expected):
    asked = []

    class Network:
        def listen(self, host: str, port: int, backlog: int, *_: Any) -> Any:
            asked.append(backlog)

        def connect(self, *_: Any) -> Any:
            raise AssertionError("nobody is connected to")

        def soon(self, callback: Any) -> None:
            raise AssertionError("nobody connects")

    clock = ManualClock()
    listeners = {"listeners": "A://:0,B://:0"}
    protocols = {"listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT"}
    config = BrokerConfig({**listeners, **protocols, **given})
    terms, log = Terms(FakeService()), LimitedLog(clock)
    Server(Network(), clock, Slices(clock), config, lambda info: terms, log).start()
    assert asked == [expected, expected]
