"""Encrypted listeners of a whole server, on real sockets: who is let in, and as whom."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kafkalite.config.broker import BrokerConfig
from kafkalite.env.clock import RealClock
from kafkalite.env.handshakes import Handshake
from kafkalite.env.slicing import Slices
from kafkalite.env.sockets import SocketNetwork
from kafkalite.env.tls_link import TlsLink
from kafkalite.handlers.call import ANONYMOUS
from kafkalite.security.authority import pem_of
from kafkalite.security.tls_settings import tls_of
from kafkalite.server.connection_info import ConnectionInfo
from kafkalite.server.limits import LimitedLog
from kafkalite.server.listener import Server
from kafkalite.server.terms import Terms
from tests.unit.security import keys
from tests.unit.server.support import FakeService, frame

WAIT_S = 10


class Guarded:
    """A server with the listener SSL, which echoes."""

    def __init__(self, loop: asyncio.AbstractEventLoop, **changes: str) -> None:
        issued = keys.server()
        given = {
            "listeners": "SSL://127.0.0.1:0",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": issued.key_pem,
            "ssl.keystore.certificate.chain": issued.chain_pem,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": pem_of(issued.root),
            "ssl.client.auth": "requested",
            **{name.replace("_", "."): text for name, text in changes.items()},
        }
        config = BrokerConfig(given)
        tls = tls_of(config, config.listeners[0])
        assert tls is not None
        self.loop = loop
        self.encrypted = {"SSL": tls}
        self.infos: list[ConnectionInfo] = []
        self.ended = 0
        clock = RealClock(loop)
        service = FakeService()

        def terms_of(info: ConnectionInfo) -> Terms:
            self.infos.append(info)
            return Terms(service)

        log = LimitedLog(clock)
        self.server = Server(
            SocketNetwork(loop), clock, Slices(clock), config, terms_of, log,
            encrypted=self.encrypted,
        )
        self.server.start()

    @property
    def address(self) -> tuple[str, int]:
        return self.server.addresses["SSL"]

    @property
    def connections(self) -> int:
        return self.server._quotas.total

    def call(self, client, *arguments):
        """What a blocking client on a thread of its own comes to."""
        waiting = self.loop.run_in_executor(None, client, self.address, *arguments)
        return self.loop.run_until_complete(asyncio.wait_for(waiting, WAIT_S))

    def until_empty(self) -> None:
        for _ in range(2_000):
            if not self.connections:
                return
            self.loop.run_until_complete(asyncio.sleep(0.001))
        raise AssertionError(f"{self.connections} connections are counted still")


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


@pytest.fixture
def start(loop: asyncio.AbstractEventLoop):
    started: list[Guarded] = []

    def make(**changes: str) -> Guarded:
        started.append(Guarded(loop, **changes))
        return started[-1]

    yield make
    for each in started:
        stopped = each.server._stopped or each.server.stop(0)
        for _ in range(1_000):
            if stopped.is_resolved:
                break
            loop.run_until_complete(asyncio.sleep(0.001))


def context(issued=None, tmp_path=None) -> ssl.SSLContext:
    made = ssl.create_default_context(cadata=pem_of(keys.authority().root))
    if issued is not None:
        path = tmp_path / "client.pem"
        path.write_text(issued.key_pem + issued.chain_pem)
        made.load_cert_chain(path)
    return made


def echo(address, how: ssl.SSLContext, body: bytes) -> bytes:
    with (
        socket.create_connection(address, WAIT_S) as link,
        how.wrap_socket(link, server_hostname="localhost") as encrypted,
    ):
        encrypted.sendall(frame(body))
        heard = b""
        while len(heard) < len(frame(body)):
            part = encrypted.recv(65_536)
            if not part:
                break
            heard += part
        return heard


def say(address, words: bytes) -> bytes:
    with socket.create_connection(address, WAIT_S) as link:
        link.sendall(words)
        heard = b""
        try:
            while part := link.recv(4096):
                heard += part
        except ConnectionResetError:
            pass
        return heard


def test_who_shows_no_certificate_is_nobody(start) -> None:
    guarded = start()
    body = b"x" * 300_000
    assert guarded.call(echo, context(), body) == frame(body)
    assert [info.principal for info in guarded.infos] == [ANONYMOUS]
    guarded.until_empty()


def test_a_certificate_names_the_user(start, tmp_path) -> None:
    guarded = start()
    assert guarded.call(echo, context(keys.client(), tmp_path), b"hello") == frame(b"hello")
    assert [info.principal for info in guarded.infos] == ["User:CN=client,OU=people,O=tests"]


def test_a_certificate_that_no_rule_fits_is_not_let_in(start, tmp_path, caplog) -> None:
    guarded = start(ssl_principal_mapping_rules="RULE:^CN=nobody$/x/")
    with pytest.raises((OSError, AssertionError)):
        assert guarded.call(echo, context(keys.client(), tmp_path), b"hello")
    assert guarded.infos == []
    assert "No rules apply to CN=client" in caplog.text
    guarded.until_empty()


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (frame(b"\0\x12\0\0\0\0\0\1\0\0"), "it does not speak TLS: set security"),
        (b"GET / HTTP/1.1\r\n\r\n", "it speaks HTTP: a browser"),
    ],
)
def test_who_does_not_speak_tls_is_told_of_in_one_line(start, caplog, words, hint) -> None:
    guarded = start()
    guarded.call(say, words)
    guarded.until_empty()
    lines = [each.message for each in caplog.records if each.levelno >= logging.WARNING]
    assert len(lines) == 1
    assert hint in lines[0]


def test_a_wrong_certificate_is_one_line_and_holds_no_place(start, tmp_path, caplog) -> None:
    guarded = start()
    with pytest.raises((OSError, AssertionError)):
        assert guarded.call(echo, context(keys.stranger(), tmp_path), b"hello")
    guarded.until_empty()
    assert caplog.text.count("Failed authentication with 127.0.0.1") == 1


def test_a_handshake_that_is_never_over_is_ended_and_holds_no_place(start, caplog) -> None:
    guarded = start(kafkalite_frame_timeout_ms="50")
    guarded.call(say, b"\x16\x03\x01\x02\x00\x01")
    guarded.until_empty()
    assert "it is not over within 50 ms" in caplog.text


def test_a_slow_exchange_of_keys_is_refused_in_one_line(start, caplog) -> None:
    guarded = start()
    how = context()
    how.set_ecdh_curve("ffdhe8192")
    with pytest.raises((OSError, AssertionError)):
        assert guarded.call(echo, how, b"hello")
    guarded.until_empty()
    assert "finite field of 4,096 bits or more" in caplog.text


@contextmanager
def nothing_is_left_to_the_collector() -> Iterator[None]:
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
        assert not [each for each in gc.get_objects() if isinstance(each, (Handshake, TlsLink))]
    finally:
        gc.enable()
        gc.unfreeze()


@pytest.mark.parametrize("words", [b"no TLS", b"\x16\x03\x01\x02\x00\x01", b""])
def test_who_has_failed_leaves_nothing_to_the_collector(start, words) -> None:
    guarded = start(kafkalite_frame_timeout_ms="50")
    with nothing_is_left_to_the_collector():
        guarded.call(say, words)
        guarded.until_empty()


def test_who_was_let_in_leaves_nothing_to_the_collector(start) -> None:
    guarded = start()
    with nothing_is_left_to_the_collector():
        assert guarded.call(echo, context(), b"hello") == frame(b"hello")
        guarded.until_empty()


def test_a_stop_ends_handshakes_that_are_under_way(start, loop) -> None:
    guarded = start()
    with socket.create_connection(guarded.address) as link:
        for _ in range(100):
            loop.run_until_complete(asyncio.sleep(0.001))
            if guarded.connections:
                break
        stopped = guarded.server.stop(0)
        assert stopped.is_resolved
        assert guarded.connections == 0
        link.settimeout(WAIT_S)
        assert link.recv(10) == b""


def test_new_connections_meet_new_keys_and_old_ones_go_on(start, loop) -> None:
    guarded = start()
    link = socket.create_connection(guarded.address)
    how = context()

    def shake() -> ssl.SSLSocket:
        encrypted = how.wrap_socket(link, server_hostname="localhost")
        encrypted.settimeout(WAIT_S)
        return encrypted

    def ask(encrypted: ssl.SSLSocket) -> bytes:
        encrypted.sendall(frame(b"hello"))
        return encrypted.recv(100)

    old = loop.run_until_complete(loop.run_in_executor(None, shake))
    other = keys.authority().issue("CN=server,O=tests", keys.HOSTS)
    config = BrokerConfig({
        "listeners": "SSL://127.0.0.1:0", "ssl.keystore.type": "PEM",
        "ssl.keystore.key": other.key_pem, "ssl.keystore.certificate.chain": other.chain_pem,
    })  # fmt: skip
    renewed = tls_of(config, config.listeners[0])
    assert renewed is not None
    guarded.encrypted["SSL"] = renewed
    assert loop.run_until_complete(loop.run_in_executor(None, ask, old)) == frame(b"hello")

    def shown(address) -> bytes | None:
        with (
            socket.create_connection(address, WAIT_S) as fresh,
            how.wrap_socket(fresh, server_hostname="localhost") as encrypted,
        ):
            return encrypted.getpeercert(binary_form=True)

    assert guarded.call(shown) == renewed.leaves[0]
    assert old.getpeercert(binary_form=True) != renewed.leaves[0]
    old.close()
