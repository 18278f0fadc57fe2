"""What can be seen of the code only while it runs: how many calls lie between a socket and a file.

A call costs some 50 ns and a reader a jump, so the way of a small Produce is counted and may only
get shorter.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import kafkalite
from kafkalite.env.sockets import SocketLink
from kafkalite.server.connection import Common, Connection
from kafkalite.server.limits import Deadlines, Limits, RequestMemory
from kafkalite.server.terms import Terms
from tests.unit.handlers.producing import batch_of, by_producer, request
from tests.unit.handlers.whole_broker import WholeBroker

PACKAGE = Path(kafkalite.__file__).parent
# From the socket's callback to the file's write, both counted.
CALLS_OF_A_PRODUCE = 10


@pytest.fixture
def broker() -> Iterator[WholeBroker]:
    broker = WholeBroker()
    broker.create("t")
    yield broker
    broker.close()


class Wire:
    """A connection of the broker over a real socket, which is read when asked to."""

    def __init__(self, broker: WholeBroker) -> None:
        self._broker = broker
        self._loop = asyncio.new_event_loop()
        self._ours, self._peer = socket.socketpair()
        self._ours.setblocking(False)
        limits = Limits.of(broker.config)
        memory = RequestMemory(limits.max_queued_request_bytes)
        deadlines = Deadlines(broker.clock, limits, memory)
        common = Common(limits, memory, deadlines, lambda act: act())
        self.link = SocketLink(self._loop, self._ours, ("10.0.0.9", 40_000))
        terms = Terms(broker.broker.dispatcher)
        self.link.start(Connection(common, terms, self.link, broker.connection, lambda _: None))

    def send(self, batch: Any) -> None:
        frame = bytes(self._broker.frame(request(batch), 9))
        self._peer.sendall(struct.pack(">i", len(frame)) + frame)

    def error_code(self) -> int:
        """Of the one partition in the response of version 9: behind its name and its number."""
        response = self._peer.recv(1_000)
        code: int = struct.unpack_from(">h", response, 4 + 4 + 1 + 1 + 2 + 1 + 4)[0]
        return code

    def close(self) -> None:
        self.link.pause()
        self._ours.close()
        self._peer.close()
        self._loop.close()


@pytest.fixture
def wire(broker: WholeBroker) -> Iterator[Wire]:
    wire = Wire(broker)
    yield wire
    wire.close()


def ways_to_the_file(wire: Wire) -> list[list[str]]:
    """The calls of this package from the socket's callback to each write of a file."""
    found: list[list[str]] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name == "write_at":
            found.append(_ours(frame))

    sys.setprofile(note)
    try:
        wire.link._readable()
    finally:
        sys.setprofile(None)
    return found


def _ours(frame: FrameType | None) -> list[str]:
    names: list[str] = []
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(PACKAGE):
            names.append(f"{path.relative_to(PACKAGE)}: {frame.f_code.co_qualname}")
        frame = frame.f_back
    return names[::-1]


@pytest.mark.pure  # compiled functions have no frames
@pytest.mark.parametrize("is_idempotent", [False, True])
def test_a_small_produce_is_few_calls_from_the_socket_to_the_file(
    broker: WholeBroker, wire: Wire, is_idempotent: bool
) -> None:
    broker.ask(request(by_producer(broker, 0)), 9)  # the first of its kind, and of its producer
    wire.send(by_producer(broker, 1) if is_idempotent else batch_of(broker, b"v" * 100))
    (way,) = ways_to_the_file(wire)
    assert wire.error_code() == 0
    assert broker.partition().log.log_end_offset == 2
    assert way[0].endswith("_readable")
    assert len(way) == CALLS_OF_A_PRODUCE, "\n".join(["", *way])
