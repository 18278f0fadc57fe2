"""Very many sockets that have something to read in the same moment: a turn of the loop reads a
bounded number of them, in the order in which they came."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from kafkalite.env.network import Address, Link
from kafkalite.env.reading import READ_PER_TURN
from kafkalite.env.sockets import SocketNetwork
from tests.unit.env.test_sockets import LOOPS

PEERS = 2 * READ_PER_TURN + 50


class Reader:
    """A receiver that notes in which turn it was read."""

    def __init__(self, link: Link, crowd: Crowd) -> None:
        self.link = link
        self._crowd = crowd
        self._room = bytearray(64)
        self.turns: list[int] = []
        link.start(self)

    def buffer(self) -> memoryview:
        return memoryview(self._room)

    def received(self, count: int) -> None:
        self.turns.append(self._crowd.turn)
        if self._crowd.on_read is not None:
            self._crowd.on_read()

    def sent(self) -> None:
        raise AssertionError("nothing is sent")

    def finished(self) -> None:
        self.link.abort()

    def ended(self) -> None:
        self._crowd.ended_in.append(self._crowd.turn)


class Crowd:
    """As many connected peers as two turns cannot read."""

    def __init__(self, loop: asyncio.AbstractEventLoop, stack: ExitStack) -> None:
        self.loop = loop
        self._stack = stack
        self.turn = 0
        self.ended_in: list[int] = []
        self.on_read: Callable[[], None] | None = None
        self.readers: list[Reader] = []
        port = SocketNetwork(loop).listen("127.0.0.1", 0, PEERS, self._accept)
        stack.callback(port.close)
        self.peers = [self._peer(port.address) for _ in range(PEERS)]
        self._count_turn()
        self.until(lambda: len(self.readers) == PEERS)

    def _accept(self, link: Link) -> None:
        self._stack.callback(link.abort)
        self.readers.append(Reader(link, self))

    def _peer(self, address: Address) -> socket.socket:
        return self._stack.enter_context(socket.create_connection(address))

    def _count_turn(self) -> None:
        self.turn += 1
        self.loop.call_later(0, self._count_turn)

    def until(self, is_so: Callable[[], bool]) -> None:
        for _ in range(500):
            if is_so():
                return
            self.loop.call_later(0.002, self.loop.stop)
            self.loop.run_forever()
        raise AssertionError("it never was so")

    @property
    def read(self) -> list[int]:
        return [turn for reader in self.readers for turn in reader.turns]


@pytest.fixture(params=LOOPS)
def crowd(request: pytest.FixtureRequest) -> Iterator[Crowd]:
    loop = LOOPS[request.param]()
    with ExitStack() as stack:
        stack.callback(loop.close)
        yield Crowd(loop, stack)


def test_a_turn_reads_a_bounded_number_of_sockets(crowd: Crowd) -> None:
    for peer in crowd.peers:
        peer.sendall(b"x")
    crowd.until(lambda: len(crowd.read) == PEERS)
    # Reading and counting of turns are in step to within one.
    for turn in set(crowd.read):
        assert crowd.read.count(turn) <= 2 * READ_PER_TURN
    assert len(set(crowd.read)) >= 2


def test_who_is_put_off_may_pause_or_end_meanwhile(crowd: Crowd) -> None:
    others: list[Reader] = []

    def interfere() -> None:
        crowd.on_read = None
        others.extend(each for each in crowd.readers if not each.turns)
        for reader in others[::2]:
            reader.link.pause()
        for reader in others[1::2]:
            reader.link.abort()

    for peer in crowd.peers:
        peer.sendall(b"x")
    crowd.on_read = lambda: interfere() if len(crowd.read) > READ_PER_TURN else None
    crowd.until(lambda: bool(others))
    last = crowd.turn
    crowd.until(lambda: crowd.turn > last + 20)
    assert not any(reader.turns for reader in others)
    for reader in others[::2]:
        reader.link.resume()
    crowd.until(lambda: all(reader.turns for reader in others[::2]))
    assert not any(reader.turns for reader in others[1::2])


def test_all_that_leave_at_once_are_seen_off_in_several_turns(crowd: Crowd) -> None:
    for peer in crowd.peers:
        peer.close()
    crowd.until(lambda: len(crowd.ended_in) == PEERS)
    assert len(set(crowd.ended_in)) >= 2
