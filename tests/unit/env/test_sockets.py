"""Real sockets on both event loops: everything given arrives, in order, whatever the peer's
pace."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import uvloop

from kafkalite.env.disk import Disk, File, FileRange, RealDisk
from kafkalite.env.memory import MemoryDisk
from kafkalite.env.network import SYSTEM_BUFFERS, Buffers, Link
from kafkalite.env.sockets import (
    CHUNK_BYTES,
    GATHERED_PARTS,
    SENDFILE_BYTES,
    WRITES_PER_TURN,
    SocketLink,
    SocketNetwork,
)

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> Iterator[asyncio.AbstractEventLoop]:
    loop = LOOPS[request.param]()
    yield loop
    loop.close()


class Collector:
    """A receiver that keeps what it gets and hears of the end."""

    def __init__(self, link: Link, loop: asyncio.AbstractEventLoop) -> None:
        self.link = link
        self.loop = loop
        self.room = bytearray(4096)
        self.got = b""
        self.sent_calls = 0
        self.ends = 0
        link.start(self)

    def buffer(self) -> memoryview:
        return memoryview(self.room)

    def received(self, count: int) -> None:
        self.got += self.room[:count]

    def sent(self) -> None:
        self.sent_calls += 1

    def finished(self) -> None:
        self.link.abort()

    def ended(self) -> None:
        self.ends += 1


class Pair:
    """Our side of a connection, and a blocking socket for the peer's side."""

    def __init__(self, loop: asyncio.AbstractEventLoop, buffer_bytes: int | None = None) -> None:
        self.loop = loop
        self.accepted: list[Collector] = []
        self.port = SocketNetwork(loop).listen("127.0.0.1", 0, 16, self._accept)
        self.peer = socket.socket()
        if buffer_bytes is not None:
            self.peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        self.peer.connect(self.port.address)
        self.peer.setblocking(False)
        self.until(lambda: bool(self.accepted))
        self.ours = self.accepted[0]

    def _accept(self, link: Link) -> None:
        self.accepted.append(Collector(link, self.loop))

    def until(self, condition: Callable[[], bool], turns: int = 5_000) -> None:
        for _ in range(turns):
            if condition():
                return
            self.loop.run_until_complete(asyncio.sleep(0.001))
        raise AssertionError("it never happened")

    def read(self, count: int, pace: int = 1 << 20) -> bytes:
        """What the peer gets, `pace` bytes per turn of the loop."""
        data = b""

        def step() -> bool:
            nonlocal data
            try:
                piece = self.peer.recv(min(pace, count - len(data)))
                assert piece, f"the connection ended after {len(data)} of {count} bytes"
                data += piece
            except BlockingIOError:
                pass
            return len(data) == count

        self.until(step)
        return data

    def close(self) -> None:
        self.peer.close()
        self.port.close()
        self.until(lambda: all(each.ends for each in self.accepted))


@pytest.fixture
def pair(loop: asyncio.AbstractEventLoop) -> Iterator[Pair]:
    made = Pair(loop)
    yield made
    made.close()


def make_file(disk: Disk, directory: Path) -> File:
    disk.make_directory(str(directory))
    return disk.create(f"{directory}/data")


def test_bytes_come_and_go(pair: Pair):
    pair.peer.send(b"hello")
    pair.until(lambda: pair.ours.got == b"hello")
    pair.ours.link.send([b"good", memoryview(b"-"), bytearray(b"bye")])
    assert pair.read(8) == b"good-bye"
    assert pair.ours.link.unsent_bytes == 0


def test_both_sides_know_their_addresses(pair: Pair):
    assert pair.ours.link.local_address == pair.port.address == pair.peer.getpeername()
    assert pair.ours.link.peer_address == pair.peer.getsockname()


@pytest.mark.parametrize("disk", [RealDisk, MemoryDisk])  # with sendfile where there is, without
def test_parts_of_files_and_of_memory_arrive_in_order(pair, tmp_path, disk):
    content = random.Random(1).randbytes(3_000_000)
    file = make_file(disk(), tmp_path)
    file.write_at(0, content)
    expected = b""
    parts: list[bytes | FileRange] = []
    for length in (10, SENDFILE_BYTES - 1, SENDFILE_BYTES, CHUNK_BYTES, 1_000_000, 1, 700_000):
        head = b"<%d>" % length
        parts += [head, FileRange(file, length // 2, length)]
        expected += head + content[length // 2 : length // 2 + length]
    parts.append(b"end")
    pair.ours.link.send(parts)
    assert pair.ours.link.unsent_bytes <= len(expected) + 3
    assert pair.read(len(expected) + 3, pace=300_000) == expected + b"end"
    assert pair.ours.link.unsent_bytes == 0


def test_thousands_of_small_parts_of_files_go_some_in_each_turn(pair: Pair, tmp_path):
    file = make_file(RealDisk(), tmp_path)
    file.write_at(0, random.Random(3).randbytes(100_000))
    read: list[int] = []

    class Counted:
        path = file.path

        def read_at(self, position: int, length: int) -> bytes:
            read.append(position)
            return file.read_at(position, length)

    parts = [FileRange(Counted(), 20 * number, 20) for number in range(5_000)]  # type: ignore[arg-type]
    pair.ours.link.send(parts)
    assert len(read) == WRITES_PER_TURN * GATHERED_PARTS
    assert pair.read(100_000) == file.read_at(0, 100_000)
    assert len(read) == 5_000
    assert pair.ours.link.unsent_bytes == 0


def test_a_slow_reader_gets_everything_and_its_pace_is_heard_of(loop, tmp_path):
    pair = Pair(loop, buffer_bytes=16_384)
    content = random.Random(2).randbytes(5_000_000)
    file = make_file(RealDisk(), tmp_path)
    file.write_at(0, content)
    small = [b"%07d" % i for i in range(50_000)]
    pair.ours.link.send([FileRange(file, 0, len(content))])
    for piece in small:
        pair.ours.link.send([piece])
    assert pair.ours.link.unsent_bytes > 350_000
    assert pair.ours.link.held_bytes == 350_000
    assert pair.read(len(content), pace=100_000) == content
    assert pair.read(350_000) == b"".join(small)
    assert pair.ours.sent_calls > 0
    pair.close()


def test_closing_sends_what_was_given_first(loop):
    pair = Pair(loop, buffer_bytes=16_384)
    data = random.Random(3).randbytes(4_000_000)
    pair.ours.link.send([data])
    pair.ours.link.close()
    assert pair.ours.ends == 0
    assert pair.read(len(data)) == data
    pair.until(lambda: pair.ours.ends == 1)
    pair.close()


def test_the_peers_end_is_heard_of_once(pair: Pair):
    pair.peer.close()
    pair.until(lambda: pair.ours.ends > 0)
    pair.ours.link.abort()
    pair.ours.link.send([b"to nobody"])
    assert pair.ours.ends == 1


def test_a_peer_that_sends_no_more_can_still_be_sent_to(pair: Pair, monkeypatch):
    heard: list[str] = []
    monkeypatch.setattr(pair.ours, "finished", lambda: heard.append("finished"), raising=True)
    pair.peer.send(b"last words")
    pair.peer.shutdown(socket.SHUT_WR)
    pair.until(lambda: bool(heard))
    assert pair.ours.got == b"last words"
    pair.ours.link.send([b"an answer"])
    pair.ours.link.close()
    assert pair.read(9) == b"an answer"
    assert (heard, pair.ours.ends) == (["finished"], 1)


def test_a_reset_is_an_end(pair: Pair):
    pair.ours.link.send([b"x" * 100])
    pair.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    pair.peer.close()
    pair.until(lambda: pair.ours.ends == 1)


def test_a_paused_link_is_not_read(pair: Pair):
    pair.ours.link.pause()
    pair.peer.send(b"hello")
    for _ in range(20):
        pair.loop.run_until_complete(asyncio.sleep(0.001))
    assert pair.ours.got == b""
    pair.ours.link.resume()
    pair.until(lambda: pair.ours.got == b"hello")


def test_a_file_that_is_shorter_than_announced_ends_the_connection(pair, tmp_path, caplog):
    for length in (100, 200_000):
        file = make_file(RealDisk(), tmp_path)
        file.write_at(0, b"x" * (length // 2))
        pair.ours.link.send([b"head", FileRange(file, 0, length)])
    pair.until(lambda: pair.ours.ends == 1)
    assert "ends before" in caplog.text


def test_more_connections_than_are_taken_in_one_turn(loop):
    accepted: list[Collector] = []
    network = SocketNetwork(loop)
    port = network.listen("127.0.0.1", 0, 512, lambda link: accepted.append(Collector(link, loop)))
    peers = [socket.create_connection(port.address) for _ in range(300)]
    for _ in range(5_000):
        if len(accepted) == 300:
            break
        loop.run_until_complete(asyncio.sleep(0.001))
    assert len(accepted) == 300
    for peer in peers:
        peer.close()
    for each in accepted:
        each.link.abort()
    port.close()


def test_a_name_is_its_ipv4_address(loop):
    port = SocketNetwork(loop).listen("localhost", 0, 16, lambda link: link.abort())
    assert port.address[0] == "127.0.0.1"
    port.close()


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 here")
@pytest.mark.parametrize("every", ["", "::"])
def test_every_address_is_of_both_families_and_ipv4_looks_like_ipv4(loop, every):
    accepted: list[Link] = []
    port = SocketNetwork(loop).listen(every, 0, 16, accepted.append)
    for host in ("127.0.0.1", "::1"):
        peer = socket.create_connection((host, port.address[1]))
        for _ in range(5_000):
            if accepted:
                break
            loop.run_until_complete(asyncio.sleep(0.001))
        link = accepted.pop()
        assert link.local_address == (host, port.address[1])
        assert link.peer_address[0] == host
        link.abort()
        peer.close()
    port.close()


def test_connections_have_the_buffers_that_were_asked_for(loop):
    accepted: list[SocketLink] = []
    network = SocketNetwork(loop)
    for buffers in (SYSTEM_BUFFERS, Buffers(send_bytes=20_000, receive_bytes=30_000)):
        port = network.listen("127.0.0.1", 0, 16, accepted.append, buffers)  # type: ignore[arg-type]
        peer = socket.create_connection(port.address)
        while not accepted:
            loop.run_until_complete(asyncio.sleep(0.001))
        ours = accepted.pop()._socket
        sizes = [
            ours.getsockopt(socket.SOL_SOCKET, o) for o in (socket.SO_SNDBUF, socket.SO_RCVBUF)
        ]
        is_small = [20_000 <= sizes[0] <= 60_000, 30_000 <= sizes[1] <= 90_000]
        assert all(is_small) == (buffers.send_bytes > 0)
        ours.close()
        peer.close()
        port.close()
